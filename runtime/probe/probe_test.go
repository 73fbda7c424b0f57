// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// edit returns a copy of b with one byte replaced.
func edit(b []byte, at int, v byte) []byte {
	b = bytes.Clone(b)
	b[at] = v
	return b
}

func TestHeader(t *testing.T) {
	tests := map[string]struct {
		in     []byte
		want   Facts
		reason Reason // "" = no error
	}{
		"H01: a PNG tells its size":                         {in: pngOf(640, 480), want: size(PNG, 640, 480)},
		"a PNG needs no more than 24 bytes":                 {in: pngOf(640, 480)[:24], want: size(PNG, 640, 480)},
		"a PNG of 100000x100000 is read, for others to cap": {in: pngOf(100000, 100000), want: size(PNG, 100000, 100000)},
		"a PNG may have sides of 2^31-1":                    {in: pngOf(math.MaxInt32, math.MaxInt32), want: size(PNG, math.MaxInt32, math.MaxInt32)},
		"a PNG wider than 2^31-1 is malformed":              {in: pngOf(1<<31, 1), want: Facts{MediaType: PNG}, reason: Malformed},
		"a PNG higher than 2^31-1 is malformed":             {in: pngOf(1, math.MaxUint32), want: Facts{MediaType: PNG}, reason: Malformed},
		"a PNG of width 0 is refused":                       {in: pngOf(0, 7), want: Facts{MediaType: PNG}, reason: ZeroSize},
		"a PNG of height 0 is refused":                      {in: pngOf(7, 0), want: Facts{MediaType: PNG}, reason: ZeroSize},
		"a PNG whose first chunk is not IHDR is malformed":  {in: bytes.Replace(pngOf(7, 7), []byte("IHDR"), []byte("CgBI"), 1), want: Facts{MediaType: PNG}, reason: Malformed},
		"a PNG whose IHDR is not 13 bytes is malformed":     {in: edit(pngOf(7, 7), 11, 12), want: Facts{MediaType: PNG}, reason: Malformed},
		"a PNG cut before its height is truncated":          {in: pngOf(640, 480)[:23], want: Facts{MediaType: PNG}, reason: Truncated},
		"a PNG signature alone is truncated":                {in: pngOf(640, 480)[:8], want: Facts{MediaType: PNG}, reason: Truncated},
		"a PNG that lost its high bit is not an image":      {in: edit(pngOf(7, 7), 0, 0x09), reason: NotAnImage},

		"a GIF87a tells its size":              {in: gifOf("87a", 320, 65535), want: size(GIF, 320, 65535)},
		"a GIF89a tells its size":              {in: gifOf("89a", 1, 2)[:10], want: size(GIF, 1, 2)},
		"an unknown GIF version is no image":   {in: gifOf("88a", 1, 2), reason: NotAnImage},
		"a GIF of width 0 is refused":          {in: gifOf("89a", 0, 2), want: Facts{MediaType: GIF}, reason: ZeroSize},
		"a GIF cut in its height is truncated": {in: gifOf("89a", 1, 2)[:9], want: Facts{MediaType: GIF}, reason: Truncated},

		"a lossy WebP tells its size":                      {in: vp8Of(640, 360), want: size(WebP, 640, 360)},
		"a lossy WebP's scale bits are not size":           {in: vp8Of(640|0xc000, 360|0x4000), want: size(WebP, 640, 360)},
		"a lossy WebP of height 0 is refused":              {in: vp8Of(640, 0), want: Facts{MediaType: WebP}, reason: ZeroSize},
		"a lossy WebP without start code is malformed":     {in: edit(vp8Of(640, 360), 24, 0), want: Facts{MediaType: WebP}, reason: Malformed},
		"a lossy WebP that is no key frame is malformed":   {in: edit(vp8Of(640, 360), 20, 0x51), want: Facts{MediaType: WebP}, reason: Malformed},
		"a lossy WebP under 30 bytes is truncated":         {in: vp8Of(640, 360)[:29], want: Facts{MediaType: WebP}, reason: Truncated},
		"a lossless WebP of 25 bytes tells its size":       {in: vp8lOf(16384, 1), want: size(WebP, 16384, 1)},
		"a lossless WebP keeps height apart from width":    {in: vp8lOf(3, 16384), want: size(WebP, 3, 16384)},
		"a lossless WebP with alpha has the same size":     {in: edit(vp8lOf(1, 1), 24, 0x10), want: size(WebP, 1, 1)},
		"a lossless WebP without 0x2f is malformed":        {in: edit(vp8lOf(3, 4), 20, 0x2e), want: Facts{MediaType: WebP}, reason: Malformed},
		"a lossless WebP of another version is malformed":  {in: edit(vp8lOf(1, 1), 24, 0x20), want: Facts{MediaType: WebP}, reason: Malformed},
		"a lossless WebP of 24 bytes is truncated":         {in: vp8lOf(3, 4)[:24], want: Facts{MediaType: WebP}, reason: Truncated},
		"an extended WebP tells its canvas":                {in: vp8xOf(0x02, 1<<24, 4321), want: size(WebP, 1<<24, 4321)},
		"an extended WebP under 30 bytes is truncated":     {in: vp8xOf(0, 9, 9)[:29], want: Facts{MediaType: WebP}, reason: Truncated},
		"a WebP whose first chunk is unknown is malformed": {in: webpOf("ANIM", make([]byte, 20)), want: Facts{MediaType: WebP}, reason: Malformed},
		"a WebP cut before its first chunk is truncated":   {in: vp8Of(1, 1)[:12], want: Facts{MediaType: WebP}, reason: Truncated},
		"a RIFF that is not WebP is not an image":          {in: []byte("RIFF\x24\x00\x00\x00WAVEfmt "), reason: NotAnImage},
		"a RIFF too short to say WEBP is not an image":     {in: []byte("RIFF\x24\x00\x00\x00WEB"), reason: NotAnImage},

		"nothing is not an image":               {in: nil, reason: NotAnImage},
		"text is not an image":                  {in: []byte("just some notes\n"), reason: NotAnImage},
		"two bytes of a JPEG are not an image":  {in: []byte{0xff, 0xd8}, reason: NotAnImage},
		"a text that begins with BM is not one": {in: append([]byte("BM"), make([]byte, 60)...), reason: NotAnImage},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { check(t, tc.in, tc.want, tc.reason) })
	}
}

