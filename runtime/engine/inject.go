// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// This file answers who owns a loop and asks what to change in its messages: it
// takes the steps of Prepare, and sends nothing.

// Injected is the answer.
type Injected struct {
	// Decision is what was decided, and why.
	Decision Decision
	// Record is what telemetry counts.
	Record Record
	streamed
}

// streamed is an answer that is written as what it holds is read.
type streamed struct {
	answer *message.Spliced
	let    []func()
}

// Len is how long the answer is, in bytes.
func (s *streamed) Len() int64 { return s.answer.Len() }

// Reader reads the answer's JSON from its beginning; images are encoded as they
// are read. It fails where an image that is kept can no longer be read.
func (s *streamed) Reader() io.Reader { return s.answer.Reader() }

// Release lets go of what the answer reads.
func (s *streamed) Release() {
	for _, let := range s.let {
		let()
	}
	s.let = nil
}

// unless lets go of everything now, but where the answer is held: also when what
// made it has panicked.
func (s *streamed) unless(held func() bool) {
	if !held() {
		s.Release()
	}
}

// Inject answers the question that from yields, size bytes of it, or -1 when that
// is not known: see injection.ReadAsk for the question and Injected for the answer.
// It needs no proxy of the profile's. Nothing is changed but what Prepare keeps too:
// which images were shown, and what was seen in them. The caller releases what it
// gets. The error is a *fault.Fault.
func (e *Engine) Inject(ctx context.Context, from io.Reader, size int64) (*Injected, error) {
	snap := e.snapshot.Load()
	if snap == nil {
		return nil, noRouter()
	}
	profile, bad := snap.granted(e.options.Profile)
	if bad != nil {
		return nil, bad
	}
	most := profile.Limits.Request.MaxBodyBytes
	room := size
	if size < 0 {
		room = min(most, e.options.MaxHeldBytes)
	}
	release, err := e.Hold(ctx, room)
	if err != nil {
		return nil, err
	}
	i := &Injected{streamed: streamed{let: []func(){release}}}
	defer i.unless(func() bool { return i.answer != nil })
	if err := e.inject(ctx, i, snap, profile, from, size, most); err != nil {
		return nil, err
	}
	return i, nil
}

func (e *Engine) inject(ctx context.Context, i *Injected, snap *snapshot, profile *router.Profile, from io.Reader, size, most int64) error {
	data, err := receiveReview(from, size, most)
	if err != nil {
		return err
	}
	ask, err := injection.ReadAsk(data)
	if err != nil {
		return askFault(err)
	}
	p := &injecting{
		preparation: preparation{
			engine: e, snapshot: snap, profile: profile, viewed: ask.Viewed,
			request: ModelRequest{Dialect: ask.Dialect, Model: ask.Model},
		},
		ask: ask,
	}
	i.let = append(i.let, p.letAll)
	var bad *fault.Fault
	if ask.Dialect == injection.ListDialect {
		bad = p.list(ctx, data[ask.Messages.Start:ask.Messages.End])
	} else {
		bad = p.vendor(ctx, ask.Wrap(data))
	}
	if bad == nil {
		i.answer, bad = p.answer()
	}
	if bad != nil {
		return bad
	}
	i.Decision, i.Record = p.decision, p.record
	e.logPrepared(&p.record)
	return nil
}

// injecting is one question on its way.
type injecting struct {
	preparation
	ask      *injection.Ask
	decision Decision
	// composed are the messages that are put into a list.
	composed []injection.Composed
	remove   []int
}

// letAll lets go of what was opened for the question.
func (p *injecting) letAll() { p.release() }

// vendor goes through the messages of a vendor's dialect.
func (p *injecting) vendor(ctx context.Context, body []byte) *fault.Fault {
	p.request.Body = body
	if bad := p.scan(); bad != nil {
		if offset, ok := bad.Details["offset"].(int); ok {
			bad.With("offset", max(0, offset-injection.Wrapped))
		}
		return bad
	}
	if bad := p.aimAt(ctx); bad != nil {
		return bad
	}
	if p.form == router.InjectionOff {
		p.decision.Reason = injection.ListOff
		return nil
	}
	for _, step := range []func(context.Context) *fault.Fault{p.look, p.judge, p.describe} {
		if bad := step(ctx); bad != nil {
			return bad
		}
	}
	p.edits = p.edited()
	edited, err := message.Splice(body, p.edits)
	if err != nil {
		return fault.As(err)
	}
	p.record.Edits = edited.Ranges()
	p.decision.Inject, p.decision.Reason = len(p.edits) > 0, injection.Ready
	if !p.decision.Inject {
		p.decision.Reason = p.idle()
	}
	return nil
}

// idle is why messages of a vendor's dialect stay as they are.
func (p *injecting) idle() string {
	switch {
	case slices.ContainsFunc(p.record.Sights, func(s Sighted) bool { return s.Outcome == SightShown }):
		return injection.ListShown
	case len(p.plan.Sights) > 0: // of Markdown, beside which no text about it is put
		return injection.Unavailable
	case len(p.plan.Skips) > 0:
		return p.plan.Skips[len(p.plan.Skips)-1].Reason
	}
	for i := range p.scanned.Turns {
		if p.scanned.Turns[i].Role == message.Assistant {
			return injection.ListNoVisionCalls
		}
	}
	return injection.ListNoAssistant
}

