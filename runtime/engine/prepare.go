// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/inspect"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Prepared is a request that may be sent.
type Prepared struct {
	Target
	// Body is what to send. It reads ModelRequest.Body and images that are kept
	// until Release.
	Body *message.Spliced
	// Record is what was decided.
	Record Record

	of *preparation
}

// Prepare makes a request to a model ready to be sent: it finds who serves the
// model, puts in the images that tools and humans have named, or what they show as
// text, and leaves out or refuses what is over a limit. Every byte that needs no
// change stays as it is. The caller releases what it gets. The error is a
// *fault.Fault, which refuses the request.
func (e *Engine) Prepare(ctx context.Context, req ModelRequest) (*Prepared, error) {
	snap, bad := e.proxied()
	if bad != nil {
		return nil, bad
	}
	p := &preparation{engine: e, snapshot: snap, profile: snap.profile, request: req}
	defer func() {
		if p.body == nil { // it is refused, or has panicked
			p.release()
		}
	}()
	if bad := p.run(ctx); bad != nil {
		return nil, bad
	}
	e.logPrepared(&p.record)
	return &Prepared{Target: p.target, Body: p.body, Record: p.record, of: p}, nil
}

// Release lets go of the images that the body reads. It may be called once.
func (p *Prepared) Release() { p.of.release() }

// preparation is one request on its way; each step fills in what the next one needs.
type preparation struct {
	engine   *Engine
	snapshot *snapshot
	profile  *router.Profile
	request  ModelRequest

	scanned *message.Request
	entry   router.Entry
	target  Target
	rules   *injection.Rules
	form    string
	images  []preflight.Image // of the body
	whole   bool              // images were read whole, and have digests
	plan    *injection.Plan
	names   []string         // of its sights, to remember that a vendor keeps their images; "" for none
	viewed  injection.Viewed // what the caller says that its tools viewed; mostly nil
	found   []resolved       // for each sight of the plan
	letGo   func()           // of what was found
	// admitted are the images that record.Decisions are about, in that order.
	admitted []occurrence
	shown    []injection.Shown // for each sight
	edits    []message.Edit
	touched  bool // an edit changes what the model is shown
	body     *message.Spliced
	header   http.Header // what the body needs said beside it
	record   Record
}

func (p *preparation) release() {
	if p.letGo != nil {
		p.letGo()
		p.letGo = nil
	}
}

// run is the request's way, step by step.
func (p *preparation) run(ctx context.Context) *fault.Fault {
	if bad := p.scan(); bad != nil {
		return bad
	}
	for _, step := range []func(context.Context) *fault.Fault{p.aim, p.look, p.judge, p.describe} {
		if bad := step(ctx); bad != nil {
			return bad
		}
	}
	return p.splice()
}

// factsNotData is the reason of a body whose images are told by facts about them.
const factsNotData = "FactsNotData"

// scan takes the body apart.
func (p *preparation) scan() *fault.Fault {
	var err error
	if p.scanned, err = message.Scan(p.request.Dialect, p.request.Body); err != nil {
		if bad, ok := errors.AsType[*message.Error](err); ok {
			return bad.Fault()
		}
		return fault.As(err)
	}
	for i := range p.scanned.Images {
		if p.scanned.Images[i].Source == message.AsFacts {
			return fault.New(fault.InvalidToolInput, factsNotData, "the image %s is told by facts about it, which only a preflight takes", p.scanned.ID(i)).
				With("field", p.scanned.ID(i)).Hint("Send the image's data.")
		}
	}
	return nil
}

// aim finds the model, and the form in which it is shown images.
func (p *preparation) aim(ctx context.Context) *fault.Fault {
	name := p.scanned.Model
	if p.request.Model != "" {
		name = p.request.Model
	}
	var bad *fault.Fault
	if p.entry, bad = p.engine.entry(ctx, p.snapshot, p.request.Dialect, name); bad != nil {
		return bad
	}
	if p.target, bad = p.snapshot.target(p.entry); bad != nil {
		return bad
	}
	p.shape()
	p.record.Route = p.entry.Route.String()
	return nil
}

// shape finds the form in which the model is shown images.
func (p *preparation) shape() {
	p.rules = p.snapshot.rules
	p.form = p.rules.Mode
	if p.form == router.InjectionAuto {
		p.form = router.InjectionImage
		if !p.entry.Model.ImageInput {
			p.form = router.InjectionObservation
		}
	}
	p.record.Form, p.record.HistoryNotVisible = p.form, p.scanned.Stateful
}

