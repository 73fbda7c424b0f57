// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"math/bits"
	"sync"
)

// Buffers of these sizes are used again: powers of two from 4 KiB up to 4 MiB.
// Those of larger bodies are made to measure, and left to the collector.
const (
	smallest = 12
	largest  = 22
)

var pools [largest - smallest + 1]sync.Pool

// class is which pool has buffers for n bytes; ok is false where none has.
func class(n int64) (at int, ok bool) {
	if n > 1<<largest {
		return 0, false
	}
	return max(bits.Len64(uint64(max(n, 1)-1))-smallest, 0), true
}

// roomFor is what a buffer for n bytes takes.
func roomFor(n int64) int64 {
	if at, ok := class(n); ok {
		return 1 << (at + smallest)
	}
	return n
}

// take is a buffer of n bytes until the trip's end. What it holds is anything.
func (x *trip) take(n int64) []byte {
	at, ok := class(n)
	if !ok {
		return make([]byte, n)
	}
	buf, ok := pools[at].Get().(*[]byte)
	if !ok {
		fresh := make([]byte, 1<<(at+smallest))
		buf = &fresh
	}
	x.received.bufs = append(x.received.bufs, buf)
	return (*buf)[:n]
}

// giveBack lets a buffer be used again.
func giveBack(buf *[]byte) {
	at, _ := class(int64(len(*buf)))
	pools[at].Put(buf)
}

// copying are the buffers through which replies pass.
var copying = sync.Pool{New: func() any {
	buf := make([]byte, 32<<10)
	return &buf
}}
