// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"

	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/store"
)

// kept is what outlives the process: below the cache directory, references
// with uploads, what conversations were shown, and observations.
type kept struct {
	references   *reference.Keeper
	pins         *pin.Store
	observations *store.Store // nil without a cache directory
}

// openKept opens what is below dir; without one, references and what was shown are
// kept in memory and nothing outlives the process.
func openKept(dir string, persisted int64, log *slog.Logger) (*kept, error) {
	if dir != "" {
		if err := checkDirectory(dir); err != nil {
			return nil, fmt.Errorf("opening cache directory: %w", err)
		}
	}
	references, err := reference.Open(reference.Options{Dir: dir, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("opening cache directory: %w", err)
	}
	pins, err := pin.Open(pin.Options{Dir: below(dir, "pinned"), Logger: log})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening cache directory: %w", err), references.Close())
	}
	if dir == "" {
		return &kept{references: references, pins: pins}, nil
	}
	observations, err := store.Open(store.Options{
		Dir: filepath.Join(dir, "observations"), Ceiling: persisted,
		MaxBytes: cmp.Or(persisted, math.MaxInt64), MaxEntries: math.MaxInt, // until a policy bounds them
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening cache directory: %w", err), pins.Close(), references.Close())
	}
	return &kept{references: references, pins: pins, observations: observations}, nil
}

// below is a directory of the cache directory, if there is one.
func below(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

func (k *kept) close() error {
	err := errors.Join(k.references.Close(), k.pins.Close())
	if k.observations != nil {
		err = errors.Join(err, k.observations.Close())
	}
	return err
}

func checkDirectory(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	return nil
}
