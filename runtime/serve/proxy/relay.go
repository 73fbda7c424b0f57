// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"
)

// relay passes a reply on as it comes. A reply that breaks off upstream breaks
// off for the client: it must not look whole. tap may be nil.
func (x *trip) relay(resp *http.Response, tap io.WriteCloser) {
	if tap != nil {
		defer func() { _ = tap.Close() }() // what it learnt is its own matter
	}
	h := x.w.Header()
	downstreamHeaders(h, resp.Header)
	tell(h, x.Record)
	announced := len(resp.Trailer)
	if announced > 0 {
		names := make([]string, 0, announced)
		for name := range resp.Trailer {
			names = append(names, name)
		}
		h.Set("Trailer", strings.Join(names, ", "))
	}
	x.w.WriteHeader(resp.StatusCode)
	control := http.NewResponseController(x.w)
	live := resp.ContentLength < 0 || announced > 0 // of a length that is told, nobody waits for pieces
	if live {
		_ = control.Flush() // a client that is gone is seen when something is written
	}
	switch err := x.pass(resp.Body, tap, control, live); {
	case errors.Is(err, errClient) || err != nil && gone(x.r.Context()):
		x.Result = Canceled
		panic(http.ErrAbortHandler)
	case err != nil:
		x.Result = Broken
		panic(http.ErrAbortHandler)
	}
	x.Result = Answered
	for name, values := range resp.Trailer {
		if len(resp.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = values
	}
}

// tapOf is what learns from a reply; nil for one that nothing is to be learnt
// from, or that cannot be read.
func tapOf(p *Prepared, resp *http.Response) io.WriteCloser {
	if p.Preparation == nil || resp.StatusCode >= http.StatusMultipleChoices || resp.Header.Get("Content-Encoding") != "" {
		return nil
	}
	return p.Tap(resp.Header.Get("Content-Type"))
}

// errClient is that the client takes no more.
var errClient = errors.New("passing a reply on: the client is gone")

// pass copies a body piece by piece, and no faster than the client reads.
func (x *trip) pass(from io.Reader, tap io.Writer, control *http.ResponseController, live bool) error {
	buf := copying.Get().(*[]byte)
	defer copying.Put(buf)
	for {
		n, err := from.Read(*buf)
		if n > 0 {
			x.Received += int64(n)
			piece := (*buf)[:n]
			if tap != nil {
				_, _ = tap.Write(piece) // before the client, whose next request may need it
			}
			if _, failed := x.w.Write(piece); failed != nil {
				return errClient
			}
			if live && control.Flush() != nil {
				return errClient
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
