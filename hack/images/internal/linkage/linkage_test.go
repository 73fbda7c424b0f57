// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package linkage_test

import (
	"debug/elf"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/hack/images/internal/linkage"
	"github.com/visionoperator/vision-operator/hack/images/internal/linkage/linkagetest"
	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

const loader = "/lib64/ld-linux-x86-64.so.2"

// system is a program with a loader behind a link and a chain of libraries, and a library that nobody needs.
func system(t *testing.T, more ...rootfs.File) *rootfs.Tree {
	t.Helper()
	library := func(name string, needed ...string) rootfs.File {
		return rootfs.File{Path: name, Mode: 0o644, Data: linkagetest.File(elf.EM_X86_64, "", "", needed...)}
	}
	link := func(name, to string) rootfs.File {
		return rootfs.File{Path: name, Mode: fs.ModeSymlink | 0o777, Link: to}
	}
	tree, err := rootfs.New(append([]rootfs.File{
		{Path: "usr/bin/reader", Mode: 0o755, Data: linkagetest.File(elf.EM_X86_64, loader, "", "libpage.so.5", "libc.so.6")},
		link("lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
		library("lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
		link("usr/lib/x86_64-linux-gnu/libpage.so.5", "libpage.so.5.0.3"),
		library("usr/lib/x86_64-linux-gnu/libpage.so.5.0.3", "libc.so.6", "libz.so.1"),
		library("lib/x86_64-linux-gnu/libc.so.6", "ld-linux-x86-64.so.2"),
		library("lib/x86_64-linux-gnu/libz.so.1", "libc.so.6"),
		library("usr/lib/x86_64-linux-gnu/libidle.so.1", "libc.so.6"),
	}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestAProgramBringsItsLoaderAndLibrariesAndTheLinksToThem(t *testing.T) {
	got, err := linkage.Closure(system(t), linkage.Platforms["amd64"], "/usr/bin/reader")
	want := []string{
		"lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libz.so.1",
		"lib64/ld-linux-x86-64.so.2", "usr/bin/reader",
		"usr/lib/x86_64-linux-gnu/libpage.so.5", "usr/lib/x86_64-linux-gnu/libpage.so.5.0.3",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", err, got, want)
	}
}

func TestAProgramThatCannotRunIsRefused(t *testing.T) {
	program := func(data []byte) rootfs.File { return rootfs.File{Path: "usr/bin/other", Mode: 0o755, Data: data} }
	amd64 := linkage.Platforms["amd64"]

	_, err := linkage.Closure(system(t, program(linkagetest.File(elf.EM_X86_64, loader, "", "libgone.so.1"))), amd64, "/usr/bin/other")
	if missing, ok := errors.AsType[*linkage.MissingError](err); !ok || missing.Library != "libgone.so.1" || missing.NeededBy != "usr/bin/other" {
		t.Errorf("a missing library: %v", err)
	}
	_, err = linkage.Closure(system(t, program(linkagetest.File(elf.EM_X86_64, "/lib/ld-gone.so", ""))), amd64, "/usr/bin/other")
	if missing, ok := errors.AsType[*linkage.MissingError](err); !ok || missing.Library != "/lib/ld-gone.so" {
		t.Errorf("a missing loader: %v", err)
	}
	_, err = linkage.Closure(system(t), amd64, "/usr/bin/gone")
	if missing, ok := errors.AsType[*linkage.MissingError](err); !ok || missing.Library != "/usr/bin/gone" {
		t.Errorf("a missing program: %v", err)
	}
	_, err = linkage.Closure(system(t, program(linkagetest.File(elf.EM_AARCH64, "", ""))), amd64, "/usr/bin/other")
	if other, ok := errors.AsType[*linkage.MachineError](err); !ok || other.Got != elf.EM_AARCH64 {
		t.Errorf("another machine: %v", err)
	}
	_, err = linkage.Closure(system(t, program(linkagetest.File(elf.EM_X86_64, "", "$ORIGIN/../lib"))), amd64, "/usr/bin/other")
	if !errors.Is(err, linkage.ErrSearchPath) {
		t.Errorf("a search path of its own: %v", err)
	}
	_, err = linkage.Closure(system(t, program([]byte("#!/bin/sh\n"+strings.Repeat("true\n", 20)))), amd64, "/usr/bin/other")
	if _, ok := errors.AsType[*elf.FormatError](err); !ok {
		t.Errorf("a script: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(linkagetest.File(elf.EM_X86_64, loader, "", "libc.so.6"))
	f.Add(linkagetest.File(elf.EM_AARCH64, "", "$ORIGIN"))
	f.Add([]byte(elf.ELFMAG))
	f.Fuzz(func(t *testing.T, data []byte) {
		object, err := linkage.Read(data)
		if err == nil && !linkage.IsELF(data) {
			t.Errorf("read %+v from what is no ELF file", object)
		}
	})
}
