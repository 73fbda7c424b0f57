// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/serve/proxy"
)

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// open sends a request and returns the reply before its body is read.
func (w *world) open(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader("{}"))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return w.client.Do(req)
}

// events writes events, each when it is let.
func events(let <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for event := range let {
			_, _ = io.WriteString(w, event)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func TestAStreamArrivesEventByEvent(t *testing.T) {
	for _, path := range []string{chatPath, responsesPath, messagesPath, "/gemini/v1beta/models/eye-1:streamGenerateContent?alt=sse"} {
		let := make(chan string)
		w := newWorld(t, events(let), nil)
		resp, err := w.open(t.Context(), path) // the headers come before any event
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			want := fmt.Sprintf("data: %d\n", i)
			let <- want
			if got, err := lines.ReadString('\n'); err != nil || got != want {
				t.Fatalf("%s: event %q, error %v", path, got, err)
			}
		}
		close(let)
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("%s: %q, error %v behind the last event", path, rest, err)
		}
		_ = resp.Body.Close()
		if o := w.outcome(); o.Result != proxy.Answered || o.Status != 200 || o.Received != 24 || o.Sent != 2 || o.Answering <= 0 {
			t.Errorf("%s: outcome %+v", path, o)
		}
	}
}

func TestTrailersPass(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Cost, X-Late")
		_, _ = io.WriteString(w, "body")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-Cost", "7")
		w.Header().Set("X-Late", "yes")
		w.Header().Set(http.TrailerPrefix+"X-Unannounced", "1")
	}, nil)
	r := w.post(chatPath, "{}", nil)
	if r.err != nil || r.body != "body" || r.trailer.Get("X-Cost") != "7" || r.trailer.Get("X-Late") != "yes" || r.trailer.Get("X-Unannounced") != "1" {
		t.Errorf("body %q, trailer %v, error %v", r.body, r.trailer, r.err)
	}
}

func TestAClientThatGoesAwayCancelsTheUpstream(t *testing.T) {
	for _, begun := range []bool{false, true} {
		gone := make(chan struct{})
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if begun {
				_, _ = io.WriteString(w, "data: 1\n")
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
			close(gone)
		}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		if begun {
			resp, err := w.open(ctx, chatPath)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
		} else {
			time.AfterFunc(50*time.Millisecond, cancel)
			_, _ = w.open(ctx, chatPath)
		}
		cancel()
		select {
		case <-gone:
		case <-time.After(patience):
			t.Fatalf("begun %v: the upstream was not told", begun)
		}
		if o := w.outcome(); o.Result != proxy.Canceled {
			t.Errorf("begun %v: outcome %+v", begun, o)
		}
		w.idle()
	}
}

func TestASlowReaderHoldsTheUpstreamBack(t *testing.T) {
	var written atomic.Int64
	stuck := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		defer close(stuck)
		piece := make([]byte, 64<<10)
		for written.Load() < 256<<20 {
			if _, err := w.Write(piece); err != nil {
				return
			}
			written.Add(int64(len(piece)))
		}
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := w.open(ctx, chatPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	before := int64(-1)
	for before != written.Load() {
		before = written.Load()
		time.Sleep(300 * time.Millisecond)
	}
	if before >= 64<<20 {
		t.Errorf("the upstream wrote %d bytes that nobody reads", before)
	}
	cancel()
	select {
	case <-stuck:
	case <-time.After(patience):
		t.Fatal("the upstream still writes")
	}
}

func TestAStreamThatBreaksOffIsNotEndedCleanly(t *testing.T) {
	for _, length := range []bool{false, true} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if length {
				w.Header().Set("Content-Length", "1000")
			}
			_, _ = io.WriteString(w, "data: 1\n")
			_ = http.NewResponseController(w).Flush()
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}, nil)
		r := w.post(chatPath, "{}", nil)
		if r.err == nil {
			t.Errorf("length %v: the reply %q looks whole", length, r.body)
		}
		if o := w.outcome(); o.Result != proxy.Broken {
			t.Errorf("length %v: outcome %+v", length, o)
		}
		w.idle()
	}
}

func TestAReplyMayTakeLongerThanTheServerReads(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for range 3 { // the server reads for one second
			_, _ = io.WriteString(w, ".")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(600 * time.Millisecond)
		}
	}, nil)
	if r := w.post(chatPath, "{}", nil); r.err != nil || r.body != "..." {
		t.Errorf("body %q, error %v", r.body, r.err)
	}
}

