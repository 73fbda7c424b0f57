// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// GenerationPolicy is generationPolicy.
const GenerationPolicy = generationPolicy

// KeyOf is the key of what a choice, on an endpoint of that digest, says of an
// image of that digest.
func KeyOf(choice *selection.Choice, endpointDigest, sha256, prompt string) cache.Key {
	pic := &picture{reference: observation.NewReference("/a.png", sha256, "image/png", 1, 1, 1)}
	return cacheKey(choice, &client{digest: endpointDigest}, pic, "", prompt)
}

// FileFault is fileFault, for failures that a test cannot cause on every machine.
var FileFault = fileFault

// Fill holds as much as images may take at once, and returns what lets go of it.
func (e *Engine) Fill(ctx context.Context) (release func(), err error) {
	return e.fill(ctx, DefaultMaxHeldBytes)
}

// FillButOne leaves room for one request of a small image, and returns what
// takes that too.
func (e *Engine) FillButOne(ctx context.Context) (rest func() (release func(), err error), err error) {
	release, err := e.fill(ctx, DefaultMaxHeldBytes-minHeldBytes)
	return func() (func(), error) {
		last, err := e.fill(ctx, 1)
		return func() { last(); release() }, err
	}, err
}

func (e *Engine) fill(ctx context.Context, size int64) (release func(), err error) {
	release, bad := e.hold(ctx, size)
	if bad != nil {
		return nil, bad
	}
	return release, nil
}

// FillReplies takes every turn of large replies, and returns what gives them back.
func (e *Engine) FillReplies(ctx context.Context) (release func(), err error) {
	if err := e.large.Acquire(ctx, maxLargeReplies); err != nil {
		return nil, err
	}
	return func() { e.large.Release(maxLargeReplies) }, nil
}

// ReadUntold is readUntold.
func ReadUntold(from io.Reader, most int64) ([]byte, error) { return readUntold(from, most) }

// HoldParsing is a reply that is being parsed until release.
func (e *Engine) HoldParsing() (release func()) {
	e.parsing.Lock()
	return e.parsing.Unlock
}
