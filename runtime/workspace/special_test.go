// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A test below that blocks has failed: the test binary's timeout says so.

func TestSpecialFilesAreRefusedWithoutWaiting(t *testing.T) {
	dir := lay(t, map[string]string{"link": "-> fifo"})
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	must(t, err)
	defer listener.Close()
	set := open(t, dir, "/dev")
	for _, path := range []string{"fifo", "link", "socket", "/dev/zero", "/dev/null"} {
		if _, err := set.Open(path); reasonOf(err) != NotRegular {
			t.Errorf("%s: %v, want a refusal", path, err)
		}
	}
}

// found resolves a path and hands it back as it stands just before its open.
func found(t *testing.T, set *Set, path string) place {
	t.Helper()
	_, space, parts, err := set.locate(path)
	must(t, err)
	at, err := set.resolve(path, space, parts)
	must(t, err)
	return at
}

func TestAFileSwappedBeforeItsOpenIsRefused(t *testing.T) {
	outside := filepath.Join(lay(t, map[string]string{"secret": "secret"}), "secret")
	for name, swap := range map[string]func(path string) error{
		"for a FIFO":         func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"for a directory":    func(path string) error { return os.Mkdir(path, 0o755) },
		"for a link outside": func(path string) error { return os.Symlink(outside, path) },
		"for nothing":        func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := lay(t, map[string]string{"sub/a.png": "a"})
			at := found(t, open(t, dir), "sub/a.png")
			must(t, os.Remove(filepath.Join(dir, "sub/a.png")))
			must(t, swap(filepath.Join(dir, "sub/a.png")))
			file, _, err := at.open("sub/a.png")
			if err == nil {
				file.Close()
				t.Fatal("opened it")
			}
			if reasonOf(err) == "" || strings.Contains(err.Error(), outside) {
				t.Errorf("error = %v, want a typed one that tells nothing", err)
			}
		})
	}
}

func TestADirectorySwappedForALinkBeforeTheOpenIsRefused(t *testing.T) {
	outside := lay(t, map[string]string{"a.png": "secret"})
	dir := lay(t, map[string]string{"sub/a.png": "a"})
	at := found(t, open(t, dir), "sub/a.png")
	must(t, os.RemoveAll(filepath.Join(dir, "sub")))
	must(t, os.Symlink(outside, filepath.Join(dir, "sub")))
	if file, _, err := at.open("sub/a.png"); err == nil {
		file.Close()
		t.Fatal("opened a file outside")
	}
}

func TestAFileWithoutPermissionSaysSo(t *testing.T) {
	err := failed("a.png", &fs.PathError{Op: "openat", Path: "/host/a.png", Err: syscall.EACCES})
	if err.Reason != IO || !errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "/host") {
		t.Errorf("error = %v (%s)", err, err.Reason)
	}
	if !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("%q does not say what is wrong", err)
	}
}
