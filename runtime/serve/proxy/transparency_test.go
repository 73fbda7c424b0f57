// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/serve/proxy"
)

// seen is a request as the upstream got it.
type seen struct {
	method, target string
	header         http.Header
	length         int64
	chunked        bool
	body           string
}

// recording is an upstream that keeps what it got and answers with one reply.
func recording(got *seen, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*got = seen{r.Method, r.RequestURI, r.Header, r.ContentLength, len(r.TransferEncoding) > 0, string(body)}
		if answer != nil {
			answer(w, r)
		}
	}
}

func randomBytes(seed uint64, n int) string {
	source := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(source.Uint32())
	}
	return string(b)
}

func TestBytesPassUnchangedBothWays(t *testing.T) {
	var got seen
	var answer string
	w := newWorld(t, recording(&got, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }), nil)
	for i, size := range []int{1, 17, 4095, 4096, 4097, 65536, 65537, 1 << 20, 1<<20 + 1, 3 << 20} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d bytes, chunked: %v", size, chunked), func(t *testing.T) {
				sent := randomBytes(uint64(i), size)
				answer = randomBytes(uint64(i)+100, size)
				r := w.post(chatPath, sent, func(r *http.Request) {
					if chunked {
						r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(strings.NewReader(sent)))
					}
				})
				if r.err != nil || r.status != http.StatusOK || r.body != answer {
					t.Errorf("the reply is another: status %d, %d bytes of %d, error %v", r.status, len(r.body), size, r.err)
				}
				if got.body != sent || got.length != int64(size) || got.chunked {
					t.Errorf("the upstream got %d bytes (length %d, chunked %v), want %d", len(got.body), got.length, got.chunked, size)
				}
			})
		}
	}
	w.idle()
}

func pack(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser
	switch coding {
	case "gzip", "x-gzip":
		z = gzip.NewWriter(&b)
	case "deflate":
		z = zlib.NewWriter(&b)
	case "bare deflate":
		z, _ = flate.NewWriter(&b, 6)
	case "zstd":
		z, _ = zstd.NewWriter(&b)
	default:
		return text
	}
	_, _ = io.WriteString(z, text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestACompressedBodyIsReadAndSentAsItCame(t *testing.T) {
	text := `{"model":"eye-1","messages":[` + strings.Repeat(`{"role":"user","content":"hello"},`, 5000) + `{}]}`
	for _, coding := range []string{"gzip", "x-gzip", "deflate", "bare deflate", "zstd", "identity"} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked: %v", coding, chunked), func(t *testing.T) {
				var got seen
				w := newWorld(t, recording(&got, nil), nil)
				sent, header := pack(t, coding, text), strings.TrimPrefix(coding, "bare ")
				r := w.post(chatPath, sent, func(r *http.Request) {
					r.Header.Set("Content-Encoding", header)
					if chunked {
						r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(strings.NewReader(sent)))
					}
				})
				if r.status != http.StatusOK {
					t.Fatalf("status %d: %s", r.status, r.body)
				}
				if got.body != sent || got.header.Get("Content-Encoding") != header || got.length != int64(len(sent)) {
					t.Errorf("the upstream got %d bytes as %q, want %d", len(got.body), got.header.Get("Content-Encoding"), len(sent))
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if n := len(w.asked); n != 1 {
					t.Fatalf("asked %d times", n)
				}
			})
		}
	}
}

