// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reply_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

func TestRetryAfterIsInWholeSecondsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{0: "", time.Millisecond: "1", time.Second: "1", 1001 * time.Millisecond: "2", time.Minute: "60"} {
		w := httptest.NewRecorder()
		reply.Fault(w, &fault.Fault{Kind: fault.QuotaExceeded, RetryAfter: wait})
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%s: Retry-After %q; want %q", wait, got, want)
		}
	}
}

func TestAnAnswerIsNeverKeptNorGuessedAt(t *testing.T) {
	w := httptest.NewRecorder()
	reply.JSON(w, http.StatusOK, map[string]int{"a": 1})
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Length": "8",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
	if w.Body.String() != "{\"a\":1}\n" {
		t.Errorf("body is %q", w.Body)
	}
}

func TestRawLeavesItsArgumentAlone(t *testing.T) {
	shared := make([]byte, 2, 10)
	copy(shared, "{}")
	reply.Raw(httptest.NewRecorder(), http.StatusOK, shared)
	if got := string(shared[:3]); got != "{}\x00" {
		t.Errorf("the caller's bytes are now %q", got)
	}
}

func TestAStreamIsWholeOrBrokenOff(t *testing.T) {
	w := httptest.NewRecorder()
	reply.Stream(w, http.StatusOK, 2, strings.NewReader("{}"))
	if w.Body.String() != "{}" || w.Header().Get("Content-Length") != "2" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%v: %s", w.Header(), w.Body)
	}
	for _, size := range []int64{1, 3} {
		func() {
			defer func() {
				if got, _ := recover().(error); !errors.Is(got, http.ErrAbortHandler) {
					t.Errorf("%d bytes: %v", size, got)
				}
			}()
			reply.Stream(httptest.NewRecorder(), http.StatusOK, size, strings.NewReader("{}"))
		}()
	}
}

func TestAnAnswerThatIsNoJSONBecomesAFault(t *testing.T) {
	w := httptest.NewRecorder()
	reply.JSON(w, http.StatusOK, math.NaN())
	var failure reply.Failure
	if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || w.Code != 500 || failure.Error.Reason != "Internal" {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

func TestMethods(t *testing.T) {
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	both := reply.Methods(map[string]http.HandlerFunc{http.MethodGet: ok, http.MethodPost: ok})
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 200, "PUT": 405, "get": 405} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method = method
		both.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: status %d; want %d", method, w.Code, want)
		}
		if want == 405 && w.Header().Get("Allow") != "GET, HEAD, POST" {
			t.Errorf("%s: Allow %q", method, w.Header().Get("Allow"))
		}
	}
}

func TestALongPathIsNotRepeatedWhole(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.URL.Path = "/" + strings.Repeat("é", 5000)
	reply.NotFound(w, r)
	if w.Code != 404 || w.Body.Len() > 1500 {
		t.Errorf("status %d, %d bytes", w.Code, w.Body.Len())
	}
}
