// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"net/url"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/review"
)

// ReviewReader makes a review of a body. Its error carries a *fault.Fault.
type ReviewReader func(body []byte) (*review.Request, error)

// reviewReader reads the form that the address tells: one with a query says what
// surrounds a model request, which is the body; without one the body is a
// VisionReview.
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
