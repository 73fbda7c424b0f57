// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// inspect reads a file once. It holds the first probe.MaxHeader bytes of it, and
// hashes the rest.
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

// piece is how much of a file is read at once.
const piece = 64 << 10

// read reads size bytes and the facts that the first of them tell.
func (i *inspected) read(r io.Reader, size int64) error {
	digest := sha256.New()
	head := make([]byte, min(size, probe.MaxHeader))
	kept, err := io.ReadFull(r, head)
	head = head[:kept]
	digest.Write(head)
	n := int64(kept)
	if err == nil {
		var rest int64
		rest, err = io.CopyBuffer(digest, io.LimitReader(r, size-n+1), make([]byte, min(size-n+1, piece))) // one more, to see a file that grows
		n += rest
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	var refusal error
	i.facts, refusal = probe.Head(head, size)
	switch {
	case err != nil:
		return fmt.Errorf("reading the file: %w", bare(err))
	case n != size:
		return errors.New("reading the file: it changed meanwhile")
	}
	i.hashed, i.bytes, i.sha256, i.head = true, n, hex.EncodeToString(digest.Sum(nil)), head
	return refusal
}
