// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/serve/proxy"
)

// never is an upstream that nothing may reach.
func never(t *testing.T) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s reached the upstream", r.URL) }
}

func TestAPathThatIsNotServedIsTheDialectsOwn404(t *testing.T) {
	w := newWorld(t, never(t), nil)
	for _, test := range []struct{ path, want string }{
		{"/openai/v1/embeddings", `{"error":{"message":"the proxy serves nothing at /openai/v1/embeddings (The policy may open further paths in runtime.proxy.passthrough.)","type":"invalid_request_error","param":null,"code":"invalid_tool_input","reason":"NotFound","retryable":false}}`},
		{"/anthropic/v1/messages/batches", `{"type":"error","error":{"type":"not_found_error","message":"the proxy serves nothing at /anthropic/v1/messages/batches (The policy may open further paths in runtime.proxy.passthrough.)","code":"invalid_tool_input","reason":"NotFound","retryable":false}}`},
		{"/gemini/v1beta/models/m:embedContent", `{"error":{"code":404,"message":"the proxy serves nothing at /gemini/v1beta/models/m:embedContent (The policy may open further paths in runtime.proxy.passthrough.)","status":"NOT_FOUND","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_TOOL_INPUT","domain":"visionoperator.dev","metadata":{"code":"invalid_tool_input","reason":"NotFound","retryable":"false"}}]}}`},
	} {
		r := w.post(test.path, "{}", nil)
		if r.status != http.StatusNotFound || r.body != test.want || r.header.Get("X-Should-Retry") != "false" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %s\nwant %s\n%v", test.path, r.status, r.body, test.want, r.header)
		}
	}
	for _, path := range []string{
		"/openai/", "/openai/v2/chat/completions", "/openai/v1/chat", "/openai/v1/chat/completions/", "/openai/v1/chat%2Fcompletions",
		"/openai", "/openai/v1//chat/completions", "/openai//v1/chat/completions", "/openai/v1/./chat/completions", "/openai/v1/x/../chat/completions",
		"/anthropic/messages", "/anthropic/v1/complete", "/gemini/v1/models/m:generateContent", "/gemini/v1beta/models/:generateContent",
	} {
		if r := w.post(path, "{}", nil); r.status != http.StatusNotFound || !json.Valid([]byte(r.body)) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

func TestAPathThatMayLeadElsewhereIsSentNowhere(t *testing.T) {
	w := newWorld(t, never(t), func(w *world) { w.opened = func(_, _, _ string) bool { return true } })
	for _, path := range []string{
		"/openai/v1/files/../x", "/openai/v1/files/%2e%2e/x", "/openai/v1/files/..%2fx", "/openai/v1/files//x", "/openai/v1/files/..;/x", "/openai/v1/files/..;a=b/x",
		"/openai/v1/files/.%3b/x", "/openai/v1/files/;a/x", "/openai/v1/files/%252e%252e/x", "/openai/v1/files/%252e%252e%252fx", "/openai/v1/files/a%255cb", "/openai/v1/files/%25252e%25252e/x",
	} {
		if r := w.do(http.MethodGet, path, nil, nil); r.status != http.StatusNotFound || !strings.Contains(r.body, `"reason":"NotFound"`) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

func TestWhatTheGuardRefusesIsRefusedInTheDialect(t *testing.T) {
	w := newWorld(t, never(t), nil)
	for path, want := range map[string]string{
		chatPath: `{"error":{"message":"`, messagesPath: `{"type":"error","error":{"type":"permission_error"`, geminiPath: `"status":"PERMISSION_DENIED"`,
		"/anthropic": `{"type":"error","error":{"type":"permission_error"`, "/nothing": `{"error":{"kind":"policy_denied"`,
	} {
		if r := w.post(path, "{}", func(r *http.Request) { r.Header.Set("Origin", w.url) }); r.status != http.StatusForbidden || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

// TestWhoSendsABodyThatIsRefusedHearsWhy has clients that read nothing before they
// have sent everything, as many do: more than the buffers between take.
func TestWhoSendsABodyThatIsRefusedHearsWhy(t *testing.T) {
	const size = 32 << 20
	for _, test := range []struct{ name, path, header, want string }{
		{"on a path that is not served", "/openai/v1/embeddings", "Content-Type: application/json", " 404 "},
		{"of a type that is not taken", chatPath, "Content-Type: text/plain", " 415 "},
		{"in an encoding that is not undone", messagesPath, "Content-Type: application/json\r\nContent-Encoding: br", " 415 "},
		{"without room for it", geminiPath, "Content-Type: application/json", " 503 "},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, never(t), nil)
			w.room.TryAcquire(w.options.MaxInFlight)
			conn := w.dial(t)
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\n%s\r\nContent-Length: %d\r\n\r\n", test.path, conn.RemoteAddr(), test.header, size)
			if _, err := io.CopyN(conn, endless{}, size); err != nil {
				t.Fatal(err)
			}
			if first, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(first, test.want) {
				t.Errorf("first line %q, %v", first, err)
			}
		})
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestTheWrongMethodIsRefused(t *testing.T) {
	w := newWorld(t, never(t), nil)
	for _, test := range []struct{ method, path, allow string }{
		{"GET", chatPath, "POST"}, {"DELETE", responsesPath, "POST"}, {"HEAD", messagesPath, "POST"}, {"PUT", geminiPath, "POST"},
		{"POST", "/openai/v1/models", "GET, HEAD"}, {"DELETE", "/anthropic/v1/models/eye-1", "GET, HEAD"}, {"OPTIONS", chatPath, "POST"},
	} {
		if r := w.do(test.method, test.path, nil, nil); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != test.allow {
			t.Errorf("%s %s: %d, Allow %q", test.method, test.path, r.status, r.header.Get("Allow"))
		}
	}
}

func TestWhatTheEngineRefusesIsRefusedInTheDialect(t *testing.T) {
	w := newWorld(t, never(t), func(w *world) {
		w.prepare = func(engine.ModelRequest, *proxy.Prepared) error {
			f := fault.New(fault.QuotaExceeded, "TooOften", "too often").Hint("Wait.")
			f.Retryable, f.RetryAfter = true, 1500*time.Millisecond
			return f
		}
	})
	for path, want := range map[string]string{
		chatPath: `"type":"rate_limit_error"`, responsesPath: `"type":"rate_limit_error"`, messagesPath: `{"type":"error","error":{"type":"rate_limit_error"`,
		geminiPath: `"status":"RESOURCE_EXHAUSTED"`,
	} {
		r := w.post(path, "{}", nil)
		if r.status != http.StatusTooManyRequests || !strings.Contains(r.body, want) || r.header.Get("Retry-After") != "2" || r.header.Get("X-Should-Retry") != "true" {
			t.Errorf("%s: %d %s %v", path, r.status, r.body, r.header)
		}
	}
	if o := w.outcome(); o.Result != string(fault.QuotaExceeded) || o.Reason != "TooOften" || o.Status != 0 {
		t.Errorf("outcome %+v", o)
	}
	w.idle()
}

func TestABodyMustBeDeclaredAsJSON(t *testing.T) {
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {}, nil)
	for declared, want := range map[string]int{
		"application/json": 200, "Application/JSON; charset=iso-8859-1": 200, "application/json;charset=utf-8": 200,
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "text/plain; application/json": 415,
	} {
		r := w.post(messagesPath, "{}", func(r *http.Request) {
			r.Header.Del("Content-Type")
			if declared != "" {
				r.Header.Set("Content-Type", declared)
			}
		})
		if r.status != want || want != 200 && !strings.HasPrefix(r.body, `{"type":"error"`) {
			t.Errorf("%q: %d %s, want %d", declared, r.status, r.body, want)
		}
	}
}

func TestEveryPathIsGuarded(t *testing.T) {
	w := newWorld(t, never(t), func(w *world) { w.opened = func(_, _, _ string) bool { return true } })
	for _, path := range []string{
		chatPath, responsesPath, responsesPath + "/input_tokens", messagesPath, messagesPath + "/count_tokens", geminiPath, "/openai/v1/models",
		"/openai/v1/models/eye-1", "/anthropic/v1/models", "/gemini/v1beta/models", "/openai/v1/files", "/openai/", "/nothing",
	} {
		for name, change := range map[string]func(*http.Request){
			"a foreign Host": func(r *http.Request) { r.Host = "evil.example" },
			"an Origin":      func(r *http.Request) { r.Header.Set("Origin", w.url) },
			"another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		} {
			if r := w.post(path, "{}", change); r.status != http.StatusForbidden || !strings.Contains(r.body, "policy_denied") {
				t.Errorf("%s with %s: %d %s", path, name, r.status, r.body)
			}
		}
	}
}

func TestABodyOverTheLimitIsRefusedWithBothNumbers(t *testing.T) {
	const limit = 100_000
	for _, coding := range []string{"", "gzip", "deflate", "zstd"} {
		for _, test := range []struct {
			size    int
			chunked bool
			want    int
		}{{limit, false, 200}, {limit, true, 200}, {limit + 1, false, 413}, {limit + 1, true, 413}, {50 * limit, false, 413}, {50 * limit, true, 413}} {
			t.Run(fmt.Sprintf("%q %d chunked %v", coding, test.size, test.chunked), func(t *testing.T) {
				w := newWorld(t, func(http.ResponseWriter, *http.Request) {}, func(w *world) { w.options.MaxBodyBytes = func() int64 { return limit } })
				sent := pack(t, coding, strings.Repeat("a", test.size))
				r := w.post(chatPath, sent, func(r *http.Request) {
					if coding != "" {
						r.Header.Set("Content-Encoding", coding)
					}
					if test.chunked {
						r.ContentLength, r.Body = -1, io.NopCloser(io.MultiReader(strings.NewReader(sent)))
					}
				})
				if r.status != test.want {
					t.Fatalf("status %d %s, error %v; want %d", r.status, r.body, r.err, test.want)
				}
				if test.want == 413 && (!strings.Contains(r.body, strconv.Itoa(limit)) || !strings.Contains(r.body, `"budget_exceeded"`)) {
					t.Errorf("body %s", r.body)
				}
				w.idle()
			})
		}
	}
}

func TestABodyThatCannotBeDecodedIsRefused(t *testing.T) {
	w := newWorld(t, never(t), nil)
	whole := pack(t, "gzip", strings.Repeat("text", 1000))
	for name, test := range map[string]struct {
		coding, body string
		want         int
	}{
		"no gzip": {"gzip", "{}", 400}, "cut gzip": {"gzip", whole[:len(whole)-9], 400}, "no zstd": {"zstd", "{}", 400}, "no deflate": {"deflate", "\xff\xff\xff", 400},
		"more behind deflate": {"deflate", pack(t, "deflate", "{}") + "{}", 400},
		"brotli":              {"br", "{}", 415}, "two": {"gzip, zstd", whole, 415}, "the same twice": {"gzip, gzip", whole, 415},
	} {
		r := w.post(chatPath, test.body, func(r *http.Request) { r.Header.Set("Content-Encoding", test.coding) })
		if r.status != test.want {
			t.Errorf("%s: %d %s, want %d", name, r.status, r.body, test.want)
		}
	}
	w.idle()
}

func TestARequestWaitsForRoomAndIsSentAwayWithoutAny(t *testing.T) {
	let := make(chan string)
	w := newWorld(t, events(let), func(w *world) { w.options.MaxInFlight = 64 << 20 })
	w.room.TryAcquire(64<<20 - 100_000)
	for _, chunked := range []bool{false, true} {
		r := w.post(chatPath, strings.Repeat("a", 200_000), func(r *http.Request) {
			if chunked {
				r.ContentLength = -1
			}
		})
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") != "1" || r.header.Get("X-Should-Retry") != "true" {
			t.Errorf("chunked %v: %d %s %v", chunked, r.status, r.body, r.header)
		}
	}
	time.AfterFunc(100*time.Millisecond, func() { w.room.Release(64<<20 - 100_000) })
	close(let)
	if r := w.post(chatPath, strings.Repeat("a", 200_000), nil); r.status != http.StatusOK {
		t.Errorf("with room in time: %d %s", r.status, r.body)
	}
	w.idle()
}

func TestABodyOfAllThatMayBeInFlightFits(t *testing.T) {
	const all = 1 << 20
	for _, size := range []int{all, all + 1} {
		w := newWorld(t, func(http.ResponseWriter, *http.Request) {}, func(w *world) {
			w.options.MaxInFlight, w.room = all, semaphore.NewWeighted(all)
			w.options.MaxBodyBytes = func() int64 { return all }
		})
		r := w.post(chatPath, strings.Repeat("a", size), func(r *http.Request) { r.ContentLength = -1 })
		want, words := 200, ""
		if size > all {
			want, words = 413, "the body may have 1048576 bytes and has more"
		}
		if r.status != want || !strings.Contains(r.body, words) {
			t.Errorf("%d bytes: %d %s %v", size, r.status, r.body, r.err)
		}
	}
}

func TestABodyThatNeverFitsIsRefused(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		w := newWorld(t, never(t), func(w *world) { w.options.MaxInFlight = 1 << 20 })
		r := w.post(chatPath, strings.Repeat("a", 2<<20), func(r *http.Request) {
			if chunked {
				r.ContentLength = -1
			}
		})
		if r.status != http.StatusRequestEntityTooLarge {
			t.Errorf("chunked %v: %d %s %v", chunked, r.status, r.body, r.err)
		}
	}
}

func TestAnUpstreamThatDoesNotAnswer(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hanging.Close() })
	for _, test := range []struct {
		name, url, reason string
		status            int
		retry             string
	}{
		{"a closed port", closed.URL, "Connection", 502, "true"},
		{"no answer in time", "http://" + hanging.Addr().String(), "Timeout", 504, "true"},
		{"a metadata address", "http://169.254.169.254", "AddressRefused", 502, "false"},
		{"a name without an address", "http://nothing.invalid", "HostNotFound", 502, "true"},
		{"a server that speaks no TLS", "https://" + strings.TrimPrefix(plain(t), "http://"), "TLS", 502, "false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, never(t), func(w *world) {
				w.target.Endpoint.BaseURL = test.url
				w.target.Client, err = transport.NewStream(transport.Options{Endpoint: router.Endpoint{Name: "main", URL: test.url, Timeout: "200ms"}})
				if err != nil {
					t.Fatal(err)
				}
			})
			r := w.post(chatPath+"?key="+callerKey, "{}", nil)
			if r.status != test.status || !strings.Contains(r.body, `"reason":"`+test.reason+`"`) || !strings.Contains(r.body, "vision_adapter_unavailable") || r.header.Get("X-Should-Retry") != test.retry {
				t.Errorf("%d %s %v", r.status, r.body, r.header)
			}
			if strings.Contains(r.body, test.url) || strings.Contains(r.body, callerKey) {
				t.Errorf("the refusal tells too much: %s", r.body)
			}
		})
	}
}

