// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"time"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// maxRefusal is how much is read of a reply to find out whether another body would
// be taken: 64 KiB, far above any vendor's error.
const maxRefusal = 64 << 10

// content is what is sent as a body.
type content struct {
	size   int64
	reader func() io.Reader
	// wire says that it is what the client sent, in its encoding.
	wire bool
}

// contentOf is what is sent of a body: what the client sent, where nothing is changed.
func (x *trip) contentOf(body *message.Spliced) content {
	if body == nil || !body.Changed() {
		wire := x.received.wire
		return content{int64(len(wire)), func() io.Reader { return bytes.NewReader(wire) }, true}
	}
	return content{body.Len(), body.Reader, false}
}

// forward sends a request and passes the reply on.
func (x *trip) forward(p *Prepared) {
	informing := &informing{w: x.w, over: !x.r.ProtoAtLeast(1, 1)}
	ctx := httptrace.WithClientTrace(x.r.Context(), informing.trace())
	headers := upstreamHeaders(x.r.Header)
	if p.Preparation != nil && x.call.dialect == message.OpenAIResponses && x.call.operation == Generating {
		headers["Accept-Encoding"] = []string{"identity"} // so that Tap can read it
	}
	send := func(body content) (*http.Response, error) {
		req, err := x.request(ctx, p, withAdded(headers, p.Preparation), body)
		if err != nil {
			return nil, err
		}
		return roundTripper(p.Client).RoundTrip(req)
	}
	resp, err := send(x.contentOf(p.Body))
	if err == nil && p.Preparation != nil && p.MayRetry(resp.StatusCode) {
		resp, err = x.tryAgain(p, resp, send)
	}
	informing.stop()
	if err != nil {
		x.unreached(p, err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < http.StatusOK { // 101, for which nobody has asked, and what is no status
		x.unreached(p, errNoReply)
		return
	}
	x.Status, x.Answering = resp.StatusCode, time.Since(x.Began)
	tap := tapOf(p, resp)
	if x.sending.through() {
		x.letGo() // a reply may take minutes, and its request need not wait in memory
	}
	x.relay(resp, tap)
}

// withAdded are headers, and behind their values those that the body needs said.
func withAdded(headers http.Header, p Preparation) http.Header {
	if p == nil {
		return headers
	}
	if added := p.Header(); len(added) > 0 {
		return withMore(headers, added)
	}
	return headers
}

// tryAgain sends another body, once, where the reply refuses the first and there
// is another. Otherwise the reply is what it was.
func (x *trip) tryAgain(p *Prepared, resp *http.Response, send func(content) (*http.Response, error)) (*http.Response, error) {
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err == nil {
		if body, ok := p.Retry(resp.StatusCode, plainOf(resp.Header, head)); ok {
			_ = resp.Body.Close()
			x.Retried = true
			return send(x.contentOf(body))
		}
	}
	resp.Body = &resumed{ReadCloser: resp.Body, head: head, failed: err}
	return resp, nil
}

// plainOf is the beginning of a reply without its encoding, as far as it can be read.
func plainOf(h http.Header, head []byte) []byte {
	coding, f := codingOf(h)
	if f != nil || coding == "" {
		return head
	}
	from, stop, err := decoder(bytes.NewReader(head), coding, zstdWindow)
	if err != nil {
		return head
	}
	defer stop()
	plain, _ := io.ReadAll(io.LimitReader(from, maxRefusal)) // it may be cut
	return plain
}

// resumed is a body of which the head was read already.
type resumed struct {
	io.ReadCloser
	head   []byte
	failed error // with which reading the head ended, nil for its end
}

func (b *resumed) Read(p []byte) (int, error) {
	if len(b.head) > 0 {
		n := copy(p, b.head)
		b.head = b.head[n:]
		return n, nil
	}
	if b.failed != nil {
		return 0, b.failed
	}
	return b.ReadCloser.Read(p)
}

// request is what goes up.
func (x *trip) request(ctx context.Context, p *Prepared, headers http.Header, body content) (*http.Request, error) {
	address := x.call.address(&p.Target)
	req, err := http.NewRequestWithContext(ctx, x.r.Method, address, nil)
	if err != nil {
		return nil, err
	}
	if query := upstreamQuery(x.r.URL.RawQuery, req.URL.RawQuery != ""); query != "" {
		if req.URL.RawQuery != "" {
			query = req.URL.RawQuery + "&" + query
		}
		req.URL.RawQuery = query
	}
	req.Header = headers
	if !body.wire && headers["Content-Encoding"] != nil {
		req.Header = maps.Clone(headers)
		delete(req.Header, "Content-Encoding")
	}
	if body.size > 0 {
		req.ContentLength = body.size
		req.GetBody = func() (io.ReadCloser, error) { return x.sending.body(body.reader(), body.size), nil }
		req.Body, _ = req.GetBody() // never fails
	}
	return req, nil
}

// roundTripper is what a client sends requests with: whatever the reply is, a
// redirect included, it is the caller's.
func roundTripper(client *http.Client) http.RoundTripper {
	if client.Transport == nil {
		return http.DefaultTransport
	}
	return client.Transport
}

// informing passes informational replies on (RFC 9110 §15.2), but for 100, which
// the server sends by itself when the body is read, and to nobody who speaks
// HTTP/1.0, where there are none.
type informing struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool // the reply itself is there, or none is to come before it
}

func (i *informing) stop() {
	i.mu.Lock()
	i.over = true
	i.mu.Unlock()
}

func (i *informing) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.over || status == http.StatusContinue {
			return nil
		}
		to := i.w.Header()
		downstreamHeaders(to, http.Header(header))
		i.w.WriteHeader(status)
		clear(to) // none of them is the reply's
		return nil
	}}
}

// errNoReply is a reply that is none.
var errNoReply = errors.New("passing a reply on: its status is no final one")

// gone says whether the caller is not there any more, or the runtime is about to end.
func gone(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
