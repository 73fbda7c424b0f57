// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// images writes files into a new folder, which is then the working directory,
// and returns what they hold.
func images(t *testing.T) map[string][]byte {
	t.Helper()
	picture := image.NewGray(image.Rect(0, 0, 9, 5))
	frame := image.NewPaletted(image.Rect(0, 0, 9, 5), color.Palette{color.Black, color.White})
	var still, photo, moving bytes.Buffer
	if err := errors.Join(png.Encode(&still, picture), jpeg.Encode(&photo, picture, nil),
		gif.EncodeAll(&moving, &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{1, 1}})); err != nil {
		t.Fatal(err)
	}
	exif := []byte("\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00")
	turned := slices.Concat(photo.Bytes()[:2], exif, photo.Bytes()[2:])
	profile := append([]byte("\xff\xe2\xff\xff"), make([]byte, 65533)...)
	files := map[string][]byte{
		"still.png": still.Bytes(), "lies.jpg": still.Bytes(), "turned.jpg": turned, "moving.gif": moving.Bytes(),
		"late.jpg": slices.Concat(photo.Bytes()[:2], profile, profile, photo.Bytes()[2:]),
		"notes":    []byte("some notes"), "cut.png": still.Bytes()[:20], "empty": {},
		"drawing.svg": []byte("<svg width='30' height='20'/>"), "named.jxl": {0xff, 0x0a, 0, 0},
	}
	t.Chdir(t.TempDir())
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	return files
}

// runProbeOn runs the command on files, and returns its lines and exit code.
func runProbeOn(t *testing.T, args ...string) (lines []string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), append([]string{"probe"}, args...), nil, &stdout, &stderr); err != nil {
		code = exitCode(err)
	}
	if stderr.Len() > 0 {
		t.Errorf("standard error has %q", &stderr)
	}
	return strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n"), code
}

func TestProbePrintsAnObjectForEachFile(t *testing.T) {
	files := images(t)
	const known = ` (known: `
	tests := []struct {
		path string
		want string // without bytes and sha256
		fail string // begins the error
	}{
		{path: "still.png", want: `{"path":"still.png","mediaType":"image/png","width":9,"height":5,"orientation":null,"animated":false}`},
		{path: "lies.jpg", want: `{"path":"lies.jpg","mediaType":"image/png","width":9,"height":5,"orientation":null,"animated":false}`},
		{path: "turned.jpg", want: `{"path":"turned.jpg","mediaType":"image/jpeg","width":9,"height":5,"orientation":6,"animated":false}`},
		{path: "late.jpg", want: `{"path":"late.jpg","mediaType":"image/jpeg","width":null,"height":null,"orientation":null,"animated":false}`},
		{path: "moving.gif", want: `{"path":"moving.gif","mediaType":"image/gif","width":9,"height":5,"orientation":null,"animated":true}`},
		{path: "drawing.svg", want: `{"path":"drawing.svg","mediaType":"image/svg+xml","width":30,"height":20,"orientation":null,"animated":null}`},
		{path: "named.jxl", want: `{"path":"named.jxl","mediaType":"image/jxl","width":null,"height":null,"orientation":null,"animated":null}`},
		{path: "notes", want: `{"path":"notes","mediaType":null,"width":null,"height":null,"orientation":null,"animated":null}`, fail: "reading image header: content is not an image of a known type" + known},
		{path: "empty", want: `{"path":"empty","mediaType":null,"width":null,"height":null,"orientation":null,"animated":null}`, fail: "reading image header: content is not an image of a known type" + known},
		{path: "cut.png", want: `{"path":"cut.png","mediaType":"image/png","width":null,"height":null,"orientation":null,"animated":null}`, fail: "reading image header: image/png ends before its size"},
		{path: "folder", want: `{"path":"folder","mediaType":null,"width":null,"height":null,"orientation":null,"animated":null}`, fail: "looking at the file: it is a directory, not a regular file"},
		{path: "not/there", want: `{"path":"not/there","mediaType":null,"width":null,"height":null,"orientation":null,"animated":null}`, fail: "looking at the file: no such file or directory"},
	}
	args := []string{"-o", "json"}
	for _, tc := range tests {
		args = append(args, tc.path)
	}
	lines, code := runProbeOn(t, args...)
	if len(lines) != len(tests) || code != exitFailed {
		t.Fatalf("got %d lines and exit code %d, want %d and %d", len(lines), code, len(tests), exitFailed)
	}
	for i, tc := range tests {
		var got struct {
			Bytes  *int64
			SHA256 *string
			Error  *string
		}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatalf("%s: %v in %s", tc.path, err, lines[i])
		}
		facts, _, found := strings.Cut(lines[i], `,"bytes":`)
		if !found || facts+"}" != tc.want {
			t.Errorf("%s: got %s\nwant %s", tc.path, facts+"}", tc.want)
		}
		if data, ok := files[tc.path]; ok {
			digest := sha256.Sum256(data)
			if got.Bytes == nil || *got.Bytes != int64(len(data)) || got.SHA256 == nil || *got.SHA256 != hex.EncodeToString(digest[:]) {
				t.Errorf("%s: got length and digest in %s", tc.path, lines[i])
			}
		} else if got.Bytes != nil || got.SHA256 != nil {
			t.Errorf("%s: has a length or digest: %s", tc.path, lines[i])
		}
		switch {
		case (got.Error == nil) != (tc.fail == ""):
			t.Errorf("%s: error %v, want %q", tc.path, got.Error, tc.fail)
		case got.Error != nil && !strings.HasPrefix(*got.Error, tc.fail):
			t.Errorf("%s: error %q, want %q", tc.path, *got.Error, tc.fail)
		}
	}
}

