// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// generationPolicy names how a model is asked: instructions, part order,
// structured output. It is part of every cache key; change it with them.
const generationPolicy = "image-observation.v2"

// maxOutputTokens caps what a model may write, reasoning included: far above
// any observation, and far below what some models declare.
const maxOutputTokens = 16384

// ask is the question put to the chosen model.
func ask(choice *selection.Choice, pic *picture, prompt string) provider.Request {
	return provider.Request{
		Model:           choice.Model.Name,
		Instructions:    observation.Instructions,
		Prompt:          prompt,
		Image:           provider.Image{MediaType: pic.facts.MediaType, Data: pic.data},
		Schema:          &provider.OutputSchema{Name: observation.ReplySchemaName, JSON: observation.ReplySchema()},
		MaxOutputTokens: min(choice.Model.MaxOutputTokens, maxOutputTokens),
	}
}

// cacheKey names the answer by everything that it depends on. recipe is how what
// is sent is made of the image; see admission.recipe.
func cacheKey(choice *selection.Choice, c *client, pic *picture, recipe, prompt string) cache.Key {
	return cache.Fields{
		ImageSHA256: pic.reference.SHA256, Prompt: prompt,
		Provider: choice.Provider.Name, Endpoint: choice.Endpoint.Name, EndpointDigest: c.digest, Model: choice.Model.Name,
		Schema: observation.Schema, Policy: generationPolicy + recipe,
	}.Key()
}

// observe looks through the cache. What is kept is the observation's JSON, so
// that each caller has a copy of its own.
func (l *look) observe(ctx context.Context) (*observation.Observation, bool, *fault.Fault) {
	route, chosen := l.plan.Choice.Route, l.plan.Selection
	by := observation.GeneratedBy{Mode: chosen.SelectedMode, Provider: route.Provider, Model: route.Model, SelectionReason: chosen.SelectionReason}
	client, deadline := l.snapshot.clientOf(l.plan.Choice), l.until()
	admitted := l.admitted[route]
	key := cacheKey(l.plan.Choice, client, l.picture, admitted.recipe(), l.request.Prompt)
	asked := admitted.clamp(ask(l.plan.Choice, l.picture, l.request.Prompt))
	data, source, err := l.engine.cache.Do(ctx, key, func(ctx context.Context) ([]byte, error) {
		ctx, cancel := context.WithDeadline(ctx, deadline)
		defer cancel()
		sent, copied, err := l.send(ctx, &admitted, asked)
		if err != nil {
			return nil, err
		}
		question, done := l.engine.limitReply(sent)
		defer done()
		reply, err := client.observer.Observe(ctx, question)
		if err != nil {
			return nil, err
		}
		return l.parse(reply.Text, by, copied)
	})
	if err != nil {
		return nil, false, l.explain(ctx, err)
	}
	var seen observation.Observation
	if err := json.Unmarshal(data, &seen); err != nil {
		return nil, false, fault.As(err)
	}
	seen.GeneratedBy = by // the way of choosing is this call's, not that of the call before
	return &seen, source != cache.Called, nil
}

// parse makes the observation's JSON out of what a model said, one reply at a
// time: it takes a moment, and until then fifty times the reply's size in memory.
func (l *look) parse(reply string, by observation.GeneratedBy, copied *observation.ImageSent) ([]byte, error) {
	l.engine.parsing.Lock()
	defer l.engine.parsing.Unlock()
	seen, err := observation.Parse(reply, l.picture.reference, l.request.Prompt, by)
	if err != nil {
		return nil, unusable(err)
	}
	seen.ImageSent = copied
	return json.Marshal(seen)
}

// maxLargeReplies is how many large replies are read and held at the same
// time: each takes several times its size, and no observation needs to be one.
const maxLargeReplies = 2

// limitReply makes a large reply wait for its turn, which ends with done.
func (e *Engine) limitReply(question provider.Request) (limited provider.Request, done func()) {
	held := false
	question.BeforeLarge = func(ctx context.Context) error {
		err := e.large.Acquire(ctx, 1)
		held = err == nil
		return err
	}
	return question, func() {
		if held {
			e.large.Release(1)
		}
	}
}

// unusable is a reply that is no observation.
func unusable(err error) *fault.Fault {
	f := fault.New(fault.VisionObservationFailed, "InvalidResponse", "the model's reply is not an observation").
		Hint("Call again, perhaps with a simpler prompt, or ask the platform team for another model.").Because(err)
	if p, ok := errors.AsType[*observation.ParseError](err); ok {
		f.With("validation_error", string(p.Reason))
	}
	return f
}

// explain turns what went wrong into a fault of this call's own: equal calls
// share one failure, so it is copied before the details are added.
func (l *look) explain(ctx context.Context, err error) *fault.Fault {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		f := fault.New(fault.VisionObservationFailed, "Canceled", "the call ended before the provider answered").Because(err)
		f.Retryable = true
		return l.withSelection(f)
	}
	if p, ok := errors.AsType[*cache.PanicError](err); ok {
		l.engine.options.Logger.Error("making an observation panicked", "stack", string(p.Stack))
	}
	f := *fault.As(err)
	f.Details = maps.Clone(f.Details)
	attrs := []any{"kind", f.Kind, "reason", f.Reason, "route", l.plan.Selection.VisionModelRef}
	if t, ok := errors.AsType[*transport.Error](f.Cause); ok {
		attrs = append(attrs, "cause", t.Error())
	}
	l.engine.options.Logger.Warn("observation failed", attrs...)
	return l.withSelection(&f)
}

func (l *look) withSelection(f *fault.Fault) *fault.Fault {
	s := l.plan.Selection
	return f.With("selected_mode", s.SelectedMode).With("selection_reason", s.SelectionReason).
		With("vision_provider", s.VisionProvider).With("vision_model", s.VisionModel).With("vision_model_ref", s.VisionModelRef)
}
