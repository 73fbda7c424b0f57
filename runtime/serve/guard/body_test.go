// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

// post sends a body to a path that takes rule; its handler echoes, and answers
// with the fault that a read fails with.
func post(t *testing.T, rule *guard.Body, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8970/", strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "application/json")
	change(r)
	w := httptest.NewRecorder()
	rule.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			reply.Fault(w, f)
			return
		}
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write(body)
	})).ServeHTTP(w, r)
	return w
}

func fixed(n int64) guard.Limit { return func() int64 { return n } }

func TestACompressedBodyIsRefused(t *testing.T) {
	for _, rule := range []*guard.Body{guard.JSON(nil), guard.Model(nil)} {
		for _, coding := range []string{"gzip", "br", "identity, gzip"} {
			w := post(t, rule, func(r *http.Request) { r.Header.Set("Content-Encoding", coding) })
			wantFault(t, w, http.StatusUnsupportedMediaType, "invalid_tool_input", "UnsupportedEncoding")
		}
		for _, coding := range []string{"", "identity", "Identity"} {
			if w := post(t, rule, func(r *http.Request) { r.Header.Set("Content-Encoding", coding) }); w.Code != http.StatusOK {
				t.Errorf("%q: %d %s", coding, w.Code, w.Body)
			}
		}
	}
}

func TestMediaTypeOfJSON(t *testing.T) {
	tests := []struct {
		name   string
		method string
		types  []string
		body   string
		ok     bool
	}{
		{"JSON", "POST", []string{"application/json"}, `{}`, true},
		{"JSON with a charset", "POST", []string{"Application/JSON; charset=utf-8"}, `{}`, true},
		{"no type", "POST", nil, `{}`, false},
		{"text, which pages may send unasked", "POST", []string{"text/plain"}, `{}`, false},
		{"a form", "POST", []string{"application/x-www-form-urlencoded"}, `{}`, false},
		{"text that mentions JSON", "POST", []string{"text/plain; application/json"}, `{}`, false},
		{"two types", "POST", []string{"application/json", "text/plain"}, `{}`, false},
		{"another JSON type", "POST", []string{"application/problem+json"}, `{}`, false},
		{"an image", "POST", []string{"image/png"}, `{}`, false},
		{"bytes of any kind", "POST", []string{"application/octet-stream"}, `{}`, false},
		{"POST without a body and type", "POST", nil, ``, false},
		{"GET without a body", "GET", nil, ``, true},
		{"DELETE without a body", "DELETE", nil, ``, true},
		{"GET with a body", "GET", []string{"text/plain"}, `x`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { tryType(t, guard.JSON(nil), test.method, test.types, test.body, test.ok) })
	}
}

func TestMediaTypeOfAnImage(t *testing.T) {
	tests := []struct {
		name   string
		method string
		types  []string
		body   string
		ok     bool
	}{
		{"a PNG", "POST", []string{"image/png"}, `x`, true},
		{"a type in capitals, with a parameter", "POST", []string{"IMAGE/JPEG; q=1"}, `x`, true},
		{"a type that no browser knows", "POST", []string{"image/x-odd"}, `x`, true},
		{"bytes of any kind", "POST", []string{"application/octet-stream"}, `x`, true},
		{"JSON", "POST", []string{"application/json"}, `{}`, false},
		{"no type", "POST", nil, `x`, false},
		{"text", "POST", []string{"text/plain"}, `x`, false},
		{"a form with a file", "POST", []string{"multipart/form-data; boundary=x"}, `x`, false},
		{"a form", "POST", []string{"application/x-www-form-urlencoded"}, `x`, false},
		{"text that mentions an image", "POST", []string{"text/plain; image/png"}, `x`, false},
		{"a type that only begins alike", "POST", []string{"imagery/png"}, `x`, false},
		{"two types", "POST", []string{"image/png", "text/plain"}, `x`, false},
		{"two types in one line", "POST", []string{"image/png, text/plain"}, `x`, false},
		{"POST without a body and type", "POST", nil, ``, false},
		{"GET without a body", "GET", nil, ``, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { tryType(t, guard.Image(nil), test.method, test.types, test.body, test.ok) })
	}
}