// look gathers every image of the request: those of its body, and those that
// tools and humans have named.
func (p *preparation) look(ctx context.Context) *fault.Fault {
	p.plan = &injection.Plan{}
	if p.form != router.InjectionOff {
		if bad := p.sight(ctx); bad != nil {
			return bad
		}
	}
	// Digests tell which sights are shown already, and name what a model looked at.
	// Else they matter only when something has to go; see judge.
	p.whole = len(p.plan.Sights) > 0 || p.form == router.InjectionObservation
	if bad := p.inspect(ctx); bad != nil {
		return bad
	}
	if len(p.plan.Sights) > 0 {
		p.settle()
		p.skipAdded()
	}
	return nil
}

// inspect gathers the facts about the body's own images.
func (p *preparation) inspect(ctx context.Context) *fault.Fault {
	gather := inspect.Heads
	if p.whole {
		gather = inspect.Images
	}
	var err error
	if p.images, err = gather(ctx, p.scanned, p.request.Body); err != nil {
		return fault.As(err)
	}
	for i := range p.images { // what a tool gave is no mistake of the caller's
		image := &p.images[i]
		image.Soft = image.Bad != nil && image.InResult && !image.Required
	}
	return nil
}

// sight finds what tools and humans have named.
func (p *preparation) sight(ctx context.Context) *fault.Fault {
	if len(p.scanned.Calls)+len(p.scanned.Results) == 0 && !p.rules.Markdown {
		return nil
	}
	place := injection.Place(p.request.Dialect, p.entry.Model.Name, p.entry.Model)
	p.plan = injection.Find(p.scanned, p.request.Body, p.rules, place, p.knownCall)
	p.countSkips()
	if len(p.plan.Sights) == 0 {
		return nil
	}
	p.recall()
	var bad *fault.Fault
	p.found, p.letGo, bad = p.engine.resolve(ctx, p.plan, p.scanned, &p.profile.Limits)
	return bad
}

// countSkips counts what names an image and is no sight.
func (p *preparation) countSkips() {
	for _, skip := range p.plan.Skips {
		if p.record.Skipped == nil {
			p.record.Skipped = map[string]int{}
		}
		p.record.Skipped[skip.Reason]++
	}
}

// settle tells the plan what the images' digests are, so that it knows which are
// shown already.
func (p *preparation) settle() {
	inBody, named := make([]string, len(p.images)), make([]string, len(p.plan.Sights))
	for i := range p.images {
		inBody[i] = p.images[i].SHA256
	}
	for i := range p.found {
		named[i] = p.found[i].sha256
	}
	p.plan.Settle(p.scanned, inBody, named)
}

// edited are what is left out of the body, and what its sights put in.
func (p *preparation) edited() []message.Edit {
	if len(p.plan.Sights) == 0 {
		return p.edits
	}
	return append(p.edits, p.plan.Edits(p.scanned, p.request.Body, p.shown)...)
}

// splice makes the body that is sent.
func (p *preparation) splice() *fault.Fault {
	edits := p.edited()
	p.touched = len(edits) > 0
	edits, err := p.named(edits, p.scanned.ModelValue, p.scanned.Model)
	if second := p.scanned.SecondModel; err == nil && second.Len() > 0 {
		said, _ := p.scanned.Decoded(p.request.Body, second, longestNamed)
		edits, err = p.named(edits, second, said)
	}
	if err != nil {
		return fault.As(err)
	}
	p.edits = edits
	return p.spliced(p.engine.wayWithout(p))
}

// named adds to edits that the upstream's name of the model stands where the body
// names it otherwise.
func (p *preparation) named(edits []message.Edit, at message.Span, said string) ([]message.Edit, error) {
	sent := p.sentModel(said)
	if at.Len() == 0 || said == sent {
		return edits, nil
	}
	name, err := json.Marshal(sent)
	return append(edits, message.Edit{Span: at, Segments: []message.Segment{{Text: name}}}), err
}

// sentModel is the model's name in the place of what the body said: Gemini's may be
// a resource.
func (p *preparation) sentModel(said string) string {
	const models = "models/"
	if p.request.Dialect == message.GeminiContents && strings.HasPrefix(said, models) && !strings.Contains(p.target.Model, "/") {
		return models + p.target.Model
	}
	return p.target.Model
}

// logPrepared writes the one line of a request in which images were shown: which
// calls and which digests, and never what they hold.
func (e *Engine) logPrepared(r *Record) {
	if r.Injected+r.Observed+r.Degraded+r.Unavailable == 0 {
		return
	}
	e.options.Logger.Info("images shown", "route", r.Route, "form", r.Form, "sights", r.Sights, "edits", r.Edits,
		"injected", r.Injected, "observed", r.Observed, "degraded", r.Degraded, "unavailable", r.Unavailable)
}
