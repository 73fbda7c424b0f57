// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import "context"

// queuePerSlot is how many requests may wait for each that is being recognised.
const queuePerSlot = 8

// gate bounds the work: slots are recognised at a time, and with those that
// wait no more than places requests are inside, each of which may hold a body.
type gate struct {
	places, slots chan struct{}
}

func newGate(slots int) *gate {
	return &gate{places: make(chan struct{}, slots*(queuePerSlot+1)), slots: make(chan struct{}, slots)}
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

// begin waits for a slot, to be given back with end, or for the end of ctx.
func (g *gate) begin(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) end() { <-g.slots }
