// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Body is a JSON request in three pieces, so that the image's base64 (a third
// larger than the image) is made while it is sent and never held whole.
type Body struct {
	prefix []byte // up to where the base64 begins
	image  []byte
	suffix []byte // from the quote that ends the string with the base64
}

// errNoSlot is a message without the slot that Encode was told of.
var errNoSlot = errors.New("the image has no place in the message")

// Encode writes message as JSON, with image in base64 at the end of slot's last
// member. The slot is a part of the message as it stands there, and its JSON
// ends with that member's string and the brace that closes the slot:
// {"url":"data:image/png;base64,"}. Of the message's texts none can be mistaken
// for it, since quotes within texts are escaped; what is not our own, such as a
// schema, comes after it.
func Encode(message, slot any, image []byte) (*Body, error) {
	data, err := marshal(message)
	if err != nil {
		return nil, fmt.Errorf("writing request: %w", err)
	}
	mark, err := marshal(slot)
	if err != nil {
		return nil, fmt.Errorf("writing request: %w", err)
	}
	const end = `"}`
	at := bytes.Index(data, mark)
	if at < 0 || !bytes.HasSuffix(mark, []byte(end)) {
		return nil, fmt.Errorf("writing request: %w", errNoSlot)
	}
	cut := at + len(mark) - len(end)
	return &Body{prefix: data[:cut:cut], image: image, suffix: data[cut:]}, nil
}

// Plain writes a message that holds no image.
func Plain(message any) (*Body, error) {
	data, err := marshal(message)
	if err != nil {
		return nil, fmt.Errorf("writing request: %w", err)
	}
	return &Body{prefix: data}, nil
}

// marshal leaves <, > and & as they are: vendors count characters.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Size is the exact length of the body in bytes.
func (b *Body) Size() int64 {
	return int64(len(b.prefix)) + int64(base64.StdEncoding.EncodedLen(len(b.image))) + int64(len(b.suffix))
}

// Reader reads the body from its beginning; each call returns a fresh one.
func (b *Body) Reader() io.Reader {
	return io.MultiReader(bytes.NewReader(b.prefix), &base64Reader{rest: b.image}, bytes.NewReader(b.suffix))
}

// base64Reader encodes as it is read.
type base64Reader struct {
	rest    []byte
	chunk   [4096]byte
	pending []byte // part of chunk that was not read yet
}

// Read fills p with base64, padded at the end of the image.
func (r *base64Reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.pending) == 0 {
			if len(r.rest) == 0 {
				break
			}
			take := min(len(r.rest), len(r.chunk)/4*3)
			base64.StdEncoding.Encode(r.chunk[:], r.rest[:take])
			r.pending = r.chunk[:base64.StdEncoding.EncodedLen(take)]
			r.rest = r.rest[take:]
		}
		c := copy(p[n:], r.pending)
		r.pending = r.pending[c:]
		n += c
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
