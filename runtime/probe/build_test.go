// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"encoding/binary"
)

// Builders of headers, written from the formats' specifications and apart
// from the code under test.

func pngOf(width, height uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(b, width)
	b = binary.BigEndian.AppendUint32(b, height)
	return append(b, 8, 2, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef)
}

func gifOf(version string, width, height uint16) []byte {
	b := []byte("GIF" + version)
	b = binary.LittleEndian.AppendUint16(b, width)
	b = binary.LittleEndian.AppendUint16(b, height)
	return append(b, 0xf7, 0, 0)
}

func webpOf(chunk string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(12+len(data)))
	b = append(b, "WEBP"+chunk...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

func vp8Of(width, height uint16) []byte {
	data := []byte{0x50, 0x42, 0x00, 0x9d, 0x01, 0x2a}
	data = binary.LittleEndian.AppendUint16(data, width)
	data = binary.LittleEndian.AppendUint16(data, height)
	return webpOf("VP8 ", append(data, 0, 0))
}

// vp8lOf is 25 bytes long: the shortest whole header of any WebP.
func vp8lOf(width, height uint32) []byte {
	return webpOf("VP8L", binary.LittleEndian.AppendUint32([]byte{0x2f}, (width-1)|(height-1)<<14))
}

func vp8xOf(flags byte, width, height int) []byte {
	w, h := width-1, height-1
	return webpOf("VP8X", []byte{flags, 0, 0, 0,
		byte(w), byte(w >> 8), byte(w >> 16), byte(h), byte(h >> 8), byte(h >> 16)})
}

// segment is one marker with its length and data.
func segment(marker byte, data []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(data)+2))
	return append(b, data...)
}

func sof(marker byte, width, height uint16) []byte {
	data := binary.BigEndian.AppendUint16([]byte{8}, height)
	data = binary.BigEndian.AppendUint16(data, width)
	return segment(marker, append(data, 1, 1, 0x11, 0))
}

func jpegOf(parts ...[]byte) []byte {
	return append([]byte{0xff, 0xd8}, bytes.Join(parts, nil)...)
}

// exif is an APP1 segment of size bytes of data that holds a whole thumbnail,
// frame header included, as cameras write it.
func exif(size int) []byte {
	data := append([]byte("Exif\x00\x00"), jpegOf(sof(0xc0, 160, 120))...)
	return segment(0xe1, append(data, make([]byte, size-len(data))...))
}
