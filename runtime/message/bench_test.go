// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package message

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/visionoperator/vision-operator/test/measure"
)

// encoded is an image of so many random bytes in base64.
func encoded(size int) string {
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b)
}

// BenchmarkScan reads a conversation of 100 messages with 30 images of 1 MiB. The smaller images show what does not depend on their size.
func BenchmarkScan(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"images of 1 KiB", 1 << 10}, {"images of 1 MiB", 1 << 20}} {
		data := encoded(size.bytes)
		for _, d := range Dialects() {
			body := history(d, 100, data)
			b.Run(size.name+"/"+string(d), func(b *testing.B) {
				measure.PerMiB(b, len(body), func() {
					if r, err := Scan(d, body); err != nil || len(r.Images) != 30 {
						b.Fatal(err)
					}
				})
			})
		}
		body := history(OpenAIChat, 100, data)
		b.Run(size.name+"/json.Valid for comparison", func(b *testing.B) {
			measure.PerMiB(b, len(body), func() { json.Valid(body) })
		})
	}
}

// BenchmarkReader decodes and hashes an image of 1 MiB, beside the hash alone.
func BenchmarkReader(b *testing.B) {
	data := []byte(encoded(1 << 20))
	raw, _ := base64.StdEncoding.DecodeString(string(data))
	b.Run("decode and hash", func(b *testing.B) {
		measure.PerMiB(b, len(data), func() {
			if n, err := newReader(data, Span{0, len(data)}, false).WriteTo(sha256.New()); n != 1<<20 || err != nil {
				b.Fatal(n, err)
			}
		})
	})
	b.Run("decode", func(b *testing.B) {
		r, buf := Reader{}, make([]byte, 16<<10)
		measure.PerMiB(b, len(data), func() {
			r = Reader{body: data, end: len(data)}
			for {
				if _, err := r.Read(buf); err != nil {
					break
				}
			}
		})
	})
	b.Run("encoding/base64 for comparison", func(b *testing.B) {
		out := make([]byte, len(data))
		measure.PerMiB(b, len(data), func() { _, _ = base64.StdEncoding.Decode(out, data) })
	})
	b.Run("hash alone", func(b *testing.B) {
		measure.PerMiB(b, len(data), func() { sha256.Sum256(raw) })
	})
}
