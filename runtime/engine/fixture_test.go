// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/store"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key  = "sk-very-secret-0123456789"
	seen = `{"type":"visual_observation","schema":"visual_observation.v1","summary":"A grey square.",` +
		`"visual_reference_id":"vis_forged","prompt":"forged","generated_by":{"mode":"forged"},"uncertainties":[]}`
)

// rig is an engine with a workspace, a key and an upstream that counts its calls.
type rig struct {
	t        *testing.T
	engine   *engine.Engine
	space    string
	secrets  string
	cache    string
	upstream *upstream
	log      *logBuffer
	// closePins closes the pins on disk, where there are some.
	closePins func()
}

// logBuffer is a log that requests write to at the same time.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// upstream is a Chat Completions server.
type upstream struct {
	*httptest.Server
	calls atomic.Int64
	// answer is the model's text; reply, when set, answers in place of it.
	answer string
	reply  atomic.Pointer[http.HandlerFunc]
	// last is the body of the last request.
	last atomic.Pointer[[]byte]
}

func newUpstream(t testing.TB, answer string) *upstream {
	t.Helper()
	u := &upstream{answer: answer}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.calls.Add(1)
	body, _ := io.ReadAll(r.Body)
	u.last.Store(&body)
	if h := u.reply.Load(); h != nil {
		(*h)(w, r)
		return
	}
	u.look(w)
}

// look answers with the model's text.
func (u *upstream) look(w http.ResponseWriter) {
	content, _ := json.Marshal(u.answer)
	_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"stop","message":{"content":`+string(content)+`}}]}`)
}

func (u *upstream) answerWith(h http.HandlerFunc) { u.reply.Store(&h) }

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, space: t.TempDir(), secrets: t.TempDir(), cache: t.TempDir(), upstream: newUpstream(t, seen), log: &logBuffer{}}
	r.writeKey(key)
	r.start()
	t.Cleanup(func() {
		if text := r.log.String(); leaks(text) || strings.Contains(text, r.space) {
			t.Errorf("the log leaks: %s", text)
		}
	})
	return r
}

// again is the next process over the same directories.
func (r *rig) again() *rig {
	next := *r
	next.start()
	return &next
}

// start makes the engine, over the directories as they are.
func (r *rig) start() { r.startWith(nil) }

// startWith is start with other options.
func (r *rig) startWith(edit func(*engine.Options)) {
	r.t.Helper()
	set, err := workspace.Open([]string{r.space})
	must(r.t, err)
	r.t.Cleanup(set.Close)
	references, err := reference.Open(reference.Options{Dir: r.cache})
	must(r.t, err)
	r.t.Cleanup(func() { _ = references.Close() })
	observations, err := store.Open(store.Options{Dir: filepath.Join(r.cache, "observations"), MaxBytes: 1 << 20, MaxEntries: 100})
	must(r.t, err)
	r.t.Cleanup(func() { _ = observations.Close() })
	options := engine.Options{
		Profile: "policy/p", SecretsDir: r.secrets, Workspaces: set, References: references, Cache: observations, Version: "test",
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	if edit != nil {
		edit(&options)
	}
	r.engine = engine.New(options)
	r.t.Cleanup(r.engine.Close)
}

func (r *rig) writeKey(value string) {
	r.t.Helper()
	must(r.t, os.MkdirAll(filepath.Join(r.secrets, "team"), 0o755))
	must(r.t, os.WriteFile(filepath.Join(r.secrets, "team", "models"), []byte(value), 0o600))
}

// document grants two models of the upstream, and a third that is blind.
func (r *rig) document() *router.Document {
	return &router.Document{
		Version: router.Version, Namespace: "team",
		Profiles: []router.Profile{{
			ID: "policy/p", From: "team/p", DefaultModel: router.Auto, PerCallModel: router.PerCallAllowed,
			Providers: []router.ProviderUse{{Alias: "models", Provider: "team/models"}},
			Limits: router.Limits{
				Image:   router.ImageLimits{MaxBytes: 20 << 20, MaxPixels: 50_000_000},
				Request: router.RequestLimits{MaxDistinctImages: 8, MaxTotalImageBytes: 20 << 20, MaxProbedPaths: 16, MaxBodyBytes: 64 << 20},
			},
			Cache: router.Cache{TTL: "1h", MaxEntries: 100, MaxBytes: 1 << 20}, Runtime: router.RuntimeOptions{MCP: true},
		}},
		Providers: []router.Provider{{
			Name: "team/models", Transport: router.TransportOpenAIChatCompletions,
			Endpoints:  []router.Endpoint{{Name: "default", URL: r.upstream.URL + "/v1", Timeout: "20s"}},
			Credential: &router.Credential{Namespace: "team", Secret: "s", Key: "k", File: "team/models"},
			Models:     []router.Model{{Name: "text"}, {Name: "see", ImageInput: true, MaxOutputTokens: 100_000}, {Name: "see-too", ImageInput: true}},
		}},
	}
}

// use takes the document, edited, into service.
func (r *rig) use(edit func(*router.Document)) {
	r.t.Helper()
	doc := r.document()
	if edit != nil {
		edit(doc)
	}
	must(r.t, r.engine.Use(doc))
}

// file writes a file into the workspace and returns its path.
func (r *rig) file(name string, data []byte) string {
	r.t.Helper()
	path := filepath.Join(r.space, name)
	must(r.t, os.WriteFile(path, data, 0o600))
	return path
}

// square is a PNG; each shade is another image.
func square(t *testing.T, side int, shade byte) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, side, side))
	for i := range img.Pix {
		img.Pix[i] = shade
	}
	var out bytes.Buffer
	must(t, png.Encode(&out, img))
	return out.Bytes()
}

// pngHeader is a PNG that says how large it is and holds no picture.
func pngHeader(width, height uint32) []byte {
	out := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	out = binary.BigEndian.AppendUint32(out, width)
	out = binary.BigEndian.AppendUint32(out, height)
	return append(out, 8, 0, 0, 0, 0, 0, 0, 0, 0)
}

// farJPEG is a JPEG whose size stands behind 64 KiB of metadata.
func farJPEG(width, height uint16) []byte {
	out := []byte{0xff, 0xd8}
	for range 2 {
		out = append(out, 0xff, 0xe1, 0xff, 0xff)
		out = append(out, bytes.Repeat([]byte{'x'}, 0xffff-2)...)
	}
	out = append(out, 0xff, 0xc0, 0, 11, 8)
	out = binary.BigEndian.AppendUint16(out, height)
	out = binary.BigEndian.AppendUint16(out, width)
	return append(out, 1, 1, 0x11, 0, 0xff, 0xd9)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// leaks reports whether a text holds the key or base64 of an image.
func leaks(text string) bool {
	return strings.Contains(text, "secret") || strings.Contains(text, "iVBOR")
}
