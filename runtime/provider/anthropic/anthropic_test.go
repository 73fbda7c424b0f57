// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic_test

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
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

const (
	key      = "sk-ant-very-secret-0123456789"
	newModel = "claude-sonnet-5-5"
	oldModel = "claude-3-5-sonnet-20241022"
)

// look is a request with texts that JSON must escape.
func look(model string) provider.Request {
	return provider.Request{
		Model:        model,
		Instructions: "Answer with one JSON object.\n\"No\" <Markdown>.",
		Prompt:       `What is {"type":"base64","media_type":"image/png","data":""}? 漢字 ` + "\u2028",
		Image:        provider.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n and so on")},
		Schema: &provider.OutputSchema{Name: "visual_observation_v1", JSON: []byte(`{
			"type": "object",
			"properties": {"schema": {"const": "visual_observation.v1"}, "title": {"type": ["string", "null"], "minLength": 1}},
			"required": ["schema", "title"],
			"additionalProperties": false
		}`)},
	}
}

// client is a Client whose calls carry the key.
func client(t *testing.T, url, timeout string) *anthropic.Client {
	t.Helper()
	c, err := transport.New(transport.Options{
		Endpoint: router.Endpoint{Name: "default", URL: url, Timeout: timeout}, Version: "test",
		Auth: &transport.Auth{Header: "X-Api-Key", Source: func() (transport.Secret, error) { return transport.NewSecret(key), nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return anthropic.New(exchange.Endpoint{BaseURL: url, Client: c})
}

// serve is a Client for a handler.
func serve(t *testing.T, timeout string, h http.HandlerFunc) *anthropic.Client {
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

func message(stop, content string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-see-2026","stop_reason":"` + stop + `","content":` + content +
		`,"usage":{"input_tokens":1000,"cache_creation_input_tokens":20,"cache_read_input_tokens":4,"output_tokens":33}}`
}

var answer = message("end_turn", `[{"type":"text","text":"ok"}]`)

func TestTheBytesOfARequest(t *testing.T) {
	plain := provider.Request{Model: newModel, Prompt: "Look.", Image: provider.Image{MediaType: "image/jpeg", Data: []byte("\xff\xd8")}}
	oldPlain := plain
	oldPlain.Model = "claude-3-haiku-20240307"
	limited := look(newModel)
	limited.MaxOutputTokens = 4096
	unformatted := look(oldModel)
	unformatted.Schema = nil
	requests := map[string]provider.Request{
		"a newer model with instructions and a schema": look(newModel),
		"an older model with a forced tool":            look(oldModel),
		"an older model without a schema":              unformatted,
		"an output limit":                              limited,
		"plain":                                        plain,
		"plain for the oldest that see":                oldPlain,
	}
	if files, _ := filepath.Glob("testdata/*.json"); !*update && len(files) != len(requests) {
		t.Errorf("testdata holds %d golden files for %d requests: remove the stale ones", len(files), len(requests))
	}
	for name, req := range requests {
		t.Run(name, func(t *testing.T) {
			var got []byte
			var head http.Header
			var path string
			var length int64
			c := serve(t, "10s", func(w http.ResponseWriter, r *http.Request) {
				head, path, length = r.Header, r.Method+" "+r.URL.Path, r.ContentLength
				got, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, answer)
			})
			if _, err := c.Observe(context.Background(), req); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.ReplaceAll(name, " ", "_")+".json", got)
			if path != "POST /v1/messages" || head.Get("Content-Type") != "application/json" || head.Get("X-Api-Key") != key || head.Get("Anthropic-Version") != "2023-06-01" {
				t.Errorf("sent %s with %v", path, head)
			}
			if size := c.RequestBytes(req); length != int64(len(got)) || size != length {
				t.Errorf("%d bytes were sent, Content-Length %d, RequestBytes %d", len(got), length, size)
			}
		})
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
func offline(base string, see func(*http.Request)) *anthropic.Client {
	return anthropic.New(exchange.Endpoint{BaseURL: base, Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		see(r)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})}})
}

func TestTheVersionIsOnceInTheAddress(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.anthropic.com":                       "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1":                    "https://api.anthropic.com/v1/messages",
		"https://api.anthropic.com/v1/":                   "https://api.anthropic.com/v1/messages",
		"https://x.services.ai.azure.com/anthropic/":      "https://x.services.ai.azure.com/anthropic/v1/messages",
		"https://openrouter.ai/api/v1":                    "https://openrouter.ai/api/v1/messages",
		"http://gateway.models.svc:8080/team-a/anthropic": "http://gateway.models.svc:8080/team-a/anthropic/v1/messages",
		"https://gateway.example/notv1":                   "https://gateway.example/notv1/v1/messages",
	} {
		var got string
		if _, err := offline(base, func(r *http.Request) { got = r.URL.String() }).Observe(context.Background(), look(newModel)); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s gave %s, want %s", base, got, want)
		}
	}
}

