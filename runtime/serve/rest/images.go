// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

// referencesPath is where references are read, before their ids.
const referencesPath = "/v1/references/"

// reasonUnknown is the reason of a fault about a reference that is not kept. In
// a call of ViewImage it is a bad argument; as an address it is not found.
const reasonUnknown = "ReferenceUnknown"

// uploadImage answers 201 for an image that is new and 200 for one that was
// kept already; both say where its reference is read.
func uploadImage(upload func(context.Context, io.Reader, int64) (*reference.Kept, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := &source{reader: r.Body}
		kept, err := upload(r.Context(), body, r.ContentLength)
		if body.failed != nil {
			err = body.refusal()
		}
		if err != nil {
			if !body.ended && (body.begun || !guard.Waits(r)) {
				_, _ = io.Copy(io.Discard, r.Body) // within the guard's limit; a sender that is cut off hears nothing
			}
			reply.Fault(w, fault.As(err).Normalize())
			return
		}
		w.Header().Set("Location", referencesPath+kept.Reference.ID)
		status := http.StatusCreated
		if kept.Existed {
			status = http.StatusOK
		}
		reply.JSON(w, status, kept)
	}
}

// source is a body that remembers how reading it ended: what an upload says of
// a body that broke off is not what its sender needs to hear.
type source struct {
	reader io.Reader
	begun  bool
	ended  bool
	failed error // why it ended too early
}

func (s *source) Read(p []byte) (int, error) {
	s.begun = true
	n, err := s.reader.Read(p)
	if err != nil {
		s.ended = true
		if !errors.Is(err, io.EOF) {
			s.failed = err
		}
	}
	return n, err
}

// refusal is the guard's, when the body grew over the limit, or that it broke off.
func (s *source) refusal() error {
	if f, ok := errors.AsType[*fault.Fault](s.failed); ok {
		return f
	}
	return guard.Unreadable(s.failed)
}

// getReference answers with what is kept under an id.
func getReference(find func(id string) (*reference.Kept, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if !observation.IsReferenceID(id) {
			reply.Fault(w, fault.New(fault.InvalidToolInput, "ReferenceMalformed", "the id in the path is none of a reference").
				With("field", "id").Hint("An id is vis_ and 16 hexadecimal digits in lower case, as visual_reference.id gives it."))
			return
		}
		kept, err := find(id)
		if err != nil {
			reply.Fault(w, notFound(fault.As(err)))
			return
		}
		reply.JSON(w, http.StatusOK, kept)
	}
}

// notFound gives the fault of a reference that is not kept the status of a path
// that leads nowhere, and leaves others as they are.
func notFound(f *fault.Fault) *fault.Fault {
	f = f.Normalize()
	if f.Reason != reasonUnknown {
		return f
	}
	unknown := *f
	unknown.HTTPStatus = http.StatusNotFound
	return &unknown
}
