// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery keeps the lists of models that endpoints give, for
// providers that ask for it. It asks lazily, one question to an endpoint at a
// time, and keeps the last good list whatever comes after it. Which lists are
// worth asking for is selection's to say, and what a list counts for is the
// catalog's.
package discovery

import (
	"cmp"
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Defaults of Options and Target.
const (
	// DefaultTimeout is how long an endpoint has to give its list.
	DefaultTimeout = 10 * time.Second
	// DefaultInterval is how long a list stays fresh, as in the VisionProvider API.
	DefaultInterval = 10 * time.Minute
)

const (
	// maxBackoff is the longest that an endpoint that failed is left alone, unless
	// it asks for longer itself.
	maxBackoff = 30 * time.Second
	// maxAsked is how many endpoints are asked at the same time: a list may be
	// megabytes while it is read.
	maxAsked = 8
	// maxUnused is how long a list that nobody asks for is kept: the longest
	// interval that the API takes.
	maxUnused = 24 * time.Hour
)

// Options say how to ask. The zero value is ready to use.
type Options struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger gets a line for each list and each failure, with the endpoint's name
	// and no address. Nil discards.
	Logger *slog.Logger
	// Timeout bounds each question, and how long a caller waits for a first list;
	// 0 means DefaultTimeout.
	Timeout time.Duration
}

// Target is one endpoint to list.
type Target struct {
	Provider *router.Provider
	Endpoint string
	// Key names all that the endpoint's answer depends on (address, headers, key):
	// another Key forgets the list.
	Key string
	// Lister asks the endpoint, and ends with its context. Nil asks nobody.
	Lister provider.Lister
	// Interval is how long a list stays fresh; 0 means DefaultInterval.
	Interval time.Duration
}

// place names a target's endpoint among all.
type place struct{ provider, endpoint string }

func (t *Target) place() place { return place{t.Provider.Name, t.Endpoint} }

func (t *Target) interval() time.Duration {
	if t.Interval <= 0 {
		return DefaultInterval
	}
	return t.Interval
}

// Discovery is safe for concurrent use. Close ends it.
type Discovery struct {
	options Options
	ctx     context.Context // of every question; Close ends it
	end     context.CancelFunc
	asking  chan struct{} // a place for each question under way
	flights sync.WaitGroup

	mu     sync.Mutex
	closed bool
	lists  map[place]*list
}

// list is what is known of one endpoint; Discovery.mu guards it.
type list struct {
	key      string
	known    bool // whether models is a list that the endpoint gave
	models   []router.Model
	listedAt time.Time
	retryAt  time.Time // a failure: not to be asked before
	usedAt   time.Time
	flight   *flight // the question under way, or nil
}

// flight is one question that callers may wait for.
type flight struct {
	ctx  context.Context
	done chan struct{}
}

// New returns a Discovery that knows nothing and asks nothing yet.
func New(o Options) *Discovery {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	d := &Discovery{options: o, asking: make(chan struct{}, maxAsked), lists: map[place]*list{}}
	d.ctx, d.end = context.WithCancel(context.Background())
	return d
}

// Close ends every question and waits until none is left. What is known stays,
// and nothing is asked any more.
func (d *Discovery) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.end()
	d.flights.Wait()
}

// Models tells what the targets list, as of now and for one request: what comes
// later does not change it. An endpoint whose list is old is asked again behind
// the caller's back; only for a first list the caller waits, at most until ctx
// or the question's time ends. An endpoint that gave no list lists nothing. The
// models are shared: they must not be changed.
func (d *Discovery) Models(ctx context.Context, targets []Target) router.Discovered {
	lists := make([]*list, len(targets))
	flights := make([]*flight, len(targets))
	for i := range targets {
		lists[i], flights[i] = d.visit(&targets[i])
	}
	for _, f := range flights {
		f.wait(ctx)
	}
	found := make(map[place][]router.Model, len(targets))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, l := range lists {
		found[targets[i].place()] = undeclared(l.models, targets[i].Provider)
	}
	return func(p *router.Provider, endpoint string) []router.Model { return found[place{p.Name, endpoint}] }
}

