// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzOpen writes one link target and asks for one path: whatever both say,
// what is read was in the workspace, and what is refused is typed.
func FuzzOpen(f *testing.F) {
	for _, path := range []string{"a.png", "link", "link/secret", "dir/../link", "../secret", "/etc/passwd", "", "a\x00", "%2e%2e/secret"} {
		for _, target := range []string{"a.png", "..", "../secret", "/", "dir/..", "link", ".", "/proc/self/cwd", "dir/../../secret"} {
			f.Add(path, target)
		}
	}
	parent := f.TempDir()
	ws := filepath.Join(parent, "ws")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(ws, "dir"), 0o755),
		os.WriteFile(filepath.Join(parent, "secret"), []byte("outside"), 0o644),
		os.WriteFile(filepath.Join(ws, "a.png"), []byte("inside"), 0o644),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	set, err := Open([]string{ws})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(set.Close)
	link := filepath.Join(ws, "link")
	f.Fuzz(func(t *testing.T, path, target string) {
		_ = os.Remove(link) // absent before the first run
		if err := os.Symlink(target, link); err != nil {
			return // no link can have this target
		}
		for _, path := range []string{path, filepath.Join(ws, path)} {
			file, err := set.Read(path, limit)
			switch {
			case err == nil && string(file.Bytes) != "inside":
				t.Fatalf("read %q by %q with a link to %q", file.Bytes, path, target)
			case err != nil && reasonOf(err) == "":
				t.Fatalf("%q: untyped error %v", path, err)
			case err != nil && strings.Contains(err.Error(), parent) && !strings.Contains(path, parent):
				t.Fatalf("%q tells the host's path", err)
			}
		}
	})
}
