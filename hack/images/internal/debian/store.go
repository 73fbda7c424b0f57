// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

// Store keeps packages' files by their SHA-256 in a folder, and gets what is missing from Debian.
type Store struct {
	// Dir is the folder; it is made when needed.
	Dir string
	// Say, when set, is told what takes time.
	Say func(format string, args ...any)
}

// GoneError is packages that a lock names and no archive has.
type GoneError struct {
	Packages []Package
	Tried    error
}

func (e *GoneError) Error() string {
	names := make([]string, len(e.Packages))
	for i, p := range e.Packages {
		names[i] = p.String()
	}
	return fmt.Sprintf("getting packages %s: no archive gave them. When Debian has newer versions, run make images-lock and commit "+
		"the lock, or build once with today's versions: make images DEBIAN=current. What was tried: %v", strings.Join(names, ", "), e.Tried)
}

func (e *GoneError) Unwrap() error { return e.Tried }

// DigestError is a package whose file is not the one that was asked for.
type DigestError struct {
	Package Package
	Got     string
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("getting %s: its SHA-256 is %s, and must be %s", e.Package, e.Got, e.Package.SHA256)
}

// Resolve returns what packages and all that they depend on are today, in apt's order.
func (s *Store) Resolve(ctx context.Context, suite, architecture string, names []string) ([]Package, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	s.say("resolving %s for %s", strings.Join(names, ", "), architecture)
	a, err := openApt(ctx, s.Dir, suite, architecture, mirror{})
	if err != nil {
		return nil, err
	}
	return a.resolve(ctx, names)
}

// Unpack returns the packages with their files, and first gets those that the
// store lacks: from Debian's mirrors, else from snapshot.debian.org as of snapshot, unless that is empty.
// Packages that neither has are a *GoneError.
func (s *Store) Unpack(ctx context.Context, suite, snapshot, architecture string, packages []Package) ([]Unpacked, error) {
	unlock, err := s.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	missing := slices.DeleteFunc(slices.Clone(packages), s.has)
	var tried error
	for _, from := range []mirror{{}, {snapshot: snapshot}} {
		if len(missing) == 0 || tried != nil && snapshot == "" {
			break
		}
		s.say("getting %d packages for %s from %s", len(missing), architecture, from)
		err := s.get(ctx, suite, architecture, from, missing)
		if err != nil && !isCommand(err) {
			return nil, err
		}
		tried = errors.Join(tried, err)
		missing = slices.DeleteFunc(missing, s.has)
	}
	if len(missing) > 0 {
		return nil, &GoneError{Packages: missing, Tried: tried}
	}
	unpacked := make([]Unpacked, len(packages))
	for i, p := range packages {
		if unpacked[i], err = s.open(ctx, p); err != nil {
			return nil, err
		}
	}
	return unpacked, nil
}

func (s *Store) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(format, args...)
	}
}

// lock keeps other processes out of the store until the returned function is called.
func (s *Store) lock() (func(), error) {
	if err := os.MkdirAll(filepath.Join(s.Dir, "debs"), 0o700); err != nil {
		return nil, fmt.Errorf("making the store of packages: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the store of packages: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking the store of packages: %w", err)
	}
	// Downloads of builds that were killed: nobody else downloads now.
	left, err := filepath.Glob(filepath.Join(s.Dir, "partial.*"))
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("removing old downloads: %w", err)
	}
	return func() { f.Close() }, nil
}

func (s *Store) path(p Package) string { return filepath.Join(s.Dir, "debs", p.SHA256+".deb") }

func (s *Store) has(p Package) bool {
	sum, err := digest(s.path(p))
	return err == nil && sum == p.SHA256
}

func digest(name string) (string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// get downloads packages into the store. When a mirror lacks one, apt gets none, so each is then asked for alone.
func (s *Store) get(ctx context.Context, suite, architecture string, from mirror, packages []Package) error {
	a, err := openApt(ctx, s.Dir, suite, architecture, from)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.Dir, "partial.")
	if err != nil {
		return fmt.Errorf("making a folder for downloads: %w", err)
	}
	defer os.RemoveAll(dir)
	failed := a.download(ctx, dir, packages)
	if failed != nil {
		for _, p := range packages {
			failed = errors.Join(failed, a.download(ctx, dir, []Package{p}))
		}
	}
	return errors.Join(failed, s.keep(dir, packages))
}

// keep moves the downloaded files of packages into the store, when they are what they should be.
func (s *Store) keep(dir string, packages []Package) error {
	var failed error
	for _, p := range packages {
		name := filepath.Join(dir, fmt.Sprintf("%s_%s_%s.deb", p.Name, strings.ReplaceAll(p.Version, ":", "%3a"), p.Architecture))
		sum, err := digest(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the caller asks the store for what is still missing
		}
		if err != nil {
			return fmt.Errorf("reading a download: %w", err)
		}
		if sum != p.SHA256 {
			failed = errors.Join(failed, &DigestError{Package: p, Got: sum})
			continue
		}
		if err := os.Rename(name, s.path(p)); err != nil {
			return fmt.Errorf("keeping a download: %w", err)
		}
	}
	return failed
}

func (s *Store) open(ctx context.Context, p Package) (Unpacked, error) {
	text, err := control(ctx, s.path(p))
	if err != nil {
		return Unpacked{}, err
	}
	data, err := files(ctx, s.path(p))
	if err != nil {
		return Unpacked{}, err
	}
	tree, err := rootfs.ReadTar(bytes.NewReader(data))
	if err != nil {
		return Unpacked{}, fmt.Errorf("unpacking %s: %w", p, err)
	}
	return Unpacked{Package: p, Control: text, Files: tree}, nil
}
