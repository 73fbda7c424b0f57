// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/rest"
)

var kept = reference.Kept{
	Reference: observation.NewReference("vision://vis_abababababababab", strings.Repeat("ab", 32), "image/png", 70, 2, 3),
	URI:       "vision://vis_abababababababab", Uploaded: true, CreatedAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
}

// send sends a request to an API whose images may have 100 bytes.
func send(t *testing.T, opts rest.Options, r *http.Request) (*httptest.ResponseRecorder, map[string]any) {
	t.Helper()
	opts.MaxImageBytes = func() int64 { return 100 }
	r.Host = "127.0.0.1:8970"
	w := httptest.NewRecorder()
	serve.Handler(rest.Routes(opts), serve.Options{Guard: guard.Options{Port: 8970}}).ServeHTTP(w, r)
	var decoded map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &decoded); err != nil {
		t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
	}
	return w, decoded
}

func image(body io.Reader) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/images", body)
	r.Header.Set("Content-Type", "image/png")
	return r
}

// reading is an upload that reads to the end, and fails as a keeper would that
// knows nothing of HTTP.
func reading(got *[]byte, size *int64) rest.Options {
	return rest.Options{Upload: func(_ context.Context, r io.Reader, n int64) (*reference.Kept, error) {
		data, err := io.ReadAll(r)
		*got, *size = data, n
		if err != nil {
			return nil, fault.New(fault.ImageReadFailed, "Torn", "reading failed").Because(err)
		}
		answer := kept
		return &answer, nil
	}}
}

func TestAnUploadIsAnsweredWithItsReferenceAndWhereItIsRead(t *testing.T) {
	for name, existed := range map[string]bool{"new": false, "there already": true} {
		answer := kept
		answer.Existed = existed
		w, body := send(t, rest.Options{
			Upload: func(context.Context, io.Reader, int64) (*reference.Kept, error) { return &answer, nil },
		}, image(strings.NewReader("x")))
		want := map[bool]int{false: http.StatusCreated, true: http.StatusOK}[existed]
		if w.Code != want || w.Header().Get("Location") != "/v1/references/vis_abababababababab" {
			t.Errorf("%s: status %d, Location %q", name, w.Code, w.Header().Get("Location"))
		}
		ref := body["visual_reference"].(map[string]any)
		delete(body, "visual_reference")
		if wanted := (map[string]any{"uri": "vision://vis_abababababababab", "uploaded": true, "created_at": "2026-11-30T12:00:00Z"}); !reflect.DeepEqual(body, wanted) {
			t.Errorf("%s: body is %v", name, body)
		}
		if ref["id"] != "vis_abababababababab" || ref["sha256"] != strings.Repeat("ab", 32) || ref["mime"] != "image/png" || ref["byte_count"] != 70.0 {
			t.Errorf("%s: reference is %v", name, ref)
		}
	}
}

func TestAnUploadIsHandedOnAsItComes(t *testing.T) {
	bytesOfAll := make([]byte, 100)
	for i := range bytesOfAll {
		bytesOfAll[i] = byte(i * 37)
	}
	for name, length := range map[string]int64{"with its length": 100, "chunked": -1} {
		var got []byte
		var size int64
		r := image(bytes.NewReader(bytesOfAll))
		r.ContentLength = length
		if w, _ := send(t, reading(&got, &size), r); w.Code != http.StatusCreated || !bytes.Equal(got, bytesOfAll) || size != length {
			t.Errorf("%s: status %d, %d bytes, size %d", name, w.Code, len(got), size)
		}
	}
}

func TestAnUploadOverTheLimitIsRefusedWhateverTheKeeperSays(t *testing.T) {
	for name, length := range map[string]int64{"with its length": 101, "chunked": -1} {
		var got []byte
		var size int64
		r := image(bytes.NewReader(make([]byte, 101)))
		r.ContentLength = length
		w, body := send(t, reading(&got, &size), r)
		failed := body["error"].(map[string]any)
		if w.Code != http.StatusRequestEntityTooLarge || failed["kind"] != "budget_exceeded" || failed["reason"] != "BodyTooLarge" {
			t.Errorf("%s: status %d, %v", name, w.Code, failed)
		}
		if details := failed["details"].(map[string]any); details["max_body_bytes"] != 100.0 || length > 0 && details["body_bytes"] != 101.0 {
			t.Errorf("%s: details are %v", name, details)
		}
		if len(got) > 100 {
			t.Errorf("%s: %d bytes were handed on", name, len(got))
		}
	}
}

func TestAnUploadThatBreaksOffIsTheSendersFault(t *testing.T) {
	var got []byte
	var size int64
	r := image(io.MultiReader(strings.NewReader("x"), torn{}))
	w, body := send(t, reading(&got, &size), r)
	if reason := body["error"].(map[string]any)["reason"]; w.Code != http.StatusBadRequest || reason != "BodyUnreadable" {
		t.Errorf("status %d, %v", w.Code, body)
	}
}

type torn struct{}

