// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store keeps values in a directory, bounded by bytes and by entries:
// one checksummed file for each, and the least recently used goes first. It is
// for what may be lost and must not be wrong: a file that is torn, truncated,
// of another version or of somebody else's making is absent, and is removed.
//
// A value is written beside its place and renamed into it, so that a reader
// sees the whole of one value. Nothing is flushed to the medium (no fsync): a
// process that dies loses nothing that was renamed, and after a power cut the
// checksum tells what did not reach the disk, which then is absent. What the
// store holds can be made again; a flush for each value would cost far more
// than that.
//
// The directory is the store's own, apart from names that no entry can have
// and directories below it, which are left alone. Two processes may use one
// directory for a while, as when a container restarts: each tolerates what the
// other removes, and finds what the other writes.
package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Options are what Open needs.
type Options struct {
	// Dir is made, mode 0700, when it is not there. It may be a symbolic link;
	// nothing below it is followed.
	Dir string
	// MaxBytes bounds the sum of Size over all entries, MaxEntries their
	// number. Both are above zero.
	MaxBytes   int64
	MaxEntries int
	// Ceiling is what SetLimits cannot raise the bytes above: what the volume
	// below the directory holds. 0 is no ceiling.
	Ceiling int64
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store is safe for concurrent use.
type Store struct {
	dir string
	now func() time.Time
	// create and remove touch the disk; tests make them fail.
	create func(root *os.Root, name string) (io.WriteCloser, error)
	remove func(root *os.Root, name string) error

	writing sync.Mutex // one Put at a time: the room it made stays its own

	mu         sync.Mutex
	root       *os.Root // nil when closed
	ceiling    int64
	maxBytes   int64
	maxEntries int
	sizes      *simplelru.LRU[string, int64] // Size of each entry known
	bytes      int64                         // sum of sizes
}

// Open opens the store at a directory, removes what writers that died left
// there, and evicts what is over the bounds, oldest first. A directory that
// can only be read is opened: Put then fails.
func Open(o Options) (*Store, error) {
	if o.Dir == "" || o.MaxBytes <= 0 || o.MaxEntries <= 0 {
		return nil, fmt.Errorf("opening store %q: it needs a directory and bounds above zero", o.Dir)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{
		dir: o.Dir, now: o.Now, create: create, remove: (*os.Root).Remove,
		ceiling: o.Ceiling, maxBytes: o.MaxBytes, maxEntries: o.MaxEntries,
	}
	// The size only has to be above all: shrink evicts by its own rules.
	s.sizes, _ = simplelru.NewLRU(math.MaxInt, func(_ string, size int64) { s.bytes -= size })
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.attach(); err != nil {
		return nil, fmt.Errorf("opening store: %w", failed("opening directory", s.dir, err))
	}
	return s, nil
}

// Put stores a value under a name of 1 to 128 of the characters a-z, 0-9, _
// and -, in the place of what was there. Room is made before the disk is
// written. Errors are *Error; what was there before stays, unless it had to
// make room.
func (s *Store) Put(name string, data []byte) error {
	const doing = "writing entry"
	if !validName(name) {
		return &Error{Reason: BadName, Doing: doing, Name: name}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.put(name, data)
	if errors.Is(err, fs.ErrNotExist) {
		// Somebody took the directory away, or the file before it was renamed.
		if err = s.reattach(); err == nil {
			err = s.put(name, data)
		}
	}
	if err != nil {
		return failed(doing, name, err)
	}
	return nil
}

func (s *Store) put(name string, data []byte) error {
	size := Size(len(data))
	root, err := s.makeRoom(name, size)
	if err != nil {
		return err
	}
	temp := newTempName()
	if err := s.fill(root, temp, name, data); err != nil {
		_ = s.remove(root, temp) // perhaps never made; Open removes what stays
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := root.Rename(temp, name); err != nil {
		_ = s.remove(root, temp)
		return err
	}
	s.note(name, size)
	_ = s.shrink(0, 0) // the bounds may have moved meanwhile
	return nil
}

// Get returns a value, and when it was stored. The error is fs.ErrNotExist for
// what is absent or torn, and otherwise an *Error.
func (s *Store) Get(name string) (data []byte, stored time.Time, err error) {
	const doing = "reading entry"
	if !validName(name) {
		return nil, time.Time{}, &Error{Reason: BadName, Doing: doing, Name: name}
	}
	s.mu.Lock()
	root, most := s.root, s.maxBytes
	s.sizes.Get(name) // used just now
	s.mu.Unlock()
	if root == nil {
		return nil, time.Time{}, &Error{Reason: Closed, Doing: doing, Name: name}
	}
	data, stored, info, err := load(root, name, most)
	switch {
	case err == nil:
		s.adopt(name, info.Size())
		return data, stored, nil
	case errors.Is(err, errTorn), absent(err):
		s.settle(name, info)
		return nil, time.Time{}, fs.ErrNotExist
	}
	return nil, time.Time{}, failed(doing, name, err)
}

// Has reports whether there is a file for a name, without reading it: a later
// Get may find it torn. It does not count as a use.
func (s *Store) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil || !validName(name) {
		return false
	}
	info, err := s.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// Delete removes a value; one that is absent is no error. Errors are *Error.
func (s *Store) Delete(name string) error {
	const doing = "removing entry"
	if !validName(name) {
		return &Error{Reason: BadName, Doing: doing, Name: name}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil {
		return &Error{Reason: Closed, Doing: doing, Name: name}
	}
	if err := s.unlink(name); err != nil {
		return failed(doing, name, err)
	}
	return nil
}

// SetLimits changes the bounds, up to Options.Ceiling, and evicts what is over them. Bounds of zero
// empty the store, and keep it empty.
func (s *Store) SetLimits(maxBytes int64, maxEntries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ceiling > 0 {
		maxBytes = min(maxBytes, s.ceiling)
	}
	s.maxBytes, s.maxEntries = maxBytes, maxEntries
	if s.root != nil {
		_ = s.shrink(0, 0) // what cannot be removed stays counted, and fails the next Put
	}
}

// Len is the number of entries.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sizes.Len()
}

// Bytes is the sum of Size over the entries.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Names lists the entries, the least recently used first. What was in the
// directory when it was opened is in the order of its files' times.
func (s *Store) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sizes.Keys()
}

// Close ends the use of the directory; its files stay. Every later call fails
// or finds nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil {
		return nil
	}
	err := s.root.Close()
	s.root = nil
	s.sizes.Purge()
	return err
}
