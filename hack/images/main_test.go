// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheCommandLineIsRead(t *testing.T) {
	c, err := parse([]string{"build", "-images", "vision-ocr vision-runtime", "-arch", "arm64,amd64 arm64", "-version", "v1", "-debian", "current"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.recipes) != 2 || c.recipes[0].Name != "vision-runtime" || !slices.Equal(c.architectures, []string{"amd64", "arm64"}) || c.version != "v1" || !c.current {
		t.Errorf("%+v", c)
	}
	if c, err = parse([]string{"lock"}, io.Discard); err != nil || len(c.recipes) != 3 || len(c.architectures) != 2 || c.current {
		t.Errorf("defaults: %+v, %v", c, err)
	}
	if _, err := parse([]string{"build", "-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
}

func TestACommandLineThatCannotWorkIsRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"no command":              {},
		"an unknown command":      {"push"},
		"an unknown image":        {"build", "-images", "vision-operatr"},
		"an unknown architecture": {"build", "-arch", "riscv64"},
		"no architecture":         {"build", "-arch", " "},
		"an unknown source":       {"build", "-debian", "newest"},
		"an unknown flag":         {"build", "-push"},
		"an argument":             {"build", "vision-ocr"},
	} {
		_, err := parse(args, io.Discard)
		if _, ok := errors.AsType[*usageError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parse([]string{"build", "-version", "a/b"}, io.Discard); err == nil {
		t.Error("a version that is no tag was accepted")
	}
}

func TestImagesAreOfTheCommitAndItsTime(t *testing.T) {
	dir := t.TempDir()
	say := func(string, ...any) {}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	release, err := releaseOf(t.Context(), dir, "v1", say)
	if err != nil || release.Revision != "unknown" || release.Created.Unix() != 0 || release.Version != "v1" {
		t.Errorf("outside of git: %+v, %v", release, err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "one"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-12-01T01:02:03+01:00")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	release, err = releaseOf(t.Context(), dir, "v1", say)
	if err != nil || len(release.Revision) != 40 || !release.Created.Equal(time.Date(2026, 12, 1, 0, 2, 3, 0, time.UTC)) {
		t.Errorf("%+v, %v", release, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1800000000")
	if release, err = releaseOf(t.Context(), dir, "v1", say); err != nil || release.Created.Unix() != 1_800_000_000 || len(release.Revision) != 40 {
		t.Errorf("with SOURCE_DATE_EPOCH: %+v, %v", release, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err = releaseOf(t.Context(), dir, "v1", say); err == nil {
		t.Error("a SOURCE_DATE_EPOCH that is no number was accepted")
	}
}

// project is a folder with the one program that an image is made of here, in a module of its own.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/tiny\n\ngo 1.26.0\n", "cmd/vision-runtime/main.go": "package main\n\nfunc main() {}\n",
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

func TestImagesAndTheirDocumentsAreWrittenTheSameTwice(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1800000000")
	var outs []map[string]string
	var tables []string
	for range 2 {
		out := t.TempDir()
		var table, said bytes.Buffer
		if err := run(t.Context(), []string{"build", "-root", project(t), "-out", out, "-images", "vision-runtime", "-version", "v1"}, &table, &said); err != nil {
			t.Fatalf("%v\n%s", err, &said)
		}
		files := map[string]string{}
		for _, name := range []string{"vision-runtime-amd64.tar", "vision-runtime-arm64.tar", "vision-runtime.tar", "vision-runtime-amd64.spdx.json", "vision-runtime-arm64.spdx.json"} {
			data, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(data)
		}
		outs, tables = append(outs, files), append(tables, table.String())
	}
	for name := range outs[0] {
		if outs[0][name] != outs[1][name] {
			t.Errorf("%s differs between two builds", name)
		}
	}
	if tables[0] != tables[1] || strings.Count(tables[0], "ghcr.io/visionoperator/vision-runtime:v1") != 3 || strings.Count(tables[0], "sha256:") != 3 {
		t.Errorf("the table is\n%s", tables[0])
	}
	if document := outs[0]["vision-runtime-arm64.spdx.json"]; !strings.Contains(document, "pkg:golang/golang.org/x/crypto/x509roots/fallback@v0.0.0-2") {
		t.Error("the SBOM does not name where the certificates are from")
	}
}

func TestAnImagesFilesAreWrittenIntoAFolder(t *testing.T) {
	out := t.TempDir()
	if err := run(t.Context(), []string{"rootfs", "-root", project(t), "-out", out, "-images", "vision-runtime", "-arch", "arm64"}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(out, "vision-runtime/vision-runtime"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(out, "vision-runtime/etc/ssl/certs/ca-certificates.crt")); err != nil {
		t.Error(err)
	}
}
