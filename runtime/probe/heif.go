// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "encoding/binary"

// heifBrands are the major brands of still images and sequences in the HEIF
// container (ISO/IEC 23008-12 and the AV1 image file format), with their types.
var heifBrands = map[string]string{
	"avif": AVIF, "avis": AVIF,
	"heic": HEIC, "heix": HEIC, "heim": HEIC, "heis": HEIC,
	"hevc": HEIC, "hevx": HEIC, "hevm": HEIC, "hevs": HEIC,
	"mif1": HEIF, "msf1": HEIF,
}

// isSequence matches the brands of image sequences.
func isSequence(brand []byte) bool {
	switch string(brand) {
	case "avis", "msf1", "hevc", "hevx", "hevm", "hevs":
		return true
	}
	return false
}

// maxBrands is how many compatible brands are looked at; files have about six.
const maxBrands = 256

// compatible are the brands of the file type box behind the major one, and
// whether that is all of them.
func compatible(b []byte) (brands []byte, whole bool) {
	end := min(uint64(binary.BigEndian.Uint32(b)), 16+4*maxBrands)
	if end > uint64(len(b)) {
		return b[16:], false
	}
	return b[16:max(16, end)], true
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
	brands, _ := compatible(b)
	for ; len(brands) >= 4; brands = brands[4:] {
		if special := heifBrands[string(brands[:4])]; special != "" && special != HEIF {
			return special
		}
	}
	return kind
}

// heifAnimated is whether a file names a brand of sequences. It may hold one
// beside a still image, and the sequence may have a single frame.
func heifAnimated(b []byte) Answer {
	if isSequence(b[8:12]) {
		return Yes
	}
	brands, whole := compatible(b)
	for ; len(brands) >= 4; brands = brands[4:] {
		if isSequence(brands[:4]) {
			return Yes
		}
	}
	if !whole {
		return Unknown
	}
	return No
}

// readHEIF reads the size of the primary image among the item properties: an
// image made of tiles has one for the whole and one for each tile. Where the
// file does not say which is whose, the largest is taken. Where the boxes that
// tell stand past what can be seen, the size is unknown; it also is in a
// sequence without a still image.
func readHEIF(b []byte, kind string, more bool) (Facts, error) {
	facts := Facts{MediaType: kind, Animated: heifAnimated(b)}
	meta, missing := boxes{b, more}.find("meta")
	const fullBox = 4 // version and flags
	if len(meta.data) < fullBox {
		return heifWithout(facts, missing || meta.open, more)
	}
	meta.data = meta.data[fullBox:]
	properties, _ := meta.find("iprp")
	list, _ := properties.find("ipco")
	if len(properties.data) == 0 || properties.open {
		return heifWithout(facts, meta.open, more)
	}
	primary, _ := meta.find("pitm")
	if id, ok := primary.itemID(); ok {
		if image, ok := readItem(list, associations(properties, id)); ok {
			facts.Orientation = image.orientation
			return believed(facts, image.width, image.height)
		}
	}
	if meta.open {
		return cut(facts, more) // who is primary may follow
	}
	width, height := largest(list)
	return believed(facts, width, height)
}

// heifWithout finishes a read that did not find the properties: cutOff says
// that they may stand behind the bytes.
func heifWithout(facts Facts, cutOff, more bool) (Facts, error) {
	if cutOff {
		return cut(facts, more)
	}
	return facts, nil
}

// believed is sized for sides of 32 bits, of which the upper half is unknown.
func believed(facts Facts, width, height uint32) (Facts, error) {
	if width > maxSide-1 || height > maxSide-1 || width == 0 && height == 0 {
		return facts, nil
	}
	return sized(facts, int64(width), int64(height))
}

// largest is the largest size in a list of properties; 0, 0 without any.
func largest(list boxes) (width, height uint32) {
	for name, box, rest, ok := list.next(); ok; name, box, rest, ok = rest.next() {
		if w, h, ok := box.extents(); ok && string(name) == "ispe" && w < maxSide && h < maxSide &&
			uint64(w)*uint64(h) > uint64(width)*uint64(height) {
			width, height = w, h
		}
	}
	return width, height
}
