// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/hack/images/internal/linkage"
	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

// Unpacked is a package with its files.
type Unpacked struct {
	Package Package
	// Control is the package's control paragraph, as dpkg-deb --field prints it.
	Control string
	Files   *rootfs.Tree
}

// AbsentError is a file that a recipe asks for and no package has.
type AbsentError struct{ Path string }

func (e *AbsentError) Error() string {
	return fmt.Sprintf("choosing files of Debian's packages: none has %s", e.Path)
}

// LicenceError is a package without a statement of its licence.
type LicenceError struct {
	Package string
	Err     error
}

func (e *LicenceError) Error() string {
	return fmt.Sprintf("finding the licence of %s: %v", e.Package, e.Err)
}

func (e *LicenceError) Unwrap() error { return e.Err }

// choice is what Choose has found so far.
type choice struct {
	all    *rootfs.Tree
	owners map[string]int // index into the packages by path
	chosen *rootfs.Tree
	used   map[int]bool
	// executable are the paths that keep their permission to be executed; Debian's libc.so.6 has it too, to print its version.
	executable map[string]bool
}

// Choose returns the files that the image takes from the packages, and the
// packages that gave one, in the order of names: programs with their libraries,
// the files asked for, the copyright file of each package, and its control paragraph in
// var/lib/dpkg/status.d, where vulnerability scanners look. Errors are *AbsentError,
// *LicenceError, or those of linkage.Closure.
func Choose(packages []Unpacked, want recipe.Debian, platform linkage.Platform) (*rootfs.Tree, []Package, error) {
	c, err := gather(packages)
	if err != nil {
		return nil, nil, err
	}
	c.executable = linkage.Executables(c.all, want.Programs...)
	paths, err := linkage.Closure(c.all, platform, want.Programs...)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range want.Files {
		more, err := c.match(name)
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, more...)
	}
	if err := c.take(paths); err != nil {
		return nil, nil, err
	}
	if err := c.licences(packages); err != nil {
		return nil, nil, err
	}
	var used []Package
	for i, p := range packages {
		if !c.used[i] {
			continue
		}
		used = append(used, p.Package)
		status := rootfs.File{Path: "var/lib/dpkg/status.d/" + p.Package.Name, Mode: 0o644, Data: []byte(p.Control)}
		if err := c.chosen.Add(status); err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(used, func(a, b Package) int { return strings.Compare(a.Name, b.Name) })
	return c.chosen, used, nil
}

// gather puts the files of all packages into one tree.
func gather(packages []Unpacked) (*choice, error) {
	c := &choice{owners: map[string]int{}, used: map[int]bool{}}
	var err error
	if c.all, err = rootfs.New(); err != nil {
		return nil, err
	}
	if c.chosen, err = rootfs.New(); err != nil {
		return nil, err
	}
	for i, p := range packages {
		for _, f := range p.Files.Files() {
			if err := c.all.Add(f); err != nil {
				return nil, fmt.Errorf("unpacking %s: %w", p.Package, err)
			}
			c.owners[f.Path] = i
		}
	}
	return c, nil
}

// match returns the paths of one entry of a recipe's Files.
func (c *choice) match(name string) ([]string, error) {
	if !strings.HasSuffix(name, "/") {
		file, links, err := c.all.Resolve(name)
		if err != nil {
			return nil, &AbsentError{Path: name}
		}
		return pathsOf(file, links), nil
	}
	var paths []string
	for _, f := range c.all.Files() {
		if strings.HasPrefix("/"+f.Path, name) {
			paths = append(paths, f.Path)
		}
	}
	if len(paths) == 0 {
		return nil, &AbsentError{Path: name}
	}
	return paths, nil
}

func pathsOf(file rootfs.File, links []rootfs.File) []string {
	paths := []string{file.Path}
	for _, l := range links {
		paths = append(paths, l.Path)
	}
	return paths
}

// take puts files into the choice and notes whose they are.
func (c *choice) take(paths []string) error {
	for _, name := range paths {
		f, ok := c.all.Get(name)
		if !ok {
			return &AbsentError{Path: name}
		}
		switch {
		case f.IsLink():
		case c.executable[name]:
			f.Mode = 0o755
		default:
			f.Mode = 0o644
		}
		if err := c.chosen.Add(f); err != nil {
			return err
		}
		c.used[c.owners[name]] = true
	}
	return nil
}

// licences takes the copyright file of every package that gave a file. It may be
// another package's (libgcc-s1 links to gcc-12-base), which then gives one too.
func (c *choice) licences(packages []Unpacked) error {
	for before := -1; before != len(c.used); {
		before = len(c.used)
		for i, p := range packages {
			if !c.used[i] {
				continue
			}
			file, links, err := c.all.Resolve(path.Join("usr/share/doc", p.Package.Name, "copyright"))
			if err != nil {
				return &LicenceError{Package: p.Package.Name, Err: err}
			}
			if err := c.take(pathsOf(file, links)); err != nil {
				return err
			}
		}
	}
	return nil
}
