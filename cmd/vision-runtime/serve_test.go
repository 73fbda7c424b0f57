// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// TestThePagesOfABrowserReachNoPath walks every path that is served, and one
// that is not.
func TestThePagesOfABrowserReachNoPath(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	paths := []string{"/", "/nothing/here"}
	for _, route := range s.app.routes(true) {
		path := route.Path
		if below, proxied := asked[path]; proxied {
			path = below
		}
		paths = append(paths, path)
	}
	if len(paths) != 13 {
		t.Fatalf("%q are walked", paths)
	}
	attacks := map[string]func(*http.Request){
		"a rebound name":        func(r *http.Request) { r.Host = "evil.example:" + port(s) },
		"no port":               func(r *http.Request) { r.Host = "127.0.0.1" },
		"the health port":       func(r *http.Request) { r.Host = s.healthAt.String() },
		"an origin":             func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"an opaque origin":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		"our own origin":        func(r *http.Request) { r.Header.Set("Origin", s.url("")) },
		"another site":          func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port's script": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	}
	for _, path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			for name, attack := range attacks {
				r, err := http.NewRequest(method, s.url(path), strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				media, _ := taken(path)
				r.Header.Set("Content-Type", media)
				r.Header.Set("Accept", "application/json, text/event-stream")
				attack(r)
				got := do(t, r)
				if got.status != http.StatusForbidden {
					t.Errorf("%s %s with %s: status %d", method, path, name, got.status)
				} else if method != "HEAD" && got.kind(t) != "policy_denied" {
					t.Errorf("%s %s with %s: %s", method, path, name, got.body)
				}
				if got.header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s %s opens itself to pages", method, path)
				}
			}
		}
		media, most := taken(path)
		// What a page may send without asking first, and what another path takes.
		foreign := []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "image/png", "application/json"}
		for _, sent := range foreign {
			if sent == media {
				continue
			}
			r, _ := http.NewRequest(http.MethodPost, s.url(path), strings.NewReader("{}"))
			r.Header["Content-Type"] = []string{sent}
			if got := do(t, r); got.status != http.StatusUnsupportedMediaType {
				t.Errorf("POST %s as %q: status %d", path, sent, got.status)
			}
		}
		for _, length := range []int64{most + 1, -1} { // -1: chunked
			r, _ := http.NewRequest(http.MethodPost, s.url(path), io.LimitReader(zeros{}, most+1))
			r.ContentLength = length
			r.Header.Set("Content-Type", media)
			got := do(t, r)
			if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(string(got.body), `"reason":"BodyTooLarge"`) {
				t.Errorf("POST %s with more than %d bytes: status %d, %s", path, most, got.status, got.body)
			}
		}
	}
	star, _ := http.NewRequest(http.MethodOptions, s.url(""), nil)
	star.URL.Opaque, star.Host = "*", "evil.example:"+port(s)
	if got := do(t, star); got.status != http.StatusForbidden {
		t.Errorf("OPTIONS * with a rebound name: status %d", got.status)
	}
	if n := w.upstream.calls(); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
}

// asked are paths of the model proxy, by the routes that serve them.
var asked = map[string]string{
	"/openai/": "/openai/v1/chat/completions", "/anthropic/": "/anthropic/v1/messages", "/gemini/": "/gemini/v1beta/models/eye-1:generateContent",
}

// taken is the type of body that a path takes, and the most bytes of it.
func taken(path string) (media string, most int64) {
	if path == "/v1/images" {
		return "image/png", 20 << 20 // the profile's limits.image.maxBytes
	}
	if path == "/v1/review" || path == "/v1/inject" || slices.Contains(slices.Collect(maps.Values(asked)), path) {
		return "application/json", 64 << 20 // the profile's limits.request.maxBodyBytes
	}
	return "application/json", 1 << 20
}

// zeros yields zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func port(s *server) string {
	_, p, _ := strings.Cut(s.agentsAt.String(), ":")
	return p
}