func TestABodyMayTakeLongerThanTheServerReads(t *testing.T) {
	var got seen
	w := newWorld(t, recording(&got, nil), nil)
	from, to := io.Pipe()
	go func() {
		for range 4 {
			time.Sleep(500 * time.Millisecond)
			_, _ = to.Write(make([]byte, 1000))
		}
		_ = to.Close()
	}()
	r := w.do(http.MethodPost, chatPath, from, nil)
	if r.err != nil || r.status != 200 || len(got.body) != 4000 {
		t.Errorf("status %d, error %v; the upstream got %d bytes", r.status, r.err, len(got.body))
	}
}

func TestAnInformationalReplyPasses(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusContinue)
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "ok")
	}, nil)
	conn := w.dial(t)
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n", chatPath, conn.RemoteAddr())
	lines := bufio.NewReader(conn)
	if first, _ := lines.ReadString('\n'); !strings.Contains(first, "100 Continue") {
		t.Fatalf("first line %q", first)
	}
	_, _ = io.WriteString(conn, "{}")
	all, _ := io.ReadAll(lines)
	hints, rest, _ := strings.Cut(string(all), "HTTP/1.1 200 OK")
	if !strings.Contains(hints, "103 Early Hints") || strings.Contains(hints, "100 Continue") || !strings.Contains(hints, "Link: </x>") || strings.Contains(rest, "Link:") || !strings.HasSuffix(rest, "ok") {
		t.Errorf("got %q", all)
	}
}

func TestWhoSpeaksHTTP10GetsNoInformationalReply(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "ok")
	}, nil)
	conn := w.dial(t)
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.0\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", chatPath, conn.RemoteAddr())
	if all, _ := io.ReadAll(conn); !strings.HasPrefix(string(all), "HTTP/1.0 200 OK") || !strings.HasSuffix(string(all), "ok") {
		t.Errorf("got %q", all)
	}
}

// TestABadRequestIsPassedOnAsItComes holds the rest of a refusal back: nobody waits
// for it where there is no other body to send.
func TestABadRequestIsPassedOnAsItComes(t *testing.T) {
	rest := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-rest
		_, _ = io.WriteString(w, "second")
	}, nil)
	end := sync.OnceFunc(func() { close(rest) })
	t.Cleanup(end)
	stuck := time.AfterFunc(5*time.Second, end)
	resp, err := w.client.Post(w.url+chatPath, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	first := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, first); err != nil || !stuck.Stop() {
		t.Errorf("%q came with the rest, or not at all: %v", first, err)
	}
	end()
	if all, err := io.ReadAll(resp.Body); err != nil || string(all) != "second" {
		t.Errorf("then %q, %v", all, err)
	}
}

func TestWhatTheRuntimeSaysNoUpstreamSays(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(proxy.HeaderRoute, "forged")
		w.Header().Set(proxy.HeaderInjection, "form=image, injected=1")
	}, nil)
	if r := w.post(chatPath, "{}", nil); r.header.Get(proxy.HeaderRoute) != "lab@main/eye-1" || r.header[proxy.HeaderInjection] != nil {
		t.Errorf("got %v", r.header)
	}
}

// learning is a tap that keeps what it gets.
type learning struct {
	strings.Builder
	closed atomic.Bool
}

func (l *learning) Close() error {
	l.closed.Store(true)
	return nil
}

func TestTheTapGetsEveryByteOfAReply(t *testing.T) {
	answer := randomBytes(5, 200_000)
	for _, coding := range []string{"", "gzip"} {
		tap := &learning{}
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			if coding != "" {
				w.Header().Set("Content-Encoding", coding)
			}
			_, _ = io.WriteString(w, answer)
		}, func(w *world) {
			w.prepare = func(_ engine.ModelRequest, p *proxy.Prepared) error {
				p.Preparation = &fake{tap: tap}
				return nil
			}
		})
		if r := w.post(responsesPath, "{}", nil); r.body != answer {
			t.Fatal("the reply is another")
		}
		w.outcome()
		if coding == "" && (tap.String() != answer || !tap.closed.Load()) {
			t.Errorf("the tap got %d bytes of %d, closed %v", tap.Len(), len(answer), tap.closed.Load())
		}
		if coding != "" && tap.Len() > 0 {
			t.Error("the tap got what it cannot read")
		}
	}
}

func TestABodyIsLetGoWhenTheUpstreamHasIt(t *testing.T) {
	var released atomic.Int64
	let := make(chan string)
	w := newWorld(t, events(let), func(w *world) {
		w.prepare = func(_ engine.ModelRequest, p *proxy.Prepared) error {
			p.Preparation = &fake{released: func() { released.Add(1) }}
			return nil
		}
	})
	resp, err := w.open(t.Context(), chatPath)
	if err != nil {
		t.Fatal(err)
	}
	w.idle() // while the reply comes
	if released.Load() != 1 {
		t.Errorf("released %d times", released.Load())
	}
	close(let)
	_, _ = io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if o := w.outcome(); o.Sent != 2 || released.Load() != 1 {
		t.Errorf("released %d times, %d bytes were sent", released.Load(), o.Sent)
	}
}