// list goes through a framework's list of messages. What its own messages hold is
// not judged: the list is not what is sent.
func (p *injecting) list(ctx context.Context, messages []byte) *fault.Fault {
	l, err := injection.ReadList(messages)
	if err != nil {
		if bad, ok := errors.AsType[*message.Error](err); ok {
			return bad.Fault()
		}
		return fault.As(err)
	}
	p.scanned = &message.Request{}
	p.request.Body = messages
	if bad := p.aimAt(ctx); bad != nil {
		return bad
	}
	rules := *p.rules
	rules.Mode = p.form
	plan := l.Plan(&rules, p.engine.listKey(), p.viewed)
	p.plan, p.decision.Reason, p.remove = plan.Plan, plan.Reason, plan.Remove
	p.countSkips()
	if !plan.Inject {
		return nil
	}
	// Whose turns they are is all that preflight knows of the conversation.
	p.scanned.Turns = plan.Turns()
	for i := range p.plan.Sights {
		if s := &p.plan.Sights[i]; s.State == injection.NotViewed { // nobody has told of it yet
			s.State = injection.Wanted
		}
	}
	p.recall()
	var bad *fault.Fault
	if p.found, p.letGo, bad = p.engine.resolve(ctx, p.plan, p.scanned, &p.profile.Limits); bad != nil {
		return bad
	}
	p.settleList(plan)
	for _, step := range []func(context.Context) *fault.Fault{p.judge, p.describe} {
		if bad := step(ctx); bad != nil {
			return bad
		}
	}
	decided, composed := plan.Compose(p.shown)
	p.decision.Inject, p.decision.Reason, p.remove, p.composed = decided.Inject, decided.Reason, decided.Remove, composed
	return nil
}

// settleList marks the sights whose images stand in the list already, and those
// that are of another size than what was viewed.
func (p *injecting) settleList(plan *injection.ListPlan) {
	for i := range p.found {
		s, picture := &p.plan.Sights[i], p.found[i].picture
		if picture == nil {
			continue
		}
		if viewed, _ := p.viewed.Of(s); viewed.Size > 0 && viewed.Size != picture.Size {
			p.found[i] = resolved{sha256: picture.SHA256, reason: reasonChanged}
		} else if slices.Contains(plan.Standing(i), picture.SHA256) {
			s.State = injection.ShownInConversation
		}
	}
}

// aimAt finds the model. Without one, or with one that is not known here, images
// are put where the dialect and the name have them.
func (p *preparation) aimAt(ctx context.Context) *fault.Fault {
	name := p.request.Model
	found, known := p.engine.named(ctx, p.snapshot, p.request.Dialect, name)
	switch {
	case known && !p.profile.Allows(found.Route, found.Provider.Name):
		return notAllowedToLook(found.Route.String())
	case known:
		p.entry, p.record.Route = found.Entry, found.Route.String()
	case name != "" && len(p.profile.Allow) > 0:
		return notAllowedToLook(name)
	default:
		p.entry = router.Entry{Model: &router.Model{Name: name, ImageInput: true}}
	}
	p.shape()
	return nil
}

func notAllowedToLook(name string) *fault.Fault {
	name = named(name)
	return fault.New(fault.PolicyDenied, "ModelNotAllowed", "the policy's allow-lists do not let the model %s look at images", name).
		With("field", "model").With("model", name).Hint("Choose a model that the policy allows.")
}

// foreign is what preflight knows of a model that no provider of the policy has:
// its name. Without one, and where it is shown no image, the policy alone judges.
func (p *preparation) foreign() preflight.Candidate {
	if p.entry.Model.Name == "" || p.form == router.InjectionObservation {
		return preflight.Candidate{}
	}
	return preflight.Candidate{Model: p.entry.Model.Name, Transport: p.request.Dialect.Transport()}
}

// recall lays beside the sights what the caller says was viewed at their paths: the
// digest that the file must have, and the bytes that an older state holds. What was
// shown for an older call is held against an entry that names that call.
func (p *preparation) recall() {
	for i := range p.plan.Sights {
		s := &p.plan.Sights[i]
		viewed, known := p.viewed.Of(s)
		if !known || s.State != injection.Wanted {
			continue
		}
		if s.SHA256 == "" {
			s.SHA256 = viewed.SHA256
		}
		data, held := viewed.Data()
		if !held || int64(len(data)) > p.profile.Limits.Image.MaxBytes {
			continue
		}
		content, err := p.engine.options.Pins.PutContent(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			continue // the path is read
		}
		if s.SHA256 == "" {
			s.SHA256 = content.SHA256
		}
		_ = content.Close() // only read from
	}
}

// listKey is the key of marks of list messages, made of the pod's.
func (e *Engine) listKey() []byte {
	h := hmac.New(sha256.New, e.podKey)
	h.Write([]byte("vision-operator/list-marker/v1"))
	return h.Sum(nil)
}

// askFault words an error of reading a question.
func askFault(err error) *fault.Fault {
	bad, ok := errors.AsType[*injection.AskError](err)
	if !ok {
		return fault.As(err)
	}
	f := fault.New(fault.InvalidToolInput, string(bad.Reason), "%s", bad.Error()).Because(err).
		Hint(`Send {"dialect": …, "messages": […]}, and "model" and "viewedImages" if there are any.`)
	if bad.At != "" {
		f.With("field", bad.At)
	}
	if bad.Reason == injection.AskDialect {
		f.With("dialects", append(message.Dialects(), injection.ListDialect))
	}
	return f
}