func TestProbeOfImagesAloneExitsWith0(t *testing.T) {
	images(t)
	if lines, code := runProbeOn(t, "still.png", "turned.jpg", "--output=json"); len(lines) != 2 || code != 0 {
		t.Errorf("got %d lines and exit code %d, want 2 and 0", len(lines), code)
	}
}

func TestProbePrintsALineForAPerson(t *testing.T) {
	files := images(t)
	odd := "two\nlines\x1b.png"
	if err := os.WriteFile(odd, files["still.png"], 0o600); err != nil {
		t.Fatal(err)
	}
	lines, code := runProbeOn(t, "still.png", "turned.jpg", "moving.gif", "named.jxl", "folder", odd)
	for i, line := range lines {
		lines[i], _, _ = strings.Cut(line, " bytes, sha256 ")
		if words := strings.Fields(lines[i]); len(words) > 1 && i != 4 {
			lines[i] = strings.Join(words[:len(words)-1], " ") // the length
		}
	}
	want := []string{
		"still.png: image/png, 9 x 5,",
		"turned.jpg: image/jpeg, 9 x 5, orientation 6 (shown as 5 x 9),",
		"moving.gif: image/gif, 9 x 5, animated,",
		"named.jxl: image/jxl, size unknown,",
		"folder: error: looking at the file: it is a directory, not a regular file",
		`"two\nlines\x1b.png": image/png, 9 x 5,`,
	}
	if diff := cmp.Diff(want, lines); diff != "" || code != exitFailed {
		t.Errorf("exit code %d, lines differ (-want +got):\n%s", code, diff)
	}
}

// A large file, most of it a hole, is hashed but not held.
func TestProbeOfALargeFileLooksAtItsHeader(t *testing.T) {
	files := images(t)
	const large = 64<<20 + 1
	name := filepath.Join(t.TempDir(), "large.tif")
	tiff := binary.LittleEndian.AppendUint32([]byte("II*\x00"), large-2)
	if err := errors.Join(os.WriteFile(name, tiff, 0o600), os.Truncate(name, large),
		os.WriteFile("large.png", files["still.png"], 0o600), os.Truncate("large.png", large)); err != nil {
		t.Fatal(err)
	}
	lines, code := runProbeOn(t, "large.png", name)
	if code != 0 || !strings.HasPrefix(lines[0], "large.png: image/png, 9 x 5, 67108865 bytes, ") ||
		!strings.HasPrefix(lines[1], name+": image/tiff, size unknown, 67108865 bytes, ") {
		t.Errorf("exit code %d and %q", code, lines)
	}
}

func TestProbeNoticesAFileThatChanges(t *testing.T) {
	broken := errors.New("disk on fire")
	tests := map[string]struct {
		read func(*inspected) error
		says string
	}{
		"one that grows":      {func(i *inspected) error { return i.read(strings.NewReader("1234"), 3) }, "it changed meanwhile"},
		"one that shrinks":    {func(i *inspected) error { return i.read(strings.NewReader("1234"), 5) }, "it changed meanwhile"},
		"one that fails":      {func(i *inspected) error { return i.read(iotest.ErrReader(broken), 5) }, "disk on fire"},
		"one that never ends": {func(i *inspected) error { return i.read(endless{}, 5) }, "it changed meanwhile"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var seen inspected
			err := tc.read(&seen)
			if err == nil || err.Error() != "reading the file: "+tc.says || seen.hashed {
				t.Errorf("got %v, hashed %t, want %q", err, seen.hashed, tc.says)
			}
		})
	}
}

// endless is a file of which there is always more.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