func tryType(t *testing.T, rule *guard.Body, method string, types []string, body string, ok bool) {
	t.Helper()
	w := post(t, rule, func(r *http.Request) {
		r.Method, r.Header["Content-Type"] = method, types
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	})
	if ok != (w.Code == http.StatusOK) {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if !ok {
		wantFault(t, w, http.StatusUnsupportedMediaType, "invalid_tool_input", "UnsupportedMediaType")
	}
}

// kinds are both rules with one limit, and the type that each takes.
func kinds(limit guard.Limit) map[string]*guard.Body {
	return map[string]*guard.Body{"application/json": guard.JSON(limit), "image/png": guard.Image(limit)}
}

func TestBodyLimit(t *testing.T) {
	const limit = 64
	tests := []struct {
		name    string
		bytes   int
		chunked bool
		ok      bool
	}{
		{"a body of exactly the limit, with its length", limit, false, true},
		{"a body of exactly the limit, chunked", limit, true, true},
		{"an empty body, chunked", 0, true, true},
		{"one byte more, with its length", limit + 1, false, false},
		{"one byte more, chunked", limit + 1, true, false},
		{"a megabyte more, chunked", limit + 1<<20, true, false},
	}
	for media, rule := range kinds(fixed(limit)) {
		for _, test := range tests {
			t.Run(media+": "+test.name, func(t *testing.T) {
				body := strings.Repeat("x", test.bytes)
				source := strings.NewReader(body)
				w := post(t, rule, func(r *http.Request) {
					r.Header.Set("Content-Type", media)
					r.Body, r.ContentLength = io.NopCloser(source), int64(len(body))
					if test.chunked {
						r.ContentLength = -1
					}
				})
				if test.ok {
					if w.Code != http.StatusOK || w.Body.String() != body {
						t.Fatalf("status %d, body %q", w.Code, w.Body)
					}
					return
				}
				f := wantFault(t, w, http.StatusRequestEntityTooLarge, "budget_exceeded", "BodyTooLarge")
				if f["max_body_bytes"] != float64(limit) || !test.chunked && f["body_bytes"] != float64(test.bytes) {
					t.Errorf("details are %v; want the limit, and the size where it was told", f)
				}
				if source.Len() != 0 {
					t.Errorf("%d bytes are left: the sender would not hear the refusal", source.Len())
				}
			})
		}
	}
}

func TestAPolicyLowersTheLimitOfJSONAndSetsTheOneOfImages(t *testing.T) {
	for _, test := range []struct {
		name   string
		media  string
		policy guard.Limit
		limit  int
	}{
		{"JSON: no policy", "application/json", nil, guard.MaxJSONBytes},
		{"JSON: a policy that says nothing yet", "application/json", fixed(0), guard.MaxJSONBytes},
		{"JSON: a policy that allows more", "application/json", fixed(64 << 20), guard.MaxJSONBytes},
		{"JSON: a policy that allows less", "application/json", fixed(64), 64},
		{"a model request: no policy", "model", nil, guard.DefaultModelBytes},
		{"a model request: a policy that says nothing yet", "model", fixed(0), guard.DefaultModelBytes},
		{"a model request: a policy that allows less", "model", fixed(64), 64},
		{"an image: no policy", "image/png", nil, guard.DefaultImageBytes},
		{"an image: a policy that says nothing yet", "image/png", fixed(0), guard.DefaultImageBytes},
		{"an image: a policy that allows more", "image/png", fixed(guard.DefaultImageBytes + 7), guard.DefaultImageBytes + 7},
		{"an image: a policy that allows less", "image/png", fixed(64), 64},
	} {
		t.Run(test.name, func(t *testing.T) {
			for size, status := range map[int]int{test.limit: http.StatusOK, test.limit + 1: http.StatusRequestEntityTooLarge} {
				rule, media := kinds(test.policy)[test.media], test.media
				if media == "model" {
					rule, media = guard.Model(test.policy), "application/json"
				}
				w := post(t, rule, func(r *http.Request) {
					r.Header.Set("Content-Type", media)
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", size))), int64(size)
				})
				if w.Code != status {
					t.Errorf("a body of %d bytes gives %d; want %d", size, w.Code, status)
				}
			}
		})
	}
}

func TestTheLimitIsAskedForEveryRequest(t *testing.T) {
	var limit int64
	rule := guard.Image(func() int64 { return limit })
	for _, test := range []struct {
		limit  int64
		status int
	}{{1, 413}, {2, 200}, {1, 413}} {
		limit = test.limit
		w := post(t, rule, func(r *http.Request) { r.Header.Set("Content-Type", "image/png") }) // {} is two bytes
		if w.Code != test.status {
			t.Errorf("limit %d: status %d", limit, w.Code)
		}
	}
}

func TestABodyWithoutAnEndIsNotReadForever(t *testing.T) {
	for media, rule := range kinds(fixed(1000)) {
		endless := &counting{}
		w := post(t, rule, func(r *http.Request) {
			r.Header.Set("Content-Type", media)
			r.Body, r.ContentLength = endless, -1
		})
		wantFault(t, w, http.StatusRequestEntityTooLarge, "budget_exceeded", "BodyTooLarge")
		if most := 64<<20 + 1<<16; endless.read > most {
			t.Errorf("%s: read %d bytes", media, endless.read)
		}
	}
}

// counting is a body without an end.
type counting struct{ read int }

func (c *counting) Read(p []byte) (int, error) {
	c.read += len(p)
	return len(p), nil
}
func (c *counting) Close() error { return nil }

func TestAJSONBodyThatBreaksOffIsRefused(t *testing.T) {
	w := post(t, guard.JSON(nil), func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{})), -1
	})
	wantFault(t, w, http.StatusBadRequest, "invalid_tool_input", "BodyUnreadable")
}