func (torn) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestARefusedUploadIsReadToItsEndSoThatItsSenderHears(t *testing.T) {
	source := strings.NewReader(strings.Repeat("x", 90))
	refusing := rest.Options{Upload: func(_ context.Context, r io.Reader, _ int64) (*reference.Kept, error) {
		_, _ = r.Read(make([]byte, 5))
		return nil, fault.New(fault.PolicyDenied, "ProfileNotFound", "no").With("x", strings.Repeat("y", 5000))
	}}
	w, body := send(t, refusing, image(source))
	failed := body["error"].(map[string]any)
	if w.Code != http.StatusForbidden || failed["reason"] != "ProfileNotFound" || source.Len() != 0 {
		t.Errorf("status %d, %v, %d bytes left", w.Code, failed["reason"], source.Len())
	}
	if details := failed["details"].(map[string]any); details["omitted"] != true || len(details["sha256"].(string)) != 64 {
		t.Errorf("details are %v", details)
	}
}

func TestARefusedUploadIsNotAskedForWhenItsSenderWaits(t *testing.T) {
	for name, tc := range map[string]struct{ read, left int }{"nothing was read": {0, 90}, "it was asked for": {5, 0}} {
		source := strings.NewReader(strings.Repeat("x", 90))
		r := image(source)
		r.ContentLength = 90
		r.Header.Set("Expect", "100-continue")
		w, _ := send(t, rest.Options{Upload: func(_ context.Context, r io.Reader, _ int64) (*reference.Kept, error) {
			if tc.read > 0 {
				_, _ = r.Read(make([]byte, tc.read))
			}
			return nil, fault.New(fault.PolicyDenied, "ProfileNotFound", "no")
		}}, r)
		if w.Code != http.StatusForbidden || source.Len() != tc.left {
			t.Errorf("%s: status %d, %d bytes left", name, w.Code, source.Len())
		}
	}
}

func TestAnUploadThatDoesNotComeInTimeMayBeSentAgain(t *testing.T) {
	var got []byte
	var size int64
	w, body := send(t, reading(&got, &size), image(io.MultiReader(strings.NewReader("x"), late{})))
	if failed := body["error"].(map[string]any); w.Code != http.StatusRequestTimeout || failed["reason"] != "BodyTimeout" || failed["retryable"] != true {
		t.Errorf("status %d, %v", w.Code, body)
	}
}

type late struct{}

func (late) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestAForeignErrorOfAnUploadIsNotShown(t *testing.T) {
	failing := rest.Options{Upload: func(context.Context, io.Reader, int64) (*reference.Kept, error) {
		return nil, errors.New("open /var/cache/secret: denied")
	}}
	w, _ := send(t, failing, image(strings.NewReader("x")))
	if w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

func TestAReferenceIsFoundByItsID(t *testing.T) {
	var asked []string
	opts := rest.Options{Reference: func(id string) (*reference.Kept, error) {
		asked = append(asked, id)
		switch id {
		case kept.Reference.ID:
			answer := kept
			return &answer, nil
		case "vis_0000000000000000":
			return nil, fault.New(fault.InvalidToolInput, "ReferenceUnknown", "not kept").Hint("Upload it.")
		}
		return nil, fault.New(fault.RouterUnavailable, "NoRouter", "not yet")
	}}
	tests := []struct {
		name, id string
		status   int
		reason   string
	}{
		{"one that is kept", "vis_abababababababab", 200, ""},
		{"one that is not kept", "vis_0000000000000000", 404, "ReferenceUnknown"},
		{"another failure keeps its own status", "vis_1111111111111111", 503, "NoRouter"},
		{"no prefix", "abababababababab", 400, "ReferenceMalformed"},
		{"capitals", "vis_ABABABABABABABAB", 400, "ReferenceMalformed"},
		{"a digit too few", "vis_ababababababab1", 400, "ReferenceMalformed"},
		{"a digit too many", "vis_ababababababababa", 400, "ReferenceMalformed"},
		{"another letter", "vis_abababababababag", 400, "ReferenceMalformed"},
		{"a way out", "..%2f..%2fetc%2fpasswd", 400, "ReferenceMalformed"},
		{"a slash within", "vis_ababababab%2fbabab", 400, "ReferenceMalformed"},
		{"a line feed", "vis_abababababababab%0a", 400, "ReferenceMalformed"},
		{"a whole URI", "vision:%2f%2fvis_abababababababab", 400, "ReferenceMalformed"},
		{"a path below", "vis_abababababababab/more", 404, "NotFound"},
		{"nothing", "", 404, "NotFound"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			asked = nil
			w, body := send(t, opts, httptest.NewRequest(http.MethodGet, "/v1/references/"+test.id, nil))
			if w.Code != test.status {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if test.reason == "" {
				if body["uri"] != kept.URI || body["visual_reference"] == nil {
					t.Errorf("body is %v", body)
				}
				return
			}
			if failed := body["error"].(map[string]any); failed["reason"] != test.reason {
				t.Errorf("error is %v", failed)
			}
			if test.reason == "ReferenceMalformed" && len(asked) != 0 {
				t.Errorf("the keeper was asked for %q", asked)
			}
		})
	}
}

func TestAnUnknownReferenceDoesNotChangeTheKeepersFault(t *testing.T) {
	shared := fault.New(fault.InvalidToolInput, "ReferenceUnknown", "not kept")
	opts := rest.Options{Reference: func(string) (*reference.Kept, error) { return nil, shared }}
	send(t, opts, httptest.NewRequest(http.MethodGet, "/v1/references/vis_0000000000000000", nil))
	if shared.Status() != http.StatusBadRequest {
		t.Errorf("its status is %d now", shared.Status())
	}
}
