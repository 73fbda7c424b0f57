// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"math"
)

// heifBrands are the major brands of still images and sequences in the HEIF
// container (ISO/IEC 23008-12 and the AV1 image file format), with their types.
var heifBrands = map[string]string{
	"avif": AVIF, "avis": AVIF,
	"heic": HEIC, "heix": HEIC, "heim": HEIC, "heis": HEIC, "hevc": HEIC, "hevx": HEIC,
	"mif1": HEIF, "msf1": HEIF,
}

// heifType is the media type that the file type box names; "" for other files.
// A file of the general brand is what its compatible brands say it is.
func heifType(b []byte) string {
	if len(b) < 16 || string(b[4:8]) != "ftyp" {
		return ""
	}
	kind := heifBrands[string(b[8:12])]
	if kind != HEIF {
		return kind
	}
	end := min(len(b), int(min(binary.BigEndian.Uint32(b), math.MaxInt32)))
	for at := 16; at+4 <= end; at += 4 {
		if special := heifBrands[string(b[at:at+4])]; special != "" && special != HEIF {
			return special
		}
	}
	return kind
}

// readHEIF reads the largest size among the item properties: an image made of
// tiles lists a size for each, and one for the whole. Where the properties, or
// some of them, stand past what can be seen, the size is unknown.
func readHEIF(b []byte, kind string) (Facts, error) {
	facts := Facts{MediaType: kind}
	meta, whole := child(b, "meta")
	if len(meta) < 4 || !whole {
		return facts, nil
	}
	all, _ := child(meta[4:], "iprp")
	properties, _ := child(all, "ipco")
	for len(properties) > 0 {
		name, body, rest, _ := nextBox(properties)
		if name == "ispe" && len(body) >= 12 {
			w, h := uint64(binary.BigEndian.Uint32(body[4:])), uint64(binary.BigEndian.Uint32(body[8:]))
			if w*h > facts.Pixels() && w <= math.MaxInt32 && h <= math.MaxInt32 {
				facts.Width, facts.Height = int(w), int(h)
			}
		}
		properties = rest
	}
	return facts, nil
}

// child is the body of the first box of that name, and whether b holds all of it.
func child(b []byte, want string) (body []byte, whole bool) {
	for len(b) > 0 {
		name, body, rest, whole := nextBox(b)
		if name == want {
			return body, whole
		}
		b = rest
	}
	return nil, false
}

// nextBox reads one box: 32 bits of length, header included, and four letters.
// A length of 1 stands for 64 bits behind them, 0 for all that is left. A box
// that goes on past b is cut there, and not whole.
func nextBox(b []byte) (name string, body, rest []byte, whole bool) {
	if len(b) < 8 {
		return "", nil, nil, false
	}
	size, head := uint64(binary.BigEndian.Uint32(b)), uint64(8)
	switch {
	case size == 1 && len(b) >= 16:
		size, head = binary.BigEndian.Uint64(b[8:]), 16
	case size == 0:
		size = uint64(len(b))
	}
	if size < head {
		return "", nil, nil, false
	}
	end := min(size, uint64(len(b)))
	return string(b[4:8]), b[head:end], b[end:], end == size
}
