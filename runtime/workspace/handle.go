// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// File is a whole file in memory.
type File struct {
	// Path is absolute, as the agent knows it: links are not resolved in it.
	Path string
	// Bytes is the content.
	Bytes []byte
	// SHA256 is the digest of Bytes, 64 lower-case hexadecimal digits.
	SHA256 string
}

// Handle is a regular file that was opened and not read yet, so that its size
// and its header can be judged first. It is for one goroutine, but for ReadAt.
type Handle struct {
	path  string // absolute
	given string // the caller's, for errors
	file  *os.File
	info  fs.FileInfo
}

// Read opens path and reads it whole; see Set.Open and Handle.ReadAll.
func (s *Set) Read(path string, maxBytes int64) (File, error) {
	handle, err := s.Open(path)
	if err != nil {
		return File{}, err
	}
	defer func() { _ = handle.Close() }() // only read: nothing to lose
	return handle.ReadAll(maxBytes)
}

// Open opens the regular file at path, which is trimmed first: a relative path
// is below the first workspace, an absolute one must lie in some workspace.
// Nothing is read and nothing can block. Errors are *Error. The caller closes
// the Handle.
func (s *Set) Open(path string) (*Handle, error) {
	path = strings.TrimSpace(path)
	abs, space, parts, err := s.locate(path)
	if err != nil {
		return nil, err
	}
	at, err := s.resolve(path, space, parts)
	if err != nil {
		return nil, err
	}
	if !at.info.Mode().IsRegular() {
		return nil, notRegular(path, at.info)
	}
	file, info, err := at.open(path)
	if err != nil {
		return nil, err
	}
	return &Handle{path: abs, given: path, file: file, info: info}, nil
}

// open opens what was a regular file a moment ago. It may have become
// something else since: the open does not wait for a FIFO's writer, and what
// was really opened is looked at again.
func (p place) open(path string) (*os.File, fs.FileInfo, error) {
	file, err := p.root.OpenFile(p.rel, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, failed(path, err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		err = failed(path, err)
	case !info.Mode().IsRegular():
		err = notRegular(path, info)
	default:
		return file, info, nil
	}
	_ = file.Close() // never read: nothing to lose
	return nil, nil, err
}

func notRegular(path string, info fs.FileInfo) error {
	detail := "not a regular file"
	if info.IsDir() {
		detail = "a directory, not a file"
	}
	return &Error{Reason: NotRegular, Path: path, detail: detail}
}

// Path is the file's absolute path, as the agent knows it.
func (h *Handle) Path() string { return h.path }

// Size is the number of bytes the file had when it was opened.
func (h *Handle) Size() int64 { return h.info.Size() }

// CheckSize refuses a file of more than maxBytes, without reading it. A file
// of exactly maxBytes is accepted.
func (h *Handle) CheckSize(maxBytes int64) error {
	if h.Size() > maxBytes {
		return &Error{Reason: TooLarge, Path: h.given, Size: h.Size(), Limit: maxBytes}
	}
	return nil
}

// Header returns the first n bytes, or all when the file has fewer. It does
// not move what ReadAll reads.
func (h *Handle) Header(n int) ([]byte, error) {
	prefix := make([]byte, min(int64(n), h.Size()))
	got, err := h.file.ReadAt(prefix, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, failed(h.given, err)
	}
	return prefix[:got], nil
}

// ReadAt reads from the file as it is now, for those who read it in pieces; they
// ask Unchanged when they have read all. A file that ends before the size it had
// is an io.EOF; other errors are *Error.
func (h *Handle) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.file.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = failed(h.given, err)
	}
	return n, err
}

// Unchanged refuses a file as Changed that is not what it was when it was opened,
// in length or in time of modification.
func (h *Handle) Unchanged() error {
	now, err := h.file.Stat()
	if err != nil {
		return failed(h.given, err)
	}
	if now.Size() != h.Size() || !now.ModTime().Equal(h.info.ModTime()) {
		return &Error{Reason: Changed, Path: h.given}
	}
	return nil
}

// ReadAll reads and digests the whole file. A file of more than maxBytes is
// refused before it is read; one that is not what it was when it was opened,
// in length or in time of modification, is refused as Changed. It never holds
// more than one byte above the size that was checked.
func (h *Handle) ReadAll(maxBytes int64) (File, error) {
	if err := h.CheckSize(maxBytes); err != nil {
		return File{}, err
	}
	data := make([]byte, h.Size()+1) // one more, to see the file grow
	n, err := io.ReadFull(io.NewSectionReader(h.file, 0, h.Size()+1), data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return File{}, failed(h.given, err)
	}
	if err := h.Unchanged(); err != nil {
		return File{}, err
	}
	if int64(n) != h.Size() {
		return File{}, &Error{Reason: Changed, Path: h.given}
	}
	data = data[:n:n]
	digest := sha256.Sum256(data)
	return File{Path: h.path, Bytes: data, SHA256: hex.EncodeToString(digest[:])}, nil
}

// Close closes the file.
func (h *Handle) Close() error { return h.file.Close() }
