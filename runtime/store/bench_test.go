// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"testing"
)

func BenchmarkPut4KiB(b *testing.B) {
	s := openWithin(b, b.TempDir(), 4<<20, 512)
	data := make([]byte, 4000)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := s.Put(fmt.Sprint("n", i%1024), data); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkGet4KiB(b *testing.B) {
	s := open(b, b.TempDir())
	put(b, s, "a", string(make([]byte, 4000)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := s.Get("a"); err != nil {
			b.Fatal(err)
		}
	}
}
