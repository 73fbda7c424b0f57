// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"unique"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// kind tells pins from texts.
type kind byte

const (
	kindPin  kind = 1
	kindText kind = 2
)

// name is a key of any length, as it is kept: its digest with the kind's.
type name [sha256.Size]byte

func nameOf(k kind, key string) name {
	var room [128]byte
	return sha256.Sum256(append(append(room[:0], byte(k)), key...))
}

// record is a pin or a text. It never changes: another takes its place.
type record struct {
	kind   kind
	found  bool // an image: sum is its digest
	sum    [sha256.Size]byte
	size   int64
	facts  probe.Facts
	reason string
	text   string
}

// entry is a record with its name.
type entry struct {
	name name
	*record
}

// maxWord bounds reasons and media types.
const maxWord = 64

// word is one of few texts, held once however often it is kept.
func word(s string) string {
	return unique.Make(strings.Clone(s[:min(len(s), maxWord)])).Value()
}

func newPin(p Pin) *record {
	r := &record{kind: kindPin, size: p.Size, facts: p.Facts, reason: word(p.Reason)}
	r.facts.MediaType = word(p.Facts.MediaType)
	if IsDigest(p.SHA256) {
		_, err := hex.Decode(r.sum[:], []byte(p.SHA256))
		r.found = err == nil
	}
	return r
}

func (r *record) pin() Pin {
	p := Pin{Size: r.size, Facts: r.facts, Reason: r.reason}
	if r.found {
		p.SHA256 = hex.EncodeToString(r.sum[:])
	}
	return p
}

func (r *record) cost() int64 { return recordBytes + int64(len(r.text)) }

func (r *record) equal(other *record) bool { return *r == *other }

// IsDigest reports whether s is 64 lower-case hexadecimal digits.
func IsDigest(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// A record in the journal, integers big-endian:
//
//	0  length of the payload in bytes, 4 bytes
//	4  CRC-32C of the length and of the payload, 4 bytes
//	8  the payload: kind, name, and then of a text its bytes, of a pin
//	     digest, size (8), width, height, the sides that frames reach (4 each),
//	     orientation, animated, bits, flags (1 each),
//	     media type and reason, each after a byte that tells its length
const (
	frameSize  = 8
	bodyAt     = 1 + sha256.Size
	pinSize    = sha256.Size + 8 + 4*4 + 4
	maxPayload = bodyAt + maxText
)

// Flags of a pin.
const (
	flagFound = 1 << iota
	flagCMYK
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendRecord encodes a record.
func appendRecord(to []byte, n name, r *record) []byte {
	at := len(to)
	to = append(to, make([]byte, frameSize)...)
	to = append(append(to, byte(r.kind)), n[:]...)
	if r.kind == kindText {
		to = append(to, r.text...)
	} else {
		to = appendPin(to, r)
	}
	frame := to[at:]
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-frameSize))
	binary.BigEndian.PutUint32(frame[4:], checksum(frame))
	return to
}

func appendPin(to []byte, r *record) []byte {
	var flags byte
	if r.found {
		flags |= flagFound
	}
	if r.facts.CMYK {
		flags |= flagCMYK
	}
	f := &r.facts
	to = append(to, r.sum[:]...)
	to = binary.BigEndian.AppendUint64(to, uint64(r.size))
	for _, side := range []int{f.Width, f.Height, f.ReachWidth, f.ReachHeight} {
		to = binary.BigEndian.AppendUint32(to, uint32(side))
	}
	to = append(to, byte(f.Orientation), byte(f.Animated), byte(f.Bits), flags)
	for _, s := range []string{f.MediaType, r.reason} {
		to = append(append(to, byte(len(s))), s...)
	}
	return to
}

// checksum is of a whole frame, but for the place of the checksum.
func checksum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[:4], castagnoli), castagnoli, frame[frameSize:])
}

// cutRecord decodes the first record of data. ok is false for what appendRecord
// never wrote, such as one that is cut off.
func cutRecord(data []byte) (n name, r *record, rest []byte, ok bool) {
	if len(data) < frameSize+bodyAt {
		return n, nil, nil, false
	}
	length := int64(binary.BigEndian.Uint32(data))
	if length < bodyAt || length > maxPayload || length > int64(len(data)-frameSize) {
		return n, nil, nil, false
	}
	frame, rest := data[:frameSize+length], data[frameSize+length:]
	if binary.BigEndian.Uint32(frame[4:]) != checksum(frame) {
		return n, nil, nil, false
	}
	payload := frame[frameSize:]
	copy(n[:], payload[1:])
	r = &record{kind: kind(payload[0])}
	switch r.kind {
	case kindText:
		r.text = string(payload[bodyAt:])
		ok = true
	case kindPin:
		ok = r.readPin(payload[bodyAt:])
	}
	if !ok || !bytes.Equal(appendRecord(nil, n, r), frame) {
		return n, nil, nil, false
	}
	return n, r, rest, true
}

func (r *record) readPin(b []byte) bool {
	if len(b) < pinSize {
		return false
	}
	copy(r.sum[:], b)
	b = b[sha256.Size:]
	r.size = int64(binary.BigEndian.Uint64(b))
	f := &r.facts
	for i, side := range []*int{&f.Width, &f.Height, &f.ReachWidth, &f.ReachHeight} {
		*side = int(binary.BigEndian.Uint32(b[8+4*i:]))
	}
	b = b[8+4*4:]
	f.Orientation, f.Animated, f.Bits = int(b[0]), probe.Answer(b[1]), int(b[2])
	r.found, f.CMYK = b[3]&flagFound != 0, b[3]&flagCMYK != 0
	b = b[4:]
	for _, to := range []*string{&f.MediaType, &r.reason} {
		if len(b) == 0 || int(b[0]) > min(maxWord, len(b)-1) {
			return false
		}
		*to, b = word(string(b[1:1+b[0]])), b[1+b[0]:]
	}
	return len(b) == 0
}
