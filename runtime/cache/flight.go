// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"runtime/debug"
)

// flight is one call that requests wait for.
type flight struct {
	cancel  context.CancelFunc
	waiting int           // guarded by Cache.mu
	done    chan struct{} // closed when value and err are set
	value   []byte
	err     error
}

// PanicError is a call that panicked. The panic's value is not kept: it may
// hold anything.
type PanicError struct{ Stack []byte }

// Error is a fixed text.
func (*PanicError) Error() string { return "making an observation: the call panicked" }

// depart starts a call. It is called with the lock held.
func (c *Cache) depart(ctx context.Context, key Key, fn func(context.Context) ([]byte, error)) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{cancel: cancel, done: make(chan struct{})}
	c.flights[key] = f
	go c.fly(ctx, key, f, fn)
	return f
}

func (c *Cache) fly(ctx context.Context, key Key, f *flight, fn func(context.Context) ([]byte, error)) {
	defer f.cancel()
	value, err := call(ctx, fn)
	c.mu.Lock()
	defer c.mu.Unlock()
	f.value, f.err = value, err
	if c.flights[key] == f {
		delete(c.flights, key)
	}
	if err == nil {
		c.put(key, value)
	}
	close(f.done)
}

func call(ctx context.Context, fn func(context.Context) ([]byte, error)) (value []byte, err error) {
	defer func() {
		if recover() != nil {
			value, err = nil, &PanicError{Stack: debug.Stack()}
		}
	}()
	return fn(ctx)
}

// leave takes one waiting request from a flight. The last one cancels it, and
// makes way for a new flight at once.
func (c *Cache) leave(key Key, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiting--
	if f.waiting > 0 {
		return
	}
	f.cancel()
	if c.flights[key] == f {
		delete(c.flights, key)
	}
}
