// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/visionoperator/vision-operator/hack/images/internal/inspect"
	"github.com/visionoperator/vision-operator/hack/images/internal/linkage/linkagetest"
	"github.com/visionoperator/vision-operator/hack/images/internal/oci"
	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

var (
	release = recipe.Release{Version: "v1.2.3", Revision: strings.Repeat("a", 40), Created: time.Unix(1_800_000_000, 0)}
	reader  = recipe.Recipe{Name: "reader", Title: "Reader", Description: "Reads", Program: "/reader", MaxBytes: 1 << 20}
)

// machine is the processor of an architecture.
var machine = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

func good(arch string) []rootfs.File {
	return []rootfs.File{
		{Path: "reader", Mode: 0o755, Data: linkagetest.File(machine[arch], "", "")},
		{Path: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: []byte("PEM")},
	}
}

func config(arch string) oci.Config {
	return oci.Config{
		Architecture: arch, Entrypoint: []string{"/reader"}, User: recipe.User, SearchPath: recipe.SearchPath,
		Labels: reader.Labels(release), Created: release.Created,
	}
}

func image(t *testing.T, c oci.Config, files ...rootfs.File) v1.Image {
	t.Helper()
	var layers []oci.Layer
	for _, f := range files { // a layer each, so that there are several
		tree, err := rootfs.New(f)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, oci.Layer{Files: tree, By: "a test"})
	}
	out, err := oci.Image(c, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAnArchiveOfAGoodImageIsFound(t *testing.T) {
	name := filepath.Join(t.TempDir(), "reader.tar")
	want := image(t, config("amd64"), good("amd64")...)
	if err := oci.WriteArchive(name, reader.Reference("v1.2.3"), want); err != nil {
		t.Fatal(err)
	}
	found, err := inspect.Archive(name, reader, release)
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	digest, err := want.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if f := found[0]; len(f.Problems) > 0 || f.Architecture != "amd64" || f.Digest != digest.String() || f.Size < 100 || f.Size > 2000 {
		t.Errorf("%+v, digest %s", f, digest)
	}
}

func TestAnArchiveOfTwoArchitecturesHoldsBoth(t *testing.T) {
	name := filepath.Join(t.TempDir(), "reader.tar")
	index, err := oci.Index(image(t, config("amd64"), good("amd64")...), image(t, config("arm64"), good("arm64")...))
	if err != nil {
		t.Fatal(err)
	}
	if err := oci.WriteArchive(name, reader.Reference("v1.2.3"), index); err != nil {
		t.Fatal(err)
	}
	found, err := inspect.Archive(name, reader, release)
	if err != nil || len(found) != 2 || found[0].Architecture != "amd64" || found[1].Architecture != "arm64" ||
		len(found[0].Problems)+len(found[1].Problems) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestAnImageThatIsNotAsItMustBeIsNamed(t *testing.T) {
	file := func(name string, mode fs.FileMode) rootfs.File {
		return rootfs.File{Path: name, Mode: mode, Data: []byte("x")}
	}
	with := func(more ...rootfs.File) []rootfs.File { return append(good("amd64"), more...) }
	setting := func(change func(*oci.Config)) oci.Config {
		c := config("amd64")
		change(&c)
		return c
	}
	for _, test := range []struct {
		name   string
		config oci.Config
		files  []rootfs.File
		limit  int64
		want   string
	}{
		{"a shell", config("amd64"), with(file("bin/sh", 0o755)), 0, "bin/sh is in it"},
		{"a shell as a link", config("amd64"), with(rootfs.File{Path: "usr/bin/bash", Mode: fs.ModeSymlink | 0o777, Link: "/reader"}), 0, "usr/bin/bash is in it"},
		{"another program", config("amd64"), with(file("usr/bin/tool", 0o755)), 0, "usr/bin/tool is executable"},
		{"a set-id bit", config("amd64"), with(file("usr/lib/x", 0o644|fs.ModeSetuid)), 0, "usr/lib/x has a set-id bit"},
		{"a file that all may write", config("amd64"), with(file("etc/x", 0o666)), 0, "etc/x may be written"},
		{"a file that none but root may read", config("amd64"), with(file("etc/x", 0o600)), 0, "etc/x cannot be read by all"},
		{"a library of another processor", config("amd64"), with(rootfs.File{Path: "lib/x.so", Mode: 0o644, Data: linkagetest.File(elf.EM_AARCH64, "", "")}), 0, "lib/x.so is for EM_AARCH64"},
		{"a program of another processor", config("amd64"), good("arm64"), 0, "reader is for EM_AARCH64"},
		{"a missing library", config("amd64"), []rootfs.File{{Path: "reader", Mode: 0o755, Data: linkagetest.File(elf.EM_X86_64, "", "", "libgone.so")}, good("amd64")[1]}, 0, "libgone.so"},
		{"no certificates", config("amd64"), good("amd64")[:1], 0, "ca-certificates.crt is not there"},
		{"no program", config("amd64"), good("amd64")[1:], 0, "/reader is not there"},
		{"a program that only root may execute", config("amd64"), []rootfs.File{{Path: "reader", Mode: 0o744, Data: good("amd64")[0].Data}, good("amd64")[1]}, 0, "/reader is not there for all to execute"},
		{"root", setting(func(c *oci.Config) { c.User = "0" }), good("amd64"), 0, `it runs as user "0"`},
		{"another entrypoint", setting(func(c *oci.Config) { c.Entrypoint = []string{"/reader", "-v"} }), good("amd64"), 0, "must run /reader alone"},
		{"another search path", setting(func(c *oci.Config) { c.SearchPath = "/tmp" }), good("amd64"), 0, "its environment is"},
		{"a label that is missing", setting(func(c *oci.Config) { c.Labels = nil }), good("amd64"), 0, "label org.opencontainers.image.title"},
		{"another architecture", setting(func(c *oci.Config) { c.Architecture = "s390x" }), good("amd64"), 0, `its architecture is "s390x"`},
		{"too many bytes", config("amd64"), good("amd64"), 100, "compressed layers are"},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := reader
			if test.limit > 0 {
				want.MaxBytes = test.limit
			}
			name := filepath.Join(t.TempDir(), "reader.tar")
			if err := oci.WriteArchive(name, reader.Reference("v1.2.3"), image(t, test.config, test.files...)); err != nil {
				t.Fatal(err)
			}
			found, err := inspect.Archive(name, want, release)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(found[0].Problems, func(p string) bool { return strings.Contains(p, test.want) }) {
				t.Errorf("problems %q, want one with %q", found[0].Problems, test.want)
			}
		})
	}
}

func TestAnArchiveThatIsBrokenIsRefused(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "reader.tar")
	if err := oci.WriteArchive(name, "ghcr.io/other/reader:v1.2.3", image(t, config("amd64"), good("amd64")...)); err != nil {
		t.Fatal(err)
	}
	_, err := inspect.Archive(name, reader, release)
	if other, ok := errors.AsType[*inspect.NameError](err); !ok || other.Got != "ghcr.io/other/reader:v1.2.3" {
		t.Errorf("another name: %v", err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// One bit of a layer: its digest is no longer the manifest's.
	at := slices.Index(data, 0x1f)
	for at >= 0 && data[at+1] != 0x8b {
		at += 1 + slices.Index(data[at+1:], 0x1f)
	}
	data[at+20] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := inspect.Archive(name, reader, release); err == nil && len(found[0].Problems) == 0 {
		t.Error("a changed layer was accepted")
	}
	if err := os.WriteFile(name, data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := inspect.Archive(name, reader, release); err == nil {
		t.Error("half an archive was accepted")
	}
}
