// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// BenchmarkPreflight judges a request with 8 images of 1 MiB on disk, from their
// paths to the printed verdict. x-read-and-hash is its time by that of hashing the
// same files and nothing else, in turns; the target is at most 1.3. x-hash is by
// that of hashing the same bytes where they are in memory already.
func BenchmarkPreflight(b *testing.B) {
	b.Chdir(b.TempDir())
	args := []string{"preflight", "--model", "claude-opus-4-7", "-o", "json"}
	var images [][]byte
	r := rand.New(rand.NewPCG(8, 1))
	for i := range 8 {
		data := make([]byte, 1<<20)
		for at := range data {
			data[at] = byte(r.Uint32())
		}
		copy(data, "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x07\x80\x00\x00\x04\x38\x08\x02\x00\x00\x00\x67\xb1\x56\x14\x00\x0f\xff\x00IDAT")
		args = append(args, fmt.Sprintf("%d.png", i))
		if err := os.WriteFile(args[len(args)-1], data, 0o600); err != nil {
			b.Fatal(err)
		}
		images = append(images, data)
	}
	var hashing, reading, judging time.Duration
	b.SetBytes(8 << 20)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for _, data := range images {
			sha256.Sum256(data)
		}
		hashing += time.Since(start)
		start = time.Now()
		for _, path := range args[5:] {
			hashFile(b, path)
		}
		reading += time.Since(start)
		start = time.Now()
		if err := run(b.Context(), args, nil, io.Discard, io.Discard); err != nil {
			b.Fatal(err)
		}
		judging += time.Since(start)
	}
	b.ReportMetric(float64(judging)/float64(reading), "x-read-and-hash")
	b.ReportMetric(float64(judging)/float64(hashing), "x-hash")
}

// hashFile reads a file piece by piece and hashes it.
func hashFile(b *testing.B, path string) {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if _, err := io.CopyBuffer(sha256.New(), io.LimitReader(f, 1<<20), make([]byte, piece)); err != nil {
		b.Fatal(err)
	}
}