func TestEveryRouteIsDescribedAndEveryDescribedPathIsARoute(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]any
	}
	got := get(t, s.url("/openapi.json"))
	if err := json.Unmarshal(got.body, &doc); err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Fatalf("OpenAPI %q: %v", doc.OpenAPI, err)
	}
	served := map[string]bool{}
	for _, route := range s.app.routes(false) { // the model proxy's are described by the vendors
		served[route.Path] = true
	}
	delete(served, "/mcp") // described by MCP itself
	if described := slices.Sorted(maps.Keys(doc.Paths)); !slices.Equal(described, slices.Sorted(maps.Keys(served))) {
		t.Errorf("described: %q; served: %q", described, slices.Sorted(maps.Keys(served)))
	}
	for path, methods := range doc.Paths {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			r, _ := http.NewRequest(strings.ToUpper(method), s.url(path), strings.NewReader("{}"))
			media, _ := taken(path)
			r.Header.Set("Content-Type", media)
			status := do(t, r).status
			if described := methods[method] != nil; described == (status == http.StatusMethodNotAllowed) {
				t.Errorf("%s %s is described: %t; status %d", method, path, described, status)
			}
		}
	}
}

func TestUnknownPathsAndMethodsAreFaultsInJSON(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	if got := get(t, s.url("/v1/nothing")); got.status != 404 || got.fault(t)["reason"] != "NotFound" {
		t.Errorf("unknown path: %d %s", got.status, got.body)
	}
	if got := get(t, s.url("/v1/view-image")); got.status != 405 || got.fault(t)["reason"] != "MethodNotAllowed" || got.header.Get("Allow") != "POST" {
		t.Errorf("wrong method: %d %s", got.status, got.body)
	}
	if got := post(t, "http://"+s.healthAt.String()+"/healthz", nil); got.status != 405 {
		t.Errorf("wrong method on the health listener: %d %s", got.status, got.body)
	}
	if got := get(t, "http://"+s.healthAt.String()+"/v1/view-image"); got.status != 404 {
		t.Errorf("the agents' API on the health listener: %d", got.status)
	}
}

