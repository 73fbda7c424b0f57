// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// wrapper is a RoundTripper made of a function and the one beneath it, so that
// idle connections can be closed through every layer.
type wrapper struct {
	next http.RoundTripper
	trip func(next http.RoundTripper, req *http.Request) (*http.Response, error)
}

// RoundTrip runs the layer.
func (w *wrapper) RoundTrip(req *http.Request) (*http.Response, error) { return w.trip(w.next, req) }

// CloseIdleConnections passes the call down; http.Client looks for it by name.
func (w *wrapper) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// deadline ends the call, reading of the reply included, after d.
func deadline(next http.RoundTripper, d time.Duration) http.RoundTripper {
	return &wrapper{next, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(req.Context(), d)
		resp, err := next.RoundTrip(req.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, err
		}
		resp.Body = &bodyWithClose{ReadCloser: resp.Body, after: cancel}
		return resp, nil
	}}
}

type bodyWithClose struct {
	io.ReadCloser
	after func()
}

func (b *bodyWithClose) Close() error {
	defer b.after()
	return b.ReadCloser.Close()
}

// ownHeaders are never taken from an endpoint's extra headers: they carry
// credentials or belong to the protocol.
var ownHeaders = map[string]bool{
	"Authorization": true, "Proxy-Authorization": true, "Cookie": true,
	"X-Api-Key": true, "Api-Key": true, "X-Goog-Api-Key": true,
	"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Transfer-Encoding": true,
	"Accept-Encoding": true, "Host": true, "Connection": true, "Te": true, "Trailer": true, "Upgrade": true,
}

// setHeaders adds the user agent, where there is one, and an endpoint's extra
// headers, which may replace the user agent but nothing of ownHeaders.
func setHeaders(next http.RoundTripper, agent string, extra []router.Header) http.RoundTripper {
	if agent == "" && len(extra) == 0 {
		return next
	}
	return &wrapper{next, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		req = amended(req)
		if agent != "" {
			req.Header.Set("User-Agent", agent)
		}
		for _, h := range extra {
			if !ownHeaders[textproto.CanonicalMIMEHeaderKey(h.Name)] {
				req.Header.Set(h.Name, h.Value)
			}
		}
		return next.RoundTrip(req)
	}}
}

// amended is a copy of a request whose headers may be set. It shares everything
// else, their values included.
func amended(req *http.Request) *http.Request {
	own := req.WithContext(req.Context())
	own.Header = make(http.Header, len(req.Header)+1)
	maps.Copy(own.Header, req.Header)
	return own
}

// authorize reads the credential and puts it on the request, last, so that
// nothing replaces it.
func authorize(next http.RoundTripper, auth Auth) http.RoundTripper {
	return &wrapper{next, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		key, err := auth.Source()
		if err != nil {
			closeBody(req)
			return nil, err
		}
		req = amended(req)
		req.Header.Set(auth.Header, auth.Scheme+key.Reveal())
		return next.RoundTrip(req)
	}}
}

// guardHost refuses hosts by their spelling before a proxy could resolve them.
func guardHost(next http.RoundTripper) http.RoundTripper {
	return &wrapper{next, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		if err := checkHost(req.URL.Hostname()); err != nil {
			closeBody(req)
			return nil, err
		}
		return next.RoundTrip(req)
	}}
}

// closeBody keeps RoundTripper's promise where a layer does not pass a request on.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // nothing was read from it
	}
}

// limitResponse makes reading more than limit bytes of a reply fail with a *TooLargeError.
func limitResponse(next http.RoundTripper, limit int64) http.RoundTripper {
	return &wrapper{next, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		resp.Body = &limitedBody{ReadCloser: resp.Body, left: limit, limit: limit}
		return resp, nil
	}}
}

// TooLargeError is a reply over the limit.
type TooLargeError struct{ Limit int64 }

// Error gives the limit.
func (e *TooLargeError) Error() string { return fmt.Sprintf("reply is over %d bytes", e.Limit) }

type limitedBody struct {
	io.ReadCloser
	left, limit int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) > b.left {
		return int(b.left), &TooLargeError{Limit: b.limit}
	}
	b.left -= int64(n)
	return n, err
}

// redact turns what the layers below say into an *Error: those texts may
// repeat a malformed reply, and with it a key that the reply repeats.
func redact(next http.RoundTripper) http.RoundTripper {
	return &wrapper{next, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, Redact(req.URL.Host, err)
		}
		resp.Body = &redactedBody{ReadCloser: resp.Body, host: req.URL.Host}
		return resp, nil
	}}
}

type redactedBody struct {
	io.ReadCloser
	host string
}

func (b *redactedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = Redact(b.host, err)
	}
	return n, err
}
