// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// describe shows what was admitted as text, where the model is to get no image.
// Only what stands where no text may is left as it is, and what the assistant said.
func (p *preparation) describe(ctx context.Context) *fault.Fault {
	if p.form != router.InjectionObservation {
		return nil
	}
	var list []description
	var of []occurrence
	for i, o := range p.admitted {
		d := &p.record.Decisions[i]
		switch {
		case d.Outcome != preflight.Admitted:
		case o.sight >= 0:
			list, of = append(list, p.ofSight(o.sight)), append(of, o)
		case p.scanned.Images[o.image].Fixed || p.images[o.image].Untouchable:
		case p.scanned.Images[o.image].Source == message.Inline:
			list, of = append(list, p.ofImage(o.image, d.Required)), append(of, o)
		case d.Required:
			return unseen(d.ID)
		default:
			p.replace(o.image, observation.InlineFailed)
			p.record.Degraded++
		}
	}
	for i := range p.found {
		if p.found[i].was.SHA256 != "" && p.record.Sights[i].Outcome == SightUnavailable && p.plan.Sights[i].State == injection.Wanted {
			list, of = append(list, p.ofWhatWas(i)), append(of, occurrence{-1, i})
		}
	}
	if len(list) == 0 {
		return nil
	}
	texts, bad := p.engine.describeAll(ctx, p.snapshot, p.profile, list)
	if bad != nil {
		return bad
	}
	for i, o := range of {
		p.tell(o, texts[i])
	}
	return nil
}

// tell puts a text in the place of an image, or that there is none.
func (p *preparation) tell(o occurrence, d described) {
	gone := o.sight >= 0 && p.found[o.sight].picture == nil
	if gone && d.bad != nil {
		return // it stays unavailable
	}
	text, outcome, reason := d.text, SightObserved, ""
	if d.bad != nil {
		text, outcome, reason = observation.InlineFailed, SightDegraded, d.bad.Reason
		p.record.Degraded++
	} else {
		p.record.Observed++
	}
	if o.sight < 0 {
		p.replace(o.image, text)
		return
	}
	p.shown[o.sight] = injection.Shown{Text: text, Constant: true}
	p.record.Sights[o.sight].Outcome, p.record.Sights[o.sight].Reason = outcome, reason
	if gone {
		p.record.Unavailable--
	} else {
		p.record.Injected--
	}
}

// asked is the question about the image of a sight.
func (p *preparation) asked(i int) string {
	return observation.Question(observation.Asked{Policy: p.rules.ObservationPrompt, Call: p.plan.Sights[i].Prompt})
}

// ofWhatWas describes the image that a sight showed before, and of which nothing but
// the text may be left.
func (p *preparation) ofWhatWas(i int) description {
	return description{
		sha256: p.found[i].was.SHA256, prompt: p.asked(i),
		data: func() (io.Reader, int64, error) { return nil, 0, changed(nil) },
	}
}

// ofSight describes the image of a sight. It is required when nobody has answered
// to it yet, as an image of the body would be.
func (p *preparation) ofSight(i int) description {
	s, picture := &p.plan.Sights[i], p.found[i].picture
	return description{
		sha256: picture.SHA256, required: s.Fresh || s.Kind == injection.Markdown && s.Turn == p.newestHuman(),
		prompt: p.asked(i),
		data: func() (io.Reader, int64, error) {
			return io.NewSectionReader(picture.Data, 0, picture.Size), picture.Size, nil
		},
	}
}

// newestHuman is the turn of the newest human message, -1 when there is none.
func (p *preparation) newestHuman() int {
	for i := range slices.Backward(p.scanned.Turns) {
		if p.scanned.Turns[i].Human() {
			return i
		}
	}
	return -1
}

// ofImage describes an image of the body: by the prompt of the call that it
// answers, or with the text of the message that it stands in.
func (p *preparation) ofImage(i int, required bool) description {
	image, asked := &p.scanned.Images[i], observation.Asked{Policy: p.rules.ObservationPrompt}
	switch {
	case asked.Policy != "":
	case image.Result >= 0:
		if call := p.scanned.Results[image.Result].Call; call >= 0 {
			asked.Call, _ = p.scanned.Argument(p.request.Body, call, "prompt")
		}
	default:
		asked.Message = p.said(image.Turn)
	}
	return description{
		sha256: p.images[i].SHA256, required: required, prompt: observation.Question(asked),
		data: func() (io.Reader, int64, error) {
			return message.NewReader(p.request.Body, image), p.images[i].Bytes, nil
		},
	}
}

// longestSaid is more of a message than any question quotes, in bytes.
const longestSaid = 4 << 10

// said is the text that a human wrote in a turn, as far as a question quotes it.
func (p *preparation) said(turn int) string {
	var said []string
	left := longestSaid
	for i := range p.scanned.Texts {
		if t := &p.scanned.Texts[i]; t.Turn == turn && left > 0 {
			text, _ := p.scanned.Decoded(p.request.Body, t.Value, left)
			left -= len(text)
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n")
}

// unseen is a required image that is not in the request, for a model that sees none.
func unseen(id string) *fault.Fault {
	return fault.New(fault.VisionObservationFailed, "ImageNotInRequest", "the image %s is not in the request itself, and is not fetched; the model takes text alone", id).
		With("field", id).Hint("Send the image's data, or choose a model that takes images.")
}
