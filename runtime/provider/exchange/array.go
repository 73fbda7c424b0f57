// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"bytes"
	"encoding/json"
)

// MaxElements is how much of an array in a reply is looked at: far above what
// any reply or list of models holds, and far below what 8 MiB of "{}," would
// take as structs.
const MaxElements = 1000

// Array is a JSON array of which the first MaxElements are read. Null is
// nil, and an empty array is not.
type Array[T any] []T

// UnmarshalJSON reads element by element, so that the rest takes no memory.
func (a *Array[T]) UnmarshalJSON(data []byte) error {
	*a = nil
	if string(data) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return errShape
	}
	*a = Array[T]{}
	for d.More() && len(*a) < MaxElements {
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		*a = append(*a, element)
	}
	return nil
}
