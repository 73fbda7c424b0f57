// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"
)

// Lock says which packages images are made of, so that the same source gives the same image.
type Lock struct {
	// Suite is Debian's release: bookworm.
	Suite string `json:"suite"`
	// Snapshot is when the versions were the newest, as snapshot.debian.org writes
	// times. That archive has them when Debian's mirrors no longer do.
	Snapshot string `json:"snapshot"`
	// Packages are those that give a file to an image, by architecture, in the order of names.
	Packages map[string][]Package `json:"packages"`
}

// SnapshotForm is the form of Lock.Snapshot.
const SnapshotForm = "20060102T150405Z"

var suiteForm = regexp.MustCompile(`^[a-z]+$`)

// ErrLock is the cause when a lock is not one.
var ErrLock = errors.New("not a lock of Debian packages")

// ParseLock reads and checks a lock.
func ParseLock(data []byte) (Lock, error) {
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	var l Lock
	if err := in.Decode(&l); err != nil {
		return Lock{}, fmt.Errorf("parsing the lock: %w", err)
	}
	if !suiteForm.MatchString(l.Suite) {
		return Lock{}, fmt.Errorf("parsing the lock: suite %q: %w", l.Suite, ErrLock)
	}
	if _, err := time.Parse(SnapshotForm, l.Snapshot); err != nil {
		return Lock{}, fmt.Errorf("parsing the lock: snapshot %q: %w", l.Snapshot, ErrLock)
	}
	for architecture, packages := range l.Packages {
		if len(packages) == 0 {
			return Lock{}, fmt.Errorf("parsing the lock: no packages for %s: %w", architecture, ErrLock)
		}
		for _, p := range packages {
			if err := p.Check(); err != nil {
				return Lock{}, fmt.Errorf("parsing the lock: %w", err)
			}
			if p.Architecture != architecture && p.Architecture != "all" {
				return Lock{}, fmt.Errorf("parsing the lock: %s of %s is for %s: %w", p.Name, architecture, p.Architecture, ErrLock)
			}
		}
	}
	return l, nil
}

// ReadLock reads a lock from a file.
func ReadLock(name string) (Lock, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return Lock{}, fmt.Errorf("reading the lock: %w", err)
	}
	return ParseLock(data)
}

// Encode writes the lock, the same bytes for the same lock.
func (l Lock) Encode() ([]byte, error) {
	out, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the lock: %w", err)
	}
	return append(out, '\n'), nil
}
