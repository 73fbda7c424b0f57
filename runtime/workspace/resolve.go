// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds the symbolic links followed for one path, as Linux does
// (path_resolution(7)).
const maxLinks = 40

// place is where a path leads: a root and a way below it without any link.
type place struct {
	root *os.Root
	rel  string // "." for the root itself
	info fs.FileInfo
}

// locate judges path lexically: it returns the absolute spelling that the
// agent knows, the workspace it lies in, and the components below it.
func (s *Set) locate(path string) (string, *space, []string, error) {
	if path == "" {
		return "", nil, nil, &Error{Reason: Blank}
	}
	abs := filepath.Clean(path)
	if !filepath.IsAbs(path) {
		if len(s.spaces) == 0 || !filepath.IsLocal(path) {
			return "", nil, nil, &Error{Reason: OutsideWorkspace, Path: path}
		}
		abs = filepath.Join(s.spaces[0].dir, path)
	}
	space, parts, ok := s.holding(abs)
	if !ok {
		return "", nil, nil, &Error{Reason: OutsideWorkspace, Path: path}
	}
	return abs, space, parts, nil
}

// walk follows one path through the workspaces.
type walk struct {
	set   *Set
	path  string // the caller's, for errors
	root  *os.Root
	done  []string // resolved components below root: no links, no `..`
	todo  []string // components still to be looked at
	links int
}

// resolve follows parts below from, link by link. Links may lead anywhere
// within the workspaces and nowhere else; what they lead to is returned with
// what the last component is, without opening it.
func (s *Set) resolve(path string, from *space, parts []string) (place, error) {
	w := &walk{set: s, path: path, todo: parts}
	if err := w.enter(from); err != nil {
		return place{}, err
	}
	info, err := w.lstat()
	for err == nil && len(w.todo) > 0 {
		info, err = w.step(info)
	}
	if err != nil {
		return place{}, err
	}
	return place{root: w.root, rel: w.rel(), info: info}, nil
}

// enter makes a workspace's directory the place where the walk stands.
func (w *walk) enter(in *space) error {
	root, err := in.open()
	if err != nil {
		refusal := failed(w.path, err)
		if refusal.Reason == NotFound {
			refusal.detail = "its workspace " + in.dir + " does not exist"
		}
		return refusal
	}
	w.root, w.done = root, nil
	return nil
}

// step looks at one component; here is what the walk stands on.
func (w *walk) step(here fs.FileInfo) (fs.FileInfo, error) {
	if !here.IsDir() {
		return nil, &Error{Reason: NotFound, Path: w.path}
	}
	part := w.todo[0]
	w.todo = w.todo[1:]
	if part == ".." {
		if len(w.done) == 0 {
			return nil, w.outside()
		}
		w.done = w.done[:len(w.done)-1]
		return w.lstat()
	}
	w.done = append(w.done, part)
	info, err := w.lstat()
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return info, err
	}
	return w.follow()
}

// follow replaces the link that the walk stands on by its target.
func (w *walk) follow() (fs.FileInfo, error) {
	if w.links++; w.links > maxLinks {
		return nil, &Error{Reason: TooManyLinks, Path: w.path}
	}
	target, err := w.root.Readlink(w.rel())
	if err != nil {
		return nil, failed(w.path, err)
	}
	w.done = w.done[:len(w.done)-1]
	if !filepath.IsAbs(target) {
		w.todo = append(split(target), w.todo...)
		return w.lstat()
	}
	in, below, ok := w.set.holding(target)
	if !ok {
		return nil, w.outside()
	}
	if err := w.enter(in); err != nil {
		return nil, err
	}
	w.todo = append(below, w.todo...)
	return w.lstat()
}

func (w *walk) lstat() (fs.FileInfo, error) {
	info, err := w.root.Lstat(w.rel())
	if err != nil {
		return nil, failed(w.path, err)
	}
	return info, nil
}

func (w *walk) rel() string {
	if len(w.done) == 0 {
		return "."
	}
	return strings.Join(w.done, string(filepath.Separator))
}

func (w *walk) outside() error {
	return &Error{Reason: OutsideWorkspace, Path: w.path, detail: "a symbolic link leads out of the workspaces"}
}
