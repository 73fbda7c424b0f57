// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

// BenchmarkInject shows an image of 8 MiB in messages that hold another of 1 MiB.
// The bytes that it allocates for each question are the question's own, and not those of the answer.
func BenchmarkInject(b *testing.B) {
	space := b.TempDir()
	image := func(n int) []byte { return append(pngHeader(1024, 768), make([]byte, n)...) }
	if err := os.WriteFile(filepath.Join(space, "a.png"), image(8<<20), 0o600); err != nil {
		b.Fatal(err)
	}
	set, err := workspace.Open([]string{space})
	if err != nil {
		b.Fatal(err)
	}
	defer set.Close()
	pins, err := pin.Open(pin.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = pins.Close() }()
	e := engine.New(engine.Options{Profile: "policy/p", Workspaces: set, Pins: pins})
	defer e.Close()
	doc := (&rig{upstream: newUpstream(b, seen)}).document()
	doc.Providers[0].Credential = nil
	if err := e.Use(doc); err != nil {
		b.Fatal(err)
	}
	held := base64.StdEncoding.EncodeToString(image(1 << 20))
	part := fmt.Sprintf(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]},`, held)
	for name, body := range map[string]string{
		"vendor": question("openai-chat", part+strings.TrimPrefix(called(message.OpenAIChat, "a.png"), "[")),
		"list":   question("langchain-messages", part+strings.TrimPrefix(strings.ReplaceAll(listed("a.png"), "call_0", "call_8fK2mQ1x"), "[")),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				i, err := e.Inject(context.Background(), strings.NewReader(body), int64(len(body)))
				if err != nil {
					b.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, i.Reader()); err != nil || n < 8<<20 || i.Decision.Injected != 1 {
					b.Fatalf("%d bytes, %v, %+v", n, err, i.Decision)
				}
				i.Release()
			}
		})
	}
}