func TestAChangedBodyIsSentWithoutItsEncoding(t *testing.T) {
	const text = `{"model":"alias","messages":[]}`
	var got seen
	w := newWorld(t, recording(&got, nil), func(w *world) {
		w.prepare = func(req engine.ModelRequest, p *proxy.Prepared) error {
			if string(req.Body) != text {
				t.Errorf("the engine got %q", req.Body)
			}
			var err error
			p.Body, err = message.Splice(req.Body, []message.Edit{{Span: message.Span{Start: 9, End: 16}, Segments: []message.Segment{{Text: []byte(`"eye-1"`)}}}})
			return err
		}
	})
	r := w.post(chatPath, pack(t, "gzip", text), func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") })
	const want = `{"model":"eye-1","messages":[]}`
	if r.status != http.StatusOK || got.body != want || got.length != int64(len(want)) || got.header["Content-Encoding"] != nil {
		t.Errorf("status %d; the upstream got %q (length %d, encoding %q)", r.status, got.body, got.length, got.header["Content-Encoding"])
	}
}

func TestHeadersPassButThoseOfTheConnectionAndOfTheCaller(t *testing.T) {
	var got seen
	w := newWorld(t, recording(&got, nil), nil)
	w.post(chatPath, "{}", func(r *http.Request) {
		r.Header = http.Header{
			"Content-Type": {"application/json; charset=UTF-8"}, "User-Agent": {"agent/1.0"}, "Accept": {"a", "b"}, "Accept-Encoding": {"br;q=0.5, gzip"},
			"Openai-Beta": {"x=v1"}, "X-Stainless-Retry-Count": {"0"}, "X_odd.name": {"kept"}, "Idempotency-Key": {"i-1"}, "Te": {"trailers, deflate"},
			"Connection": {"X-Mine, keep-alive"}, "X-Mine": {"of this hop"}, "Keep-Alive": {"timeout=5"}, "Proxy-Connection": {"x"},
			"X-Vision-Route": {"lab@main/eye-1"}, "Empty": {""},
		}
	})
	want := http.Header{
		"Content-Type": {"application/json; charset=UTF-8"}, "User-Agent": {"agent/1.0"}, "Accept": {"a", "b"}, "Accept-Encoding": {"br;q=0.5, gzip"},
		"Openai-Beta": {"x=v1"}, "X-Stainless-Retry-Count": {"0"}, "X_odd.name": {"kept"}, "Idempotency-Key": {"i-1"}, "Te": {"trailers"},
		"Authorization": {"Bearer " + providerKey}, "Content-Length": {"2"}, "Empty": {""},
	}
	if !maps.EqualFunc(got.header, want, slices.Equal) {
		t.Errorf("the upstream got\n%v, want\n%v", got.header, want)
	}
}

func TestWithoutAUserAgentNoneIsMadeUp(t *testing.T) {
	var got seen
	w := newWorld(t, recording(&got, nil), nil)
	w.post(chatPath, "{}", func(r *http.Request) { r.Header["User-Agent"] = []string{""} })
	if agent, there := got.header["User-Agent"]; there {
		t.Errorf("User-Agent = %q", agent)
	}
	if accept, there := got.header["Accept-Encoding"]; there {
		t.Errorf("Accept-Encoding = %q", accept)
	}
}

func TestNoCredentialOfTheCallerGoesUp(t *testing.T) {
	headers := []string{
		"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "x-goog-api-key", "Cookie", "OpenAI-Organization", "OpenAI-Project",
		"X-Goog-User-Project", "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token", "X-Auth-Token", "X-Vision-Anything",
		"X-Forwarded-Authorization", "X-Portkey-Api-Key", "Apikey", "X-Access-Token", "Helicone-Auth", "Cookie2", "CF-Access-Client-Secret", "X_api_key", "x_vision_anything", "Openai_Organization", "X_Goog_User-Project",
		"HF-Token", "Token", "X-Session-Token", "Private-Token", "X-Vault-Token", "X-Secret-Key", "X-Access-Key", "X-OpenAI-Key", "Anthropic-Admin-Key", "X-Proxy-Password", "X-Amz-Credential",
	}
	for _, path := range []string{chatPath, responsesPath, messagesPath, geminiPath, "/openai/v1/files/a"} {
		var got seen
		w := newWorld(t, recording(&got, nil), func(w *world) { w.opened = func(_, path, _ string) bool { return path == "/openai/v1/files/a" } })
		r := w.post(path+"?key="+callerKey+"&alt=sse&%6bey="+callerKey+"&ACCESS_TOKEN="+callerKey+";api_key="+callerKey+"&api_key="+callerKey+
			"&token="+callerKey+"&x-goog-api-key="+callerKey+"&%24httpHeaders=Authorization:"+callerKey+"&$.key="+callerKey+
			"&client_secret="+callerKey+"&refresh_token="+callerKey+"&X-Amz-Security-Token="+callerKey, "{}", func(r *http.Request) {
			for _, name := range headers {
				r.Header.Set(name, "Bearer "+callerKey)
			}
		})
		if r.status != http.StatusOK {
			t.Errorf("%s: status %d: %s", path, r.status, r.body)
		}
		if all := fmt.Sprint(got); strings.Contains(all, callerKey) || !strings.Contains(all, providerKey) {
			t.Errorf("%s: the upstream got %s", path, all)
		}
		if !strings.HasSuffix(got.target, "?alt=sse") {
			t.Errorf("%s: the query went up as %s", path, got.target)
		}
	}
}

func TestAQueryKeepsItsBytes(t *testing.T) {
	for _, test := range []struct{ name, version, sent, want string }{
		{"order and odd escapes", "", "b=2&a=%7e1&&c&=x&b=%zz", "b=2&a=%7e1&&c&=x&b=%zz"},
		{"a key in front", "", "key=k&a=1&b=2", "a=1&b=2"},
		{"a key in the middle", "", "a=1&key=k&b=2", "a=1&b=2"},
		{"a key behind", "", "a=1&b=2&key=k", "a=1&b=2"},
		{"nothing but a key", "", "key=k", ""},
		{"what only looks like a key", "", "monkey=1&keys=2&pageToken=3&$alt=sse", "monkey=1&keys=2&pageToken=3&$alt=sse"},
		{"the endpoint's version over the client's", "2026-01", "api-version=old&a=1", "api-version=2026-01&a=1"},
		{"the client's version where the endpoint has none", "", "api-version=old&a=1", "api-version=old&a=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got seen
			w := newWorld(t, recording(&got, nil), func(w *world) { w.target.Endpoint.APIVersion = test.version })
			w.post(chatPath+"?"+test.sent, "{}", nil)
			_, query, _ := strings.Cut(got.target, "?")
			if query != test.want {
				t.Errorf("the query went up as %q, want %q", query, test.want)
			}
		})
	}
}

