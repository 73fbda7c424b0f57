// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gobuild_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/hack/images/internal/gobuild"
)

// program is a module without imports, which builds fast; it lies in a folder of its own each time.
func program(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/tiny\n\ngo 1.26.0\n", "cmd/tiny/main.go": source,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const tiny = "package main\n\nvar version string\n\nfunc main() { println(version) }\n"

func TestAProgramIsTheSameBytesWhereverItIsBuilt(t *testing.T) {
	t.Setenv("GOFLAGS", "-buildvcs=true")
	t.Setenv("GOAMD64", "v3")
	one, err := gobuild.Build(t.Context(), program(t, tiny), "./cmd/tiny", "v1.2.3", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOAMD64", "v1")
	t.Setenv("CGO_ENABLED", "1")
	other, err := gobuild.Build(t.Context(), program(t, tiny), "./cmd/tiny", "v1.2.3", "amd64")
	if err != nil || !bytes.Equal(one.Data, other.Data) {
		t.Errorf("two builds of one source differ (%v)", err)
	}
	changed, err := gobuild.Build(t.Context(), program(t, tiny), "./cmd/tiny", "v1.2.4", "amd64")
	if err != nil || bytes.Equal(one.Data, changed.Data) || !bytes.Contains(changed.Data, []byte("v1.2.4")) {
		t.Errorf("another version is the same program (%v)", err)
	}
	if !slices.Contains(other.Info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		t.Errorf("it may need C libraries, which images lack: %v", other.Info.Settings)
	}
	if one.Info.Main.Path != "example.com/tiny" || one.Info.GoVersion == "" {
		t.Errorf("%+v", one.Info)
	}
}

func TestAProgramIsForItsArchitecture(t *testing.T) {
	got, err := gobuild.Build(t.Context(), program(t, tiny), "./cmd/tiny", "v1", "arm64")
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(got.Data))
	if err != nil || f.Machine != elf.EM_AARCH64 {
		t.Errorf("%v, %v", f, err)
	}
}

func TestWhatDoesNotBuildSaysWhy(t *testing.T) {
	_, err := gobuild.Build(t.Context(), program(t, "package main\n\nfunc main() { gone() }\n"), "./cmd/tiny", "v1", "amd64")
	if bad, ok := errors.AsType[*gobuild.BuildError](err); !ok || !bytes.Contains([]byte(bad.Said), []byte("undefined: gone")) {
		t.Errorf("got %v", err)
	}
}
