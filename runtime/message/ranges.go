// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"slices"
	"strconv"
)

// ordered are edits by where they are, those at one byte in the order given and
// before one that begins there.
func ordered(edits []Edit) []Edit {
	sorted := slices.Clone(edits)
	slices.SortStableFunc(sorted, func(a, b Edit) int {
		if a.Span.Start != b.Span.Start {
			return a.Span.Start - b.Span.Start
		}
		return min(a.Span.Len(), 1) - min(b.Span.Len(), 1)
	})
	return sorted
}

// ByteRanges are pieces of a JSON array that tells somebody else what to edit, from
// the last edit to the first, so that none moves what the next one means:
//
//	[{"offset": …, "length": …, "text": …}]
//
// Offsets are those of the body less before, the bytes that stand in front of what
// the other one has. Images are read, and encoded, when the pieces are.
func ByteRanges(edits []Edit, before int) []Segment {
	all := []Segment{{Text: []byte("[")}}
	sorted := ordered(edits)
	for i, e := range slices.Backward(sorted) {
		if i < len(sorted)-1 {
			all = append(all, Segment{Text: []byte(",")})
		}
		head := `{"offset":` + strconv.Itoa(e.Span.Start-before) + `,"length":` + strconv.Itoa(e.Span.Len()) + `,"text":"`
		all = append(all, Segment{Text: []byte(head)})
		for _, piece := range e.Segments {
			if piece.Data == nil { // base64 needs no escapes
				quoted := compact(string(piece.Text))
				piece.Text = quoted[1 : len(quoted)-1]
			}
			all = append(all, piece)
		}
		all = append(all, Segment{Text: []byte(`"}`)})
	}
	return append(all, Segment{Text: []byte("]")})
}