// visit returns what is known of a target, and what to wait for, if anything.
func (d *Discovery) visit(t *Target) (*list, *flight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.options.Now()
	l := d.lists[t.place()]
	if l == nil || l.key != t.Key {
		d.forget(now)
		l = &list{key: t.Key}
		d.lists[t.place()] = l
	}
	l.usedAt = now
	if t.Lister != nil && l.flight == nil && !d.closed && l.due(now, t.interval()) {
		d.depart(l, t)
	}
	if l.known {
		return l, nil
	}
	return l, l.flight
}

func (l *list) due(now time.Time, interval time.Duration) bool {
	return !now.Before(l.retryAt) && (!l.known || now.Sub(l.listedAt) >= interval)
}

// forget drops the lists of endpoints that are gone. It is called with the lock held.
func (d *Discovery) forget(now time.Time) {
	for at, l := range d.lists {
		if now.Sub(l.usedAt) >= maxUnused {
			delete(d.lists, at)
		}
	}
}

// depart starts a question, which no caller's leaving ends. It is called with the lock held.
func (d *Discovery) depart(l *list, t *Target) {
	ctx, cancel := context.WithTimeout(d.ctx, d.options.Timeout)
	f := &flight{ctx: ctx, done: make(chan struct{})}
	l.flight = f
	at, lister, interval := t.place(), t.Lister, t.interval()
	d.flights.Go(func() {
		defer cancel()
		defer close(f.done)
		models, cut, err := d.ask(ctx, at, lister)
		d.land(l, models, err, interval)
		d.report(at, len(models), cut, err)
	})
}

// land takes an answer in. A failure leaves the list as it was.
func (d *Discovery) land(l *list, models []router.Model, err error, interval time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.options.Now()
	l.flight = nil
	if err != nil {
		l.retryAt = now.Add(backoff(err, interval))
		return
	}
	l.known, l.models, l.listedAt = true, models, now
}

// backoff is how long an endpoint is left alone after a failure: what it asks
// for, but no longer than a list would have stayed fresh.
func backoff(err error, interval time.Duration) time.Duration {
	return min(interval, max(maxBackoff, fault.As(err).RetryAfter))
}

// ask puts the question, when its turn comes.
func (d *Discovery) ask(ctx context.Context, at place, lister provider.Lister) (models []router.Model, cut int, err error) {
	select {
	case d.asking <- struct{}{}:
		defer func() { <-d.asking }()
	case <-ctx.Done():
		return nil, 0, fault.New(fault.VisionObservationFailed, "Timeout", "listing models: its turn did not come in time").Because(ctx.Err())
	}
	defer func() {
		if recover() != nil { // the value may hold anything
			d.options.Logger.Error("listing models panicked", "endpoint", at.String(), "stack", string(debug.Stack()))
			err = fault.New(fault.VisionObservationFailed, "Internal", "listing models panicked")
		}
	}()
	listed, err := lister.List(ctx)
	if err != nil {
		return nil, 0, err
	}
	models, cut = convert(listed)
	return models, cut, nil
}

func (p place) String() string { return p.provider + "@" + p.endpoint }

// report logs what came of a question; Close's ending it is nothing to tell.
func (d *Discovery) report(at place, models, cut int, err error) {
	switch {
	case err == nil:
		d.options.Logger.Debug("models listed", "endpoint", at.String(), "models", models, "left_out", cut)
	case d.ctx.Err() == nil:
		f := fault.As(err)
		d.options.Logger.Warn("listing models failed; the last good list stays", "endpoint", at.String(), "kind", f.Kind, "reason", f.Reason)
	}
}

// wait returns when a question is answered, or ctx or its time ends; at once without one.
func (f *flight) wait(ctx context.Context) {
	if f == nil {
		return
	}
	select {
	case <-f.done:
	case <-f.ctx.Done():
	case <-ctx.Done():
	}
}

// undeclared leaves out what the provider declares by the same name.
func undeclared(models []router.Model, p *router.Provider) []router.Model {
	shared := true
	for i := range p.Models {
		at, ok := slices.BinarySearchFunc(models, p.Models[i].Name, func(m router.Model, name string) int { return cmp.Compare(m.Name, name) })
		if !ok {
			continue
		}
		if shared {
			models, shared = slices.Clone(models), false
		}
		models = slices.Delete(models, at, at+1)
	}
	return models
}
