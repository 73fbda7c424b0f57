// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// record logs each HTTP call in one line at debug: when the reply's body is
// closed, or when there is no reply. The line holds where the call went, how it
// ended, how long it took until then, and the bytes of both bodies (those of
// the reply after decompression), as far as they were read. It never holds a
// header, a byte of a body, a query or user information, nor what the layers
// below said of a failure.
func record(next http.RoundTripper, log *slog.Logger) http.RoundTripper {
	return &wrapper{next, func(next http.RoundTripper, req *http.Request) (*http.Response, error) {
		if !log.Enabled(req.Context(), slog.LevelDebug) {
			return next.RoundTrip(req)
		}
		c := &call{log: log, req: req, start: time.Now()}
		resp, err := next.RoundTrip(c.counting(req))
		if err != nil {
			c.failed(err)
			c.end()
			return nil, err
		}
		c.status = resp.StatusCode
		resp.Body = &recordedBody{ReadCloser: resp.Body, call: c}
		return resp, nil
	}}
}

// call is what a line is made of.
type call struct {
	log      *slog.Logger
	req      *http.Request
	start    time.Time
	status   int          // 0 without a reply
	sent     atomic.Int64 // may grow after the reply is there
	received int64
	failure  string
	once     sync.Once
}

// counting is req with a body that counts what is read of it.
func (c *call) counting(req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	counted := req.WithContext(req.Context()) // a shallow copy
	counted.Body = &countedBody{req.Body, &c.sent}
	if again := req.GetBody; again != nil {
		counted.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return &countedBody{body, &c.sent}, nil
		}
	}
	return counted
}

// failed keeps of an error what is a fixed phrase: a failure, or the reason of
// a fault such as a key that is not mounted.
func (c *call) failed(err error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		c.failure = f.Reason
		return
	}
	c.failure = string(classify(err))
	if e, ok := errors.AsType[*Error](err); ok {
		c.failure = string(e.Failure)
	}
}

// end writes the line, once.
func (c *call) end() {
	c.once.Do(func() {
		attrs := []slog.Attr{
			slog.String("method", c.req.Method),
			slog.String("host", c.req.URL.Host),
			slog.String("path", c.path()),
			slog.Int("status", c.status),
			slog.Duration("duration", time.Since(c.start)),
			slog.Int64("sent", c.sent.Load()),
			slog.Int64("received", c.received),
		}
		if c.failure != "" {
			attrs = append(attrs, slog.String("failure", c.failure))
		}
		c.log.LogAttrs(c.req.Context(), slog.LevelDebug, "provider called", attrs...)
	})
}

// path is the call's path, unless a reply chose it by a redirect.
func (c *call) path() string {
	if c.req.Response != nil {
		return "(redirected)"
	}
	return c.req.URL.EscapedPath()
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n.Add(int64(n))
	return n, err
}

type recordedBody struct {
	io.ReadCloser
	call *call
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.call.received += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.call.failed(err)
	}
	return n, err
}

func (b *recordedBody) Close() error {
	defer b.call.end()
	return b.ReadCloser.Close()
}
