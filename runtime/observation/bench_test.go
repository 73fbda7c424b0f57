// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"strings"
	"testing"
)

func benchmarkParse(b *testing.B, reply string) {
	b.SetBytes(int64(len(reply)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = Parse(reply, testRef, "read it", testBy)
	}
}

func BenchmarkParsePageOfText(b *testing.B) {
	line := `{"text":"The quick brown fox jumps over the lazy dog","bbox":{"x":10,"y":20,"width":300,"height":18},"confidence":0.97}`
	benchmarkParse(b, "```json\n"+minimal(`,"ocr":`+many(60, line))+"\n```")
}

// The worst replies of a megabyte: nothing but openings.
func BenchmarkParseBraces(b *testing.B)  { benchmarkParse(b, strings.Repeat("{", MaxReply)) }
func BenchmarkParseNesting(b *testing.B) { benchmarkParse(b, strings.Repeat(`{"a":`, MaxReply/5)) }
