// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/tiff"
	_ "golang.org/x/image/webp"
)

// encoded holds small images that common encoders made of one picture, named by
// what they are.
const encoded = "testdata/encoded"

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
		filepath.Join(ximage, "tiff/testdata"),
		encoded,
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

// decoded is the size that a full decoder makes of an image; ok only where it
// decodes the whole, or at least reads its header when the pixels are not wanted.
func decoded(data []byte) (want Facts, ok bool) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return Facts{}, false
	}
	want = size("image/"+format, config.Width, config.Height)
	if config.Width*config.Height > 1<<22 {
		return want, true
	}
	if img, _, err := image.Decode(bytes.NewReader(data)); err == nil {
		want.Width, want.Height = img.Bounds().Dx(), img.Bounds().Dy()
	}
	return want, true
}

func TestHeaderAgreesWithTheDecodersOnRealImages(t *testing.T) {
	agreed := map[string]int{}
	corpus(t, func(t *testing.T, name string, data []byte) {
		facts, err := Header(data)
		want, ok := decoded(data)
		switch {
		case !ok:
			return // nothing to compare with
		case err != nil:
			t.Errorf("%s: refused (%v), but decodes as %s", name, err, want.MediaType)
		case !facts.SizeKnown() && len(data) > MaxHeader && mayHideItsSize(facts.MediaType):
			// its directory stands past the header
		case sizeOf(facts) != want:
			t.Errorf("%s: %+v, decoder says %+v", name, facts, want)
		default:
			agreed[facts.MediaType]++
		}
		if whole, err := Content(data); err != nil || sizeOf(whole) != want {
			t.Errorf("%s: Content = %+v, %v, decoder says %+v", name, whole, err, want)
		}
	})
	for mediaType, least := range map[string]int{PNG: 80, JPEG: 20, GIF: 4, WebP: 15, BMP: 5, TIFF: 15} {
		if agreed[mediaType] < least {
			t.Errorf("%s: compared %d images, expected at least %d: is the corpus whole?", mediaType, agreed[mediaType], least)
		}
	}
}

// TestHeaderAgreesWithTheEncoders holds images that no decoder here reads, or not
// all of, against their names.
func TestHeaderAgreesWithTheEncoders(t *testing.T) {
	files, err := os.ReadDir(encoded)
	if err != nil || len(files) < 20 {
		t.Fatalf("%d images (%v), want at least 20", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(encoded, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Header(data)
		if err != nil {
			t.Errorf("%s: %v", file.Name(), err)
		}
		name := strings.TrimSuffix(file.Name(), filepath.Ext(file.Name()))
		moves, bits := strings.HasSuffix(name, "-moving"), numberBehind(name, "bits")
		switch {
		case !strings.HasPrefix(name+"-", fmt.Sprintf("%dx%d-", got.Width, got.Height)),
			got.Orientation != numberBehind(name, "orientation"),
			moves != (got.Animated == Yes) || got.Animated == Unknown,
			bits != 0 && bits != got.Bits,
			got.CMYK != strings.HasSuffix(name, "-cmyk"):
			t.Errorf("%s: got %+v", file.Name(), got)
		}
		if !got.Agrees("image/" + strings.TrimPrefix(filepath.Ext(file.Name()), ".")) {
			t.Errorf("%s: is %s", file.Name(), got.MediaType)
		}
	}
}

// numberBehind is the number behind a word in an image's name; 0 without it.
func numberBehind(name, word string) int {
	_, rest, _ := strings.Cut(name, "-"+word+"-")
	digits, _, _ := strings.Cut(rest, "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// TestEveryTruncation cuts real and built headers at every byte. Of a file that
// ends there, the answer is the whole header's, a truncation, or an unknown
// size; of one that goes on, it is never a refusal; of neither is it ever a
// wrong size, orientation or animation.
func TestEveryTruncation(t *testing.T) {
	cut := func(t *testing.T, name string, data []byte) {
		whole, err := Content(data)
		if err != nil {
			return
		}
		for n := range min(len(data), 4096) {
			got, err := Header(data[:n])
			if reason := reasonOf(err); err != nil && reason != NotAnImage && reason != Truncated {
				t.Fatalf("%s cut at %d: %v, want a truncation", name, n, err)
			}
			if err == nil && got.SizeKnown() && sizeOf(got) != sizeOf(whole) {
				t.Fatalf("%s cut at %d: %+v, whole header says %+v", name, n, got, whole)
			}
			agreeAsFarAsTold(t, data[:n], int64(len(data)), whole)
		}
	}
	corpus(t, cut)
	for name, data := range named() {
		t.Run(name, func(t *testing.T) { cut(t, name, data) })
	}
	for name, data := range seeds() {
		t.Run(name, func(t *testing.T) { cut(t, name, data) })
	}
}

// agreeAsFarAsTold holds what a head of a longer image tells against the facts
// of the whole.
func agreeAsFarAsTold(t *testing.T, head []byte, total int64, whole Facts) {
	t.Helper()
	got, err := Head(head, total)
	if reasonOf(err) == NotAnImage {
		return // too short for the signature
	}
	if got.MediaType == HEIF && whole.MediaType == AVIF || got.MediaType == HEIF && whole.MediaType == HEIC {
		got.MediaType = whole.MediaType // cut before the brand that says so
	}
	switch {
	case err != nil:
		t.Fatalf("%d bytes of %d: refused (%v), whole image says %+v", len(head), total, err, whole)
	case got.MediaType != whole.MediaType,
		got.SizeKnown() && sizeOf(got) != sizeOf(whole),
		got.Orientation != 0 && got.Orientation != whole.Orientation,
		got.Animated != Unknown && got.Animated != whole.Animated,
		got.Pixels() > whole.Pixels():
		t.Fatalf("%d bytes of %d: %+v, whole image says %+v", len(head), total, got, whole)
	}
}

func TestASizeBehindTheHeaderIsUnknownAndNotRefused(t *testing.T) {
	for _, kib := range []int{70, 300, 900} {
		data := lateJPEG(kib)
		if len(data) < kib<<10 {
			t.Fatalf("built %d bytes for %d KiB", len(data), kib)
		}
		if got, err := Header(data); sizeOf(got) != size(JPEG, 0, 0) || err != nil {
			t.Errorf("%d KiB: Header = %+v, %v, want an unknown size", kib, got, err)
		}
		if got, err := Content(data); sizeOf(got) != size(JPEG, 4000, 3000) || err != nil {
			t.Errorf("%d KiB: Content = %+v, %v, want 4000 x 3000", kib, got, err)
		}
	}
}