func TestAnImageThatBreaksOffIsTheHandlersToJudge(t *testing.T) {
	w := post(t, guard.Image(nil), func(r *http.Request) {
		r.Header.Set("Content-Type", "image/png")
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("x"), broken{})), -1
	})
	if w.Code != http.StatusTeapot {
		t.Errorf("status %d; want the handler's", w.Code)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestJSONIsReadBeforeTheHandlerAndAnImageIsNot(t *testing.T) {
	for media, rule := range kinds(nil) {
		source := strings.NewReader("12345")
		left := -1
		handler := rule.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { left = source.Len() }))
		r := httptest.NewRequest(http.MethodPost, "/", source)
		r.Header.Set("Content-Type", media)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if want := map[string]int{"application/json": 0, "image/png": 5}[media]; left != want {
			t.Errorf("%s: %d bytes are left to the handler; want %d", media, left, want)
		}
	}
}

func TestAModelRequestIsJSONThatTheHandlerReads(t *testing.T) {
	source := strings.NewReader("12345")
	left := -1
	handler := guard.Model(nil).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { left = source.Len() }))
	for media, want := range map[string]int{"application/json; charset=utf-8": 5, "image/png": -1, "text/plain": -1} {
		left = -1
		r := httptest.NewRequest(http.MethodPost, "/", source)
		r.Header.Set("Content-Type", media)
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if left != want {
			t.Errorf("%s: %d bytes are left to the handler; want %d", media, left, want)
		}
	}
}

func TestAReadBeyondTheLimitKeepsFailing(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader("12345"))) // of unknown length
	r.Header.Set("Content-Type", "image/png")
	guard.Image(fixed(3)).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n, err := r.Body.Read(nil); n != 0 || err != nil {
			t.Errorf("reading nothing: %d, %v", n, err)
		}
		got, err := io.ReadAll(r.Body)
		_, again := r.Body.Read(make([]byte, 1))
		for _, err := range []error{err, again} {
			if f, ok := errors.AsType[*fault.Fault](err); !ok || f.Reason != "BodyTooLarge" {
				t.Errorf("got %v", err)
			}
		}
		if string(got) != "123" {
			t.Errorf("read %q", got)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
}

// TestOverARealConnectionTheSenderHearsTheRefusal sends bodies that no buffer of
// a connection holds.
func TestOverARealConnectionTheSenderHearsTheRefusal(t *testing.T) {
	for media, rule := range kinds(fixed(1000)) {
		server := httptest.NewServer(rule.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			reply.Fault(w, fault.As(err))
		})))
		for name, length := range map[string]int64{"with its length": 16 << 20, "chunked": -1} {
			body := io.LimitReader(&counting{}, 16<<20)
			r, err := http.NewRequest(http.MethodPost, server.URL, body)
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = length
			r.Header.Set("Content-Type", media)
			resp, err := server.Client().Do(r)
			if err != nil {
				t.Errorf("%s, %s: %v", media, name, err)
				continue
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s, %s: status %d", media, name, resp.StatusCode)
			}
		}
		server.Close()
	}
}

func TestASenderThatWaitsIsNotAskedForABodyThatIsTooLong(t *testing.T) {
	endless := &counting{}
	w := post(t, guard.Image(fixed(1000)), func(r *http.Request) {
		r.Header.Set("Content-Type", "image/png")
		r.Header.Set("Expect", "100-continue")
		r.Body, r.ContentLength = endless, 1001
	})
	wantFault(t, w, http.StatusRequestEntityTooLarge, "budget_exceeded", "BodyTooLarge")
	if endless.read != 0 {
		t.Errorf("read %d bytes", endless.read)
	}
}

func TestAJSONBodyMayNotSprawl(t *testing.T) {
	list := func(n int) string { return `{"a":[` + strings.Repeat("1,", n-2) + `1]}` } // of n signs, two of them openings
	for name, tc := range map[string]struct {
		body string
		ok   bool
	}{
		"as many values as may be":          {list(guard.MaxJSONValues), true},
		"one more":                          {list(guard.MaxJSONValues + 1), false},
		"objects in objects":                {strings.Repeat(`{"a":`, guard.MaxJSONValues+1) + "1" + strings.Repeat("}", guard.MaxJSONValues+1), false},
		"a long text of signs":              {`{"a":"` + strings.Repeat(`,[{\\\"`, guard.MaxJSONValues) + `"}`, true},
		"a text that ends in a backslash":   {`{"a":"\\"` + strings.Repeat(`,"b":1`, guard.MaxJSONValues+1) + `}`, false},
		"no JSON, which is not judged here": {`{"a`, true},
	} {
		w := post(t, guard.JSON(nil), func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(tc.body)), int64(len(tc.body))
		})
		if ok := w.Code == http.StatusOK; ok != tc.ok || ok && w.Body.String() != tc.body {
			t.Errorf("%s: status %d", name, w.Code)
		}
		if !tc.ok && (w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "BodySprawling")) {
			t.Errorf("%s: status %d: %s", name, w.Code, w.Body)
		}
	}
}
