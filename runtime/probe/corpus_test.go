// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "golang.org/x/image/webp"
)

// corpusDirs are the test images that come with Go and with x/image.
func corpusDirs(t *testing.T) []string {
	t.Helper()
	ask := func(args ...string) string {
		out, err := exec.Command("go", args...).Output()
		if err != nil {
			t.Fatalf("asking go %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	goroot, ximage := ask("env", "GOROOT"), ask("list", "-m", "-f", "{{.Dir}}", "golang.org/x/image")
	return []string{
		filepath.Join(goroot, "src/image/testdata"),
		filepath.Join(goroot, "src/image/png/testdata"),
		filepath.Join(ximage, "testdata"),
	}
}

// corpus calls visit with every file of the corpus.
func corpus(t *testing.T, visit func(t *testing.T, name string, data []byte)) {
	t.Helper()
	for _, dir := range corpusDirs(t) {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil {
				visit(t, filepath.Base(path), data)
			}
			return err
		})
		if err != nil {
			t.Fatalf("walking the corpus: %v", err)
		}
	}
}

func TestHeaderAgreesWithTheDecodersOnRealImages(t *testing.T) {
	agreed := map[string]int{}
	corpus(t, func(t *testing.T, name string, data []byte) {
		facts, err := Header(data)
		config, format, decodeErr := image.DecodeConfig(bytes.NewReader(data))
		switch {
		case decodeErr != nil:
			return // nothing to compare with
		case err != nil:
			t.Errorf("%s: refused (%v), but decodes as %s", name, err, format)
		case !facts.SizeKnown() && mayHideItsSize(facts.MediaType):
			// its directory stands past the header
		case facts != (Facts{"image/" + format, config.Width, config.Height}):
			t.Errorf("%s: %+v, decoder says %s %dx%d", name, facts, format, config.Width, config.Height)
		default:
			agreed[facts.MediaType]++
		}
	})
	for mediaType, least := range map[string]int{PNG: 80, JPEG: 20, GIF: 4, WebP: 15, BMP: 5, TIFF: 15} {
		if agreed[mediaType] < least {
			t.Errorf("%s: compared %d images, expected at least %d: is the corpus whole?", mediaType, agreed[mediaType], least)
		}
	}
}

// TestEveryTruncation cuts real and built headers at every byte: the answer is
// the whole header's, or a refusal, or an unknown size, and never a wrong size.
func TestEveryTruncation(t *testing.T) {
	cut := func(t *testing.T, name string, data []byte) {
		whole, err := Header(data)
		if err != nil {
			return
		}
		for n := range min(len(data), 4096) {
			got, err := Header(data[:n])
			if got.MediaType == HEIF && whole.MediaType == AVIF {
				continue // cut before the brand that says so
			}
			if err == nil && got.SizeKnown() && got != whole {
				t.Fatalf("%s cut at %d: %+v, whole header says %+v", name, n, got, whole)
			}
			if reason := reasonOf(err); err != nil && reason != NotAnImage && reason != Truncated {
				t.Fatalf("%s cut at %d: %v, want a truncation", name, n, err)
			}
		}
	}
	corpus(t, cut)
	for name, data := range seeds() {
		cut(t, name, data)
	}
}