func check(t *testing.T, in []byte, want Facts, reason Reason) {
	t.Helper()
	got, err := Header(in)
	if sizeOf(got) != want {
		t.Errorf("facts = %+v, want the type and size of %+v", got, want)
	}
	if reasonOf(err) != reason {
		t.Errorf("error = %v, want reason %v", err, reason)
	}
	viaReader, errReader := Reader(bytes.NewReader(in))
	if viaReader != got || reasonOf(errReader) != reasonOf(err) {
		t.Errorf("Reader = %+v, %v; Header = %+v, %v", viaReader, errReader, got, err)
	}
}

// size is the facts of a type and a size alone.
func size(mediaType string, width, height int) Facts {
	return Facts{MediaType: mediaType, Width: width, Height: height}
}

// sizeOf leaves of facts the type and the size.
func sizeOf(f Facts) Facts { return size(f.MediaType, f.Width, f.Height) }

func reasonOf(err error) Reason {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Reason
	}
	if err != nil {
		return "foreign"
	}
	return ""
}

func TestErrorsSayWhatIsWrongAndWhatIsSupported(t *testing.T) {
	_, err := Header([]byte("hello"))
	for _, mediaType := range MediaTypes() {
		if !strings.Contains(err.Error(), mediaType) {
			t.Errorf("%q does not list %s", err, mediaType)
		}
	}
	seen := map[string]bool{}
	for _, reason := range []Reason{NotAnImage, Truncated, Malformed, ZeroSize} {
		text := (&Error{Reason: reason, MediaType: PNG}).Error()
		if seen[text] {
			t.Errorf("reason %v repeats the text of another: %q", reason, text)
		}
		seen[text] = true
	}
}

func TestPixelsDoNotOverflow(t *testing.T) {
	if got, want := size(PNG, math.MaxInt32, math.MaxInt32).Pixels(), uint64(math.MaxInt32)*math.MaxInt32; got != want {
		t.Errorf("Pixels = %d, want %d", got, want)
	}
	if got := size(PNG, 65536, 65536).Pixels(); got != 1<<32 {
		t.Errorf("Pixels = %d, want 2^32", got)
	}
	if got := (Facts{MediaType: JPEG}).Pixels(); got != 0 {
		t.Errorf("Pixels of an unknown size = %d, want 0", got)
	}
}

// countingReader counts what was taken from an endless image.
type countingReader struct {
	head  []byte
	taken int
}

func (r *countingReader) Read(p []byte) (int, error) {
	n := copy(p, r.head)
	r.head = r.head[n:]
	clear(p[n:])
	r.taken += len(p)
	return len(p), nil
}

func TestReaderTakesAtMostMaxHeaderOfAnyImage(t *testing.T) {
	heads := seeds()
	maps.Copy(heads, named())
	for _, kib := range []int{1, 70, 300, 900} {
		heads[strconv.Itoa(kib)+" KiB"] = lateJPEG(kib)
	}
	for name, head := range heads {
		r := &countingReader{head: head}
		_, _ = Reader(r)
		if r.taken > MaxHeader {
			t.Errorf("%s: read %d bytes, more than %d", name, r.taken, MaxHeader)
		}
	}
}

func TestReaderAcceptsOneByteAtATime(t *testing.T) {
	got, err := Reader(iotest.OneByteReader(bytes.NewReader(vp8lOf(3, 4))))
	if want := size(WebP, 3, 4); sizeOf(got) != want || err != nil {
		t.Errorf("Reader = %+v, %v, want %+v", got, err, want)
	}
}

func TestReaderReturnsTheReadersOwnFailure(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := Reader(io.MultiReader(bytes.NewReader(pngOf(5, 6)), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || reasonOf(err) != "foreign" {
		t.Errorf("error = %v, want the reader's own", err)
	}
}

func TestHeaderDoesNotAllocate(t *testing.T) {
	for name, in := range map[string][]byte{
		"PNG": pngOf(1, 2), "GIF": gifOf("89a", 1, 2), "VP8": vp8Of(1, 2), "VP8L": vp8lOf(1, 2),
		"VP8X": vp8xOf(0, 1, 2), "JPEG": jpegOf(exif(10<<10), sof(0xc0, 3, 4)),
		"APNG": named()["apng"], "animated GIF": named()["gif of two"], "animated WebP": named()["moving webp"],
		"EXIF": named()["exif II 6"], "BMP": bmpOf(40, 7, 9), "TIFF": named()["bigtiff"], "HEIC": named()["tiles"],
		"ICO": named()["ico"], "JXL": named()["jxl"],
	} {
		if n := testing.AllocsPerRun(100, func() { _, _ = Header(in) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
