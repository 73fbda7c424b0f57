// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/mcp"
	"github.com/visionoperator/vision-operator/runtime/serve/rest"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// maxImage is the largest image of these tests, smaller than a JSON body may be.
const maxImage = 5000

// maxReview is the largest review, larger than another JSON body may be.
const maxReview = guard.MaxJSONBytes + 5000

// routes are all paths of the runtime; reached is called whenever a request
// gets as far as what is behind them.
func routes(reached func()) []serve.Route {
	refuse := func() error { reached(); return fault.New(fault.PolicyDenied, "Reached", "reached") }
	view := func(context.Context, tool.Call) (*observation.Result, error) { return nil, refuse() }
	return append(rest.Routes(rest.Options{
		View:           view,
		Upload:         func(context.Context, io.Reader, int64) (*reference.Kept, error) { return nil, refuse() },
		MaxImageBytes:  func() int64 { return maxImage },
		Reference:      func(string) (*reference.Kept, error) { return nil, refuse() },
		Review:         func(context.Context, io.Reader, int64, rest.ReviewReader) (rest.Answer, error) { return nil, refuse() },
		Inject:         func(context.Context, io.Reader, int64) (rest.Answer, error) { return nil, refuse() },
		MaxReviewBytes: func() int64 { return maxReview },
		Router:         func() rest.RouterStatus { reached(); return rest.RouterStatus{} },
		Version:        "v1",
	}), mcp.Route(mcp.NewServer(view, "v1"), func() bool { reached(); return true }))
}

// walk calls visit for every path that is served and for some that are not, with
// the type and the size of body that the path takes.
func walk(t *testing.T, visit func(path, media string, most int)) {
	t.Helper()
	paths := []string{"/", "/nothing/here", "/v1/references/"}
	for _, route := range routes(func() {}) {
		paths = append(paths, strings.Replace(route.Path, "{id}", "vis_0123456789abcdef", 1))
	}
	if !slices.Contains(paths, "/mcp") || !slices.Contains(paths, "/v1/images") || len(paths) != 11 {
		t.Fatalf("paths are %q", paths)
	}
	for _, path := range paths {
		if path == "/v1/images" {
			visit(path, "image/png", maxImage)
			continue
		}
		if streamed(path) {
			visit(path, "application/json", maxReview)
			continue
		}
		visit(path, "application/json", guard.MaxJSONBytes)
	}
}

// streamed reports whether a path takes JSON as it comes.
func streamed(path string) bool { return path == "/v1/review" || path == "/v1/inject" }

// ask sends a request that the guard has nothing against, but for change.
func ask(method, path, media string, body io.Reader, change func(*http.Request)) (w *httptest.ResponseRecorder, reached bool) {
	r := httptest.NewRequest(method, path, body)
	r.Host = "127.0.0.1:8970"
	r.Header.Set("Content-Type", media)
	r.Header.Set("Accept", "application/json, text/event-stream")
	change(r)
	w = httptest.NewRecorder()
	options := serve.Options{Guard: guard.Options{Port: 8970}}
	serve.Handler(routes(func() { reached = true }), options).ServeHTTP(w, r)
	return w, reached
}

func same(*http.Request) {}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}

func TestEveryPathIsBehindTheGuard(t *testing.T) {
	set := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = values }
	}
	attacks := map[string]func(*http.Request){
		"a rebound name":               func(r *http.Request) { r.Host = "evil.example:8970" },
		"another port":                 func(r *http.Request) { r.Host = "127.0.0.1:8971" },
		"no host":                      func(r *http.Request) { r.Host = "" },
		"an origin":                    set("Origin", "https://evil.example"),
		"an opaque origin":             set("Origin", "null"),
		"our own origin":               set("Origin", "http://127.0.0.1:8970"),
		"another site":                 set("Sec-Fetch-Site", "cross-site"),
		"another port of the same one": set("Sec-Fetch-Site", "same-site"),
		"a second site":                set("Sec-Fetch-Site", "none", "cross-site"),
	}
	walk(t, func(path, media string, _ int) {
		for _, method := range methods {
			for name, attack := range attacks {
				w, reached := ask(method, path, media, strings.NewReader("{}"), attack)
				if w.Code != http.StatusForbidden || reached || kindIn(t, w) != fault.PolicyDenied {
					t.Errorf("%s %s with %s: status %d, reached: %t: %s", method, path, name, w.Code, reached, w.Body)
				}
			}
		}
	})
}

func TestEveryPathTakesItsOwnTypeOfBodyAlone(t *testing.T) {
	types := map[string]bool{ // whether it is an image's
		"text/plain": false, "application/x-www-form-urlencoded": false, "multipart/form-data; boundary=x": false, "": false,
		"application/json": false, "application/problem+json": false, "image/png": true, "image/webp": true, "application/octet-stream": true,
	}
	walk(t, func(path, media string, _ int) {
		for sent, isImage := range types {
			takes := sent == media || isImage && media == "image/png"
			for _, method := range methods {
				w, reached := ask(method, path, sent, strings.NewReader("{}"), same)
				if takes != (w.Code != http.StatusUnsupportedMediaType) || !takes && reached {
					t.Errorf("%s %s as %q: status %d, reached: %t", method, path, sent, w.Code, reached)
				}
			}
		}
	})
}

