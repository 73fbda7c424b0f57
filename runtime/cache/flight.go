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
	done    chan struct{} // closed when value, err and kept are set
	value   []byte
	err     error
	kept    bool // the store had it: no call was made
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
	e, kept := c.recall(key)
	var err error
	if !kept {
		e.value, err = call(ctx, fn)
		e.stored = c.now()
	}
	f.value, f.err, f.kept = e.value, err, kept
	c.mu.Lock()
	if c.flights[key] == f {
		delete(c.flights, key)
	}
	keep := err == nil && c.put(key, e)
	c.mu.Unlock()
	if keep && !kept {
		c.persist(key, e) // before the answer, so that what was answered is found after a restart
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