func TestProbesAndMetricsTellTheState(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start()
	health := "http://" + s.healthAt.String()
	for path, want := range map[string]int{"/healthz": 200, "/startupz": 200, "/readyz": 503, "/metrics": 200} {
		if got := get(t, health+path); got.status != want {
			t.Errorf("%s without a document: %d; want %d", path, got.status, want)
		}
	}
	w.publish(nil)
	eventually(t, "the runtime is ready", func() bool { return get(t, health+"/readyz").status == 200 })
	path := w.picture("a.png")
	view(t, s, path, "look")
	view(t, s, path, "look")
	view(t, s, "/etc/passwd", "look")
	upload(t, s, []byte("no image"), 8)
	text := string(get(t, health+"/metrics").body)
	for _, line := range []string{
		`vision_view_requests_total{outcome="observed"} 1`, `vision_view_requests_total{outcome="cached"} 1`,
		`vision_view_requests_total{outcome="policy_denied"} 1`, "vision_router_loaded 1", "vision_router_failing 0", "vision_views_in_flight 0",
		`vision_upstream_attempt_duration_seconds_count{endpoint="team-a/lab@main",outcome="answered"} 1`,
		`vision_upstream_circuit_open{endpoint="team-a/lab@main"} 0`, "vision_cache_entries 1", "vision_view_fallbacks_total 0",
		`vision_upload_requests_total{outcome="invalid_tool_input"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestMetricsTellOfFallbacksAndOfWhatEndpointsFailedWith(t *testing.T) {
	w := newWorld(t)
	w.publish(func(d *router.Document) {
		d.Providers[0].Endpoints = append(d.Providers[0].Endpoints, router.Endpoint{Name: "down", URL: "http://127.0.0.1:1/v1", Timeout: "30s"})
		d.Profiles[0].DefaultModel, d.Profiles[0].FallbackModels = "lab@down/eye-1", []string{"lab@main/eye-1"}
	})
	s, _ := w.start()
	path := w.picture("a.png")
	for range 2 { // the second is cached, unless the first is asked again
		if got := view(t, s, path, "look"); got.status != http.StatusOK {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
	}
	text := string(get(t, "http://"+s.healthAt.String()+"/metrics").body)
	for _, line := range []string{
		"vision_view_fallbacks_total 1", `vision_view_requests_total{outcome="cached"} 1`,
		`vision_upstream_attempt_duration_seconds_count{endpoint="team-a/lab@down",outcome="connection"} 5`,
		`vision_upstream_attempt_duration_seconds_count{endpoint="team-a/lab@main",outcome="answered"} 1`,
		`vision_upstream_circuit_open{endpoint="team-a/lab@down"} 1`, `vision_upstream_circuit_open{endpoint="team-a/lab@main"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestTheRouterStatusHoldsNothingSecret(t *testing.T) {
	w := newWorld(t)
	w.publish(func(doc *router.Document) {
		doc.Providers[0].Endpoints[0].Headers = []router.Header{{Name: "X-Team", Value: "hush-hush"}}
	})
	s, _ := w.start()
	got := get(t, s.url("/v1/router"))
	status := got.object(t)
	if status["loaded"] != true || status["profile"] != "policy/default" || status["profileFound"] != true || status["lastError"] != nil {
		t.Errorf("status is %s", got.body)
	}
	if _, err := time.Parse(time.RFC3339, status["loadedAt"].(string)); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{key, "hush-hush", w.upstream.server.URL, w.secrets, w.router} {
		if strings.Contains(string(got.body), secret) {
			t.Errorf("%q is told: %s", secret, got.body)
		}
	}
}

func TestRequestsInFlightFinishAndNewOnesAreRefusedAfterTheSignal(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	hold := make(chan struct{})
	w.upstream.set(func(u *upstream) { u.hold = hold })
	s, _ := w.start()
	path := w.picture("a.png")
	inFlight := make(chan answer)
	go func() { inFlight <- view(t, s, path, "look") }()
	eventually(t, "the model is called", func() bool { return w.upstream.calls() == 1 })

	ended := make(chan error)
	go func() { ended <- s.shutdown(20 * time.Second) }()
	eventually(t, "new connections are refused", func() bool {
		_, err := http.Get(s.url("/v1/router"))
		return err != nil
	})
	if status := get(t, "http://"+s.healthAt.String()+"/healthz").status; status != 200 {
		t.Errorf("while draining healthz is %d", status)
	}
	close(hold)
	if got := <-inFlight; got.status != http.StatusOK {
		t.Errorf("the request in flight got %d: %s", got.status, got.body)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestARequestThatDoesNotFinishInTimeIsCancelledAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	w.upstream.set(func(u *upstream) { u.hold = make(chan struct{}) })
	s, _ := w.start()
	path := w.picture("a.png")
	answered := make(chan answer)
	go func() { answered <- view(t, s, path, "look") }()
	eventually(t, "the model is called", func() bool { return w.upstream.calls() == 1 })
	if err := s.shutdown(50 * time.Millisecond); err == nil {
		t.Error("shutdown does not say that a request did not finish")
	}
	got := <-answered
	if f := got.fault(t); f["reason"] != "Canceled" || f["retryable"] != true || got.object(t)["visual_reference"] == nil {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

func TestARequestThatCannotBeCancelledIsCutOff(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	conn, err := net.Dial("tcp", s.agentsAt.String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// An upload that waits for bytes does not see that it was cancelled.
	fmt.Fprintf(conn, "POST /v1/images HTTP/1.1\r\nHost: %s\r\nContent-Type: image/png\r\nContent-Length: 9999\r\nExpect: 100-continue\r\n\r\n", s.agentsAt)
	const asked = "HTTP/1.1 100 Continue\r\n\r\n"
	if _, err := io.ReadFull(conn, make([]byte, len(asked))); err != nil {
		t.Fatal(err)
	}
	if err := s.shutdown(50 * time.Millisecond); err == nil {
		t.Error("shutdown does not say that a request was cut off")
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil || n != 0 {
		t.Errorf("the upload was answered: %v", err)
	}
}
