// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/router"
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
	// Logger gets one line for each failed observation, without content. Nil discards.
	Logger *slog.Logger
	// Version is told to providers in the user agent.
	Version string
}

// Engine answers requests; it is safe for concurrent use.
type Engine struct {
	options  Options
	using    sync.Mutex // one Use at a time
	snapshot atomic.Pointer[snapshot]
	cache    *cache.Cache
	held     *semaphore.Weighted // bytes of images in memory
	large    *semaphore.Weighted // large replies in memory
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
	return &Engine{
		options: o, cache: cache.New(cache.Limits{}, nil),
		held: semaphore.NewWeighted(maxHeldBytes), large: semaphore.NewWeighted(maxLargeReplies),
	}
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
	}
	e.snapshot.Store(next)
	before.retire(next)
	return nil
}

// Close closes the connections that are idle; those in use close when their request ends.
func (e *Engine) Close() {
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
