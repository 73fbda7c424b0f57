// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

const (
	key      = "AIza-very-secret-0123456789"
	newModel = "gemini-3.1-flash"
	oldModel = "gemini-2.0-flash"
)

// look is a request with texts that JSON must escape.
func look(model string) provider.Request {
	return provider.Request{
		Model:        model,
		Instructions: "Answer with one JSON object.\n\"No\" <Markdown>.",
		Prompt:       `What is {"mimeType":"image/png","data":""}? 漢字 ` + "\u2028",
		Image:        provider.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n and so on")},
		Schema: &provider.OutputSchema{Name: "visual_observation_v1", JSON: []byte(`{
			"type": "object",
			"properties": {"schema": {"const": "visual_observation.v1"}, "title": {"type": ["string", "null"]}},
			"required": ["schema", "title"],
			"additionalProperties": false
		}`)},
	}
}

// client is a Client whose calls carry the key.
func client(t *testing.T, url, timeout string) *gemini.Client {
	t.Helper()
	c, err := transport.New(transport.Options{
		Endpoint: router.Endpoint{Name: "default", URL: url, Timeout: timeout}, Version: "test",
		Auth: &transport.Auth{Header: "X-Goog-Api-Key", Source: func() (transport.Secret, error) { return transport.NewSecret(key), nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return gemini.New(exchange.Endpoint{BaseURL: url + "/v1beta/", Client: c})
}

// serve is a Client for a handler.
func serve(t *testing.T, timeout string, h http.HandlerFunc) *gemini.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return client(t, s.URL, timeout)
}

// call serves one request with a handler and returns what Observe makes of it.
func call(t *testing.T, req provider.Request, timeout string, h http.HandlerFunc) (provider.Reply, error) {
	t.Helper()
	return serve(t, timeout, h).Observe(context.Background(), req)
}

// says answers with a body.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

const usage = `"usageMetadata":{"promptTokenCount":1024,"candidatesTokenCount":30,"thoughtsTokenCount":3,"totalTokenCount":1057}`

// candidate is a response with one candidate: its finish reason and its content.
func candidate(finish, content string) string {
	return `{"candidates":[{"finishReason":"` + finish + `","index":0,"content":` + content + `}],` + usage + `,"modelVersion":"gemini-see-2026","responseId":"x"}`
}

var answer = candidate("STOP", `{"role":"model","parts":[{"text":"ok"}]}`)

func TestTheBytesOfARequest(t *testing.T) {
	plain := provider.Request{Model: newModel, Prompt: "Look.", Image: provider.Image{MediaType: "image/jpeg", Data: []byte("\xff\xd8")}}
	limited := plain
	limited.MaxOutputTokens = 4096
	limitedWithSchema := look(newModel)
	limitedWithSchema.MaxOutputTokens = 4096
	requests := map[string]provider.Request{
		"a newer model with instructions and a schema": look(newModel),
		"an older model with another form of schema":   look(oldModel),
		"an output limit":              limited,
		"an output limit and a schema": limitedWithSchema,
		"plain":                        plain,
	}
	if files, _ := filepath.Glob("testdata/*.json"); !*update && len(files) != len(requests)+1 {
		t.Errorf("testdata holds %d golden files for %d requests and one of parts: remove the stale ones", len(files), len(requests))
	}
	for name, req := range requests {
		t.Run(name, func(t *testing.T) {
			var got []byte
			var head http.Header
			var path string
			var length int64
			c := serve(t, "10s", func(w http.ResponseWriter, r *http.Request) {
				head, path, length = r.Header, r.Method+" "+r.RequestURI, r.ContentLength
				got, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, answer)
			})
			if _, err := c.Observe(context.Background(), req); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.ReplaceAll(name, " ", "_")+".json", got)
			if path != "POST /v1beta/models/"+req.Model+":generateContent" || head.Get("Content-Type") != "application/json" || head.Get("X-Goog-Api-Key") != key {
				t.Errorf("sent %s with %v", path, head)
			}
			if size := c.RequestBytes(req); length != int64(len(got)) || size != length {
				t.Errorf("%d bytes were sent, Content-Length %d, RequestBytes %d", len(got), length, size)
			}
		})
	}
}

func TestH52_PartsKeepTheOrderTextImageText(t *testing.T) {
	got, err := gemini.EncodeAround(look(newModel), "before", "after")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "text_image_text.json", got)
	before, image, after := bytes.Index(got, []byte("before")), bytes.Index(got, []byte("iVBORw0KGgo")), bytes.Index(got, []byte("after"))
	if before < 0 || image < before || after < image {
		t.Errorf("the parts are at %d, %d and %d", before, image, after)
	}
}

// golden compares with a file of testdata, byte for byte.
func golden(t *testing.T, name string, got []byte) {
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

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// offline is a Client whose calls see hands over, and that answers each.
func offline(base string, see func(*http.Request)) *gemini.Client {
	return gemini.New(exchange.Endpoint{BaseURL: base, Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		see(r)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})}})
}

