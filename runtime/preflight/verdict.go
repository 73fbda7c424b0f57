// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// verdict writes down what the ledger holds after its last turn.
func (l *ledger) verdict(refusal *fault.Fault) Verdict {
	v := Verdict{
		Allowed: refusal == nil, Refusal: refusal,
		Decisions: make([]Decision, len(l.entries)),
		Tokens: Tokens{
			Text: tokens.Text(within(l.in.TextBytes)), Images: l.all.tokens, Output: l.terms.reserve,
			Window: l.terms.windowTokens, Headroom: l.terms.headroom,
		},
	}
	ruled := refusal != nil && len(l.blocked) == 0 // a rule of the request refuses, not a check of an image
	for i := range l.entries {
		e := &l.entries[i]
		d := Decision{ID: e.ID, SHA256: e.SHA256, Required: e.required(), Outcome: Admitted, Tokens: e.cost, Basis: e.basis()}
		switch {
		case e.against != nil && e.required():
			d.give(Refused, e.against)
		case e.against != nil:
			d.give(Degraded, e.against)
		case e.shed != nil:
			d.give(Degraded, e.shed)
		case ruled && e.required():
			d.give(Refused, refusal)
		}
		v.Decisions[i] = d
	}
	v.Warnings = l.warnings(&v.Tokens)
	return v
}

func (d *Decision) give(o Outcome, why *fault.Fault) {
	d.Outcome, d.Reason, d.Message = o, why.Reason, why.Message
	if d.Reason == "" {
		d.Reason = string(why.Kind)
	}
}

// Note is the text that stands in the image's place when it was left out.
func (d *Decision) Note() string { return Note(d.Reason) }

// warnings tell what was not checked, and what is near a limit.
func (l *ledger) warnings(sum *Tokens) []string {
	out := l.terms.warnings
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var sizeless, shapeless int
	for i := range l.entries {
		if e := &l.entries[i]; e.kept {
			if e.bytes == 0 {
				sizeless++
			}
			if e.Width <= 0 || e.Height <= 0 {
				shapeless++
			}
		}
	}
	if sizeless > 0 {
		warn("%d of the images have no known size in bytes; limits on bytes do not count them", sizeless)
	}
	if shapeless > 0 {
		warn("%d of the images have no known width and height; they are charged the most that one can cost, and limits on sides and pixels do not count them", shapeless)
	}
	for i := range l.terms.advice {
		l.terms.advice[i].warn(l, warn)
	}
	if sum.Window == 0 {
		return out
	}
	input := sum.Text + sum.Images
	if sum.Text > sum.Window {
		warn("the text alone is estimated at %d tokens; the context window of %s has %d", sum.Text, l.terms.name, sum.Window)
	} else if room := sum.Window - sum.Headroom; input+sum.Output > room-room/10 {
		warn("the request is estimated at %d tokens with its answer; the context window of %s has %d", input+sum.Output, l.terms.name, sum.Window)
	}
	if asked := within(l.in.MaxOutputTokens); asked > 0 {
		if fits := tokens.ClampOutput(asked, sum.Window, input); fits < asked {
			warn("the request asks for up to %d output tokens; its context window leaves about %d", asked, fits)
		}
	}
	return out
}
