// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchangetest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

var update = flag.Bool("update", false, "write the golden files anew")

// GoldenRequests sends requests to a server and compares what arrives with
// testdata, where each has a file of its name. A file there that belongs to none
// of them, nor is among others, is stale.
func (p Protocol) GoldenRequests(t *testing.T, requests map[string]provider.Request, others ...string) {
	t.Helper()
	file := func(name string) string { return strings.ReplaceAll(name, " ", "_") + ".json" }
	for name := range requests {
		others = append(others, file(name))
	}
	files, _ := filepath.Glob("testdata/*") // the pattern is not malformed
	for _, f := range files {
		if !slices.Contains(others, filepath.Base(f)) {
			t.Errorf("%s belongs to no request: remove it", f)
		}
	}
	for name, req := range requests {
		t.Run(name, func(t *testing.T) { Golden(t, file(name), p.arrived(t, req)) })
	}
}

// arrived is what arrives at a server for a request, with its headers looked at.
func (p Protocol) arrived(t *testing.T, req provider.Request) []byte {
	t.Helper()
	var got *http.Request
	var body []byte
	c := p.Client(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, p.Answer)
	})
	before := c.RequestBytes(req)
	if _, err := c.Observe(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(p.Path, "{model}", req.Model); got.Method != http.MethodPost || got.RequestURI != want {
		t.Errorf("sent %s %s, want POST %s", got.Method, got.RequestURI, want)
	}
	if got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("sent with %v", got.Header)
	}
	p.checkHeader(t, got)
	if after := c.RequestBytes(req); got.ContentLength != int64(len(body)) || before != got.ContentLength || after != before {
		t.Errorf("%d bytes were sent, Content-Length %d, RequestBytes %d and then %d", len(body), got.ContentLength, before, after)
	}
	return body
}

// checkHeader looks for what goes with every call.
func (p Protocol) checkHeader(t *testing.T, got *http.Request) {
	t.Helper()
	if got.Header.Get("Accept") != "application/json" || got.Header.Get(p.Key.Header) != p.Key.Scheme+p.Key.Value {
		t.Errorf("sent with %v", got.Header)
	}
	for name := range p.Header {
		if want := p.Header.Get(name); got.Header.Get(name) != want {
			t.Errorf("sent with %s %q, want %q", name, got.Header.Get(name), want)
		}
	}
}

// Golden compares with a file of testdata, byte for byte.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("reading the golden file (run with -update to write it): %v", err)
	}
	if diff := cmp.Diff(string(bytes.TrimSuffix(want, []byte("\n"))), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// ImagesArriveWhole sends images of sizes around those where base64 is padded
// and where it is cut into chunks. Shape looks at a body, of which encoded is
// the image's base64.
func (p Protocol) ImagesArriveWhole(t *testing.T, req provider.Request, shape func(t *testing.T, body []byte, encoded string)) {
	t.Helper()
	for _, size := range []int{0, 1, 2, 3, 3071, 3072, 3073, 1 << 20} {
		req.Image.Data = make([]byte, size)
		for i := range req.Image.Data {
			req.Image.Data[i] = byte(i * 7)
		}
		shape(t, p.Body(t, req), base64.StdEncoding.EncodeToString(req.Image.Data))
		if t.Failed() {
			t.Fatalf("with an image of %d bytes", size)
		}
	}
}

// InstructionsOccurOnce looks for a request's instructions in its body.
func (p Protocol) InstructionsOccurOnce(t *testing.T, models ...string) {
	t.Helper()
	for _, model := range models {
		req := p.LookWith(model)
		req.Instructions = "Look as an adapter would."
		if n := bytes.Count(p.Body(t, req), []byte(req.Instructions)); n != 1 {
			t.Errorf("%s: the instructions occur %d times", model, n)
		}
	}
}

// ImageIsNeverCopied measures what is allocated to size and to send a large image.
func (p Protocol) ImageIsNeverCopied(t *testing.T) {
	t.Helper()
	req := p.Look()
	req.Image.Data = make([]byte, 16<<20)
	c := p.reading(p.Answer)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if c.RequestBytes(req) < int64(len(req.Image.Data)) {
		t.Error("the image is not counted")
	}
	if _, err := c.Observe(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes were allocated for an image of %d", took, len(req.Image.Data))
	}
}

// FuzzRequest fuzzes what comes from outside. End is what follows the image, and
// address looks at where a request goes.
func (p Protocol) FuzzRequest(f *testing.F, end string, address func(t *testing.T, to *url.URL)) {
	f.Add(p.Model, "look", "image/png", []byte("x"))
	f.Add(p.Model, p.Slot, "image/png", []byte{})
	f.Add("tunedModels/\xff\x7f", "\xff\x00\"", "image/gif", []byte{0xff})
	f.Fuzz(func(t *testing.T, model, prompt, mediaType string, image []byte) {
		req := p.LookWith(model)
		req.Prompt, req.Image, req.MaxOutputTokens = prompt, provider.Image{MediaType: mediaType, Data: image}, math.MaxInt32
		to, body := p.Sent(t, exchange.Endpoint{BaseURL: "http://x.example"}, req)
		if !json.Valid(body) || !bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString(image)+end)) {
			t.Errorf("the body is broken: %q", body)
		}
		address(t, to)
	})
}

// BenchmarkRequest sends an image of 5 MiB.
func (p Protocol) BenchmarkRequest(b *testing.B) {
	req := p.Look()
	req.Image.Data = make([]byte, 5<<20)
	c := p.reading(p.Answer)
	b.ReportAllocs()
	b.SetBytes(int64(len(req.Image.Data)))
	for b.Loop() {
		if _, err := c.Observe(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}
