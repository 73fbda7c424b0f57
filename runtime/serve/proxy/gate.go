// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"net/http"
	"sync"
)

// gate stands before what the bodies of requests are read from. net/http may read
// a request's body when the reply is there already, and even when that has been
// closed; once the gate is closed, nothing is read any more, and the bytes behind
// it may be used for something else.
type gate struct {
	mu     sync.Mutex
	closed bool
	sent   int64
	newest *gated
}

// close returns when nothing is read any more: how many bytes were.
func (g *gate) close() (sent int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return g.sent
}

// through says that all of the newest body was read.
func (g *gate) through() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.newest == nil || g.newest.left == 0
}

// body is a request's body of size bytes that reads behind the gate.
func (g *gate) body(from io.Reader, size int64) io.ReadCloser {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.newest = &gated{gate: g, from: from, left: size}
	return g.newest
}

type gated struct {
	gate *gate
	from io.Reader
	left int64 // that is still to be read
}

func (b *gated) Read(p []byte) (int, error) {
	b.gate.mu.Lock()
	defer b.gate.mu.Unlock()
	switch {
	case b.left == 0:
		return 0, io.EOF // net/http reads behind the end, when the gate may be closed
	case b.gate.closed:
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.gate.sent += int64(n)
	b.left -= int64(n)
	return n, err
}

// Close leaves the gate to its owner: a request that is sent again, since the
// connection was stale, has a body of its own.
func (*gated) Close() error { return nil }
