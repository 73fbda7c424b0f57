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
	for host, want := range map[string]int{
		"vision.team-a.svc:8970": 200, "Vision.team-a.svc": 200, "vision.team-a.svc:80": 200, "localhost:8970": 200,
		"vision.team-b.svc:8970": 403, "localhost:80": 403, "vision.team-a.svc:x": 403, "vision.team-a.svc.evil.example:8970": 403, "": 403,
	} {
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
