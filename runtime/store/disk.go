// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// tempPrefix begins the name of a file that is being written: no entry's can.
const tempPrefix = ".tmp-"

func newTempName() string { return tempPrefix + rand.Text() }

func create(root *os.Root, name string) (io.WriteCloser, error) {
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// fill writes the file temp with the value that will have the name.
func (s *Store) fill(root *os.Root, temp, name string, data []byte) error {
	file, err := s.create(root, temp)
	if err != nil {
		return err
	}
	_, err = file.Write(header(name, s.now(), data))
	if err == nil {
		_, err = file.Write(data)
	}
	return errors.Join(err, file.Close()) // a quota may be told at the close
}

// errTorn is a file that is not what Put wrote under its name.
var errTorn = errors.New("the file is not whole")

// load reads an entry's file. What lies there is never followed and, when it
// is no regular file or has more than most bytes, never read. info is nil when
// it must not be removed.
func load(root *os.Root, name string, most int64) (data []byte, stored time.Time, info fs.FileInfo, err error) {
	info, err = root.Lstat(name)
	switch {
	case err != nil:
		return nil, time.Time{}, nil, err
	case info.IsDir():
		return nil, time.Time{}, nil, fs.ErrNotExist
	case !info.Mode().IsRegular():
		return nil, time.Time{}, info, errTorn
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, time.Time{}, nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil { // a Put may have renamed another over it
		return nil, time.Time{}, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() < headerSize || info.Size() > most {
		return nil, time.Time{}, info, errTorn
	}
	whole, err := readWhole(file, info.Size())
	if err != nil {
		return nil, time.Time{}, info, err
	}
	data, stored, ok := decode(name, whole)
	if !ok {
		return nil, time.Time{}, info, errTorn
	}
	return data, stored, info, nil
}

// readWhole reads the file of an entry. What does not begin as one of that
// size is never read, nor is memory taken for it: a sparse file may tell any size.
func readWhole(file io.Reader, size int64) ([]byte, error) {
	var head [headerSize]byte
	_, err := io.ReadFull(file, head[:])
	if err == nil && !announces(head[:], size-headerSize) {
		return nil, errTorn
	}
	var whole []byte
	if err == nil {
		whole = make([]byte, size)
		_, err = io.ReadFull(file, whole[copy(whole, head[:]):])
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errTorn // it was cut meanwhile
	}
	return whole, err
}

// absent is an error that says that there is nothing, or no directory any more.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed) }

// The functions below are called with the lock held, unless they say otherwise.

// attach opens the directory and takes stock of it, in the place of one that
// was open.
func (s *Store) attach() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return err
	}
	found, err := s.survey(root)
	if err != nil {
		_ = root.Close()
		return err
	}
	if s.root != nil {
		_ = s.root.Close()
	}
	s.root = root
	s.sizes.Purge()
	for _, f := range found {
		s.note(f.Name(), blocks(f.Size()))
	}
	_ = s.shrink(0, 0) // what cannot be removed stays counted, and fails the next Put
	return nil
}

// reattach attaches anew. It takes the lock.
func (s *Store) reattach() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil {
		return fs.ErrClosed
	}
	return s.attach()
}

// survey lists the entries' files, oldest first, and removes what a writer
// left unfinished and what no entry can be. What cannot be removed is ignored.
func (s *Store) survey(root *os.Root) ([]fs.FileInfo, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var found []fs.FileInfo
	for _, name := range names {
		temp := strings.HasPrefix(name, tempPrefix)
		if !temp && !validName(name) {
			continue
		}
		info, err := root.Lstat(name)
		switch {
		case err != nil || info.IsDir(): // gone meanwhile, or not ours
		case temp || !info.Mode().IsRegular() || info.Size() > s.maxBytes: // the last would drive out all others
			_ = s.remove(root, name)
		default:
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	return found, nil
}

// makeRoom evicts until a value of that size fits in the place of what has its
// name. It takes the lock.
func (s *Store) makeRoom(name string, size int64) (*os.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.root == nil:
		return nil, fs.ErrClosed
	case size > s.maxBytes || s.maxEntries < 1:
		return nil, errTooLarge
	}
	bytes, entries := size, 1
	if old, ok := s.sizes.Get(name); ok { // and now it is the last to go
		bytes, entries = size-old, 0
	}
	return s.root, s.shrink(bytes, entries)
}

// shrink evicts, the least recently used first, until that many more bytes and
// entries are within the bounds.
func (s *Store) shrink(bytes int64, entries int) error {
	for s.bytes+bytes > s.maxBytes || s.sizes.Len()+entries > s.maxEntries {
		name, _, ok := s.sizes.GetOldest()
		if !ok {
			return nil
		}
		if err := s.unlink(name); err != nil {
			return err
		}
	}
	return nil
}

// unlink removes an entry, and forgets it when it is gone.
func (s *Store) unlink(name string) error {
	info, err := s.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = s.remove(s.root, name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.sizes.Remove(name)
	return nil
}

func (s *Store) note(name string, size int64) {
	s.sizes.Remove(name)
	s.bytes += size
	s.sizes.Add(name, size)
}

// adopt counts an entry that another process wrote. It takes the lock.
func (s *Store) adopt(name string, fileSize int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil || s.sizes.Contains(name) {
		return
	}
	s.note(name, blocks(fileSize))
	_ = s.shrink(0, 0) // what cannot be removed stays counted, and fails the next Put
}

// settle makes the entries agree with the disk after a Get that failed: what
// is not there is forgotten, and the torn file that was seen is removed unless
// another has taken its place. It takes the lock.
func (s *Store) settle(name string, torn fs.FileInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root == nil {
		return
	}
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && torn != nil && os.SameFile(info, torn) {
		_ = s.unlink(name) // what cannot be removed stays torn
	}
}
