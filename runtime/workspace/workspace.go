// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace opens files for an agent, from the directories that it may
// read and from nowhere else.
//
// A path is judged twice: lexically, and again component by component with
// every symbolic link looked at, so that neither `..` nor a link leads out.
// The file itself is then opened through an [os.Root], which holds even when
// somebody swaps a component for a link in between. Only regular files are
// opened; a FIFO or a device is refused without being touched.
//
// It is a rim: it does I/O, and knows nothing of images.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Set is the workspaces of one runtime. It is safe for concurrent use.
type Set struct {
	spaces []*space
}

// Open opens the workspaces at dirs; relative ones are taken from the current
// directory. A directory that does not exist yet is opened when it is first
// needed, and until then a path below it is not found. No dirs at all is
// allowed: then every path is outside.
//
// An opened directory is held by its descriptor: whoever replaces it by a link
// to another place changes nothing for this Set.
func Open(dirs []string) (*Set, error) {
	set := &Set{}
	for _, dir := range dirs {
		if strings.TrimSpace(dir) == "" {
			set.Close()
			return nil, errors.New("opening workspace: its directory is blank")
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			set.Close()
			return nil, fmt.Errorf("opening workspace %q: %w", dir, err)
		}
		if slices.ContainsFunc(set.spaces, func(s *space) bool { return s.dir == abs }) {
			continue
		}
		s := &space{dir: abs}
		if _, err := s.open(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			set.Close()
			return nil, fmt.Errorf("opening workspace %q: %w", dir, err)
		}
		set.spaces = append(set.spaces, s)
	}
	return set, nil
}

// Dirs returns the workspaces as absolute paths, in the order they were given.
func (s *Set) Dirs() []string {
	dirs := make([]string, len(s.spaces))
	for i, space := range s.spaces {
		dirs[i] = space.dir
	}
	return dirs
}

// Close releases the directories. Handles that are open stay usable.
func (s *Set) Close() {
	for _, space := range s.spaces {
		space.close()
	}
}

// holding returns the workspace that the absolute path lies in, and the rest of
// the path below it. Of nested workspaces it is the outermost, within which
// links between them stay.
func (s *Set) holding(path string) (in *space, below []string, ok bool) {
	shortest := 0
	for _, space := range s.spaces {
		for _, dir := range space.names() {
			rest, lies := under(dir, path)
			if lies && (in == nil || len(dir) < shortest) {
				in, below, shortest = space, rest, len(dir)
			}
		}
	}
	return in, below, in != nil
}

// under returns path's components below dir, and whether there is such a way.
// It compares component by component and leaves `..` behind dir alone.
func under(dir, path string) ([]string, bool) {
	have, want := split(path), split(dir)
	if !filepath.IsAbs(path) || len(have) < len(want) || !slices.Equal(have[:len(want)], want) {
		return nil, false
	}
	return have[len(want):], true
}

// split returns the components of a path without empty ones and `.`.
func split(path string) []string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" || part == "." })
}

// space is one workspace.
type space struct {
	dir string // absolute and cleaned, as configured

	mu   sync.Mutex
	root *os.Root // nil until the directory exists
	real string   // dir with its own links resolved, known once root is
	shut bool
}

// open returns the workspace's root, opening it when that has not worked yet.
func (s *space) open() (*os.Root, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return nil, fs.ErrClosed
	}
	if s.root != nil {
		return s.root, nil
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, bare(err)
	}
	s.root = root
	if real, err := filepath.EvalSymlinks(s.dir); err == nil {
		s.real = real
	}
	return root, nil
}

// names are the spellings under which the workspace is reached: as configured,
// and with links resolved, as a program that asks for its directory sees it.
func (s *space) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.real == "" || s.real == s.dir {
		return []string{s.dir}
	}
	return []string{s.dir, s.real}
}

func (s *space) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root != nil {
		_ = s.root.Close() // a directory that was only read: nothing to lose
		s.root = nil
	}
	s.shut = true
}
