// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"io"
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

// Answer is one that is written as it is read: it may hold many images.
type Answer interface {
	// Len is how long the JSON is, in bytes.
	Len() int64
	Reader() io.Reader
	// Release lets go of the images; it is called once.
	Release()
}

// answered answers 200 with what ask makes of a body, size bytes or -1: whatever was
// decided, also that nothing is to be changed, is an answer.
func answered(ask func(r *http.Request, body io.Reader, size int64) (Answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := &source{reader: r.Body}
		answer, err := ask(r, body, r.ContentLength)
		if err == nil {
			defer answer.Release()
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
		reply.Stream(w, http.StatusOK, answer.Len(), answer.Reader())
	}
}
