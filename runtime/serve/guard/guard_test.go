// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

const port = 8970

// echo answers with the body it could read.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	_, _ = w.Write(body)
})

func send(t *testing.T, opts guard.Options, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/view-image", strings.NewReader(`{}`))
	r.Host = "127.0.0.1:8970"
	r.Header.Set("Content-Type", "application/json")
	change(r)
	w := httptest.NewRecorder()
	guard.Handler(echo, opts).ServeHTTP(w, r)
	return w
}

func TestHost(t *testing.T) {
	for host, allowed := range map[string]bool{
		"127.0.0.1:8970":            true,
		"localhost:8970":            true,
		"LocalHost:8970":            true,
		"[::1]:8970":                true,
		"127.0.0.1":                 false, // port 80
		"127.0.0.1:8971":            false,
		"localhost":                 false,
		"localhost.:8970":           false,
		"::1:8970":                  false,
		"[127.0.0.1]:8970":          false,
		"[localhost]:8970":          false,
		"[::1]:":                    false,
		"[::1":                      false,
		"[::1]8970":                 false,
		"127.0.0.1:08970x":          false,
		"127.0.0.1:-8970":           false,
		"127.0.0.1:74506":           false, // 8970 + 65536
		"":                          false,
		":8970":                     false,
		"evil.example:8970":         false,
		"127.0.0.1.evil.example:80": false,
		"10.0.0.7:8970":             false,
		"[::ffff:127.0.0.1]:8970":   false,
		"127.1:8970":                false,
	} {
		t.Run(fmt.Sprintf("%q is ours: %t", host, allowed), func(t *testing.T) {
			w := send(t, guard.Options{Port: port}, func(r *http.Request) { r.Host = host })
			if allowed != (w.Code == http.StatusOK) {
				t.Fatalf("status %d", w.Code)
			}
			if !allowed {
				wantFault(t, w, http.StatusForbidden, "policy_denied", "HostNotAllowed")
			}
		})
	}
}

func TestHostWithoutPortMeans80(t *testing.T) {
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]"} {
		w := send(t, guard.Options{Port: 80}, func(r *http.Request) { r.Host = host })
		if w.Code != http.StatusOK {
			t.Errorf("%s on port 80: status %d", host, w.Code)
		}
	}
}

func TestExtraHostsAreAddedAndNothingElse(t *testing.T) {
	opts := guard.Options{Port: port, ExtraHosts: []string{"vision.team-a.svc"}}
	for host, want := range map[string]int{"vision.team-a.svc:8970": 200, "localhost:8970": 200, "vision.team-b.svc:8970": 403} {
		if w := send(t, opts, func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("%s: status %d; want %d", host, w.Code, want)
		}
	}
}

func TestPages(t *testing.T) {
	tests := []struct {
		name, header, value, reason string
	}{
		{"an origin of another site", "Origin", "https://evil.example", "OriginNotAllowed"},
		{"an opaque origin", "Origin", "null", "OriginNotAllowed"},
		{"an empty origin", "Origin", "", "OriginNotAllowed"},
		{"our own origin, because we serve no page", "Origin", "http://127.0.0.1:8970", "OriginNotAllowed"},
		{"a request that another site caused", "Sec-Fetch-Site", "cross-site", "CrossSiteNotAllowed"},
		{"a request that another port of localhost caused", "Sec-Fetch-Site", "same-site", "CrossSiteNotAllowed"},
		{"a site relation that is not known yet", "Sec-Fetch-Site", "neighbour", "CrossSiteNotAllowed"},
		{"a request that the user typed", "Sec-Fetch-Site", "none", ""},
		{"a request of the same origin", "Sec-Fetch-Site", "same-origin", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := send(t, guard.Options{Port: port}, func(r *http.Request) { r.Header[test.header] = []string{test.value} })
			if test.reason == "" {
				if w.Code != http.StatusOK {
					t.Fatalf("status %d", w.Code)
				}
				return
			}
			wantFault(t, w, http.StatusForbidden, "policy_denied", test.reason)
		})
	}
	t.Run("a second Sec-Fetch-Site does not hide the first", func(t *testing.T) {
		w := send(t, guard.Options{Port: port}, func(r *http.Request) {
			r.Header["Sec-Fetch-Site"] = []string{"none", "cross-site"}
		})
		wantFault(t, w, http.StatusForbidden, "policy_denied", "CrossSiteNotAllowed")
	})
}

