// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// withProxy is a document whose policy has the model proxy.
func withProxy(doc *router.Document) { doc.Profiles[0].Runtime.Proxy = &router.Proxy{} }

func TestAModelRequestGoesUpAsItCame(t *testing.T) {
	w := newWorld(t)
	w.publish(withProxy)
	s, log := w.start()
	body := []byte(`{ "model":"text-1", "messages":[{"role":"user","content":"private words"}],"x_unknown":1.50e3 }`)
	r, _ := http.NewRequest(http.MethodPost, s.url("/openai/v1/chat/completions?key=sk-of-the-agent"), bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-of-the-agent")
	got := do(t, r)
	if got.status != http.StatusOK || got.object(t)["id"] != "c1" || got.header.Get("X-Vision-Route") != "lab@main/text-1" {
		t.Fatalf("status %d, %s, %v", got.status, got.body, got.header)
	}
	if w.upstream.calls() != 1 || !bytes.Equal(w.upstream.bodies[0], body) || w.upstream.keys[0] != "Bearer "+key {
		t.Errorf("the upstream got %q with %q", w.upstream.bodies, w.upstream.keys)
	}
	routed := post(t, s.url("/openai/v1/chat/completions"), []byte(`{"model":"lab@main/text-1","messages":[]}`))
	if want := `{"model":"text-1","messages":[]}`; routed.status != http.StatusOK || string(w.upstream.bodies[1]) != want {
		t.Errorf("status %d; the upstream got %s", routed.status, w.upstream.bodies[1])
	}
	metrics := string(get(t, "http://"+s.healthAt.String()+"/metrics").body)
	for _, line := range []string{
		`vision_proxy_requests_total{dialect="openai-chat",operation="generate",outcome="answered"} 2`, `vision_proxy_upstream_replies_total{dialect="openai-chat",status="2xx"} 2`,
		`gen_ai_client_operation_duration_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="openai"} 2`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no metric %s", line)
		}
	}
	if text := log.String(); !strings.Contains(text, `"msg":"model request answered"`) || strings.Contains(text, "private words") || strings.Contains(text, "sk-") {
		t.Errorf("the log tells too little, or too much:\n%s", text)
	}
}

func TestModelsAreListedFromTheRouter(t *testing.T) {
	w := newWorld(t)
	w.publish(withProxy)
	s, _ := w.start()
	if got := get(t, s.url("/openai/v1/models")); got.status != http.StatusOK || !strings.Contains(string(got.body), `"id":"eye-1"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := get(t, s.url("/anthropic/v1/models")); got.status != http.StatusOK || !strings.Contains(string(got.body), `"data":[]`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAPolicyWithoutAProxyRefusesInEachDialect(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	for path, want := range map[string]string{
		"/openai/v1/chat/completions": `"code":"policy_denied","reason":"ProxyDisabled"`, "/openai/v1/responses": `"code":"policy_denied","reason":"ProxyDisabled"`,
		"/anthropic/v1/messages": `{"type":"error","error":{"type":"permission_error"`, "/gemini/v1beta/models/eye-1:countTokens": `"status":"PERMISSION_DENIED"`,
		"/openai/v1/files": `"ProxyDisabled"`,
	} {
		if got := post(t, s.url(path), []byte(`{"model":"eye-1","messages":[]}`)); got.status != http.StatusForbidden || !strings.Contains(string(got.body), want) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if n := w.upstream.calls(); n != 0 {
		t.Errorf("the upstream was called %d times", n)
	}
}

func TestNoProxyServesNone(t *testing.T) {
	w := newWorld(t)
	w.publish(withProxy)
	cfg := w.config()
	cfg.noProxy = true
	s, err := start(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.shutdown(time.Second) })
	for _, path := range []string{"/openai/v1/chat/completions", "/anthropic/v1/messages", "/gemini/v1beta/models/eye-1:generateContent"} {
		if got := post(t, s.url(path), []byte(`{"model":"eye-1","messages":[]}`)); got.status != http.StatusNotFound || got.fault(t)["reason"] != "NotFound" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestThePolicyBoundsModelRequests(t *testing.T) {
	w := newWorld(t)
	w.publish(func(doc *router.Document) {
		withProxy(doc)
		doc.Profiles[0].Limits.Request.MaxBodyBytes = 1000
	})
	s, _ := w.start()
	if got := post(t, s.url("/openai/v1/chat/completions"), make([]byte, 1001)); got.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(got.body), "1000 bytes and has 1001 bytes") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestAStreamIsCutOffBehindTheDrain ends a runtime while a reply goes on: the client
// sees that it is not whole, and the upstream that nobody reads it any more.
func TestAStreamIsCutOffBehindTheDrain(t *testing.T) {
	w := newWorld(t)
	gone := make(chan struct{})
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	t.Cleanup(endless.Close)
	w.publish(func(doc *router.Document) {
		withProxy(doc)
		doc.Providers[0].Endpoints[0].URL = endless.URL + "/v1"
	})
	s, _ := w.start()
	resp, err := http.Post(s.url("/openai/v1/chat/completions"), "application/json", strings.NewReader(`{"model":"text-1","messages":[],"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	if first, err := lines.ReadString('\n'); err != nil || first != "data: {}\n" {
		t.Fatalf("%q, %v", first, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.shutdown(50 * time.Millisecond) }()
	if rest, err := io.ReadAll(lines); err == nil {
		t.Errorf("the stream was ended as if it were whole, behind %q", rest)
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the upstream was not told")
	}
	if err := <-ended; err == nil {
		t.Error("the shutdown does not tell that a request did not end")
	}
}
