// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
)

// Edit is one change of a patch of ByteRanges: Text stands in the place of
// Length bytes from Offset on. Offsets are those of the body as it was sent, in
// bytes. Edits are listed from the last to the first and do not overlap: one
// after the other, none moves what the next one means.
type Edit struct {
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	Text   string `json:"text"`
}

// patchType is the first of the caller's patch types that is known and that the
// operation can be answered in; "" for none.
func (r *Request) patchType() PatchType {
	known := []PatchType{JSONPatch, ByteRanges}
	if r.Operation == Inject {
		known = []PatchType{ByteRanges}
	}
	if len(r.PatchTypes) == 0 {
		return known[0]
	}
	for _, kind := range r.PatchTypes {
		if slices.Contains(known, kind) {
			return kind
		}
	}
	return ""
}

// patch writes down what is to be changed, if anything is: a text part in the
// place of each image that is left out.
func (r *review) patch(scanned *message.Request) {
	var edits []Edit
	var operations []operation
	kind, body := r.req.patchType(), r.req.Body
	for i, d := range slices.Backward(r.out.Decisions) {
		if d.Outcome != preflight.Degraded {
			continue
		}
		text := scanned.TextPart(body, i, d.Note())
		part := scanned.Images[i].Part
		if kind == ByteRanges {
			edits = append(edits, Edit{part.Start, part.Len(), string(text)})
			continue
		}
		pointer := scanned.Pointer(i)
		operations = append(operations, guard(pointer, body[part.Start:part.End], scanned.Images[i].Source == message.AsFacts))
		operations = append(operations, operation{Op: "replace", Path: pointer, Value: text})
	}
	if len(edits)+len(operations) == 0 {
		return
	}
	r.out.PatchType = kind
	if kind == ByteRanges {
		r.out.Patch = compact(edits)
	} else {
		r.out.Patch = compact(operations)
	}
}

// compact writes JSON without the escapes that only HTML needs. What it is given
// can be written: texts, numbers, and values that were scanned.
func compact(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// operation is one of RFC 6902.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// longestGuard bounds the value that a guard repeats: a type, never an image.
const longestGuard = 256

// short reports whether a guard may repeat a value. One that is not UTF-8 is not
// repeated: the answer would not be JSON, and nobody knows what the caller reads there.
func short(value []byte) bool { return len(value) <= longestGuard && utf8.Valid(value) }

// guard is an operation that fails unless the pointer still leads to such a
// part. It tests a short member that says what the part is. Where there is none,
// it removes a member, which fails where that is not: the part is replaced
// next. facts says that the data was replaced by facts about it, so that no
// member beside it may be named that only they have.
func guard(pointer string, part []byte, facts bool) operation {
	c := cursor{b: part}
	all, _ := c.members() // as far as they go
	for _, m := range all {
		if m.name == "type" && short(part[m.value.Start:m.value.End]) {
			return operation{"test", pointer + "/type", part[m.value.Start:m.value.End]}
		}
	}
	for _, m := range all {
		if facts || part[m.value.Start] != '{' {
			continue
		}
		inner := cursor{b: part[:m.value.End], i: m.value.Start}
		within, _ := inner.members()
		for _, w := range within {
			if (w.name == "mimeType" || w.name == "mime_type") && short(part[w.value.Start:w.value.End]) {
				return operation{"test", pointer + "/" + token(m.name) + "/" + token(w.name), part[w.value.Start:w.value.End]}
			}
		}
	}
	for _, m := range all {
		if part[m.value.Start] == '{' || part[m.value.Start] == '"' {
			return operation{Op: "remove", Path: pointer + "/" + token(m.name)}
		}
	}
	return operation{Op: "remove", Path: pointer + "/type"} // cannot be: a part without members is no image
}

// token is a name in a JSON Pointer (RFC 6901).
func token(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }
