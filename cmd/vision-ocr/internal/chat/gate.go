// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// queuePerSlot is how many requests may wait for each that is being recognised.
const queuePerSlot = 8

// smallBody is what a body may have without waiting for room, in bytes: most
// screenshots, which a slow sender of a large body so does not keep out.
const smallBody = 1 << 20

// gate bounds the work and the memory that it takes: slots are recognised at a
// time, and with those that wait no more than places requests are inside. Their
// bodies over smallBody together are no larger than the largest that is accepted,
// and one image at a time is decoded: it can take hundreds of times what its
// file has.
type gate struct {
	places, slots, decoder chan struct{}

	bodies    *semaphore.Weighted // bytes
	maxBodies int64
}

func newGate(slots int, maxBodies int64) *gate {
	return &gate{
		places: make(chan struct{}, slots*(queuePerSlot+1)), slots: make(chan struct{}, slots), decoder: make(chan struct{}, 1),
		bodies: semaphore.NewWeighted(maxBodies), maxBodies: maxBodies,
	}
}

// enter takes a place, to be given back with leave, or reports that all are taken.
func (g *gate) enter() bool {
	select {
	case g.places <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g *gate) leave() { <-g.places }

// hold waits for room for a body of size bytes, -1 when not known, or for the
// end of ctx.
func (g *gate) hold(ctx context.Context, size int64) (release func(), err error) {
	switch {
	case size >= 0 && size <= smallBody:
		return func() {}, nil
	case size < 0 || size > g.maxBodies:
		size = g.maxBodies // what is larger is refused when it is read
	}
	if err := g.bodies.Acquire(ctx, size); err != nil {
		return nil, err
	}
	return func() { g.bodies.Release(size) }, nil
}

// begin waits for a slot, to be given back with end, or for the end of ctx.
func (g *gate) begin(ctx context.Context) error { return take(ctx, g.slots) }

func (g *gate) end() { <-g.slots }

// beginDecoding waits for the decoder, to be given back with endDecoding, or
// for the end of ctx.
func (g *gate) beginDecoding(ctx context.Context) error { return take(ctx, g.decoder) }

func (g *gate) endDecoding() { <-g.decoder }

func take(ctx context.Context, from chan struct{}) error {
	select {
	case from <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
