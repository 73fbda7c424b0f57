// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reply writes JSON answers and faults as HTTP. Every listener of the
// runtime answers through it, so that a refusal has one shape everywhere.
package reply

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
)

// Failure is the body of every answer that is not a success. The reference and
// the selection are there when they were known before the failure.
type Failure struct {
	Error           *fault.Fault           `json:"error"`
	VisualReference *observation.Reference `json:"visual_reference,omitempty"`
	VisionSelection *observation.Selection `json:"vision_selection,omitempty"`
}

// DetailRetryAfter is the detail that says how many seconds to wait, rounded up,
// when that is known: for callers who see no headers.
const DetailRetryAfter = "retry_after_seconds"

// NewFailure joins an error, its details bounded, with what is known of the
// image; partial may be nil. The error is not changed.
func NewFailure(err error, partial *observation.Result) *Failure {
	f := fault.As(err)
	if f.RetryAfter > 0 {
		told := *f
		told.Details = maps.Clone(f.Details)
		f = told.With(DetailRetryAfter, seconds(f.RetryAfter))
	}
	failure := &Failure{Error: f.Normalize()}
	if partial != nil {
		failure.VisualReference = partial.VisualReference
		failure.VisionSelection = partial.VisionSelection
	}
	return failure
}

// JSON writes v with a status. Nothing the runtime answers may be kept by a
// cache on the way: it depends on a policy that can change at any time.
func JSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		fail := NewFailure(fault.New(fault.VisionObservationFailed, "Internal", "the answer could not be written as JSON"), nil)
		status = http.StatusInternalServerError
		body, _ = json.Marshal(fail)
	}
	Raw(w, status, body)
}

// Raw writes a body that already is JSON.
func Raw(w http.ResponseWriter, status int, body []byte) {
	head(w, status, int64(len(body)+1))
	_, _ = w.Write(append(slices.Clip(body), '\n')) // the caller's bytes may be shared
}

// Stream writes a body of size bytes that already is JSON, as it is read. One that
// cannot be read to its end breaks the connection off, so that nobody takes what
// came for the whole.
func Stream(w http.ResponseWriter, status int, size int64, body io.Reader) {
	head(w, status, size)
	if n, err := io.Copy(w, body); err != nil || n != size {
		panic(http.ErrAbortHandler)
	}
}

func head(w http.ResponseWriter, status int, size int64) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
}

// Fault writes an error that has no image behind it.
func Fault(w http.ResponseWriter, f *fault.Fault) { Fail(w, NewFailure(f, nil)) }

// Fail writes a failure with its kind's status and the headers that tell
// clients whether to try again: x-should-retry, and Retry-After in whole
// seconds, rounded up, when the wait is known.
func Fail(w http.ResponseWriter, failure *Failure) {
	f := failure.Error
	w.Header().Set("x-should-retry", strconv.FormatBool(f.Retryable))
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(seconds(f.RetryAfter), 10))
	}
	JSON(w, f.Status(), failure)
}

// seconds are whole ones, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Methods serves one path by method; HEAD is served where GET is. Any other
// method is refused with 405 and the list of those that work.
func Methods(byMethod map[string]http.HandlerFunc) http.Handler {
	if get, ok := byMethod[http.MethodGet]; ok {
		byMethod = maps.Clone(byMethod)
		byMethod[http.MethodHead] = get
	}
	allow := strings.Join(slices.Sorted(maps.Keys(byMethod)), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, ok := byMethod[r.Method]; ok {
			h(w, r)
			return
		}
		w.Header().Set("Allow", allow)
		Fault(w, wrong(http.StatusMethodNotAllowed, "MethodNotAllowed", "this path does not take %s; it takes %s", clip(r.Method), allow))
	})
}

// NotFound refuses a path that nothing is served at.
func NotFound(w http.ResponseWriter, r *http.Request) {
	Fault(w, wrong(http.StatusNotFound, "NotFound", "nothing is served at %q", clip(r.URL.Path)).
		Hint("GET /openapi.json lists what this runtime serves."))
}

func wrong(status int, reason, format string, args ...any) *fault.Fault {
	f := fault.New(fault.InvalidToolInput, reason, format, args...)
	f.HTTPStatus = status
	return f
}

// clip bounds text of the caller's that goes into a message.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