// plain is the address of a server without TLS.
func plain(t *testing.T) string {
	s := httptest.NewServer(nil)
	t.Cleanup(s.Close)
	return s.URL
}

func TestAReplyThatIsNoneIsRefusedInTheDialect(t *testing.T) {
	for _, status := range []string{"101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket", "099 Odd\r\nConnection: close\r\nContent-Length: 0"} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\n\r\n")
			_ = conn.Close()
		}, nil)
		r := w.post(messagesPath, "{}", func(r *http.Request) {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		})
		if r.status != http.StatusBadGateway || !strings.HasPrefix(r.body, `{"type":"error"`) {
			t.Errorf("%s: %d %s %v", status, r.status, r.body, r.err)
		}
		if o := w.outcome(); o.Result != "vision_adapter_unavailable" || o.Reason != "Connection" {
			t.Errorf("%s: outcome %+v", status, o)
		}
	}
}

func TestAKeyThatIsNotMountedIsToldAsThat(t *testing.T) {
	w := newWorld(t, never(t), func(w *world) {
		client, err := transport.NewStream(transport.Options{Endpoint: router.Endpoint{Timeout: "1s"}, Auth: &transport.Auth{
			Header: "Authorization", Source: transport.KeyFile("/nothing/here", "team-a/lab"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.target.Client = client
	})
	if r := w.post(chatPath, "{}", nil); r.status != http.StatusFailedDependency || !strings.Contains(r.body, "CredentialNotMounted") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestAnOpenedPathIsSentAsItIs(t *testing.T) {
	var got seen
	w := newWorld(t, recording(&got, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }), func(w *world) {
		w.opened = func(method, path, model string) bool {
			return router.Glob("/openai/v1/files/*", path) || method == "POST" && path == "/gemini/v1beta/models/eye-1:embedContent" && model == "eye-1" ||
				method == "POST" && path == "/openai/v1/uploads"
		}
	})
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/openai/v1/files/a%2Fb?after=x", "/base/v1/files/a%2Fb?after=x"},
		{"DELETE", "/openai/v1/files/a", "/base/v1/files/a"},
		{"HEAD", "/openai/v1/files/a", "/base/v1/files/a"},
		{"POST", "/gemini/v1beta/models/eye-1:embedContent", "/base/v1/models/eye-1:embedContent"},
	} {
		r := w.do(test.method, test.path, nil, nil)
		if r.status != http.StatusAccepted || got.target != test.want || got.method != test.method {
			t.Errorf("%s %s: %d %s; went to %s %s", test.method, test.path, r.status, r.body, got.method, got.target)
		}
	}
	form := "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n" + randomBytes(1, 9000) + "\r\n--x--\r\n"
	r := w.post("/openai/v1/uploads", form, func(r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") })
	if r.status != http.StatusAccepted || got.body != form || got.header.Get("Content-Type") != "multipart/form-data; boundary=x" {
		t.Errorf("an upload: %d %s, %d bytes", r.status, r.body, len(got.body))
	}
	got = seen{}
	for _, path := range []string{"/openai/v1/files/%2e%2e/admin", "/openai/v1/files/..%2fadmin", "/openai/v1/files/a%5c..%5cb", "/openai/v1/files/a%00", "/openai/v1/files/%2F"} {
		if r := w.do("GET", path, nil, nil); r.status != http.StatusNotFound || got.target != "" {
			t.Errorf("%s: %d; went to %q", path, r.status, got.target)
		}
	}
}

func TestABodyThatIsTooLongIsNotAskedForByWhomWaits(t *testing.T) {
	w := newWorld(t, never(t), nil)
	conn := w.dial(t)
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n", chatPath, conn.RemoteAddr())
	if first, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(first, "413") {
		t.Errorf("first line %q", first)
	}
}
