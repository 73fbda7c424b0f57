// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/discovery"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/provider/retry"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/store"
	"github.com/visionoperator/vision-operator/runtime/thread"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

// Options are what an Engine needs beside the router document.
type Options struct {
	// Profile is the ID of the profile that governs every request,
	// "policy/<name>" or "baseline/<name>".
	Profile string
	// SecretsDir holds provider keys at <namespace>/<provider>. It is read at
	// every call, so that a rotated key is used without a restart.
	SecretsDir string
	// Workspaces are the directories whose files may be looked at. The caller
	// closes the set after the last View; nil means that no file may be.
	Workspaces *workspace.Set
	// References keeps what was looked at and what is uploaded. Nil keeps
	// references in memory and takes no uploads. The caller closes it after the
	// last request.
	References *reference.Keeper
	// Cache is where observations outlive the process, when the policy says so
	// (cache.persist). Nil keeps them in memory. The caller closes it after the
	// last request.
	Cache *store.Store
	// Pins keeps what conversations were shown, so that it is shown again alike. Nil
	// keeps it in memory. The caller closes it after the last request.
	Pins *pin.Store
	// MaxHeldBytes bounds the images that requests hold in memory at the same
	// time; those that come on top wait. Uploads, which come at their senders'
	// pace, take half of it at most. As much again may be taken to make a smaller
	// copy of one image at a time, where the policy says so (limits.image.onOversize:
	// Downscale). 0 means DefaultMaxHeldBytes.
	MaxHeldBytes int64
	// Logger gets one line for each failed observation, without content. Nil discards.
	Logger *slog.Logger
	// Attempted is told of each attempt at a provider's endpoint, for metrics; it
	// is called from any goroutine and returns at once. Nil tells nobody.
	Attempted func(retry.Attempt)
	// PodKey is a secret of 32 random bytes, of which the marks are made that stand
	// around what was read from images, where a model that sees none is shown text
	// in their place. The same key gives the same texts after a restart. Nil makes
	// one up for the process.
	PodKey []byte
	// Version is told to providers in the user agent.
	Version string
}

// Engine answers requests; it is safe for concurrent use.
type Engine struct {
	options  Options
	using    sync.Mutex // one Use at a time
	snapshot atomic.Pointer[snapshot]
	cache    *cache.Cache
	models   *discovery.Discovery
	held     *semaphore.Weighted // bytes of images in memory
	coming   *semaphore.Weighted // those among them of uploads
	bodies   *semaphore.Weighted // bytes of model requests that are passed on
	large    *semaphore.Weighted // large replies in memory
	parsing  sync.Mutex          // one reply at a time
	// shrinking is one smaller copy of an image at a time. What it takes is bounded
	// by MaxHeldBytes and comes on top of what is held.
	shrinking *semaphore.Weighted

	podKey   []byte
	showing  sync.Mutex // one new text at a time
	lookRoom int64
	threads  *thread.Table // calls of conversations that vendors keep
	// unsigned are the conversations that go without their signed reasoning.
	unsigned *lru.Cache[conversation, unsignedWay]
	looking  *semaphore.Weighted // of lookRoom: bytes of requests' images that are looked at
}

// New returns an Engine without a router document: until Use, every request is
// refused as router_unavailable.
func New(o Options) *Engine {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Workspaces == nil {
		o.Workspaces = &workspace.Set{}
	}
	if o.References == nil {
		o.References, _ = reference.Open(reference.Options{}) // without a directory nothing can fail
	}
	if o.Pins == nil {
		o.Pins, _ = pin.Open(pin.Options{Logger: o.Logger}) // without a directory nothing can fail
	}
	if o.MaxHeldBytes <= 0 {
		o.MaxHeldBytes = DefaultMaxHeldBytes
	}
	e := &Engine{
		options: o, cache: cache.New(cache.Limits{}, nil), models: discovery.New(discovery.Options{Logger: o.Logger}),
		held: semaphore.NewWeighted(o.MaxHeldBytes), coming: semaphore.NewWeighted(o.MaxHeldBytes / 2),
		bodies: semaphore.NewWeighted(o.MaxHeldBytes), large: semaphore.NewWeighted(maxLargeReplies),
		shrinking: semaphore.NewWeighted(1),
		threads:   thread.New(thread.Options{}),
	}
	e.unsigned, _ = lru.New[conversation, unsignedWay](mostConversations) // fails for a size below 1 alone
	e.prepareLooks()
	e.cache.OnStoreError(func(err error) { o.Logger.Warn("keeping observations on disk failed", "error", err) })
	return e
}

// Use takes a document into service for the requests that come after it;
// requests under way end on the one they began with. The caller does not
// change the document afterwards. A document without the engine's profile is
// obeyed: it grants nothing. The error is that of router.Validate, and leaves
// in service what was.
func (e *Engine) Use(doc *router.Document) error {
	if err := router.Validate(doc); err != nil {
		return fmt.Errorf("using router document: %w", err)
	}
	e.using.Lock()
	defer e.using.Unlock()
	before := e.snapshot.Load()
	next := newSnapshot(doc, e.options, before)
	if next.profile != nil {
		e.cache.SetLimits(next.cacheLimits)
		e.persist(next.profile.Cache.Persist)
	}
	e.snapshot.Store(next)
	before.retire(next)
	return nil
}

// persist keeps observations on disk as well, or forgets those that are there:
// a policy that does not ask for it leaves nothing behind.
func (e *Engine) persist(on bool) {
	switch {
	case on:
		e.cache.SetStore(e.options.Cache)
	case e.options.Cache != nil:
		e.cache.SetStore(nil)
		e.options.Cache.SetLimits(0, 0)
	}
}

// State is what an engine holds and uses at a moment, for metrics.
type State struct {
	// CacheEntries and CacheBytes are what the cache holds in memory.
	CacheEntries int
	CacheBytes   int64
	// CircuitOpen says for each endpoint that can be called,
	// "namespace/name@endpoint", whether it is not asked because it keeps failing.
	CircuitOpen map[string]bool
}

// State tells what is held and used now.
func (e *Engine) State() State {
	state := State{CacheEntries: e.cache.Len(), CacheBytes: e.cache.Bytes(), CircuitOpen: map[string]bool{}}
	if s := e.snapshot.Load(); s != nil {
		for id, c := range s.clients {
			if c.observer != nil {
				state.CircuitOpen[id] = c.observer.CircuitOpen()
			}
		}
	}
	return state
}

// Close ends the listing of models and closes the connections that are idle;
// those in use close when their request ends.
func (e *Engine) Close() {
	e.models.Close()
	e.using.Lock()
	defer e.using.Unlock()
	e.snapshot.Load().retire(nil)
}

// ProfileFound reports whether the document in service has the engine's profile.
func (e *Engine) ProfileFound() bool {
	s := e.snapshot.Load()
	return s != nil && s.profile != nil
}

// MaxBodyBytes is the largest body of a request that the profile in service
// takes; 0 without a profile, when every request is refused for that.
func (e *Engine) MaxBodyBytes() int64 {
	if s := e.snapshot.Load(); s != nil && s.profile != nil {
		return s.profile.Limits.Request.MaxBodyBytes
	}
	return 0
}

// MCPEnabled reports whether the profile in service offers the tool over MCP.
func (e *Engine) MCPEnabled() bool {
	s := e.snapshot.Load()
	return s != nil && s.profile != nil && s.profile.Runtime.MCP
}