func TestMediaType(t *testing.T) {
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
		{"POST without a body and type", "POST", nil, ``, false},
		{"GET without a body", "GET", nil, ``, true},
		{"DELETE without a body", "DELETE", nil, ``, true},
		{"GET with a body", "GET", []string{"text/plain"}, `x`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "http://127.0.0.1:8970/", strings.NewReader(test.body))
			r.Header["Content-Type"] = test.types
			w := httptest.NewRecorder()
			guard.Handler(echo, guard.Options{Port: port}).ServeHTTP(w, r)
			if test.ok != (w.Code == http.StatusOK) {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if !test.ok {
				wantFault(t, w, http.StatusUnsupportedMediaType, "invalid_tool_input", "UnsupportedMediaType")
			}
		})
	}
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
		{"one byte more, with its length", limit + 1, false, false},
		{"one byte more, chunked", limit + 1, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := strings.Repeat("x", test.bytes)
			w := send(t, guard.Options{Port: port, MaxBodyBytes: func() int64 { return limit }}, func(r *http.Request) {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
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
			if f["max_body_bytes"] != float64(limit) {
				t.Errorf("details are %v; want the limit", f)
			}
		})
	}
}

func TestAPolicyCanOnlyLowerTheBodyLimit(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy func() int64
		limit  int
	}{
		{"no policy", nil, guard.MaxBodyBytes},
		{"a policy that says nothing yet", func() int64 { return 0 }, guard.MaxBodyBytes},
		{"a policy that allows more", func() int64 { return 64 << 20 }, guard.MaxBodyBytes},
		{"a policy that allows less", func() int64 { return 64 }, 64},
	} {
		t.Run(test.name, func(t *testing.T) {
			for size, status := range map[int]int{test.limit: http.StatusOK, test.limit + 1: http.StatusRequestEntityTooLarge} {
				w := send(t, guard.Options{Port: port, MaxBodyBytes: test.policy}, func(r *http.Request) {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", size))), int64(size)
				})
				if w.Code != status {
					t.Errorf("a body of %d bytes gives %d; want %d", size, w.Code, status)
				}
			}
		})
	}
}

func TestABodyWithoutAnEndIsNotReadForever(t *testing.T) {
	endless := &counting{}
	w := send(t, guard.Options{Port: port, MaxBodyBytes: func() int64 { return 1000 }}, func(r *http.Request) {
		r.Body, r.ContentLength = endless, -1
	})
	wantFault(t, w, http.StatusRequestEntityTooLarge, "budget_exceeded", "BodyTooLarge")
	if most := 64<<20 + 1<<16; endless.read > most {
		t.Errorf("read %d bytes", endless.read)
	}
}

// counting is a body without an end.
type counting struct{ read int }

func (c *counting) Read(p []byte) (int, error) {
	c.read += len(p)
	return len(p), nil
}
func (c *counting) Close() error { return nil }

func TestABodyThatBreaksOffIsRefused(t *testing.T) {
	w := send(t, guard.Options{Port: port}, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{})), -1
	})
	wantFault(t, w, http.StatusBadRequest, "invalid_tool_input", "BodyUnreadable")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// wantFault checks a refusal and returns its details.
func wantFault(t *testing.T, w *httptest.ResponseRecorder, status int, kind, reason string) map[string]any {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d; want %d; body %s", w.Code, status, w.Body)
	}
	if got := w.Header().Get("x-should-retry"); got != "false" {
		t.Errorf("x-should-retry is %q", got)
	}
	var failure reply.Failure
	if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || failure.Error == nil {
		t.Fatalf("body %q: %v", w.Body, err)
	}
	if string(failure.Error.Kind) != kind || failure.Error.Reason != reason {
		t.Errorf("fault is %s/%s; want %s/%s", failure.Error.Kind, failure.Error.Reason, kind, reason)
	}
	return failure.Error.Details
}

func FuzzHost(f *testing.F) {
	for _, seed := range []string{"127.0.0.1:8970", "[::1]:8970", "localhost", "[", "]:", ":::", "[::1]:8970:8970"} {
		f.Add(seed)
	}
	ours := map[string]bool{"127.0.0.1:8970": true, "localhost:8970": true, "[::1]:8970": true}
	f.Fuzz(func(t *testing.T, host string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		guard.Handler(echo, guard.Options{Port: port}).ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			return
		}
		name, digits, _ := strings.Cut(strings.ToLower(host), "]:")
		if !strings.HasPrefix(host, "[") {
			name, digits, _ = strings.Cut(strings.ToLower(host), ":")
			digits = strings.TrimLeft(digits, "0")
			host = name + ":" + digits
		} else {
			host = name + "]:" + strings.TrimLeft(digits, "0")
		}
		if !ours[host] {
			t.Errorf("%q passed", host)
		}
	})
}
