// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Reason says why the store failed: a stable CamelCase word.
type Reason string

const (
	// BadName: no entry can have this name.
	BadName Reason = "BadName"
	// TooLarge: the value alone is over the bounds.
	TooLarge Reason = "TooLarge"
	// Full: the disk or a quota of it is full.
	Full Reason = "Full"
	// ReadOnly: the directory, or an entry to be evicted, may not be written.
	ReadOnly Reason = "ReadOnly"
	// Closed: Close was called.
	Closed Reason = "Closed"
	// IO: the system failed otherwise; see Unwrap.
	IO Reason = "IO"
)

// Error is a value that could not be written, read or removed.
type Error struct {
	Reason Reason
	// Doing is what was being done, as a gerund.
	Doing string
	// Name is the entry's, or the directory's when it was being opened.
	Name string
	err  error
}

var errTooLarge = errors.New("the value is larger than the store may be")

// Error says what was being done, to what, and what is wrong.
func (e *Error) Error() string {
	problem := "the store is closed"
	switch {
	case e.Reason == BadName:
		problem = "not a name of 1 to 128 of a-z, 0-9, _ and -"
	case e.err != nil:
		problem = e.err.Error()
	}
	return fmt.Sprintf("%s %.140q: %s", e.Doing, e.Name, problem)
}

// Unwrap returns the system's error, or nil.
func (e *Error) Unwrap() error { return e.err }

// reasons maps what systems say, in the order of its lines.
var reasons = []struct {
	err    error
	reason Reason
}{
	{errTooLarge, TooLarge},
	{syscall.ENOSPC, Full},
	{syscall.EDQUOT, Full},
	{syscall.EROFS, ReadOnly},
	{fs.ErrPermission, ReadOnly},
	{fs.ErrClosed, Closed},
}

func failed(doing, name string, err error) *Error {
	e := &Error{Reason: IO, Doing: doing, Name: name, err: err}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			e.Reason = r.reason
			break
		}
	}
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		e.err = pathError.Err // its name is given, and its path is nobody's business
	}
	return e
}
