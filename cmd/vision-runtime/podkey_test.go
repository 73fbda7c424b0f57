// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// wantPodKey is the key of a directory, which must be 32 bytes for its owner alone,
// in a file of its own.
func wantPodKey(t *testing.T, dir string) []byte {
	t.Helper()
	key := podKey(dir, quiet())
	path := filepath.Join(dir, "pod.key")
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("the file is %v: %v", info, err)
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(data, key) || len(key) != 32 || bytes.Equal(key, make([]byte, 32)) {
		t.Fatalf("the key is of %d bytes, in the file are %d: %v", len(key), len(data), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Fatalf("left in the directory are %v: %v", entries, err)
	}
	return key
}

func TestThePodsKeyOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	first := wantPodKey(t, dir)
	if again := wantPodKey(t, dir); !bytes.Equal(first, again) {
		t.Error("another key after a restart")
	}
	if other := wantPodKey(t, t.TempDir()); bytes.Equal(first, other) {
		t.Error("the same key in another directory")
	}
}

func TestProcessesThatStartTogetherHaveOnePodKey(t *testing.T) {
	dir := t.TempDir()
	keys := make([][]byte, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() { keys[i] = podKey(dir, quiet()) })
	}
	all.Wait()
	want := wantPodKey(t, dir)
	for i, key := range keys {
		if !bytes.Equal(key, want) {
			t.Errorf("process %d has another key", i)
		}
	}
}

func TestWhatIsNoPodKeyIsReplaced(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, bytes.Repeat([]byte{1}, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(path string) error{
		"a key that is cut off": func(path string) error { return os.WriteFile(path, make([]byte, 31), 0o600) },
		"nothing":               func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a longer file":         func(path string) error { return os.WriteFile(path, make([]byte, 33), 0o600) },
		"a link":                func(path string) error { return os.Symlink(outside, path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := put(filepath.Join(dir, "pod.key")); err != nil {
				t.Fatal(err)
			}
			wantPodKey(t, dir)
		})
	}
	if data, err := os.ReadFile(outside); err != nil || !bytes.Equal(data, bytes.Repeat([]byte{1}, 32)) {
		t.Error("what a link led to was changed")
	}
}

func TestWithoutADirectoryThePodHasNoKeyOfItsOwn(t *testing.T) {
	var told bytes.Buffer
	log := slog.New(slog.NewTextHandler(&told, nil))
	if key := podKey("", log); key != nil || told.Len() > 0 {
		t.Errorf("without a directory: %d bytes; told is %s", len(key), &told)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "pod.key", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if key := podKey(dir, log); key != nil || !strings.Contains(told.String(), "keeping the pod's key failed") {
		t.Errorf("where there is a directory in its place: %d bytes; told is %s", len(key), &told)
	}
}
