// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rootfs_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

func link(name, to string) rootfs.File {
	return rootfs.File{Path: name, Mode: fs.ModeSymlink | 0o777, Link: to}
}

func file(name, data string) rootfs.File {
	return rootfs.File{Path: name, Mode: 0o644, Data: []byte(data)}
}

func tree(t *testing.T, files ...rootfs.File) *rootfs.Tree {
	t.Helper()
	out, err := rootfs.New(files...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPathsAreFollowedAsTheKernelDoes(t *testing.T) {
	files := tree(t, file("usr/lib/real", "x"), link("usr/lib/near", "real"), link("usr/lib/far", "/usr/lib/near"), link("lib", "usr/lib"),
		link("usr/up", "../lib/far"), link("a", "b"), link("b", "a"), link("out", "../../../usr/lib/real"), link("broken", "nowhere"))
	for _, test := range []struct {
		name, path, found string
		passed            []string
		err               error
	}{
		{"a file is itself", "/usr/lib/real", "usr/lib/real", nil, nil},
		{"a path may be relative", "usr/lib/real", "usr/lib/real", nil, nil},
		{"a relative link starts in its folder", "/usr/lib/near", "usr/lib/real", []string{"usr/lib/near"}, nil},
		{"an absolute link starts at the root", "/usr/lib/far", "usr/lib/real", []string{"usr/lib/far", "usr/lib/near"}, nil},
		{"a folder may be a link", "/lib/near", "usr/lib/real", []string{"lib", "usr/lib/near"}, nil},
		{"links may lead through links", "/usr/up", "usr/lib/real", []string{"usr/up", "lib", "usr/lib/far", "usr/lib/near"}, nil},
		{"nothing lies above the root", "/out", "usr/lib/real", []string{"out"}, nil},
		{"a loop ends", "/a", "", nil, rootfs.ErrLoop},
		{"a link to nothing is nothing", "/broken", "", nil, fs.ErrNotExist},
		{"a folder is no file", "/usr/lib", "", nil, fs.ErrNotExist},
		{"a file is no folder", "/usr/lib/real/more", "", nil, fs.ErrNotExist},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, passed, err := files.Resolve(test.path)
			if !errors.Is(err, test.err) || got.Path != test.found {
				t.Fatalf("got %q, %v; want %q, %v", got.Path, err, test.found, test.err)
			}
			var names []string
			for _, l := range passed {
				names = append(names, l.Path)
			}
			if test.err == nil && !slices.Equal(names, test.passed) {
				t.Errorf("passed %q, want %q", names, test.passed)
			}
		})
	}
}

func TestAPathHoldsOneFileBelowTheRoot(t *testing.T) {
	files := tree(t, file("etc/a", "1"))
	if err := files.Add(file("etc/a", "1")); err != nil {
		t.Errorf("the same file again: %v", err)
	}
	if _, ok := errors.AsType[*rootfs.ConflictError](files.Add(file("etc/a", "2"))); !ok {
		t.Error("another file at the same path was accepted")
	}
	for _, bad := range []string{"", ".", "/etc/b", "../b", "etc/../b", "etc//b", "etc/"} {
		if _, ok := errors.AsType[*rootfs.PathError](files.Add(file(bad, ""))); !ok {
			t.Errorf("path %q was accepted", bad)
		}
	}
}

func TestALayerIsTheSameBytesInWhateverOrderFilesCome(t *testing.T) {
	program := rootfs.File{Path: "usr/bin/p", Mode: 0o755, Data: []byte("run")}
	one, err := tree(t, file("etc/a", "1"), program, link("bin", "usr/bin")).Tar()
	if err != nil {
		t.Fatal(err)
	}
	other, err := tree(t, link("bin", "usr/bin"), program, file("etc/a", "1")).Tar()
	if err != nil || !bytes.Equal(one, other) {
		t.Errorf("two orders gave two layers (%v)", err)
	}
	sum := sha256.Sum256(one)
	if got := hex.EncodeToString(sum[:]); got != "6a3ee09fee3b67336e5f262e48c4b269e05878f77c93492a3afea6131e751eff" {
		t.Errorf("the layer's digest is %s: releases made of the same files would differ from those before", got)
	}
	var names []string
	for in := tar.NewReader(bytes.NewReader(one)); ; {
		h, err := in.Next()
		if err != nil {
			break
		}
		names = append(names, h.Name)
		if h.ModTime.Unix() != 0 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s is of %s, user %d %q", h.Name, h.ModTime, h.Uid, h.Uname)
		}
	}
	if want := []string{"etc/", "usr/", "usr/bin/", "bin", "etc/a", "usr/bin/p"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestFilesSurviveATarFileAndAFolder(t *testing.T) {
	want := tree(t, file("etc/a", "1"), rootfs.File{Path: "usr/bin/p", Mode: 0o755 | fs.ModeSetuid, Data: []byte("run")}, link("bin", "usr/bin"))
	data, err := want.Tar()
	if err != nil {
		t.Fatal(err)
	}
	got, err := rootfs.ReadTar(bytes.NewReader(data))
	if err != nil || !reflect.DeepEqual(got.Files(), want.Files()) {
		t.Errorf("%v\n got %v\nwant %v", err, got, want)
	}
	dir := filepath.Join(t.TempDir(), "root")
	if err := want.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	through, err := os.ReadFile(filepath.Join(dir, "bin/p"))
	if err != nil || string(through) != "run" {
		t.Errorf("reading through the written link: %q, %v", through, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "usr/bin/p")); err != nil || info.Mode() != 0o755 {
		t.Errorf("the written program's mode: %v, %v", info.Mode(), err)
	}
}

func TestATarFileWithWhatNoImageHasIsRefused(t *testing.T) {
	write := func(headers ...tar.Header) *bytes.Buffer {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		return &out
	}
	_, err := rootfs.ReadTar(write(tar.Header{Typeflag: tar.TypeBlock, Name: "dev/sda"}))
	if _, ok := errors.AsType[*rootfs.UnexpectedError](err); !ok {
		t.Errorf("a device: %v", err)
	}
	if _, err = rootfs.ReadTar(write(tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "gone"})); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a hard link to nothing: %v", err)
	}
	got, err := rootfs.ReadTar(write(tar.Header{Typeflag: tar.TypeReg, Name: "./etc/a"}, tar.Header{Typeflag: tar.TypeLink, Name: "./b", Linkname: "./etc/a"},
		tar.Header{Typeflag: tar.TypeReg, Name: "../../c"}))
	if err != nil || len(got.Files()) != 3 || got.Files()[0].Path != "b" || got.Files()[1].Path != "c" {
		t.Errorf("hard links and paths above the root: %+v, %v", got, err)
	}
}

func FuzzReadTar(f *testing.F) {
	files, err := rootfs.New(file("etc/a", "1"), link("bin", "usr/bin"))
	if err != nil {
		f.Fatal(err)
	}
	data, err := files.Tar()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(strings.Repeat("\x00", 1024)))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := rootfs.ReadTar(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, file := range read.Files() {
			if !fs.ValidPath(file.Path) || file.Path == "." {
				t.Errorf("path %q", file.Path)
			}
			if found, _, err := read.Resolve(file.Path); err == nil && found.IsLink() {
				t.Errorf("%q resolves to a link", file.Path)
			}
		}
	})
}
