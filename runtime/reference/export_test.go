// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

// DecodeRecord is decodeRecord; it returns what is kept, and the JSON that
// would be written for it.
func DecodeRecord(id string, data []byte) (kept *Kept, again []byte, ok bool) {
	r, ok := decodeRecord(id, data)
	if !ok {
		return nil, nil, false
	}
	return &r.Kept, newRecord(r.Kept, r.Ambiguous).data, true
}
