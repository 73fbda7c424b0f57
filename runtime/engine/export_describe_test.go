// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// Description is a description whose data Open gives.
type Description struct {
	SHA256, Prompt string
	Required       bool
	Open           func() (io.Reader, int64, error)
}

// Described is a described.
type Described struct {
	Text, Source, Route string
	Fault               *fault.Fault
}

// DescribeAll is describeAll on the snapshot in use.
func (e *Engine) DescribeAll(ctx context.Context, list ...Description) ([]Described, *fault.Fault) {
	in := make([]description, len(list))
	for i, d := range list {
		in[i] = description{sha256: d.SHA256, prompt: d.Prompt, required: d.Required, data: d.Open}
	}
	snap := e.snapshot.Load()
	texts, bad := e.describeAll(ctx, snap, snap.profile, in)
	out := make([]Described, len(texts))
	for i, d := range texts {
		out[i] = Described{d.text, string(d.source), d.route, d.bad}
	}
	return out, bad
}

// FillLooks takes all the room that looks at requests' images have.
func (e *Engine) FillLooks(ctx context.Context) (release func(), err error) {
	if err := e.looking.Acquire(ctx, e.lookRoom); err != nil {
		return nil, err
	}
	return func() { e.looking.Release(e.lookRoom) }, nil
}

// Show is show.
func (e *Engine) Show(key, text string) string { return e.show(key, text) }