// wire is what a server reads of a request.
type wire struct {
	MaxTokens int64 `json:"max_tokens"`
	System    string
	Messages  []struct {
		Role    string
		Content []struct {
			Type, Text   string
			CacheControl json.RawMessage `json:"cache_control"`
			Source       struct {
				Type, Data string
				MediaType  string `json:"media_type"`
			}
		}
	}
	OutputConfig json.RawMessage `json:"output_config"`
	Tools        []struct{ Name string }
	ToolChoice   json.RawMessage `json:"tool_choice"`
}

func TestH43_TheTextIsCachedAndComesBeforeTheImageWhichArrivesWhole(t *testing.T) {
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
		if err := json.Unmarshal(body, &got); err != nil || len(got.Messages) != 1 || len(got.Messages[0].Content) != 2 {
			t.Fatalf("size %d: %v of %.300s", size, err, body)
		}
		text, image := got.Messages[0].Content[0], got.Messages[0].Content[1]
		if text.Type != "text" || text.Text != req.Prompt || string(text.CacheControl) != `{"type":"ephemeral"}` {
			t.Errorf("size %d: the first block is %+v", size, text)
		}
		data, err := base64.StdEncoding.DecodeString(image.Source.Data)
		if err != nil || !bytes.Equal(data, req.Image.Data) || image.Source.MediaType != "image/png" || image.Source.Type != "base64" {
			t.Errorf("size %d: the image arrived changed (%v)", size, err)
		}
		if image.Type != "image" || image.CacheControl != nil {
			t.Errorf("size %d: the second block is a %s with cache_control %s", size, image.Type, image.CacheControl)
		}
	}
}

func TestH49_TheInstructionsOccurOnce(t *testing.T) {
	for _, model := range []string{newModel, oldModel} {
		req := look(model)
		req.Instructions = "Look as an adapter would."
		var body []byte
		if _, err := offline("http://x.example", func(r *http.Request) { body, _ = io.ReadAll(r.Body) }).Observe(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(body, []byte(req.Instructions)); n != 1 {
			t.Errorf("%s: the instructions occur %d times", model, n)
		}
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
	f.Add(oldModel, `{"type":"base64","media_type":"image/png","data":""}`, "image/png", []byte{})
	f.Add("\xff", "\xff\x00\"", "image/gif", []byte{0xff})
	f.Fuzz(func(t *testing.T, model, prompt, mediaType string, image []byte) {
		req := look(model)
		req.Prompt, req.Image = prompt, provider.Image{MediaType: mediaType, Data: image}
		var body []byte
		c := offline("http://x.example", func(r *http.Request) { body, _ = io.ReadAll(r.Body) })
		if _, err := c.Observe(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(body) || !bytes.Contains(body, []byte(`"data":"`+base64.StdEncoding.EncodeToString(image)+`"}}]}]`)) {
			t.Errorf("the body is broken: %q", body)
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
