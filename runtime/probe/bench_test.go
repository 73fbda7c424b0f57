// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"testing"
)

var sink Facts

func benchmarkHeader(b *testing.B, in []byte) {
	// A real prefix: the header, then pixels.
	prefix := append(bytes.Clone(in), make([]byte, MaxHeader)...)[:MaxHeader]
	if facts, err := Header(prefix); err != nil || !facts.SizeKnown() {
		b.Fatalf("facts %+v, error %v", facts, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = Header(prefix)
	}
}

func BenchmarkProbePNG(b *testing.B)  { benchmarkHeader(b, pngOf(1920, 1080)) }
func BenchmarkProbeGIF(b *testing.B)  { benchmarkHeader(b, gifOf("89a", 1920, 1080)) }
func BenchmarkProbeVP8(b *testing.B)  { benchmarkHeader(b, vp8Of(1920, 1080)) }
func BenchmarkProbeVP8L(b *testing.B) { benchmarkHeader(b, vp8lOf(1920, 1080)) }
func BenchmarkProbeVP8X(b *testing.B) { benchmarkHeader(b, vp8xOf(0x10, 1920, 1080)) }

func BenchmarkProbeJPEGWith10KBOfEXIF(b *testing.B) {
	benchmarkHeader(b, jpegOf(exif(10<<10), sof(0xc0, 4032, 3024)))
}

// BenchmarkProbeJPEGOfFillBytes is the worst header that can be sent: no
// segment to step over, one byte at a time to the end.
func BenchmarkProbeJPEGOfFillBytes(b *testing.B) {
	in := jpegOf(bytes.Repeat([]byte{0xff}, MaxHeader))
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = Header(in)
	}
}

func BenchmarkProbeReader(b *testing.B) {
	content := append(pngOf(1920, 1080), make([]byte, MaxHeader)...)
	in := bytes.NewReader(nil)
	b.ReportAllocs()
	for b.Loop() {
		in.Reset(content)
		sink, _ = Reader(in)
	}
}
