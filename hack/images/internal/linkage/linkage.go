// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package linkage reads which shared libraries a program needs, and finds them in
// an image's files where the dynamic loader of Debian looks.
package linkage

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

// Object is what an ELF file says of how it is linked.
type Object struct {
	// Machine is the processor that it is for.
	Machine elf.Machine
	// Interpreter is the absolute path of the dynamic loader; empty for a library and for a static program.
	Interpreter string
	// Needed are the names of the libraries that it needs.
	Needed []string
}

// ErrSearchPath is the cause when a file brings its own search path, which Debian's packages do not do.
var ErrSearchPath = errors.New("a library search path of its own (RPATH or RUNPATH) is not supported")

// IsELF says whether data begin as an ELF file does.
func IsELF(data []byte) bool { return bytes.HasPrefix(data, []byte(elf.ELFMAG)) }

// Read reads an ELF file.
func Read(data []byte) (Object, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return Object{}, fmt.Errorf("reading an ELF file: %w", err)
	}
	o := Object{Machine: f.Machine}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		name := make([]byte, min(p.Filesz, 4096)) // PATH_MAX
		if _, err := p.ReadAt(name, 0); err != nil {
			return Object{}, fmt.Errorf("reading the interpreter of an ELF file: %w", err)
		}
		o.Interpreter = string(bytes.TrimRight(name, "\x00"))
	}
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		if own, err := f.DynString(tag); err == nil && len(own) > 0 {
			return Object{}, ErrSearchPath
		}
	}
	if o.Needed, err = f.ImportedLibraries(); err != nil {
		return Object{}, fmt.Errorf("reading the libraries of an ELF file: %w", err)
	}
	return o, nil
}

// Platform is what the loader of an architecture goes by.
type Platform struct {
	Machine elf.Machine
	// Triplet is Debian's name of the architecture in library folders.
	Triplet string
}

// Platforms are the architectures that images are built for, by Go's names,
// which are Debian's too (https://wiki.debian.org/Multiarch/Tuples).
var Platforms = map[string]Platform{
	"amd64": {Machine: elf.EM_X86_64, Triplet: "x86_64-linux-gnu"},
	"arm64": {Machine: elf.EM_AARCH64, Triplet: "aarch64-linux-gnu"},
}

// folders are where Debian's loader looks without a cache and without settings, in its order.
func (p Platform) folders() []string {
	return []string{"lib/" + p.Triplet, "usr/lib/" + p.Triplet, "lib", "usr/lib"}
}

// MissingError is a library that no file of the image is.
type MissingError struct{ Library, NeededBy string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("finding shared library %s, which %s needs: no file has that name", e.Library, e.NeededBy)
}

// MachineError is a file for another processor.
type MachineError struct {
	Path      string
	Got, Want elf.Machine
}

func (e *MachineError) Error() string {
	return fmt.Sprintf("reading %s: it is for %s, and the image for %s", e.Path, e.Got, e.Want)
}

// Closure returns the paths of all that running the programs takes: the
// programs, their loader, the libraries that they need and so on, and the
// symbolic links on the way, sorted. Errors are *MissingError, *MachineError or the reader's.
func Closure(t *rootfs.Tree, p Platform, programs ...string) ([]string, error) {
	found := map[string]bool{}
	type wanted struct{ path, by string }
	var queue []wanted
	for _, program := range programs {
		queue = append(queue, wanted{path: program, by: "the image"})
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		file, links, err := t.Resolve(next.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &MissingError{Library: next.path, NeededBy: next.by}
		}
		if err != nil {
			return nil, err
		}
		for _, l := range links {
			found[l.Path] = true
		}
		if found[file.Path] {
			continue
		}
		found[file.Path] = true
		object, err := Read(file.Data)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file.Path, err)
		}
		if object.Machine != p.Machine {
			return nil, &MachineError{Path: file.Path, Got: object.Machine, Want: p.Machine}
		}
		if object.Interpreter != "" {
			queue = append(queue, wanted{path: object.Interpreter, by: file.Path})
		}
		for _, name := range object.Needed {
			queue = append(queue, wanted{path: p.find(t, name), by: file.Path})
		}
	}
	paths := make([]string, 0, len(found))
	for name := range found {
		paths = append(paths, name)
	}
	slices.Sort(paths)
	return paths, nil
}

// find returns the path of a library, or its name when no folder has it.
func (p Platform) find(t *rootfs.Tree, name string) string {
	for _, folder := range p.folders() {
		at := path.Join(folder, name)
		if _, _, err := t.Resolve(at); err == nil {
			return at
		}
	}
	return name
}

// Executables returns the paths of the files that the kernel itself must be
// allowed to execute for the programs to run: these and their loader. Libraries
// are only read. Programs that are not there are left out.
func Executables(t *rootfs.Tree, programs ...string) map[string]bool {
	paths := map[string]bool{}
	for _, program := range programs {
		f, _, err := t.Resolve(program)
		if err != nil {
			continue
		}
		paths[f.Path] = true
		object, err := Read(f.Data)
		if err != nil || object.Interpreter == "" {
			continue
		}
		if loader, _, err := t.Resolve(object.Interpreter); err == nil {
			paths[loader.Path] = true
		}
	}
	return paths
}
