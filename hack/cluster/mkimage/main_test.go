// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// entries returns the files of a tar by name, and their modes.
func entries(t *testing.T, archive []byte) (map[string][]byte, map[string]int64) {
	t.Helper()
	files, modes := map[string][]byte{}, map[string]int64{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name], modes[header.Name] = content, header.Mode
	}
}

// program writes a file that stands for a program, and returns its path.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("I am "+name), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnArchiveHoldsTheProgramsAndRunsTheFirst(t *testing.T) {
	app, helper := program(t, "app"), program(t, "helper")
	out := filepath.Join(t.TempDir(), "app.tar")
	if err := run("localhost/app:1", out, "65532:65532", []string{app, helper}); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := entries(t, archive)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || !slices.Equal(manifest[0].RepoTags, []string{"localhost/app:1"}) || len(manifest[0].Layers) != 1 {
		t.Fatalf("the manifest is %+v", manifest)
	}
	layer := files[manifest[0].Layers[0]]
	var config struct {
		Config struct {
			User       string
			Entrypoint []string
		} `json:"config"`
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal(files[manifest[0].Config], &config); err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/app"}) {
		t.Errorf("the image runs %v as %s", config.Config.Entrypoint, config.Config.User)
	}
	if want := []string{"sha256:" + sum(layer)}; !slices.Equal(config.RootFS.DiffIDs, want) {
		t.Errorf("the config names the layers %v; want %v", config.RootFS.DiffIDs, want)
	}
	programs, modes := entries(t, layer)
	if string(programs["app"]) != "I am app" || string(programs["helper"]) != "I am helper" {
		t.Errorf("the layer holds %q", programs)
	}
	if modes["app"] != 0o755 || modes["tmp/"] != 0o1777 {
		t.Errorf("the modes are %v", modes)
	}
}

func TestTheSameProgramsGiveTheSameBytes(t *testing.T) {
	app := program(t, "app")
	var sums []string
	for _, name := range []string{"a.tar", "b.tar"} {
		out := filepath.Join(t.TempDir(), name)
		if err := run("localhost/app:1", out, "1:1", []string{app}); err != nil {
			t.Fatal(err)
		}
		archive, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum(archive))
	}
	if sums[0] != sums[1] {
		t.Errorf("the digests differ: %v", sums)
	}
}

func TestAMissingProgramIsAnError(t *testing.T) {
	err := run("localhost/app:1", filepath.Join(t.TempDir(), "app.tar"), "1:1", []string{"/no/such/program"})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}
