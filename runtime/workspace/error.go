// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Reason says why a path was refused or a file not read: a stable CamelCase word.
type Reason string

const (
	// Blank: no path was given.
	Blank Reason = "Blank"
	// OutsideWorkspace: the path, or a link on its way, leads out.
	OutsideWorkspace Reason = "OutsideWorkspace"
	// NotFound: no such file, or no such workspace yet.
	NotFound Reason = "NotFound"
	// NotRegular: a directory, FIFO, socket or device.
	NotRegular Reason = "NotRegular"
	// TooManyLinks: more than maxLinks symbolic links on the way, or a loop.
	TooManyLinks Reason = "TooManyLinks"
	// TooLarge: more bytes than the caller allows; see Size and Limit.
	TooLarge Reason = "TooLarge"
	// Changed: the file was written to while it was read.
	Changed Reason = "Changed"
	// IO: the system refused or failed; see Unwrap, also for fs.ErrPermission.
	IO Reason = "IO"
)

// Error is a path that was refused or a file that was not read. It names the
// path as the caller gave it and never where a link leads.
type Error struct {
	Reason Reason
	// Path is the caller's, trimmed.
	Path string
	// Size and Limit are in bytes, set for TooLarge.
	Size, Limit int64
	// detail completes the message of a reason that has more than one cause.
	detail string
	err    error
}

// Error says what was being done, to which path, and what is wrong.
func (e *Error) Error() string {
	if e.Reason == Blank {
		return "opening file: its path is blank"
	}
	return fmt.Sprintf("reading file %q: %s", e.Path, e.problem())
}

func (e *Error) problem() string {
	if e.detail != "" {
		return e.detail
	}
	switch e.Reason {
	case OutsideWorkspace:
		return "its path is outside the workspaces"
	case NotFound:
		return "no such file"
	case NotRegular:
		return "not a regular file"
	case TooManyLinks:
		return "too many symbolic links"
	case TooLarge:
		return fmt.Sprintf("it has %d bytes, more than the limit of %d", e.Size, e.Limit)
	case Changed:
		return "it changed while it was read"
	}
	if e.err != nil {
		return e.err.Error()
	}
	return "the system failed"
}

// Unwrap returns the system's error without the path it named, or nil.
func (e *Error) Unwrap() error { return e.err }

// failed classifies an error of the system.
func failed(path string, err error) *Error {
	err = bare(err)
	e := &Error{Reason: IO, Path: path, err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		e.Reason = NotFound // EINVAL: a name that no file can have, such as one with a NUL
	case errors.Is(err, syscall.ELOOP):
		e.Reason = TooManyLinks
	}
	return e
}

// bare strips the path that the os package adds to its errors.
func bare(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	if syscallError, ok := errors.AsType[*os.SyscallError](err); ok {
		return syscallError.Err
	}
	return err
}
