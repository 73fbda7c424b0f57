// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"os"
)

// Turns is how many keys are looked at.
func (s *Store) Turns() int {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	return len(s.turns.of)
}

// FailWrites makes every write fail with err after n bytes of a file; a nil err
// ends that.
func (s *Store) FailWrites(n int, err error) {
	make := create
	if err != nil {
		make = func(root *os.Root, name string) (newFile, error) {
			file, bad := create(root, name)
			return &failing{file, n, err}, bad
		}
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.disk.create, s.journal.create = make, make
	if err != nil && s.journal.file != nil {
		s.journal.file = &failing{s.journal.file, n, err}
	}
}

type failing struct {
	newFile
	left int
	err  error
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.newFile.Write(p[:min(len(p), f.left)])
	f.left -= n
	if err == nil && n < len(p) {
		err = f.err
	}
	return n, err
}

// BeReadOnly makes the disk refuse to write and to remove from now on.
func (s *Store) BeReadOnly(err error) {
	make := func(*os.Root, string) (newFile, error) { return nil, err }
	s.writing.Lock()
	defer s.writing.Unlock()
	s.disk.create, s.journal.create = make, make
	s.disk.remove = func(*os.Root, string) error { return err }
	_ = s.journal.close()
}

// Record is a record as it stands in the journal.
func Record(key string, p Pin) []byte { return appendRecord(nil, nameOf(kindPin, key), newPin(p)) }

// TextRecord is that of a text.
func TextRecord(key, text string) []byte {
	return appendRecord(nil, nameOf(kindText, key), &record{kind: kindText, text: text})
}

// Reencode cuts the first record off and encodes it again.
func Reencode(data []byte) (again []byte, ok bool) {
	n, r, rest, ok := cutRecord(data)
	if !ok {
		return nil, false
	}
	return append(appendRecord(nil, n, r), rest...), true
}

// Magic is how a journal begins.
const Magic = journalMagic
