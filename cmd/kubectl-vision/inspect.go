// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// maxWhole is the length in bytes up to which an image is held whole, so that
// what stands behind its first 64 KiB is seen too. It is above what any model
// takes.
const maxWhole = 64 << 20

// inspect reads a file once. It holds at most maxWhole bytes of it.
func inspect(path string) *inspected {
	seen := &inspected{path: path}
	f, size, err := openRegular(path)
	if err != nil {
		seen.err = err
		return seen
	}
	defer f.Close()
	seen.err = seen.read(f, size)
	return seen
}

// openRegular opens a regular file and tells its length in bytes. It looks
// before it opens, since opening a device may have effects, and again after, for
// the file may have been exchanged; the opening itself never waits for a FIFO's
// other end.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("looking at the file: %w", bare(err))
	}
	if err := regular(info); err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("opening the file: %w", bare(err))
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// regular says what a file is that is not a regular one.
func regular(info fs.FileInfo) error {
	what := "a device or another special file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	}
	return fmt.Errorf("looking at the file: it is %s, not a regular file", what)
}

// bare is an error without the path, which the line names already.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// held are buffers for files that are held whole, one used after the other.
var held = sync.Pool{New: func() any { return new([]byte) }}

// piece is how much is read at once, and hashed while it is still in a cache.
const piece = 64 << 10

// read reads size bytes and the facts that they tell.
func (i *inspected) read(r io.Reader, size int64) error {
	keep := size
	if size > maxWhole {
		keep = probe.MaxHeader
	}
	buffer := held.Get().(*[]byte)
	defer held.Put(buffer)
	*buffer = slices.Grow((*buffer)[:0], int(keep))[:keep]
	digest := sha256.New()
	kept, err := filled(*buffer, r, digest)
	n := int64(kept)
	if err == nil {
		var rest int64
		rest, err = io.Copy(digest, io.LimitReader(r, size-n+1)) // one more, to see a file that grows
		n += rest
	}
	head := (*buffer)[:kept]
	var refusal error
	if size > maxWhole {
		i.facts, refusal = probe.Head(head, size)
	} else {
		i.facts, refusal = probe.Content(head)
	}
	switch {
	case err != nil:
		return fmt.Errorf("reading the file: %w", bare(err))
	case n != size:
		return errors.New("reading the file: it changed meanwhile")
	}
	i.hashed, i.bytes, i.sha256 = true, n, hex.EncodeToString(digest.Sum(nil))
	i.head = bytes.Clone(head[:min(len(head), probe.MaxHeader)])
	return refusal
}

// filled reads into b until it is full or there is no more, and hashes what it
// reads. It returns how much there was.
func filled(b []byte, r io.Reader, digest hash.Hash) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = io.ReadFull(r, b[n:min(n+piece, len(b))])
		digest.Write(b[n : n+more])
		n += more
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n, err
}