// TestABodyThatTheUpstreamDoesNotReadIsHeld answers before the body has come: it is
// read while the reply comes, or never.
func TestABodyThatTheUpstreamDoesNotReadIsHeld(t *testing.T) {
	let := make(chan struct{})
	var got []byte
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.EnableFullDuplex()
		_, _ = io.WriteString(w, "early")
		_ = control.Flush()
		<-let
		got, _ = io.ReadAll(r.Body)
	}, nil)
	sent := randomBytes(3, 32<<20) // more than sockets take
	type answer struct {
		resp *http.Response
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		resp, err := w.client.Post(w.url+chatPath, "application/json", strings.NewReader(sent))
		answers <- answer{resp, err}
	}()
	a := <-answers
	if a.err != nil {
		t.Fatal(a.err)
	}
	if w.room.TryAcquire(w.options.MaxInFlight) {
		t.Error("the body was let go before the upstream had it")
	}
	close(let)
	body, err := io.ReadAll(a.resp.Body)
	_ = a.resp.Body.Close()
	if err != nil || string(body) != "early" || string(got) != sent {
		t.Errorf("body %q, error %v; the upstream got %d bytes", body, err, len(got))
	}
	w.outcome()
	w.idle()
}

func TestWhatABodyNeedsSaidIsAddedToTheClientsHeaders(t *testing.T) {
	var got seen
	w := newWorld(t, recording(&got, nil), func(w *world) {
		w.prepare = func(_ engine.ModelRequest, p *proxy.Prepared) error {
			p.Preparation = &fake{header: http.Header{"Anthropic-Beta": {"ours", "theirs"}, "X-New": {"1"}}}
			return nil
		}
	})
	w.post(messagesPath, "{}", func(r *http.Request) { r.Header["Anthropic-Beta"] = []string{"a, theirs", "b"} })
	if beta := strings.Join(got.header["Anthropic-Beta"], "|"); beta != "a, theirs|b|ours" || got.header.Get("X-New") != "1" {
		t.Errorf("the upstream got %v", got.header)
	}
}

func TestARefusedBodyIsReplacedOnce(t *testing.T) {
	refusal := `{"error":"signature"}` + strings.Repeat(" ", 100<<10)
	for _, test := range []struct {
		name        string
		other       bool // there is another body
		coding      string
		want        string
		wantStatus  int
		wantCalls   int
		wantHandled string
	}{
		{"with another body", true, "", "fine", 200, 2, "{}other"},
		{"with another body, compressed", true, "gzip", "fine", 200, 2, "{}other"},
		{"without another body", false, "", refusal, 400, 1, "{}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var bodies []string
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(body))
				if len(bodies) > 1 {
					_, _ = io.WriteString(w, "fine")
					return
				}
				if test.coding != "" {
					w.Header().Set("Content-Encoding", test.coding)
				}
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, pack(t, test.coding, refusal))
			}, func(w *world) {
				w.prepare = func(req engine.ModelRequest, p *proxy.Prepared) error {
					p.Preparation = &fake{retry: func(status int, reply []byte) (*message.Spliced, bool) {
						if status != 400 || !strings.HasPrefix(string(reply), `{"error":"signature"}`) || len(reply) > 64<<10 {
							t.Errorf("asked for status %d with %d bytes", status, len(reply))
						}
						p.Record.SignaturesDropped = test.other
						body, err := message.Splice(req.Body, []message.Edit{{Span: message.Span{Start: 2, End: 2}, Segments: []message.Segment{{Text: []byte("other")}}}})
						return body, test.other && err == nil
					}}
					return nil
				}
			})
			r := w.post(chatPath, "{}", nil)
			if r.err != nil || r.status != test.wantStatus || r.body != test.want {
				t.Errorf("status %d, %d bytes, error %v", r.status, len(r.body), r.err)
			}
			if got := strings.Join(bodies, ""); len(bodies) != test.wantCalls || got != strings.Repeat("{}", test.wantCalls-1)+test.wantHandled {
				t.Errorf("the upstream got %q", bodies)
			}
			if o := w.outcome(); o.Retried != test.other {
				t.Errorf("outcome %+v", o)
			}
			if dropped := strings.Contains(r.header.Get(proxy.HeaderInjection), "signatures=dropped"); dropped != test.other {
				t.Errorf("%s: %q", proxy.HeaderInjection, r.header.Get(proxy.HeaderInjection))
			}
		})
	}
}