func TestTheAddressOfAModel(t *testing.T) {
	const base = "https://generativelanguage.googleapis.com/v1beta"
	for model, want := range map[string]string{
		"gemini-2.5-flash":        "/models/gemini-2.5-flash:generateContent",
		"models/gemini-2.5-flash": "/models/gemini-2.5-flash:generateContent",
		"tunedModels/mine-x1":     "/tunedModels/mine-x1:generateContent",
		"google/gemini-3":         "/models/google%2Fgemini-3:generateContent",
		"a?b#c d%e:f":             "/models/a%3Fb%23c%20d%25e%3Af:generateContent",
		"../../v1/secrets":        "/models/..%2F..%2Fv1%2Fsecrets:generateContent",
		"漢":                       "/models/%E6%BC%A2:generateContent",
	} {
		var got string
		if _, err := offline(base+"/", func(r *http.Request) { got = r.URL.String() }).Observe(context.Background(), look(model)); err != nil {
			t.Fatal(err)
		}
		if got != base+want {
			t.Errorf("%s gave %s, want %s", model, got, base+want)
		}
	}
}

// wire is what a server reads of a request.
type wire struct {
	SystemInstruction struct{ Parts []struct{ Text string } }
	Contents          []struct {
		Role  string
		Parts []map[string]json.RawMessage
	}
	GenerationConfig map[string]json.RawMessage
}

func TestTheTextComesBeforeTheImageWhichArrivesWhole(t *testing.T) {
	for _, size := range []int{0, 1, 2, 3, 3071, 3072, 3073, 1 << 20} {
		req := look(newModel)
		req.Image.Data = make([]byte, size)
		for i := range req.Image.Data {
			req.Image.Data[i] = byte(i * 7)
		}
		var body []byte
		if _, err := offline("http://x.example", func(r *http.Request) { body, _ = io.ReadAll(r.Body) }).Observe(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		var got wire
		if err := json.Unmarshal(body, &got); err != nil || len(got.Contents) != 1 || len(got.Contents[0].Parts) != 2 || got.Contents[0].Role != "user" {
			t.Fatalf("size %d: %v of %.300s", size, err, body)
		}
		var text string
		var image struct{ MIMEType, Data string }
		first, second := got.Contents[0].Parts[0], got.Contents[0].Parts[1]
		if err := json.Unmarshal(first["text"], &text); err != nil || len(first) != 1 || text != req.Prompt {
			t.Errorf("size %d: the first part is %q (%v)", size, text, err)
		}
		if err := json.Unmarshal(second["inlineData"], &image); err != nil || len(second) != 1 || image.MIMEType != "image/png" {
			t.Errorf("size %d: the second part is %v (%v)", size, image.MIMEType, err)
		}
		if data, err := base64.StdEncoding.DecodeString(image.Data); err != nil || !bytes.Equal(data, req.Image.Data) {
			t.Errorf("size %d: the image arrived changed (%v)", size, err)
		}
	}
}

func TestH49_TheInstructionsOccurOnce(t *testing.T) {
	req := look(newModel)
	req.Instructions = "Look as an adapter would."
	var body []byte
	if _, err := offline("http://x.example", func(r *http.Request) { body, _ = io.ReadAll(r.Body) }).Observe(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(body, []byte(req.Instructions)); n != 1 {
		t.Errorf("the instructions occur %d times", n)
	}
}

func TestTheImageIsNeverCopiedWhole(t *testing.T) {
	const size = 16 << 20
	req := look(newModel)
	req.Image.Data = make([]byte, size)
	c := offline("http://x.example", func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := c.Observe(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	if c.RequestBytes(req) < size {
		t.Fatal("the image is not counted")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > size/8 {
		t.Errorf("%d bytes were allocated for an image of %d", took, size)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(newModel, "look", "image/png", []byte("x"))
	f.Add(oldModel, `{"mimeType":"image/png","data":""}`, "image/png", []byte{})
	f.Add("tunedModels/\xff\x7f", "\xff\x00\"", "image/gif", []byte{0xff})
	f.Fuzz(func(t *testing.T, model, prompt, mediaType string, image []byte) {
		req := look(model)
		req.Prompt, req.Image = prompt, provider.Image{MediaType: mediaType, Data: image}
		var body []byte
		var path string
		c := offline("http://x.example", func(r *http.Request) { body, _ = io.ReadAll(r.Body); path = r.URL.EscapedPath() })
		if _, err := c.Observe(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(body) || !bytes.Contains(body, []byte(`"data":"`+base64.StdEncoding.EncodeToString(image)+`"}}]}]`)) {
			t.Errorf("the body is broken: %q", body)
		}
		if strings.Count(path, "/") != 2 || strings.Count(path, ":") != 1 || !strings.HasSuffix(path, ":generateContent") {
			t.Errorf("model %q is asked for at %s", model, path)
		}
	})
}

func BenchmarkRequestOf5MiB(b *testing.B) {
	req := look(newModel)
	req.Image.Data = make([]byte, 5<<20)
	c := offline("http://x.example", func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	b.ReportAllocs()
	b.SetBytes(int64(len(req.Image.Data)))
	for b.Loop() {
		if _, err := c.Observe(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}
