// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// description is one image of a model request, to be shown as text to a model that
// sees none.
type description struct {
	// sha256 is the digest of the image's bytes, in hexadecimal digits.
	sha256 string
	// prompt is what to ask; see observation.Question.
	prompt string
	// required says that the request is refused without the text.
	required bool
	// data gives the image's bytes, and how many there are. It is called when a
	// model has to look, at most once for equal descriptions, and never after
	// describeAll has returned. What it gives is closed when it can be.
	data func() (from io.Reader, size int64, err error)
}

// described is what became of a description: the text, or why there is none.
type described struct {
	text   string
	source describedBy
	// route is that of the model that looked, where that is known.
	route string
	bad   *fault.Fault
}

// describedBy says where a text came from.
type describedBy string

const (
	describedBefore describedBy = "kept"   // as it was shown before
	describedCached describedBy = "cached" // of an observation that was there, or on its way
	describedNow    describedBy = "observed"
)

// maxDescribing is how many images of one request are looked at at the same time.
const maxDescribing = 4

// describeAll makes the texts of many images, each of the equal ones once, and up
// to four at the same time. The fault is that of the first required image of which
// there is none, and ends the other looks; those that are not required fail by
// themselves. texts are in the order of list.
func (e *Engine) describeAll(ctx context.Context, snap *snapshot, profile *router.Profile, list []description) (texts []described, bad *fault.Fault) {
	plan := e.planned(snap, profile)
	unique, of := distinct(list)
	made := make([]described, len(unique))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxDescribing)
	for _, required := range []bool{true, false} { // what may refuse the request comes first
		for i := range unique {
			if unique[i].required != required {
				continue
			}
			group.Go(func() error {
				made[i] = e.describeSafely(ctx, snap, profile, plan, &unique[i])
				if bad := made[i].bad; bad != nil && required {
					return bad
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, fault.As(err)
	}
	texts = make([]described, len(list))
	for i := range list {
		texts[i] = made[of[i]]
	}
	return texts, nil
}

// distinct are the descriptions of a list that differ, each required when one of
// the equal ones is, and which of them each of the list is.
func distinct(list []description) (unique []description, of []int) {
	type same struct{ sha256, prompt string }
	known := make(map[same]int, len(list))
	of = make([]int, len(list))
	for i, d := range list {
		id := same{d.sha256, d.prompt}
		at, ok := known[id]
		if !ok {
			at = len(unique)
			known[id] = at
			unique = append(unique, d)
		}
		unique[at].required = unique[at].required || d.required
		of[i] = at
	}
	return unique, of
}

// describeSafely turns a panic into a fault: one image must not end the process.
func (e *Engine) describeSafely(ctx context.Context, snap *snapshot, profile *router.Profile, plan cache.Fields, d *description) (made described) {
	defer func() {
		if recover() != nil { // its value may be content
			e.options.Logger.Error("describing an image panicked", "stack", string(debug.Stack()))
			made = described{bad: fault.New(fault.VisionObservationFailed, "Internal", "the vision runtime failed unexpectedly")}
		}
	}()
	made, bad := e.describeBy(ctx, snap, profile, plan, d)
	if bad != nil {
		made = described{bad: undescribed(bad)}
	}
	return made
}

// describeBy looks for the text as it was shown before, and else has a model look.
// What is shown once is shown for as long as it is kept, however the observation
// fares, so that a conversation that is sent again has the same bytes.
func (e *Engine) describeBy(ctx context.Context, snap *snapshot, profile *router.Profile, plan cache.Fields, d *description) (described, *fault.Fault) {
	plan.ImageSHA256, plan.Prompt = d.sha256, d.prompt
	sum := plan.Key()
	key := hex.EncodeToString(sum[:])
	if text, ok := e.options.Pins.Text(key); ok {
		return described{text: text, source: describedBefore}, nil
	}
	pic, bad := e.decode(ctx, d, &profile.Limits)
	if bad != nil {
		return described{}, bad
	}
	defer pic.release()
	if text, ok := e.options.Pins.Text(key); ok { // while this one waited for room
		return described{text: text, source: describedBefore}, nil
	}
	result, bad := e.see(ctx, snap, profile, Request{Prompt: d.prompt}, pic)
	if bad != nil {
		return described{}, bad
	}
	made := described{source: describedNow, route: result.VisionSelection.VisionModelRef}
	if result.Cached {
		made.source = describedCached
	}
	made.text = e.show(key, observation.Inline(result.Observation, d.sha256, e.podKey))
	return made, nil
}

// prepareLooks makes what describing takes.
func (e *Engine) prepareLooks() {
	if e.podKey = e.options.PodKey; e.podKey == nil {
		e.podKey = make([]byte, 32)
		_, _ = rand.Read(e.podKey) // never fails
	}
	e.lookRoom = max(e.options.MaxHeldBytes/4, minHeldBytes)
	e.looking = semaphore.NewWeighted(e.lookRoom)
}

// show keeps a text, unless another was shown for the same meanwhile: that is it then.
func (e *Engine) show(key, text string) string {
	e.showing.Lock()
	defer e.showing.Unlock()
	if before, ok := e.options.Pins.Text(key); ok {
		return before
	}
	e.options.Pins.PutText(key, text)
	return text
}

// planned names what the document alone would have look at an image, whatever the
// image is and whoever can be reached now: the policy's default model, or the first
// that can see, with its endpoint. Texts are kept by it, so that another model's
// are not shown for those of a policy that has changed, while a fallback that once
// looked does not change what was said.
func (e *Engine) planned(snap *snapshot, profile *router.Profile) cache.Fields {
	fields := cache.Fields{
		Model: profile.DefaultModel, Schema: observation.Schema,
		Policy: generationPolicy + " " + observation.QuestionVersion + " " + observation.InlineVersion,
	}
	plan, err := selection.Select(selection.Input{Document: snap.doc, Profile: profile})
	if err != nil { // such as a model that only its endpoint's list has
		return fields
	}
	choice := plan.Choice
	fields.Provider, fields.Endpoint, fields.Model = choice.Provider.Name, choice.Endpoint.Name, choice.Model.Name
	fields.EndpointDigest = snap.clientOf(choice).digest
	return fields
}

// decode reads an image of a request into memory, and judges it as View judges a
// file. Looks have room of their own, a quarter of what may be held: whoever waits
// for it may hold a request's body, and nobody who has it waits for a body's room.
func (e *Engine) decode(ctx context.Context, d *description, limits *router.Limits) (*picture, *fault.Fault) {
	from, size, err := d.data()
	if err != nil {
		return nil, undecodable(err)
	}
	if closer, ok := from.(io.Closer); ok {
		defer func() { _ = closer.Close() }() // only read from
	}
	if bad := checkBytes(size, limits); bad != nil {
		return nil, bad
	}
	room := min(max(withCopy(size, limits), minHeldBytes), e.lookRoom) // a larger one goes alone
	if err := e.looking.Acquire(ctx, room); err != nil {
		f := fault.New(fault.VisionObservationFailed, "Canceled", "the call ended before the image could be looked at").
			Hint("Call again; many images are being looked at.").Because(err)
		f.Retryable = true
		return nil, f
	}
	release := func() { e.looking.Release(room) }
	pic, bad := decoded(from, size, d.sha256, limits)
	if bad != nil {
		release()
		return nil, bad
	}
	pic.release = release
	return pic, nil
}

func decoded(from io.Reader, size int64, digest string, limits *router.Limits) (*picture, *fault.Fault) {
	data := make([]byte, size)
	if _, err := io.ReadFull(from, data); err != nil {
		return nil, undecodable(err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != digest {
		return nil, fault.New(fault.ImageReadFailed, "Changed", "the image is not the one any more that the request showed")
	}
	facts, err := probe.Content(data)
	if bad := checkFacts(facts, err, limits); bad != nil {
		return nil, bad
	}
	uri := reference.URI(observation.ReferenceID(digest))
	return &picture{facts: facts, data: data, reference: observation.NewReference(uri, digest, facts.MediaType, size, facts.Width, facts.Height)}, nil
}

func undecodable(err error) *fault.Fault {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	return fault.New(fault.ImageReadFailed, "IO", "the image could not be read").Because(err)
}

// undescribed words why an image has no text for whoever sent the request. What
// would be refused again, whatever the vision model does, keeps its kind: the
// policy's denial, a limit, a quota, an image that is none. All else is the failed
// observation of an image, also where no model can look at all.
func undescribed(f *fault.Fault) *fault.Fault {
	told := *ofBody(f)
	switch f.Kind {
	case fault.PolicyDenied, fault.BudgetExceeded, fault.InvalidToolInput, fault.QuotaExceeded, fault.RouterUnavailable:
		return &told
	case fault.VisionObservationFailed, fault.VisionAdapterUnavailable, fault.ImageReadFailed:
	}
	told.Kind = fault.VisionObservationFailed
	return &told
}
