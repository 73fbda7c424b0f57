// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/sha256"
	"os"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

// BenchmarkCachedView looks at a file of 1 MiB whose observation is in the
// cache, and reports its time as a multiple of what reading and hashing the
// file takes (x-read-and-hash). The target is 1.3.
func BenchmarkCachedView(b *testing.B) {
	space := b.TempDir()
	data := append(pngHeader(1024, 768), make([]byte, 1<<20)...)
	path := space + "/a.png"
	if err := os.WriteFile(path, data, 0o600); err != nil {
		b.Fatal(err)
	}
	set, err := workspace.Open([]string{space})
	if err != nil {
		b.Fatal(err)
	}
	defer set.Close()
	up := newUpstream(b, seen)
	e := engine.New(engine.Options{Profile: "policy/p", Workspaces: set})
	defer e.Close()
	doc := (&rig{upstream: up}).document()
	doc.Providers[0].Credential = nil
	if err := e.Use(doc); err != nil {
		b.Fatal(err)
	}
	var views, reads time.Duration
	rounds := 0
	for b.Loop() {
		began := time.Now()
		result, err := e.View(context.Background(), engine.Request{Path: path, Prompt: "what"})
		views += time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		if !result.Cached {
			views = 0
			continue
		}
		began = time.Now()
		content, err := os.ReadFile(path)
		if err != nil || sha256.Sum256(content) == [32]byte{} {
			b.Fatal(err)
		}
		reads += time.Since(began)
		rounds++
	}
	if rounds == 0 {
		b.Fatal("nothing came from the cache")
	}
	b.ReportMetric(float64(views)/float64(reads), "x-read-and-hash")
}
