// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// picture stands for an image; no protocol looks into it.
var picture = provider.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n\x00\xff and so on")}

// plain is a look without structure, structured one with.
func plain(model string) provider.Request {
	return provider.Request{Model: model, Prompt: "What does the \"button\" say? <漢字> & more", Image: picture}
}

func structured(model string) provider.Request {
	req := plain(model)
	req.Instructions = observation.Instructions
	req.Schema = &provider.OutputSchema{Name: observation.ReplySchemaName, JSON: observation.ReplySchema()}
	req.MaxOutputTokens = 4096
	return req
}

// sent is one request as a server saw it.
type sent struct {
	Method, Path, Query string
	header              http.Header
	body                []byte
}

// server is an endpoint that answers each path alike and keeps what was sent.
type server struct {
	url  string
	mu   sync.Mutex
	seen []sent
}

// serve starts a server that answers with reply until the test ends.
func serve(t *testing.T, reply []byte) *server {
	t.Helper()
	return serveStatus(t, http.StatusOK, reply)
}

func serveStatus(t *testing.T, status int, reply []byte) *server {
	t.Helper()
	s := &server{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, sent{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header, body})
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(reply)
	}))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

// last is the request that came last, of so many.
func (s *server) last(t *testing.T, of int) sent {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) != of {
		t.Fatalf("the server got %d requests, not %d", len(s.seen), of)
	}
	return s.seen[of-1]
}

// endpoint is the server as our clients know it; path comes after its address.
func (s *server) endpoint(t *testing.T, path string) exchange.Endpoint {
	t.Helper()
	client, err := transport.New(transport.Options{Endpoint: router.Endpoint{Name: "default", URL: s.url, Timeout: "10s"}, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return exchange.Endpoint{BaseURL: s.url + path, Client: client}
}

// sameCall compares what two clients sent.
func sameCall(t *testing.T, ours, theirs sent, headers ...string) {
	t.Helper()
	if diff := cmp.Diff([]string{theirs.Method, theirs.Path, theirs.Query}, []string{ours.Method, ours.Path, ours.Query}); diff != "" {
		t.Errorf("method, path and query (-theirs +ours):\n%s", diff)
	}
	for _, name := range headers {
		if want, got := theirs.header.Get(name), ours.header.Get(name); got != want || got == "" {
			t.Errorf("%s: ours is %q, theirs %q", name, got, want)
		}
	}
	sameJSON(t, theirs.body, ours.body)
}

// sameJSON compares two documents, in which the order of members tells nothing.
func sameJSON(t *testing.T, want, got []byte) {
	t.Helper()
	if diff := cmp.Diff(decoded(t, want), decoded(t, got)); diff != "" {
		t.Errorf("the documents differ (-theirs +ours):\n%s", diff)
	}
}

func decoded(t *testing.T, data []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in %.300s", err, data)
	}
	return v
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// strictly reads a body into a vendor's type, and fails when the type could not
// hold all of it: a member that the vendor does not know, or one of another kind.
func strictly[T any](t *testing.T, body []byte) T {
	t.Helper()
	params, lost := read[T](t, body)
	if lost != "" {
		t.Errorf("the vendor's type loses something (-theirs +ours):\n%s", lost)
	}
	return params
}

// read reads a body into a vendor's type and says what of it the type lost.
func read[T any](t *testing.T, body []byte) (params T, lost string) {
	t.Helper()
	if err := json.Unmarshal(body, &params); err != nil {
		return params, err.Error()
	}
	return params, cmp.Diff(decoded(t, encoded(t, params)), decoded(t, body))
}

// goldens reads the golden requests of a protocol.
func goldens(t *testing.T, protocol string, check func(t *testing.T, body []byte)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../runtime/provider", protocol, "testdata/*.json"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d golden requests: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			check(t, body)
		})
	}
}

// with is v, as a vendor writes it, with members set: in a vendor's own type for
// replies a member of several kinds has no type that can be written.
func with(t *testing.T, v any, members map[string]any) []byte {
	t.Helper()
	m, ok := decoded(t, encoded(t, v)).(map[string]any)
	if !ok {
		t.Fatalf("%T is no object", v)
	}
	for name, value := range members {
		m[name] = value
	}
	return encoded(t, m)
}

// samePicture compares base64 with the picture.
func samePicture(t *testing.T, data string) {
	t.Helper()
	got, err := base64.StdEncoding.DecodeString(data)
	if err != nil || !bytes.Equal(got, picture.Data) {
		t.Errorf("the image is %q, %v", got, err)
	}
}

// reading is what a client makes of a reply: a Reply, or the reason of a fault.
type reading struct {
	Reply  provider.Reply
	Reason string
}

// observed serves a reply to one of our clients.
func observed(t *testing.T, client provider.Observer, req provider.Request) reading {
	t.Helper()
	reply, err := client.Observe(context.Background(), req)
	if err != nil {
		return reading{Reason: fault.As(err).Reason}
	}
	return reading{Reply: reply}
}

// counts is what a reply says that it used.
var counts = provider.Usage{InputTokens: 1024, OutputTokens: 33}

// listed asks one of our clients for its models.
func listed(t *testing.T, client provider.Lister) []provider.Listed {
	t.Helper()
	models, err := client.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return models
}
