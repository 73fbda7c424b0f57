// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// key is the provider's key in every test; it must never be seen but upstream.
const key = "sk-test-3b1f9c"

// summary is what the fake model sees in every image.
const summary = "A dialog reports that the disk is full."

// world is everything around a runtime: its directories and its provider.
type world struct {
	t         testing.TB
	router    string
	secrets   string
	workspace string
	cache     string
	upstream  *upstream
}

// newWorld lays out directories as a pod has them, without a router document.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, router: t.TempDir(), secrets: t.TempDir(), workspace: t.TempDir(), cache: t.TempDir(), upstream: newUpstream(t)}
	w.write(filepath.Join(w.secrets, "team-a", "lab"), []byte(key))
	return w
}

func (w *world) config() serveConfig {
	return serveConfig{
		config: config{
			router: w.router, profile: "policy/default", secrets: w.secrets, cache: w.cache,
			workspaces: []string{w.workspace}, logLevel: slog.LevelDebug,
		},
		listen: "127.0.0.1:0", healthListen: "127.0.0.1:0",
	}
}

// document is a router document with one profile and the fake provider; change
// it before publishing.
func (w *world) document() *router.Document {
	return &router.Document{
		Version: router.Version, Namespace: "team-a",
		Profiles: []router.Profile{{
			ID: "policy/default", From: "team-a/default", DefaultModel: router.Auto, PerCallModel: router.PerCallAllowed,
			Providers: []router.ProviderUse{{Alias: "lab", Provider: "team-a/lab"}},
			Limits: router.Limits{
				Image:   router.ImageLimits{MaxBytes: 20 << 20, MaxPixels: 50_000_000},
				Request: router.RequestLimits{MaxDistinctImages: 8, MaxTotalImageBytes: 20 << 20, MaxProbedPaths: 16, MaxBodyBytes: 64 << 20},
			},
			Cache:   router.Cache{TTL: "1h0m0s", MaxEntries: 100, MaxBytes: 1 << 20},
			Runtime: router.RuntimeOptions{MCP: true},
		}},
		Providers: []router.Provider{{
			Name: "team-a/lab", Transport: router.TransportOpenAIChatCompletions,
			Endpoints:  []router.Endpoint{{Name: "main", URL: w.upstream.server.URL + "/v1", Timeout: "30s"}},
			Credential: &router.Credential{Namespace: "team-a", Secret: "lab-key", Key: "token", File: "team-a/lab"},
			Models:     []router.Model{{Name: "eye-1", ImageInput: true}, {Name: "text-1"}},
		}},
	}
}

// publish puts a document in place of the one before.
func (w *world) publish(change func(*router.Document)) {
	w.t.Helper()
	doc := w.document()
	if change != nil {
		change(doc)
	}
	data, err := router.Marshal(doc)
	if err != nil {
		w.t.Fatal(err)
	}
	w.publishBytes(data)
}

// publishBytes replaces the file as kubelet does: a new directory, then one
// rename of the link that points to it.
func (w *world) publishBytes(data []byte) {
	w.t.Helper()
	name := "..v" + strconv.FormatInt(time.Now().UnixNano(), 36)
	w.write(filepath.Join(w.router, name, router.Key), data)
	staged := filepath.Join(w.router, "..data_tmp")
	if err := os.Symlink(name, staged); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(staged, filepath.Join(w.router, "..data")); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", router.Key), filepath.Join(w.router, router.Key)); err != nil && !os.IsExist(err) {
		w.t.Fatal(err)
	}
}

func (w *world) write(path string, data []byte) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// picture writes a PNG into the workspace and returns its path. Each name gets
// other bytes.
func (w *world) picture(name string) string {
	w.t.Helper()
	path := filepath.Join(w.workspace, name)
	w.write(path, drawn(w.t, name))
	return path
}

// drawn is a PNG; each name gets other bytes.
func drawn(t testing.TB, name string) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 64, 48))
	for i, c := range name {
		img.Set(i%64, i/64, color.RGBA{R: uint8(c), G: uint8(i), A: 255})
	}
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// start runs a runtime in this process until the test ends; its log is returned too.
func (w *world) start() (*server, *lines) {
	w.t.Helper()
	log := &lines{}
	s, err := start(w.config(), newLogger(log, slog.LevelDebug))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.shutdown(time.Second) })
	return s, log
}

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// upstream is a Chat Completions server that sees the same in every image.
type upstream struct {
	server *httptest.Server

	mu     sync.Mutex
	bodies [][]byte
	keys   []string
	// hold, when set, is received from before each answer.
	hold chan struct{}
	// sees, when set, is what is seen in the image of a request.
	sees func(body []byte) string
	// status, when set, is answered with in place of an observation.
	status int
}

func newUpstream(t testing.TB) *upstream {
	u := &upstream{}
	u.server = httptest.NewServer(http.HandlerFunc(u.serve))
	t.Cleanup(u.server.Close)
	return u
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	u.bodies, u.keys = append(u.bodies, body), append(u.keys, r.Header.Get("Authorization"))
	hold, status, seen := u.hold, u.status, summary
	if u.sees != nil {
		seen = u.sees(body)
	}
	u.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if status != 0 {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"upstream says no to `+key+`"}}`)
		return
	}
	observed, _ := json.Marshal(map[string]any{
		"type": "visual_observation", "schema": "visual_observation.v1", "summary": seen,
		"ocr":           []any{map[string]any{"text": "ENOSPC 28", "confidence": 0.98, "bbox": map[string]any{"x": 4, "y": 5, "width": 40, "height": 9}}},
		"elements":      []any{map[string]any{"id": "e1", "role": "dialog"}},
		"uncertainties": []string{"the clock is cut off"},
	})
	answer, _ := json.Marshal(map[string]any{
		"id": "c1", "object": "chat.completion", "model": "eye-1",
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": string(observed)}}},
		"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
	})
	_, _ = w.Write(answer)
}

// set changes what is answered from now on.
func (u *upstream) set(change func(*upstream)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

func (u *upstream) calls() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.bodies)
}

// answer is one HTTP answer, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// object is the body as JSON.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("status %d, body %q: %v", a.status, a.body, err)
	}
	return v
}

// fault is the error in the body.
func (a answer) fault(t *testing.T) map[string]any {
	t.Helper()
	f, ok := a.object(t)["error"].(map[string]any)
	if !ok {
		t.Fatalf("status %d: no error in %s", a.status, a.body)
	}
	return f
}

// kind is that of an error in the runtime's own shape, or in a dialect's.
func (a answer) kind(t *testing.T) any {
	t.Helper()
	f := a.fault(t)
	if details, ok := f["details"].([]any); ok { // Gemini's
		return details[0].(map[string]any)["metadata"].(map[string]any)["code"]
	}
	return cmp.Or(f["kind"], f["code"])
}

func (s *server) url(path string) string { return "http://" + s.agentsAt.String() + path }

func get(t *testing.T, url string) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r)
}

// view asks for a look over HTTP.
func view(t *testing.T, s *server, path, prompt string) answer {
	t.Helper()
	body, _ := json.Marshal(map[string]string{"path": path, "prompt": prompt})
	return post(t, s.url("/v1/view-image"), body)
}

func post(t testing.TB, url string, body []byte) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return do(t, r)
}

func do(t testing.TB, r *http.Request) answer {
	t.Helper()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body}
}

// eventually waits until a condition holds, and fails the test when it does not.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: still not so after 15 s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
