// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

// ReviewReader makes a review of a body. Its error carries a *fault.Fault.
type ReviewReader func(body []byte) (*review.Request, error)

// reviewRequest answers 200 for every verdict. An address with a query says what
// surrounds a model request, which is the body; without one the body is a
// VisionReview.
func reviewRequest(judge func(context.Context, io.Reader, int64, ReviewReader) (*review.Response, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		read, err := reviewReader(r)
		body := &source{reader: r.Body}
		var response *review.Response
		if err == nil {
			response, err = judge(r.Context(), body, r.ContentLength, read)
		}
		if body.failed != nil {
			err = body.refusal()
		}
		if err != nil {
			if !body.ended && (body.begun || !guard.Waits(r)) {
				_, _ = io.Copy(io.Discard, r.Body) // as for an upload
			}
			reply.Fault(w, fault.As(err).Normalize())
			return
		}
		reply.JSON(w, http.StatusOK, review.Envelope(response))
	}
}

// reviewReader reads the form that the address tells.
func reviewReader(r *http.Request) (ReviewReader, error) {
	if r.URL.RawQuery == "" {
		return review.ReadEnvelope, nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.New(fault.InvalidToolInput, "QueryMalformed", "the query of the address cannot be read").
			Hint("Escape the parameters' values.").Because(err)
	}
	if _, err := review.ReadQuery(query, nil); err != nil {
		return nil, err // before the body is read
	}
	return func(body []byte) (*review.Request, error) { return review.ReadQuery(query, body) }, nil
}
