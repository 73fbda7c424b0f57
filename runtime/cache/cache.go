// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps observations in memory, bounded by entries, by bytes and
// by age, and lets equal requests that meet share one call. With a store it
// also keeps them on disk, where they outlive the process. It holds opaque
// bytes; failures are never kept.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/visionoperator/vision-operator/runtime/store"
)

// Key names one observation.
type Key [sha256.Size]byte

// Fields are everything that an observation depends on. Two requests with
// equal fields would get answers of equal worth; any difference is another key.
type Fields struct {
	// ImageSHA256 is the whole digest of the image's bytes.
	ImageSHA256 string
	// Prompt is the caller's, trimmed.
	Prompt string
	// Provider is the object, "namespace/name": an alias may come to mean another.
	Provider string
	// Endpoint is the endpoint's name, and EndpointDigest names its settings
	// (URL, headers, transport), so that a provider that moves is asked anew.
	Endpoint       string
	EndpointDigest string
	// Model is the name as the endpoint knows it.
	Model string
	// Schema is the version of the observation's shape, and Policy names the
	// instructions and the way of asking.
	Schema string
	Policy string
}

// Key digests the fields, each with its length before it, so that no two
// different lists of fields run together.
func (f Fields) Key() Key {
	h := sha256.New()
	var n [8]byte
	for _, s := range []string{f.ImageSHA256, f.Prompt, f.Provider, f.Endpoint, f.EndpointDigest, f.Model, f.Schema, f.Policy} {
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return Key(h.Sum(nil))
}

// Limits bound a Cache. Each is above zero.
type Limits struct {
	TTL        time.Duration
	MaxEntries int
	// MaxBytes counts values and entryOverhead for each.
	MaxBytes int64
}

// entryOverhead is what an entry costs beside its value, in bytes: the key, the
// list element and the map's slot.
const entryOverhead = 256

// Cache is safe for concurrent use.
type Cache struct {
	now     func() time.Time
	setting sync.Mutex // one change of the limits or of the store at a time
	disk    diskHealth

	mu      sync.Mutex // never held while the disk is read or written
	limits  Limits
	store   *store.Store // nil when values are in memory only
	entries *simplelru.LRU[Key, entry]
	bytes   int64
	flights map[Key]*flight
}

type entry struct {
	value  []byte
	stored time.Time
}

func (e entry) size() int64 { return int64(len(e.value)) + entryOverhead }

// fresh reports whether an entry may still be used. One that was stored after
// now is not: the clock went back, and how old the entry is cannot be told.
func (e entry) fresh(now time.Time, ttl time.Duration) bool {
	age := now.Sub(e.stored)
	return age >= 0 && age < ttl
}

// New returns an empty Cache. now is the clock; nil means time.Now.
func New(limits Limits, now func() time.Time) *Cache {
	if now == nil {
		now = time.Now
	}
	c := &Cache{now: now, limits: limits, flights: map[Key]*flight{}}
	// The size only has to be above zero: Set evicts by its own rules.
	c.entries, _ = simplelru.NewLRU(max(limits.MaxEntries, 1), func(_ Key, e entry) { c.bytes -= e.size() })
	return c
}

// SetLimits changes the limits, also those of the store; what is over them
// goes, oldest first. A shorter TTL counts for entries that are already there.
func (c *Cache) SetLimits(limits Limits) {
	c.setting.Lock()
	defer c.setting.Unlock()
	c.mu.Lock()
	c.limits = limits
	c.entries.Resize(max(limits.MaxEntries, 1))
	c.shrink()
	s := c.store
	c.mu.Unlock()
	bound(s, limits)
}

// Len and Bytes tell what is held.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Len()
}

// Bytes is the size of what is held, overhead included.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}

// get returns a fresh entry. It is called with the lock held.
func (c *Cache) get(key Key) ([]byte, bool) {
	e, ok := c.entries.Get(key)
	if !ok {
		return nil, false
	}
	if !e.fresh(c.now(), c.limits.TTL) {
		c.entries.Remove(key)
		return nil, false
	}
	return e.value, true
}

// put keeps an entry unless it alone is over the limit, and reports whether it
// was kept. It is called with the lock held.
func (c *Cache) put(key Key, e entry) bool {
	if e.size() > c.limits.MaxBytes {
		return false
	}
	c.entries.Remove(key)
	c.bytes += e.size()
	c.entries.Add(key, e)
	c.shrink()
	return true
}

func (c *Cache) shrink() {
	for c.bytes > c.limits.MaxBytes {
		if _, _, ok := c.entries.RemoveOldest(); !ok {
			return
		}
	}
}

// Source says where a value came from.
type Source int

// The sources of a value.
const (
	// Called: this request made the call.
	Called Source = iota
	// Joined: an equal request was under way, and this one waited for its answer.
	Joined
	// Kept: the value was in the cache, in memory or on disk.
	Kept
)

// Do returns the value of key from memory, or from an equal call under way, or
// from the store, or by calling fn. The value is shared: callers do not change it. fn runs on
// its own goroutine with the values of the first caller's context and a
// cancellation of its own: it ends when every caller that waits for it is
// gone, so one caller that leaves takes nothing from the others.
func (c *Cache) Do(ctx context.Context, key Key, fn func(context.Context) ([]byte, error)) ([]byte, Source, error) {
	c.mu.Lock()
	if value, ok := c.get(key); ok {
		c.mu.Unlock()
		return value, Kept, nil
	}
	f, source := c.flights[key], Joined
	if f == nil {
		source = Called
		f = c.depart(ctx, key, fn)
	}
	f.waiting++
	c.mu.Unlock()

	select {
	case <-f.done:
		if f.kept {
			source = Kept
		}
		return f.value, source, f.err
	case <-ctx.Done():
		c.leave(key, f)
		return nil, source, ctx.Err()
	}
}