func TestARepliesStatusHeadersAndBodyPass(t *testing.T) {
	for _, status := range []int{200, 204, 302, 400, 404, 429, 500, 529} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			h := w.Header()
			h["Content-Type"] = nil
			h.Set("Retry-After", "7")
			h.Set("Location", ":%not a URL")
			h["Set-Cookie"] = []string{"a=1", "b=2"}
			h.Set("X-Request-Id", "req_1")
			h.Set("Connection", "X-Hop")
			h.Set("X-Hop", "1")
			w.WriteHeader(status)
			if status != http.StatusNoContent {
				_, _ = io.WriteString(w, `{"error":"theirs"}`)
			}
		}, nil)
		r := w.post(chatPath, "{}", nil)
		want := `{"error":"theirs"}`
		if status == http.StatusNoContent {
			want = ""
		}
		if r.err != nil || r.status != status || r.body != want {
			t.Errorf("%d: got status %d, body %q, error %v", status, r.status, r.body, r.err)
		}
		if r.header.Get("Retry-After") != "7" || r.header.Get("Location") != ":%not a URL" || len(r.header["Set-Cookie"]) != 2 || r.header.Get("X-Request-Id") != "req_1" {
			t.Errorf("%d: headers %v", status, r.header)
		}
		if r.header["Content-Type"] != nil || r.header["X-Hop"] != nil || r.header.Get("X-Vision-Route") != "lab@main/eye-1" {
			t.Errorf("%d: headers %v", status, r.header)
		}
	}
}

func TestPathsOfTheUpstream(t *testing.T) {
	for _, test := range []struct {
		name, path, base, model, want string
	}{
		{"chat", chatPath, "/v1", "eye-1", "/v1/chat/completions"},
		{"responses", responsesPath, "/v1/", "eye-1", "/v1/responses"},
		{"counting of responses", responsesPath + "/input_tokens", "/v1", "eye-1", "/v1/responses/input_tokens"},
		{"messages below a bare base", messagesPath, "", "eye-1", "/v1/messages"},
		{"messages below a versioned base", messagesPath + "/count_tokens", "/v1", "eye-1", "/v1/messages/count_tokens"},
		{"gemini under its own name", geminiPath, "/v1beta", "eye-1", "/v1beta/models/eye-1:generateContent"},
		{"gemini under a route", "/gemini/v1beta/models/lab@main/eye-1:streamGenerateContent?alt=sse", "/v1beta", "eye-1", "/v1beta/models/eye-1:streamGenerateContent?alt=sse"},
		{"gemini's own escapes", "/gemini/v1beta/models/e%79e-1:countTokens", "/v1beta", "eye-1", "/v1beta/models/e%79e-1:countTokens"},
		{"a name with a colon", "/gemini/v1beta/models/lab@main%2Feye:7b:countTokens", "/v1beta", "eye:7b", "/v1beta/models/eye%3A7b:countTokens"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got seen
			w := newWorld(t, recording(&got, nil), func(w *world) {
				w.target.Endpoint.BaseURL, w.target.Model = w.upstream.URL+test.base, test.model
			})
			if r := w.post(test.path, "{}", nil); r.status != http.StatusOK || got.target != test.want {
				t.Errorf("status %d; went to %q, want %q", r.status, got.target, test.want)
			}
		})
	}
}

func TestResponsesAreAskedForWithoutEncodingSoThatTheyCanBeRead(t *testing.T) {
	var got seen
	w := newWorld(t, recording(&got, nil), nil)
	w.post(responsesPath, "{}", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip, br") })
	if accept := got.header.Get("Accept-Encoding"); accept != "identity" {
		t.Errorf("Accept-Encoding = %q", accept)
	}
}
