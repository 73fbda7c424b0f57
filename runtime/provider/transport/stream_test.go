// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func streamClient(t *testing.T, o transport.Options, idle time.Duration) *http.Client {
	t.Helper()
	c, err := transport.NewStreamWithIdle(o, idle)
	if err != nil {
		t.Fatalf("making the client: %v", err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestAStreamHasNoBoundOnItsSize(t *testing.T) {
	const size = transport.MaxResponseBytes + 1<<20
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for range size / len(piece) {
			_, _ = w.Write(piece)
		}
	})
	body, status, err := get(t, streamClient(t, transport.Options{Endpoint: endpoint(s.URL)}, time.Minute), s.URL)
	if err != nil || status != http.StatusOK || len(body) != size {
		t.Fatalf("got %d bytes, status %d, error %v; want %d bytes", len(body), status, err, size)
	}
}

func TestAStreamIsGivenAsItCame(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, "text")
	_ = z.Close()
	asked := make(chan http.Header, 2)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	c := streamClient(t, transport.Options{Endpoint: endpoint(s.URL)}, time.Minute)
	body, _, err := get(t, c, s.URL)
	if err != nil || body != packed.String() {
		t.Fatalf("body = %q, error %v", body, err)
	}
	if accept, sent := (<-asked)["Accept-Encoding"]; sent {
		t.Errorf("Accept-Encoding = %q was asked for, and nobody had", accept)
	}
	req, _ := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("{}"))
	req.Header.Set("Accept-Encoding", "br;q=1.0, gzip")
	req.Header.Set("User-Agent", "agent/1")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	got := <-asked
	if got.Get("Accept-Encoding") != "br;q=1.0, gzip" || got.Get("User-Agent") != "agent/1" {
		t.Errorf("upstream saw %v", got)
	}
}

func TestAStreamFollowsNoRedirect(t *testing.T) {
	calls := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	_, status, err := get(t, streamClient(t, transport.Options{Endpoint: endpoint(s.URL)}, time.Minute), s.URL)
	if err != nil || status != http.StatusTemporaryRedirect || calls != 1 {
		t.Fatalf("status %d, error %v, %d calls", status, err, calls)
	}
}

func TestAStreamHasItsEndpointsHeadersAndCredential(t *testing.T) {
	var got http.Header
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	ep := endpoint(s.URL)
	ep.Headers = []router.Header{{Name: "OpenAI-Organization", Value: "org-1"}, {Name: "authorization", Value: "Bearer stolen"}}
	if _, _, err := get(t, streamClient(t, transport.Options{Endpoint: ep, Auth: bearer()}, time.Minute), s.URL); err != nil {
		t.Fatal(err)
	}
	if got.Get("Authorization") != "Bearer "+key || got.Get("Openai-Organization") != "org-1" {
		t.Errorf("upstream saw %v", got)
	}
}

func TestAStreamNeverGoesToAMetadataAddress(t *testing.T) {
	_, _, err := get(t, streamClient(t, transport.Options{Endpoint: endpoint("http://169.254.169.254")}, time.Minute), "http://169.254.169.254/")
	if e, ok := errors.AsType[*transport.Error](err); !ok || e.Failure != transport.Refusal {
		t.Fatalf("error = %v", err)
	}
}

func TestAReplyWithoutHeadersTimesOut(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	ep := endpoint(s.URL)
	ep.Timeout = "50ms"
	_, _, err := get(t, streamClient(t, transport.Options{Endpoint: ep}, time.Minute), s.URL)
	if failure(t, err) != transport.Timeout {
		t.Fatalf("error = %v", err)
	}
}

func TestTheEndpointsTimeoutDoesNotBoundAStream(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 4 {
			_, _ = io.WriteString(w, "event\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	})
	ep := endpoint(s.URL)
	ep.Timeout = "100ms"
	body, _, err := get(t, streamClient(t, transport.Options{Endpoint: ep}, time.Minute), s.URL)
	if err != nil || body != strings.Repeat("event\n", 4) {
		t.Fatalf("body = %q, error %v", body, err)
	}
}

func TestAStreamThatStandsStillTimesOut(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "event\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	body, _, err := get(t, streamClient(t, transport.Options{Endpoint: endpoint(s.URL)}, 50*time.Millisecond), s.URL)
	if body != "event\n" || failure(t, err) != transport.Timeout {
		t.Fatalf("body = %q, error %v", body, err)
	}
}

func TestASlowReaderIsNotAStreamThatStandsStill(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "two\n")
	})
	c := streamClient(t, transport.Options{Endpoint: endpoint(s.URL)}, 50*time.Millisecond)
	resp, err := c.Post(s.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	time.Sleep(150 * time.Millisecond)
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "one\ntwo\n" {
		t.Fatalf("body = %q, error %v", body, err)
	}
}

func TestACancelledStreamIsCancelled(t *testing.T) {
	gone := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "event\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
	resp, err := streamClient(t, transport.Options{Endpoint: endpoint(s.URL)}, time.Minute).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); failure(t, err) != transport.Canceled {
		t.Errorf("error = %v", err)
	}
	_ = resp.Body.Close()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the upstream was not told")
	}
}

func TestAStreamIsOneLineInTheLog(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret reply") })
	log, written := recorder(slog.LevelDebug)
	c := streamClient(t, transport.Options{Endpoint: endpoint(s.URL), Auth: bearer(), Logger: log}, time.Minute)
	if _, _, err := get(t, c, s.URL+"/v1/chat?note=private"); err != nil {
		t.Fatal(err)
	}
	lines, text := written(t)
	if len(lines) != 1 || lines[0]["path"] != "/v1/chat" || lines[0]["received"] != 12.0 {
		t.Errorf("lines = %v", lines)
	}
	for _, hidden := range []string{"private", "secret", key} {
		if strings.Contains(text, hidden) {
			t.Errorf("the log holds %q", hidden)
		}
	}
}
