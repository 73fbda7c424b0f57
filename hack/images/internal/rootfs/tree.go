// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rootfs holds the files of an image in memory, finds files in them the
// way a kernel would, and writes them as a layer or into a folder. The same files give the same bytes.
package rootfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// File is a regular file or a symbolic link of an image.
type File struct {
	// Path is relative to the root and clean: usr/bin/tesseract.
	Path string
	// Mode is the permissions, with set-id bits when there are any, and fs.ModeSymlink for a link.
	Mode fs.FileMode
	// Link is what a symbolic link names; empty for a regular file.
	Link string
	// Data is what a regular file holds.
	Data []byte
}

// IsLink says whether the file is a symbolic link.
func (f File) IsLink() bool { return f.Mode&fs.ModeSymlink != 0 }

// ConflictError is two different files at one path.
type ConflictError struct{ Path string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("adding %s: another file is there already", e.Path)
}

// PathError is a path that no image may have.
type PathError struct{ Path string }

func (e *PathError) Error() string {
	return fmt.Sprintf("adding %q: a path must be clean, relative, and stay below the root", e.Path)
}

// ErrLoop is the cause when symbolic links lead nowhere.
var ErrLoop = errors.New("too many symbolic links")

// Tree is the files of an image by path. Folders are not kept: they follow from the files.
type Tree struct{ files map[string]File }

// New returns a tree of files.
func New(files ...File) (*Tree, error) {
	t := &Tree{files: map[string]File{}}
	for _, f := range files {
		if err := t.Add(f); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Add puts a file in. The same file twice is one; a different one at its path is a *ConflictError.
func (t *Tree) Add(f File) error {
	if f.Path == "." || !fs.ValidPath(f.Path) {
		return &PathError{Path: f.Path}
	}
	if old, ok := t.files[f.Path]; ok && (old.Mode != f.Mode || old.Link != f.Link || !bytes.Equal(old.Data, f.Data)) {
		return &ConflictError{Path: f.Path}
	}
	t.files[f.Path] = f
	return nil
}

// Get returns the file at a clean relative path, without following links.
func (t *Tree) Get(name string) (File, bool) {
	f, ok := t.files[name]
	return f, ok
}

// Files returns all files in the order of their paths.
func (t *Tree) Files() []File {
	files := make([]File, 0, len(t.files))
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		files = append(files, t.files[name])
	}
	return files
}

// maxLinks is how many symbolic links one path may pass, as in Linux (path_resolution(7)).
const maxLinks = 40

// Resolve follows a path, absolute or relative to the root, through symbolic
// links to a regular file. It returns that file and the links that were passed,
// in their order. A path without a file is fs.ErrNotExist; a loop is ErrLoop.
func (t *Tree) Resolve(name string) (File, []File, error) {
	var passed []File
	rest, at := strings.Split(strings.Trim(name, "/"), "/"), ""
	for len(rest) > 0 {
		step := rest[0]
		rest = rest[1:]
		at = strings.TrimPrefix(path.Join("/", at, step), "/")
		f, ok := t.files[at]
		switch {
		case !ok:
			continue // a folder, or nothing: the end says which
		case f.IsLink():
			if passed = append(passed, f); len(passed) > maxLinks {
				return File{}, nil, fmt.Errorf("following %s: %w", name, ErrLoop)
			}
			if at = path.Dir(at); strings.HasPrefix(f.Link, "/") {
				at = ""
			}
			rest = append(strings.Split(strings.Trim(f.Link, "/"), "/"), rest...)
		case len(rest) > 0:
			return File{}, nil, fmt.Errorf("following %s: %s is no folder: %w", name, at, fs.ErrNotExist)
		}
	}
	if f, ok := t.files[at]; ok && !f.IsLink() {
		return f, passed, nil
	}
	return File{}, nil, fmt.Errorf("following %s: %w", name, fs.ErrNotExist)
}

// folders returns every folder that the files need, parents first.
func (t *Tree) folders() []string {
	set := map[string]bool{}
	for name := range t.files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			set[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
