// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"encoding/json"

	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/store"
)

// record is what is kept of one id, in memory and as JSON on disk. It never
// changes: another takes its place.
type record struct {
	Kept
	// Ambiguous marks an id that was met with two images: it names neither.
	Ambiguous bool `json:"ambiguous,omitempty"`

	data []byte // its JSON
}

func newRecord(kept Kept, ambiguous bool) *record {
	r := &record{Kept: kept, Ambiguous: ambiguous}
	r.Existed = false
	data, err := json.Marshal(r)
	if err != nil {
		// Its types hold nothing that JSON cannot; a time is one of a running clock.
		panic("reference: encoding record: " + err.Error())
	}
	r.data = data
	return r
}

// size is what a record counts, in memory as on disk.
func (r *record) size() int64 { return store.Size(len(r.data)) }

// holds reports whether the record is of an upload with this digest. A nil
// record holds nothing.
func (r *record) holds(sha256 string) bool {
	return r != nil && r.Uploaded && !r.Ambiguous && r.Reference.SHA256 == sha256
}

// hand returns what a caller may keep and change.
func (r *record) hand() *Kept {
	kept := r.Kept
	kept.Reference = clone(kept.Reference)
	return &kept
}

// decodeRecord reads the JSON of a record that is named by its id. It is false
// for what newRecord never wrote for that id.
func decodeRecord(id string, data []byte) (*record, bool) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil || !sound(r.Reference) || r.Reference.ID != id || r.URI != URI(id) {
		return nil, false
	}
	if r.Uploaded != (r.Reference.Path == r.URI) {
		return nil, false
	}
	r.data = data
	return &r, true
}

// sound reports whether a reference is one: with the digest that its id is of.
func sound(ref *observation.Reference) bool {
	return ref != nil && len(ref.SHA256) == 64 && isHex(ref.SHA256) &&
		ref.ID == observation.ReferenceID(ref.SHA256) && ref.Path != ""
}

func clone(ref *observation.Reference) *observation.Reference {
	c := *ref
	if ref.Size != nil {
		size := *ref.Size
		c.Size = &size
	}
	return &c
}
