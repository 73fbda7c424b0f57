// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"io"
	"os"
)

// HeaderSize is what an entry's file has before its data.
const HeaderSize = headerSize

// Decode is decode.
var Decode = decode

// Header is header.
var Header = header

// FailWrites makes every file that is written from now on fail with err after
// n bytes; a nil err ends that.
func (s *Store) FailWrites(n int, err error) {
	s.create = create
	if err != nil {
		s.create = func(root *os.Root, name string) (io.WriteCloser, error) {
			file, bad := create(root, name)
			return &failing{file, n, err}, bad
		}
	}
}

type failing struct {
	io.WriteCloser
	left int
	err  error
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.WriteCloser.Write(p[:min(len(p), f.left)])
	f.left -= n
	if err == nil && n < len(p) {
		err = f.err
	}
	return n, err
}

// BeReadOnly makes the disk refuse every change from now on.
func (s *Store) BeReadOnly(err error) {
	s.create = func(*os.Root, string) (io.WriteCloser, error) { return nil, err }
	s.remove = func(*os.Root, string) error { return err }
}

// BeforeRename runs f when a value is written and not yet in its place.
func (s *Store) BeforeRename(f func()) {
	s.create = func(root *os.Root, name string) (io.WriteCloser, error) {
		file, err := create(root, name)
		return &hooked{file, f}, err
	}
}

type hooked struct {
	io.WriteCloser
	closed func()
}

func (h *hooked) Close() error {
	defer h.closed()
	return h.WriteCloser.Close()
}
