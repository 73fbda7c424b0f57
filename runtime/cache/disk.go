// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"sync/atomic"

	"github.com/visionoperator/vision-operator/runtime/store"
)

// diskHealth tells of a disk that fails once, and not of every failure.
type diskHealth struct {
	report atomic.Pointer[func(error)]
	ill    atomic.Bool
}

func (d *diskHealth) failed(err error) {
	if bad, ok := errors.AsType[*store.Error](err); ok && bad.Reason == store.Closed {
		return // a call that was under way when the store was taken away
	}
	report := d.report.Load()
	if !d.ill.Swap(true) && report != nil {
		(*report)(err)
	}
}

// OnStoreError sets what is called when the store fails: at the first failure,
// and again only at one that follows a value that could be written. The error
// is a *store.Error; it holds nothing of what is kept. A disk that fails never
// fails a Do, so this is the only sign of it.
func (c *Cache) OnStoreError(report func(error)) { c.disk.report.Store(&report) }

// SetStore makes values be kept in a store as well, and be looked for there
// when memory does not have them; nil ends that. What is in memory already is
// not written. The store takes on the cache's limits, once these are above
// zero. It is the cache's alone; the caller closes it after the next SetStore
// or the last Do.
func (c *Cache) SetStore(s *store.Store) {
	c.setting.Lock()
	defer c.setting.Unlock()
	c.mu.Lock()
	c.store = s
	limits := c.limits
	c.mu.Unlock()
	c.disk.ill.Store(false)
	bound(s, limits)
}

// bound passes limits on to a store. A cache that has none yet must not empty
// what was kept before.
func bound(s *store.Store, limits Limits) {
	if s != nil && limits.MaxBytes > 0 && limits.MaxEntries > 0 {
		s.SetLimits(limits.MaxBytes, limits.MaxEntries)
	}
}

// entryName is the name of a key in the store.
func entryName(key Key) string { return hex.EncodeToString(key[:]) }

// recall reads an entry from the store. It is called without the lock.
func (c *Cache) recall(key Key) (entry, bool) {
	c.mu.Lock()
	s, ttl := c.store, c.limits.TTL
	c.mu.Unlock()
	if s == nil || ttl <= 0 {
		return entry{}, false
	}
	name := entryName(key)
	value, stored, err := s.Get(name)
	e := entry{value: value, stored: stored}
	switch {
	case err == nil && e.fresh(c.now(), ttl):
		return e, true
	case err == nil:
		err = s.Delete(name)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		c.disk.failed(err)
	}
	return entry{}, false
}

// persist writes an entry to the store. It is called without the lock.
func (c *Cache) persist(key Key, e entry) {
	c.mu.Lock()
	s := c.store
	c.mu.Unlock()
	if s == nil {
		return
	}
	err := s.Put(entryName(key), e.value)
	if bad, ok := errors.AsType[*store.Error](err); ok && bad.Reason == store.TooLarge {
		return // a file takes a block at least; memory has it
	}
	if err != nil {
		c.disk.failed(err)
		return
	}
	c.disk.ill.Store(false)
}
