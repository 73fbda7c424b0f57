// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/pin"
)

func BenchmarkGet(b *testing.B) {
	s := newWorld(b).open(nil)
	s.Put("k", square)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := s.Get("k"); !ok {
			b.Fatal("absent")
		}
	}
}

func BenchmarkPut(b *testing.B) {
	s := newWorld(b).open(func(o *pin.Options) { o.MaxPins, o.MaxDiskBytes = 0, 0 })
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		s.Put(fmt.Sprint(i), square)
	}
}

func BenchmarkContent(b *testing.B) {
	w := newWorld(b)
	for name, s := range map[string]*pin.Store{"disk": w.open(nil), "memory": w.open(inMemory)} {
		b.Run(name, func(b *testing.B) {
			sum := keep(b, s, some('a', 500_000))
			b.ReportAllocs()
			for b.Loop() {
				c, ok := s.Content(sum)
				if !ok {
					b.Fatal("absent")
				}
				_ = c.Close()
			}
		})
	}
}

func BenchmarkPutContent(b *testing.B) {
	s := newWorld(b).open(func(o *pin.Options) { o.MaxPins, o.MaxDiskBytes = 0, 0 })
	data := some('a', 1<<20)
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		c, err := s.PutContent(bytes.NewReader(data), 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		_ = c.Close()
	}
}
