// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/responses"
)

func TestTheBytesOfARequest(t *testing.T) {
	plain := provider.Request{Model: "see", Prompt: "Look.", Image: provider.Image{MediaType: "image/jpeg", Data: []byte("\xff\xd8")}}
	limited := look()
	limited.MaxOutputTokens = 4096
	requests := map[string]provider.Request{
		"with instructions and a schema": look(),
		"with an output limit":           limited,
		"plain":                          plain,
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
			_, err := call(t, req, func(w http.ResponseWriter, r *http.Request) {
				head, path, length = r.Header, r.Method+" "+r.URL.Path, r.ContentLength
				got, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, reply(text(`"ok"`)))
			})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.ReplaceAll(name, " ", "_")+".json", got)
			if path != "POST /v1/responses" || head.Get("Content-Type") != "application/json" || head.Get("Authorization") != "Bearer "+key {
				t.Errorf("sent %s with %v", path, head)
			}
			size := responses.New(exchange.Endpoint{BaseURL: "http://x/v1"}).RequestBytes(req)
			if length != int64(len(got)) || size != length {
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

func TestH41_TheContentIsTextAndImageAndNothingIsStored(t *testing.T) {
	for _, size := range []int{1, 2, 3, 1 << 20} {
		req := look()
		req.Image.Data = make([]byte, size)
		for i := range req.Image.Data {
			req.Image.Data[i] = byte(i * 7)
		}
		req.MaxOutputTokens = 99
		var got map[string]any
		_, err := call(t, req, func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Errorf("size %d: %v", size, err)
			}
			_, _ = io.WriteString(w, reply(text(`"ok"`)))
		})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"model": req.Model, "instructions": req.Instructions, "store": false, "max_output_tokens": 99.0,
			"input": []any{map[string]any{"type": "message", "role": "user", "content": []any{
				map[string]any{"type": "input_text", "text": req.Prompt},
				map[string]any{"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64," + base64.StdEncoding.EncodeToString(req.Image.Data)},
			}}},
			"text": map[string]any{"format": map[string]any{
				"type": "json_schema", "name": "visual_observation_v1", "strict": true,
				"schema": map[string]any{"type": "object", "additionalProperties": false},
			}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("size %d (-want +got):\n%.2000s", size, diff)
		}
	}
}

// Each vendor's documented base URL, and what becomes of it.
func TestWhereRequestsGo(t *testing.T) {
	for name, tc := range map[string]struct{ base, version, url string }{
		"OpenAI":                 {"https://api.openai.com/v1", "", "https://api.openai.com/v1/responses"},
		"Azure":                  {"https://team.openai.azure.com/openai/v1/", "", "https://team.openai.azure.com/openai/v1/responses"},
		"Azure, a preview of it": {"https://team.openai.azure.com/openai/v1", "preview", "https://team.openai.azure.com/openai/v1/responses?api-version=preview"},
		"Azure, before that":     {"https://team.openai.azure.com/openai", "2025-03-01-preview", "https://team.openai.azure.com/openai/responses?api-version=2025-03-01-preview"},
		"OpenRouter":             {"https://openrouter.ai/api/v1", "", "https://openrouter.ai/api/v1/responses"},
		"xAI":                    {"https://api.x.ai/v1", "", "https://api.x.ai/v1/responses"},
		"vLLM":                   {"http://vllm.models.svc:8000/v1", "", "http://vllm.models.svc:8000/v1/responses"},
		"Ollama":                 {"http://ollama:11434/v1", "", "http://ollama:11434/v1/responses"},
		"LM Studio":              {"http://localhost:1234/v1", "", "http://localhost:1234/v1/responses"},
		"a server below a path":  {"https://models.example/team/see/v1/", "", "https://models.example/team/see/v1/responses"},
	} {
		t.Run(name, func(t *testing.T) {
			var url string
			c := answering(func(r *http.Request, from io.Reader) error {
				url = r.URL.String()
				return drain(r, from)
			})
			if _, err := responses.New(exchange.Endpoint{BaseURL: tc.base, APIVersion: tc.version, Client: c}).Observe(context.Background(), look()); err != nil {
				t.Fatal(err)
			}
			if url != tc.url {
				t.Errorf("sent to %s, want %s", url, tc.url)
			}
		})
	}
}

func TestALargeImageIsNotCopied(t *testing.T) {
	req := look()
	req.Image.Data = make([]byte, 16<<20)
	c := responses.New(exchange.Endpoint{BaseURL: "http://x.example", Client: answering(drain)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := c.Observe(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes were allocated to send %d", got, len(req.Image.Data))
	}
}

func drain(_ *http.Request, body io.Reader) error {
	_, err := io.Copy(io.Discard, body)
	return err
}

func TestASchemaThatIsNoJSONIsNotSent(t *testing.T) {
	req := look()
	req.Schema.JSON = []byte(`{"a":`)
	calls := 0
	c := responses.New(exchange.Endpoint{BaseURL: "http://x.example", Client: answering(func(*http.Request, io.Reader) error {
		calls++
		return nil
	})})
	_, err := c.Observe(context.Background(), req)
	if f := fault.As(err); err == nil || f.Reason != "Internal" || calls != 0 || c.RequestBytes(req) != 0 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("look", "image/png", []byte("x"))
	f.Add(`{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,"}`, "image/png", []byte{})
	f.Add("\xff\x00\"", "image/gif", []byte{0xff})
	f.Fuzz(func(t *testing.T, prompt, mediaType string, image []byte) {
		req := look()
		req.Prompt, req.Image, req.MaxOutputTokens = prompt, provider.Image{MediaType: mediaType, Data: image}, math.MaxInt32
		var body []byte
		c := answering(func(_ *http.Request, from io.Reader) (err error) {
			body, err = io.ReadAll(from)
			return err
		})
		if _, err := responses.New(exchange.Endpoint{BaseURL: "http://x.example", Client: c}).Observe(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(body) || !bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString(image)+`"}]}]`)) {
			t.Errorf("the body is broken: %q", body)
		}
	})
}

func BenchmarkRequestOf5MiB(b *testing.B) {
	req := look()
	req.Image.Data = make([]byte, 5<<20)
	c := responses.New(exchange.Endpoint{BaseURL: "http://x.example", Client: answering(drain)})
	b.ReportAllocs()
	b.SetBytes(int64(len(req.Image.Data)))
	for b.Loop() {
		if _, err := c.Observe(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}
