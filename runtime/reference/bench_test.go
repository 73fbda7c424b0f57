// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/reference"
)

func BenchmarkRememberKnown(b *testing.B) {
	k := open(b, reference.Options{Dir: b.TempDir()})
	ref := image("/workspace/a.png", "a")
	b.ReportAllocs()
	for b.Loop() {
		k.Remember(ref)
	}
}

func BenchmarkRememberNew(b *testing.B) {
	k := open(b, reference.Options{Dir: b.TempDir()})
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		k.Remember(observation.NewReference("/workspace/a.png", fmt.Sprintf("%016x%048d", i, 0), "image/png", 1, 1, 1))
		i++
	}
}

func BenchmarkBytes1MiB(b *testing.B) {
	k := open(b, reference.Options{Dir: b.TempDir()})
	kept := upload(b, k, strings.Repeat("x", 1<<20))
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Bytes(kept); err != nil {
			b.Fatal(err)
		}
	}
}