func TestEveryPathBoundsItsBody(t *testing.T) {
	walk(t, func(path, media string, most int) {
		body := bytes.Repeat([]byte(" "), most+1)
		for name, length := range map[string]int64{"with its length": int64(most + 1), "chunked": -1} {
			w, reached := ask(http.MethodPost, path, media, bytes.NewReader(body), func(r *http.Request) { r.ContentLength = length })
			// A streamed body shows its size to its handler alone, which did not read it here.
			if (media == "image/png" || streamed(path)) && length < 0 {
				if !reached {
					t.Errorf("POST %s, %s: status %d before the handler", path, name, w.Code)
				}
				continue
			}
			if w.Code != http.StatusRequestEntityTooLarge || reached {
				t.Errorf("POST %s, %s: status %d, reached: %t", path, name, w.Code, reached)
			}
		}
	})
}

// TestAPathThatIsWrittenOddlyIsNoWayRoundARule asks for each path in forms that
// the multiplexer cleans.
func TestAPathThatIsWrittenOddlyIsNoWayRoundARule(t *testing.T) {
	walk(t, func(path, _ string, _ int) {
		for _, odd := range []string{"/" + path, "/x/.." + path, "/." + path} {
			if w, reached := ask(http.MethodPost, odd, "text/plain", strings.NewReader("{}"), same); reached || w.Code < 300 {
				t.Errorf("POST %s: status %d, reached: %t", odd, w.Code, reached)
			}
			page := func(r *http.Request) { r.Header.Set("Origin", "null") }
			if w, _ := ask(http.MethodPost, odd, "text/plain", strings.NewReader("{}"), page); w.Code != http.StatusForbidden {
				t.Errorf("POST %s of a page: status %d", odd, w.Code)
			}
		}
	})
}

func TestThePolicyLowersTheLimitOfJSONOnEveryPath(t *testing.T) {
	walk(t, func(path, media string, _ int) {
		if media != "application/json" || streamed(path) { // which has a limit of its own
			return
		}
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8970"+path, strings.NewReader(strings.Repeat(" ", 11)))
		r.Header.Set("Content-Type", media)
		w := httptest.NewRecorder()
		options := serve.Options{Guard: guard.Options{Port: 8970}, MaxBodyBytes: func() int64 { return 10 }}
		serve.Handler(routes(func() {}), options).ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("POST %s: status %d", path, w.Code)
		}
	})
}

// TestEveryRouteIsDescribedAndEveryDescribedPathIsARoute compares the OpenAPI
// document with what is served, by path and by method.
func TestEveryRouteIsDescribedAndEveryDescribedPathIsARoute(t *testing.T) {
	document, err := rest.Document("v1")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct{ Content map[string]any }
			Responses   map[string]any
		}
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, route := range routes(func() {}) {
		served[route.Path] = true
	}
	delete(served, mcp.Path) // described by MCP itself
	if described := slices.Sorted(maps.Keys(doc.Paths)); !slices.Equal(described, slices.Sorted(maps.Keys(served))) {
		t.Fatalf("described: %q; served: %q", described, slices.Sorted(maps.Keys(served)))
	}
	for pattern, described := range doc.Paths {
		path := strings.Replace(pattern, "{id}", "vis_0123456789abcdef", 1)
		media := "application/json"
		if pattern == "/v1/images" {
			media = "image/png"
		}
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			w, _ := ask(strings.ToUpper(method), path, media, strings.NewReader("{}"), same)
			operation, ok := described[method]
			if ok == (w.Code == http.StatusMethodNotAllowed) {
				t.Errorf("%s %s is described: %t; status %d", method, pattern, ok, w.Code)
			}
			if ok && operation.Responses[strconv.Itoa(w.Code)] == nil {
				t.Errorf("%s %s answers %d, which is not described", method, pattern, w.Code)
			}
			for content := range operation.RequestBody.Content {
				content = strings.Replace(content, "*", "png", 1)
				if w, _ := ask(strings.ToUpper(method), path, content, strings.NewReader("{}"), same); w.Code == http.StatusUnsupportedMediaType {
					t.Errorf("%s %s is described to take %s", method, pattern, content)
				}
			}
		}
	}
}

// kindIn is the kind of the fault in an answer; no server cuts the body off for HEAD here.
func kindIn(t *testing.T, w *httptest.ResponseRecorder) fault.Kind {
	t.Helper()
	var body struct{ Error fault.Fault }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("status %d: %q: %v", w.Code, w.Body, err)
	}
	return body.Error.Kind
}
