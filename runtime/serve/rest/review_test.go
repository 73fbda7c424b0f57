// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/serve/rest"
)

// reviewing reads the whole body, makes a review of it, and gives answer.
func reviewing(got *review.Request, answer *review.Response, err error) rest.Options {
	return rest.Options{
		MaxReviewBytes: func() int64 { return 100 },
		Review: func(_ context.Context, r io.Reader, _ int64, read rest.ReviewReader) (rest.Answer, error) {
			body, failed := io.ReadAll(r)
			if failed != nil {
				return nil, fault.As(failed)
			}
			req, failed := read(body)
			if failed != nil {
				return nil, failed
			}
			*got = *req
			if err != nil {
				return nil, err
			}
			said, failed := review.Written(answer, nil)
			return verdict{said}, failed
		},
	}
}

// verdict is an answer that holds nothing.
type verdict struct{ *message.Spliced }

func (verdict) Release() {}

func reviewOf(address, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, address, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func TestTheTwoFormsOfAReviewAreToldApartByTheQuery(t *testing.T) {
	for name, tc := range map[string]struct{ address, body, want string }{
		"an envelope":                           {"/v1/review", `{"request":{"path":"/v1/messages","body":{"a": 1}}}`, `{"a": 1}`},
		"a request with a query":                {"/v1/review?path=%2Fv1%2Fmessages", `{"a": 1}`, `{"a": 1}`},
		"a request that looks like an envelope": {"/v1/review?path=/v1/messages", `{"request":{}}`, `{"request":{}}`},
	} {
		var got review.Request
		w, body := send(t, reviewing(&got, &review.Response{UID: "u", Allowed: true}, nil), reviewOf(tc.address, tc.body))
		response, _ := body["response"].(map[string]any)
		if w.Code != http.StatusOK || string(got.Body) != tc.want || got.Path != "/v1/messages" || response["uid"] != "u" || body["kind"] != "VisionReview" {
			t.Errorf("%s: status %d, %+v, %v", name, w.Code, got, body)
		}
	}
}

func TestEveryVerdictIsAnswered200(t *testing.T) {
	var got review.Request
	denied := &review.Response{Status: &review.Status{Code: 403, Reason: "No", Body: []byte(`{"error":{}}`)}}
	w, body := send(t, reviewing(&got, denied, nil), reviewOf("/v1/review?path=/v1/messages", `{}`))
	if response := body["response"].(map[string]any); w.Code != http.StatusOK || response["allowed"] != false || response["status"].(map[string]any)["code"] != 403.0 {
		t.Errorf("status %d, %v", w.Code, body)
	}
}

func TestAReviewThatCannotBeJudgedIsAFault(t *testing.T) {
	for name, tc := range map[string]struct {
		address, body, reason string
		status                int
		err                   error
	}{
		"no envelope":            {"/v1/review", `{}`, "Missing", 400, nil},
		"a parameter too many":   {"/v1/review?pth=/v1/messages", `{}`, "Unknown", 400, nil},
		"a query that is broken": {"/v1/review?path=%zz", `{}`, "QueryMalformed", 400, nil},
		"a body over the limit":  {"/v1/review?path=/v1/messages", strings.Repeat(" ", 101), "BodyTooLarge", 413, nil},
		"no router":              {"/v1/review?path=/v1/messages", `{}`, "NoRouter", 503, fault.New(fault.RouterUnavailable, "NoRouter", "not yet")},
	} {
		for form, length := range map[string]int64{"with its length": int64(len(tc.body)), "chunked": -1} {
			var got review.Request
			r := reviewOf(tc.address, tc.body)
			r.ContentLength = length
			w, body := send(t, reviewing(&got, nil, tc.err), r)
			failed, _ := body["error"].(map[string]any)
			if w.Code != tc.status || failed["reason"] != tc.reason {
				t.Errorf("%s, %s: status %d, %v", name, form, w.Code, body)
			}
		}
	}
}
