// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/reference"
)

func TestWithoutADirectoryReferencesAreInMemoryAndUploadsAreRefused(t *testing.T) {
	k := open(t, reference.Options{})
	a := image("/workspace/a.png", "a")
	k.Remember(a)
	_, bad := k.Upload(a, []byte("a"))
	if reasonOf(bad) != "vision_adapter_unavailable UploadsUnavailable" || bad.RecoveryHint == "" {
		t.Errorf("uploading: %v", bad)
	}
	kept, ok := k.Find(a.ID)
	if !ok || kept.Reference.Path != "/workspace/a.png" {
		t.Errorf("found %+v", kept)
	}
	kept.Uploaded = true
	if _, err := k.Bytes(kept); reasonOf(err) != unknown {
		t.Errorf("the bytes of somebody else's upload: %v", err)
	}
}

func TestADirectoryThatCannotBeUsedIsToldAtOpening(t *testing.T) {
	dir := t.TempDir()
	for _, below := range []string{"references", "uploads"} {
		if err := os.WriteFile(filepath.Join(dir, below), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if k, err := reference.Open(reference.Options{Dir: dir}); err == nil || k != nil {
			t.Errorf("%s is a file, and the error is %v", below, err)
		}
		if err := os.Remove(filepath.Join(dir, below)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedFilesAreUnknown(t *testing.T) {
	for name, tc := range map[string]struct{ below, file string }{
		"a record": {"references", image("", "a").ID},
		"bytes":    {"uploads", image("", "a").SHA256},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			kept := upload(t, open(t, reference.Options{Dir: dir}), "a")
			path := filepath.Join(dir, tc.below, tc.file)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for n := 0; n < len(whole); n += 13 {
				if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
					t.Fatal(err)
				}
				k := open(t, reference.Options{Dir: dir})
				if found, ok := k.Find(kept.Reference.ID); ok {
					if data, err := k.Bytes(found); reasonOf(err) != unknown {
						t.Fatalf("cut to %d bytes: %q, %v", n, data, err)
					}
				}
				if pathOf(k, kept.Reference.ID) != "" {
					t.Fatalf("cut to %d bytes it is found", n)
				}
				upload(t, k, "a")
			}
		})
	}
}

func TestBytesOfAnotherDigestAreNeverAnswered(t *testing.T) {
	k := open(t, reference.Options{Dir: t.TempDir()})
	kept, bad := k.Upload(image("upload", "a"), []byte("b")) // a caller's mistake
	if bad != nil {
		t.Fatal(bad)
	}
	if data, err := k.Bytes(kept); reasonOf(err) != unknown || data != nil || pathOf(k, kept.Reference.ID) != "" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestRecordsAndBytesWithoutEachOtherGoAtOpening(t *testing.T) {
	dir := t.TempDir()
	k := open(t, reference.Options{Dir: dir})
	a, b := upload(t, k, "a"), upload(t, k, "b")
	c := image("/workspace/c", "c")
	k.Remember(c)
	err := errors.Join(
		os.Remove(filepath.Join(dir, "uploads", a.Reference.SHA256)),
		os.Remove(filepath.Join(dir, "references", b.Reference.ID)),
		os.Rename(filepath.Join(dir, "references", c.ID), filepath.Join(dir, "references", "other")),
	)
	if err != nil {
		t.Fatal(err)
	}
	k = open(t, reference.Options{Dir: dir})
	for _, id := range []string{a.Reference.ID, b.Reference.ID, c.ID, "other"} {
		if pathOf(k, id) != "" {
			t.Errorf("%s is found", id)
		}
	}
	for _, below := range []string{"references", "uploads"} {
		if left, err := os.ReadDir(filepath.Join(dir, below)); err != nil || len(left) != 0 {
			t.Errorf("%s left: %v, %v", below, left, err)
		}
	}
}

func TestBytesThatAnotherProcessJustWroteAreLeftToIt(t *testing.T) {
	for later, left := range map[time.Duration]int{
		0: 1, time.Minute - 1: 1, time.Minute: 0, -time.Second: 0, // the last is of a clock that was set back
	} {
		dir := t.TempDir()
		at := func(now time.Time) *reference.Keeper {
			k, err := reference.Open(reference.Options{Dir: dir, Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = k.Close() })
			return k
		}
		other := at(start)
		kept := upload(t, other, "a")
		if err := os.Remove(filepath.Join(dir, "references", kept.Reference.ID)); err != nil { // as if it were still to come
			t.Fatal(err)
		}
		at(start.Add(later))
		if files, err := os.ReadDir(filepath.Join(dir, "uploads")); err != nil || len(files) != left {
			t.Errorf("%s later: %v, %v", later, files, err)
		}
		if data, err := other.Bytes(kept); string(data) != "a" && left == 1 {
			t.Errorf("%s later the other process reads %q, %v", later, data, err)
		}
	}
}

func TestADiskThatFailsIsLoggedOnceWithoutContent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	var log bytes.Buffer
	k := open(t, reference.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	kept := upload(t, k, "first")
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	k.Remember(image("/workspace/secret-name.png", "a"))
	k.Remember(image("/workspace/secret-name.png", "b"))
	if pathOf(k, image("", "a").ID) == "" || pathOf(k, image("", "b").ID) == "" {
		t.Error("memory forgot what the disk did not take")
	}
	_, bad := k.Upload(image("upload", "secret-bytes"), []byte("secret-bytes"))
	if reasonOf(bad) != "vision_adapter_unavailable UploadFailed" || !bad.Retryable {
		t.Errorf("uploading: %v", bad)
	}
	if _, err := k.Bytes(kept); reasonOf(err) != unknown {
		t.Errorf("reading what vanished: %v", err)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || strings.Contains(log.String(), "secret") {
		t.Errorf("logged:\n%s", log.String())
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if again := upload(t, k, "first"); again.Existed {
		t.Error("what vanished existed")
	}
	if pathOf(open(t, reference.Options{Dir: dir}), kept.Reference.ID) == "" {
		t.Error("the disk is well again and not used")
	}
}
