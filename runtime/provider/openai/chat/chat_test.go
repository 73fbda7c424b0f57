// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

const key = "sk-very-secret-0123456789"

// look is a request with texts that JSON must escape.
func look() provider.Request {
	return provider.Request{
		Model:        "org/see-2",
		Instructions: "Answer with one JSON object.\n\"No\" <Markdown>.",
		Prompt:       `What is "data:image/png;base64," & {"url":"data:image/png;base64,"}? 漢字 ` + "\u2028",
		Image:        provider.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n and so on")},
		Schema:       &provider.OutputSchema{Name: "visual_observation_v1", JSON: []byte(`{"type": "object", "additionalProperties": false}`)},
	}
}

// call serves one request with a handler and returns what Observe makes of it.
func call(t *testing.T, req provider.Request, timeout string, h http.HandlerFunc) (provider.Reply, error) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return observe(t, s.URL, req, timeout)
}

func observe(t *testing.T, url string, req provider.Request, timeout string) (provider.Reply, error) {
	t.Helper()
	c, err := transport.New(transport.Options{
		Endpoint: router.Endpoint{Name: "default", URL: url, Timeout: timeout}, Version: "test",
		Auth: &transport.Auth{Header: "Authorization", Scheme: "Bearer ", Source: func() (transport.Secret, error) { return transport.NewSecret(key), nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return chat.New(exchange.Endpoint{BaseURL: url + "/v1/", Client: c}).Observe(context.Background(), req)
}

func reply(content string) string {
	return `{"model":"see-2-2026","choices":[{"finish_reason":"stop","message":{"role":"assistant","refusal":null,"content":` + content +
		`}}],"usage":{"prompt_tokens":1024,"completion_tokens":33}}`
}

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
			_, err := call(t, req, "10s", func(w http.ResponseWriter, r *http.Request) {
				head, path, length = r.Header, r.Method+" "+r.URL.Path, r.ContentLength
				got, _ = io.ReadAll(r.Body)
				_, _ = io.WriteString(w, reply(`"ok"`))
			})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.ReplaceAll(name, " ", "_")+".json", got)
			if path != "POST /v1/chat/completions" || head.Get("Content-Type") != "application/json" || head.Get("Authorization") != "Bearer "+key {
				t.Errorf("sent %s with %v", path, head)
			}
			size := chat.New(exchange.Endpoint{BaseURL: "http://x/v1"}).RequestBytes(req)
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

func TestTheImageArrivesWhole(t *testing.T) {
	for _, size := range []int{0, 1, 2, 3, 3071, 3072, 3073, 1 << 20} {
		req := look()
		req.Image.Data = make([]byte, size)
		for i := range req.Image.Data {
			req.Image.Data[i] = byte(i * 7)
		}
		_, err := call(t, req, "10s", func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Messages []struct {
					Content json.RawMessage `json:"content"`
				} `json:"messages"`
			}
			var parts []struct {
				Type     string
				Text     string
				ImageURL struct{ URL string } `json:"image_url"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Errorf("size %d: %v", size, err)
			}
			if err := json.Unmarshal(body.Messages[1].Content, &parts); err != nil || len(parts) != 2 {
				t.Fatalf("size %d: parts %v, %v", size, parts, err)
			}
			data, ok := strings.CutPrefix(parts[1].ImageURL.URL, "data:image/png;base64,")
			image, err := base64.StdEncoding.DecodeString(data)
			if !ok || err != nil || !bytes.Equal(image, req.Image.Data) || parts[0].Text != req.Prompt {
				t.Errorf("size %d: the image or the prompt arrived changed (%v)", size, err)
			}
			_, _ = io.WriteString(w, reply(`"ok"`))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheNameOfTheOutputLimitFollowsTheHost(t *testing.T) {
	for base, want := range map[string]string{
		"https://api.openai.com/v1":                            "max_completion_tokens",
		"https://eu.api.openai.com/v1":                         "max_completion_tokens",
		"https://team.openai.azure.com/openai/v1":              "max_completion_tokens",
		"https://openai.com.example/v1":                        "max_tokens",
		"https://notopenai.com/v1":                             "max_tokens",
		"http://vllm.models.svc:8000/v1":                       "max_tokens",
		"https://openrouter.ai/api/v1":                         "max_tokens",
		"https://generativelanguage.googleapis.com/v1beta/oai": "max_tokens",
	} {
		var body []byte
		c := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			body, _ = io.ReadAll(r.Body)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(reply(`"ok"`)))}, nil
		})}
		req := look()
		req.MaxOutputTokens = 9
		if _, err := chat.New(exchange.Endpoint{BaseURL: base, Client: c}).Observe(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(body), `"`+want+`":9`); !got || strings.Count(string(body), "_tokens") != 1 {
			t.Errorf("%s did not get %s alone: %s", base, want, body)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRepliesThatHoldText(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"a string":                       {`" {\"a\":1} "`, `{"a":1}`},
		"parts, blank ones skipped":      {`[{"type":"text","text":" a "},{"type":"text","text":"  "},{"type":"text","text":"b"}]`, "a\n\nb"},
		"parts of a kind we do not know": {`[{"type":"thinking","thinking":"…"},{"type":"text","text":"a"}]`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := call(t, look(), "10s", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, reply(tc.content)) })
			if err != nil {
				t.Fatal(err)
			}
			want := provider.Reply{Text: tc.want, Model: "see-2-2026", Usage: provider.Usage{InputTokens: 1024, OutputTokens: 33}}
			if got != want {
				t.Errorf("reply = %+v, want %+v", got, want)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	body := func(status int, text string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	leak := `{"error":{"message":"Incorrect API key provided: ` + key + `","type":"invalid_request_error","code":"` + key + `"}}`
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
		after     time.Duration
		says      string
	}{
		"a refused key":                    {body(401, leak), "Unauthorized", false, 0, "401 (invalid_request_error)"},
		"a forbidden model":                {body(403, "no"), "Unauthorized", false, 0, "403"},
		"a rate limit with seconds":        {body(429, `{"error":{"code":"rate_limit_exceeded"}}`, "Retry-After", "7"), "RateLimited", true, 7 * time.Second, "rate_limit_exceeded"},
		"a rate limit that says nothing":   {body(429, ``, "Retry-After", "soon"), "RateLimited", true, 0, "rate"},
		"a rate limit for a year":          {body(429, ``, "Retry-After", "31536000"), "RateLimited", true, time.Hour, "rate"},
		"a broken provider":                {body(500, "<html>"+key), "UpstreamStatus", true, 0, "500"},
		"an overloaded provider":           {body(503, "", "Retry-After", "3"), "UpstreamStatus", true, 3 * time.Second, "503"},
		"a gateway that timed out":         {body(504, ""), "Timeout", true, 0, "504"},
		"a bad request":                    {body(400, `{"error":{"code":"invalid_image_format"}}`), "ImageRefused", false, 0, "400 (invalid_image_format)"},
		"a missing model":                  {body(404, "[]"), "UpstreamStatus", false, 0, "404"},
		"a redirect to another host":       {body(307, "", "Location", "https://elsewhere.example/"), "UpstreamStatus", false, 0, "307"},
		"a status of success without text": {body(204, ""), "UpstreamStatus", false, 0, "204"},
		"no JSON":                          {body(200, "hello "+key), "InvalidResponse", false, 0, "not a chat completion"},
		"JSON of another shape":            {body(200, `{"choices":"`+key+`"}`), "InvalidResponse", false, 0, "not a chat completion"},
		"a list":                           {body(200, `[]`), "InvalidResponse", false, 0, "not a chat completion"},
		"an error with status 200":         {body(200, `{"error":{"code":"server_error"}}`), "UpstreamStatus", false, 0, "server_error"},
		"no choices":                       {body(200, `{"choices":[]}`), "Empty", true, 0, "no choice"},
		"null content":                     {body(200, reply(`null`)), "Empty", true, 0, "no text"},
		"blank content":                    {body(200, reply(`" \n"`)), "Empty", true, 0, "no text"},
		"a refusal":                        {body(200, `{"choices":[{"message":{"refusal":"I will not, `+key+`","content":null}}]}`), "Refused", false, 0, "refused"},
		"a content filter":                 {body(200, `{"choices":[{"finish_reason":"content_filter","message":{"content":"x"}}]}`), "Refused", false, 0, "filter"},
		"a reply that was cut off":         {body(200, `{"choices":[{"finish_reason":"length","message":{"content":"{\"ty"}}]}`), "Truncated", false, 0, "cut off"},
		"a reply over the limit":           {body(200, strings.Repeat(" ", transport.MaxResponseBytes+1)), "InvalidResponse", false, 0, "8388608"},
		"a connection that is cut": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		}, "Connection", true, 0, "reached"},
		"a body that ends early": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, key)
		}, "Connection", true, 0, "reached"},
		"no answer in time": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "Timeout", true, 0, "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := "10s"
			if tc.reason == "Timeout" {
				timeout = "50ms"
			}
			_, err := call(t, look(), timeout, tc.handler)
			if err == nil {
				t.Fatal("no error")
			}
			f := fault.As(err)
			if f.Kind != fault.VisionObservationFailed || f.Reason != tc.reason || f.Retryable != tc.retryable || f.RetryAfter != tc.after {
				t.Errorf("fault = %s %s retryable=%v after=%v; want %s retryable=%v after=%v", f.Kind, f.Reason, f.Retryable, f.RetryAfter, tc.reason, tc.retryable, tc.after)
			}
			if !strings.Contains(f.Message, tc.says) {
				t.Errorf("message %q does not say %q", f.Message, tc.says)
			}
			if all := fmt.Sprintf("%v %v %v", f, f.Details, f.Cause); strings.Contains(all, "secret") || strings.Contains(all, "<html") {
				t.Errorf("the fault repeats the key or the body: %s", all)
			}
		})
	}
}

func TestARedirectWithinTheHostCarriesTheBodyAgain(t *testing.T) {
	var bodies []string
	_, err := call(t, look(), "10s", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if len(bodies) == 1 {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, reply(`"ok"`))
	})
	if err != nil || len(bodies) != 2 || bodies[0] != bodies[1] || bodies[0] == "" {
		t.Errorf("%d requests and %v", len(bodies), err)
	}
}

func TestAProviderThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	_, err = observe(t, "http://"+l.Addr().String(), look(), "10s")
	if f := fault.As(err); f.Reason != "Connection" || !f.Retryable {
		t.Errorf("fault = %+v", f)
	}
	_, err = observe(t, "http://169.254.169.254", look(), "10s")
	if f := fault.As(err); f.Kind != fault.VisionAdapterUnavailable || f.Reason != "AddressRefused" {
		t.Errorf("fault = %+v", f)
	}
}

func TestACallerWhoLeaves(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	c, err := transport.New(transport.Options{Endpoint: router.Endpoint{URL: s.URL, Timeout: "10s"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	_, err = chat.New(exchange.Endpoint{BaseURL: s.URL, Client: c}).Observe(ctx, look())
	if f := fault.As(err); f.Reason != "Canceled" {
		t.Errorf("fault = %+v", f)
	}
}

func FuzzReply(f *testing.F) {
	for _, seed := range []string{reply(`"a"`), reply(`[{"text":"b"}]`), `{"choices":[]}`, `{"error":{"code":1}}`, `null`, `{"choices":[null]}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := chat.ParseReply(body)
		if err != nil {
			if fault.As(err).Kind != fault.VisionObservationFailed || fault.As(err).Reason == "Internal" {
				t.Errorf("the error is %v", err)
			}
			return
		}
		if strings.TrimSpace(got.Text) == "" {
			t.Error("a reply without text and without an error")
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add("look", "image/png", []byte("x"))
	f.Add(`{"url":"data:image/png;base64,"}`, "image/png", []byte{})
	f.Add("\xff\x00\"", "image/gif", []byte{0xff})
	f.Fuzz(func(t *testing.T, prompt, mediaType string, image []byte) {
		req := look()
		req.Prompt, req.Image = prompt, provider.Image{MediaType: mediaType, Data: image}
		var body []byte
		c := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			body, _ = io.ReadAll(r.Body)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(reply(`"ok"`)))}, nil
		})}
		if _, err := chat.New(exchange.Endpoint{BaseURL: "http://x.example", Client: c}).Observe(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(body) || !bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString(image)+`"}}]}`)) {
			t.Errorf("the body is broken: %q", body)
		}
	})
}

func BenchmarkRequestOf5MiB(b *testing.B) {
	req := look()
	req.Image.Data = make([]byte, 5<<20)
	c := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		_, err := io.Copy(io.Discard, r.Body)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(reply(`"ok"`)))}, err
	})}
	client := chat.New(exchange.Endpoint{BaseURL: "http://x.example", Client: c})
	b.ReportAllocs()
	b.SetBytes(int64(len(req.Image.Data)))
	for b.Loop() {
		if _, err := client.Observe(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}
