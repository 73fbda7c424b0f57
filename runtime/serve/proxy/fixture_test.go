// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/semaphore"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// providerKey is the provider's, and callerKey what clients send in every place
// that a key could have.
const (
	providerKey = "sk-provider-5c0b"
	callerKey   = "sk-caller-19ae"
)

// world is a proxy between its clients and one upstream, with an engine that tests decide for.
type world struct {
	t        testing.TB
	url      string
	upstream *httptest.Server
	room     *semaphore.Weighted
	options  proxy.Options
	client   *http.Client

	mu       sync.Mutex
	outcomes []proxy.Outcome
	asked    []engine.ModelRequest

	// prepare changes what is prepared; nil leaves the body as it is.
	prepare func(req engine.ModelRequest, p *proxy.Prepared) error
	opened  func(method, path, model string) bool
	target  engine.Target
}

// dial connects to the proxy, for requests that no client would send; the test's end
// closes the connection.
func (w *world) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// newWorld starts both servers; change may set what differs.
func newWorld(t testing.TB, upstream http.HandlerFunc, change func(*world)) *world {
	t.Helper()
	w := &world{t: t, room: semaphore.NewWeighted(64 << 20), upstream: httptest.NewServer(upstream)}
	t.Cleanup(w.upstream.Close)
	stream, err := transport.NewStream(transport.Options{
		Endpoint: router.Endpoint{Name: "main", URL: w.upstream.URL + "/base/v1", Timeout: "10s"},
		Auth: &transport.Auth{Header: "Authorization", Scheme: "Bearer ", Source: func() (transport.Secret, error) {
			return transport.NewSecret(providerKey), nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.CloseIdleConnections)
	w.target = engine.Target{
		Route: router.Route{Provider: "lab", Endpoint: "main", Model: "eye-1"}, Model: "eye-1", Provider: "team-a/lab",
		Endpoint: exchange.Endpoint{BaseURL: w.upstream.URL + "/base/v1"}, Client: stream,
	}
	w.options = proxy.Options{
		Prepare: w.prepared, Models: models, Hold: w.hold, MaxInFlight: 64 << 20,
		Passthrough: func(_ context.Context, method, path string, _ message.Dialect, model string) (*engine.Target, error) {
			if w.opened == nil || !w.opened(method, path, model) {
				return nil, nil
			}
			return &w.target, nil
		},
		Done: func(o *proxy.Outcome) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.outcomes = append(w.outcomes, *o)
		},
	}
	if change != nil {
		change(w)
	}
	w.start()
	return w
}

// start opens the listener for clients, behind the guard as in the runtime.
func (w *world) start() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	handler := serve.Handler(proxy.Routes(w.options), serve.Options{Guard: guard.Options{Port: l.Addr().(*net.TCPAddr).Port}})
	server := &http.Server{Handler: handler, ReadTimeout: time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	w.url = "http://" + l.Addr().String()
	w.client = &http.Client{Transport: &http.Transport{DisableCompression: true}}
	w.t.Cleanup(func() {
		w.client.CloseIdleConnections()
		_ = server.Close()
		<-done
	})
}

// prepared is the engine's part.
func (w *world) prepared(_ context.Context, req engine.ModelRequest) (*proxy.Prepared, error) {
	w.mu.Lock()
	w.asked = append(w.asked, req)
	w.mu.Unlock()
	body, err := message.Splice(req.Body, nil)
	if err != nil {
		return nil, err
	}
	p := &proxy.Prepared{Target: w.target, Body: body, Record: &engine.Record{Route: "lab@main/eye-1", Form: router.InjectionImage}, Preparation: &fake{}}
	if w.prepare != nil {
		if err := w.prepare(req, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (w *world) hold(ctx context.Context, n int64) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if n > w.options.MaxInFlight {
		f := fault.New(fault.BudgetExceeded, "BodyTooLarge", "the request has %d bytes; the runtime holds %d", n, w.options.MaxInFlight)
		f.HTTPStatus = fault.StatusTooLarge
		return nil, f
	}
	if err := w.room.Acquire(ctx, n); err != nil {
		f := fault.New(fault.VisionAdapterUnavailable, "Busy", "no room").Because(err)
		f.HTTPStatus, f.Retryable, f.RetryAfter = http.StatusServiceUnavailable, true, time.Second
		return nil, f
	}
	return func() { w.room.Release(n) }, nil
}

// outcome is what came of the one request so far.
func (w *world) outcome() proxy.Outcome {
	w.t.Helper()
	for range 200 {
		w.mu.Lock()
		n := len(w.outcomes)
		if n > 0 {
			o := w.outcomes[0]
			w.mu.Unlock()
			return o
		}
		w.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatal("no request has ended")
	return proxy.Outcome{}
}

// idle waits until nothing is held any more.
func (w *world) idle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := w.room.Acquire(ctx, w.options.MaxInFlight); err != nil {
		w.t.Fatal("what was in flight was not let go")
	}
	w.room.Release(w.options.MaxInFlight)
}

// fake is a Preparation that tests decide for.
type fake struct {
	header   http.Header
	tap      io.WriteCloser
	retry    func(status int, reply []byte) (*message.Spliced, bool)
	released func()
}

func (f *fake) Release() {
	if f.released != nil {
		f.released()
	}
}
func (f *fake) Tap(string) io.WriteCloser { return f.tap }
func (f *fake) Header() http.Header       { return f.header }

func (f *fake) MayRetry(status int) bool { return f.retry != nil && status == http.StatusBadRequest }

func (f *fake) Retry(status int, reply []byte) (*message.Spliced, bool) {
	if f.retry == nil {
		return nil, false
	}
	return f.retry(status, reply)
}

// reply is what a client got.
type reply struct {
	status  int
	header  http.Header
	trailer http.Header
	body    string
	err     error // of reading the body
}

// post sends a JSON body.
func (w *world) post(path, body string, change func(*http.Request)) reply {
	w.t.Helper()
	return w.do(http.MethodPost, path, strings.NewReader(body), change)
}

func (w *world) do(method, path string, body io.Reader, change func(*http.Request)) reply {
	w.t.Helper()
	req, err := http.NewRequest(method, w.url+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if change != nil {
		change(req)
	}
	resp, err := w.client.Transport.RoundTrip(req) // redirects are replies
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, resp.Trailer, string(got), err}
}

// models are what every dialect serves.
func models(message.Dialect) ([]engine.Served, error) {
	served := func(provider, model string, facts *router.Model) engine.Served {
		return engine.Served{Name: model, Route: router.Route{Provider: provider, Endpoint: "main", Model: model}, Provider: "team-a/" + provider, Model: facts}
	}
	return []engine.Served{
		served("lab", "eye-1", &router.Model{Name: "eye-1", ContextWindowTokens: 128000, MaxOutputTokens: 4096}),
		served("lab", "org/text-1", &router.Model{Name: "org/text-1"}),
		served("cloud", "eye-1", nil),
	}, nil
}

const (
	chatPath      = "/openai/v1/chat/completions"
	responsesPath = "/openai/v1/responses"
	messagesPath  = "/anthropic/v1/messages"
	geminiPath    = "/gemini/v1beta/models/eye-1:generateContent"
)
