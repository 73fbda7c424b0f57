// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// idleRead is how long a reply may stand still between two reads of it: the
	// 300 s that agents' own clients give a stream.
	idleRead = 300 * time.Second
	// maxIdleStreams is how many connections wait for the next request: an agent
	// that runs tasks in parallel opens a connection for each only once.
	maxIdleStreams = 16
)

// NewStream returns the client of an endpoint through which whole conversations
// pass. It differs from New's where a reply belongs to the caller's own caller:
//
//   - a reply may be of any size, and is given as it came, compressed or not; no
//     encoding is asked for but the one that the request asks for;
//   - the endpoint's timeout bounds the time until the reply's headers are there,
//     that of sending the request included, and a reply may take as long as it
//     likes as long as no read of it waits for more than 300 s;
//   - no redirect is followed;
//   - the user agent is the request's own; Options.Version is not told.
func NewStream(o Options) (*http.Client, error) {
	return newStream(o, idleRead)
}

func newStream(o Options, idle time.Duration) (*http.Client, error) {
	timeout, err := time.ParseDuration(o.Endpoint.Timeout)
	if err != nil {
		return nil, fmt.Errorf("reading timeout of endpoint %s: %w", o.Endpoint.Name, err)
	}
	base, err := baseTransport(o.Endpoint)
	if err != nil {
		return nil, err
	}
	base.DisableCompression = true
	base.MaxIdleConns, base.MaxIdleConnsPerHost = maxIdleStreams, maxIdleStreams
	rt := identify(base, o, "")
	rt = pace(rt, max(timeout, o.AnswerTimeout), idle)
	return &http.Client{Transport: report(rt, o), CheckRedirect: followNone}, nil
}

func followNone(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// pace ends a call whose reply has no headers after until, and one whose body
// keeps a read waiting for longer than idle. Time in which nobody reads does not
// count: it is the reader's own.
func pace(next http.RoundTripper, until, idle time.Duration) http.RoundTripper {
	return &wrapper{next, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(req.Context())
		timer := time.AfterFunc(until, func() { cancel(context.DeadlineExceeded) })
		resp, err := next.RoundTrip(req.WithContext(ctx))
		if !timer.Stop() && err == nil {
			_ = resp.Body.Close() // the headers came with the end of the time
			err = context.DeadlineExceeded
		}
		if err != nil {
			err = timedOut(ctx, err)
			cancel(nil)
			return nil, err
		}
		resp.Body = &pacedBody{ReadCloser: resp.Body, ctx: ctx, cancel: cancel, timer: timer, idle: idle}
		return resp, nil
	}}
}

// timedOut is err, or that the time was over where that is why the call ended:
// the layers below may say no more than that it was cancelled.
func timedOut(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return err
}

type pacedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer // stopped but for the time of a read; on its end the call is given up
	idle   time.Duration
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = timedOut(b.ctx, err)
	}
	return n, err
}

func (b *pacedBody) Close() error {
	b.timer.Stop()
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
