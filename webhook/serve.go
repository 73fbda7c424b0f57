// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// serve answers admission requests over HTTP.
//
// A handler that fails (as against one that refuses) calls fail, and the API
// server gets HTTP 500: only then does it treat the call as failed and apply
// the configuration's failurePolicy, Ignore or Fail. An AdmissionReview that
// says "not allowed" would refuse the request whatever the failurePolicy says.
// So does a panic.
func serve(handler admission.Handler, log logr.Logger) http.Handler {
	hook := (&admission.Webhook{Handler: handler}).WithRecoverPanic(false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		failed := &failure{}
		answer := &bufferedResponse{header: http.Header{}, code: http.StatusOK}
		func() {
			defer func() {
				if p := recover(); p != nil {
					failed.err = fmt.Errorf("answering an admission request: panic: %v", p)
					log.Error(failed.err, "Panic", "stack", string(debug.Stack()))
				}
			}()
			hook.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), failureKey{}, failed)))
		}()
		if failed.err != nil {
			log.Error(failed.err, "The failurePolicy decides about an admission request", "path", r.URL.Path)
			http.Error(w, failed.err.Error(), http.StatusInternalServerError)
			return
		}
		answer.copyTo(w)
	})
}

type failureKey struct{}

type failure struct{ err error }

// fail makes the API server see a failed call. The response is not sent.
func fail(ctx context.Context, err error) admission.Response {
	if f, ok := ctx.Value(failureKey{}).(*failure); ok {
		f.err = err
	}
	return admission.Errored(http.StatusInternalServerError, err)
}

// bufferedResponse holds an answer until it is known whether it is sent.
type bufferedResponse struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (b *bufferedResponse) Header() http.Header { return b.header }

func (b *bufferedResponse) WriteHeader(code int) { b.code = code }

func (b *bufferedResponse) Write(p []byte) (int, error) { return b.body.Write(p) }

func (b *bufferedResponse) copyTo(w http.ResponseWriter) {
	for name, values := range b.header {
		w.Header()[name] = values
	}
	w.WriteHeader(b.code)
	w.Write(b.body.Bytes())
}
