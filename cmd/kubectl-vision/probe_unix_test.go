// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestProbeDoesNotWaitForSpecialFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.Symlink("fifo", "link"); err != nil {
		t.Fatal(err)
	}
	lines, code := runProbeOn(t, "fifo", "socket", "link", "/dev/zero")
	for i, want := range []string{"a named pipe", "a socket", "a named pipe", "a device or another special file"} {
		if !strings.HasSuffix(lines[i], ": error: looking at the file: it is "+want+", not a regular file") {
			t.Errorf("got %q, want %s", lines[i], want)
		}
	}
	if code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
}
