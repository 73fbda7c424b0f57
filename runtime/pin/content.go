// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"os"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Content is the bytes of an image, open until Close. Its ReadAt is safe for
// concurrent use, and goes on when the content is evicted meanwhile.
type Content struct {
	io.ReaderAt
	// SHA256 is of its bytes, in lower-case hexadecimal; Size is their number.
	SHA256 string
	Size   int64

	file *os.File // nil in memory
}

// Close lets go of it. Every call after the first fails.
func (c *Content) Close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

func held(sum string, data []byte) *Content {
	return &Content{ReaderAt: bytes.NewReader(data), SHA256: sum, Size: int64(len(data))}
}

// SourceError is a source that could not be read. It does not tell what was read.
type SourceError struct{ Err error }

// Error says what the source said.
func (e *SourceError) Error() string { return "reading what is to be kept: " + e.Err.Error() }

// Unwrap returns the source's error: io.ErrUnexpectedEOF when it ended too early.
func (e *SourceError) Unwrap() error { return e.Err }

// PutContent keeps size bytes of a source and opens them. With a directory they
// are streamed to a file. What fits in no bound, or finds the disk failing, is in
// memory: it is kept there as far as there is room, and else held by the Content
// alone. So the error is a *SourceError, and everything else is no error.
func (s *Store) PutContent(from io.ReaderAt, size int64) (*Content, error) {
	if s.disk != nil {
		c, err := s.disk.add(from, size)
		if err == nil {
			s.illContents.Store(false)
			return c, nil
		}
		if e, ok := errors.AsType[*SourceError](err); ok {
			return nil, e
		}
		if !errors.Is(err, errNoRoom) {
			s.failed(&s.illContents, err)
		}
	}
	data := make([]byte, size)
	if err := readAll(from, data); err != nil {
		return nil, &SourceError{err}
	}
	digest := sha256.Sum256(data)
	sum := hex.EncodeToString(digest[:])
	return held(sum, s.memory.add(sum, data)), nil
}

func readAll(from io.ReaderAt, data []byte) error {
	n, err := from.ReadAt(data, 0)
	switch {
	case n == len(data):
		return nil
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// Content opens what is kept under a digest. It does not find what was evicted.
// A file is held against its digest the first time that this process opens it,
// and against its size after that.
func (s *Store) Content(sha256 string) (*Content, bool) {
	if !IsDigest(sha256) {
		return nil, false
	}
	if data, ok := s.memory.get(sha256); ok {
		return held(sha256, data), true
	}
	if s.disk == nil {
		return nil, false
	}
	c, err := s.disk.open(sha256)
	return c, err == nil
}

// Bytes tells what contents count in memory and on disk.
func (s *Store) Bytes() (memory, disk int64) {
	if s.disk != nil {
		disk = s.disk.used()
	}
	return s.memory.used(), disk
}

// memory is contents in memory.
type memory struct {
	most int64

	mu    sync.Mutex
	data  *simplelru.LRU[string, []byte] // by digest
	bytes int64
}

func newMemory(most int64) *memory {
	m := &memory{most: most}
	// The size only has to be above all: add evicts by its own rules.
	m.data, _ = simplelru.NewLRU(math.MaxInt, func(_ string, data []byte) { m.bytes -= int64(len(data)) })
	return m
}

// add keeps data as far as there is room, and returns what has that digest.
func (m *memory) add(sum string, data []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.data.Get(sum); ok {
		return known
	}
	size := int64(len(data))
	if size > m.most {
		return data
	}
	for m.bytes+size > m.most {
		m.data.RemoveOldest()
	}
	m.data.Add(sum, data)
	m.bytes += size
	return data
}

func (m *memory) get(sum string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data.Get(sum)
}

func (m *memory) used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes
}
