// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"
)

const (
	// longestArgument bounds what Argument returns, in bytes: paths have at most 4,096.
	longestArgument = 4 << 10
	// longestArguments bounds the arguments that are taken apart, in bytes.
	longestArguments = 1 << 20
)

// Argument returns an argument of a call, without escapes: of the first of the
// names whose value is a string. A name that stands twice has its last value, as in
// most parsers. It is not ok where there is none, where it is longer than 4 KiB, or
// where the arguments are no JSON object or longer than 1 MiB. body is what was scanned.
func (r *Request) Argument(body []byte, call int, names ...string) (value string, ok bool) {
	b, ok := r.arguments(body, call)
	if !ok {
		return "", false
	}
	s := &scanner{b: b}
	found := make([]text, len(names)) // without an End where there is no string
	if !s.enter('{') {
		return "", false
	}
	for first := true; !s.closed('}', first); first = false {
		key, value := s.key(), text{}
		if s.peek() == '"' {
			value = s.str()
		} else {
			s.skip()
		}
		for i, name := range names {
			if key.size == len(name) && decoded(b, key) == name {
				found[i] = value
			}
		}
	}
	s.ends()
	for _, t := range found {
		if s.err == nil && t.End > 0 {
			if t.size > longestArgument {
				return "", false
			}
			return decoded(b, t), true
		}
	}
	return "", false
}

// ends fails if anything but white space follows.
func (s *scanner) ends() {
	if rest := bytes.TrimLeft(s.b[min(s.i, len(s.b)):], " \t\r\n"); len(rest) > 0 {
		s.fail(NotJSON, len(s.b)-len(rest))
	}
}

// ArgumentsDigest is the SHA-256 of a call's arguments as JSON with sorted keys and
// without white space, so that it stays the same when a client writes them anew; it
// does not matter either whether they stand as an object or in a string. Arguments
// that are no JSON, or longer than 1 MiB, count as they are, without the escapes of
// the string that holds them; none count as an empty object. body is what was scanned.
func (r *Request) ArgumentsDigest(body []byte, call int) [sha256.Size]byte {
	if b, ok := r.arguments(body, call); ok {
		if len(bytes.TrimSpace(b)) == 0 {
			b = []byte("{}")
		}
		if c, ok := canonicalJSON(b); ok {
			return sha256.Sum256(c)
		}
		return sha256.Sum256(b)
	}
	h, span := sha256.New(), r.Calls[call].Arguments
	if body[span.Start] != '"' {
		h.Write(body[span.Start:span.End])
	} else {
		unescapeTo(h, body[span.Start+1:span.End-1])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// arguments are the JSON of a call's arguments; not ok where that is too long.
func (r *Request) arguments(body []byte, call int) ([]byte, bool) {
	span := r.Calls[call].Arguments
	if span.Len() > longestArguments {
		return nil, false
	}
	if span.Len() == 0 || body[span.Start] != '"' {
		return body[span.Start:span.End:span.End], true
	}
	inside := body[span.Start+1 : span.End-1 : span.End-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, true
	}
	var b bytes.Buffer
	b.Grow(len(inside))
	unescapeTo(&b, inside)
	return b.Bytes(), true
}

// unescapeTo writes the inside of a string without its escapes.
func unescapeTo(w io.Writer, inside []byte) {
	var buf [utf8.UTFMax]byte
	for len(inside) > 0 {
		n := bytes.IndexByte(inside, '\\')
		if n < 0 {
			n = len(inside)
		}
		_, _ = w.Write(inside[:n]) // a hash or a buffer: neither fails
		if inside = inside[n:]; len(inside) > 0 {
			c, long, _ := unescape(inside)
			_, _ = w.Write(buf[:utf8.EncodeRune(buf[:], c)])
			inside = inside[long:]
		}
	}
}

// canonicalJSON writes a JSON value with sorted keys, without white space and
// needless escapes, and with its numbers as JavaScript writes them where that loses nothing.
func canonicalJSON(b []byte) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	return compact(plainNumbers(v)), true
}

func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case json.Number:
		// Beyond this, neighbouring whole numbers are the same float.
		const exact = 1 << 53
		if f, err := strconv.ParseFloat(string(v), 64); err == nil && f > -exact && f < exact {
			return f
		}
	}
	return v
}

// Decoded is the text of a JSON string of the body, its first most bytes at the end
// of a character, and whether that is all of it; "" and false for any other value.
// body is what was scanned.
func (r *Request) Decoded(body []byte, s Span, most int) (string, bool) {
	if s.Len() < 2 || body[s.Start] != '"' {
		return "", false
	}
	inside := body[s.Start+1 : s.End-1]
	var out []byte
	i := 0
	for i < len(inside) && len(out) <= most {
		if inside[i] == '\\' {
			c, long, _ := unescape(inside[i:])
			out = utf8.AppendRune(out, c)
			i += long
			continue
		}
		run := inside[i:min(len(inside), i+most+1-len(out))]
		if n := bytes.IndexByte(run, '\\'); n >= 0 {
			run = run[:n]
		}
		out = append(out, run...)
		i += len(run)
	}
	if len(out) <= most {
		return string(out), true
	}
	end := most
	for end > 0 && most-end < utf8.UTFMax && !utf8.RuneStart(out[end]) {
		end--
	}
	return string(out[:end]), false
}
