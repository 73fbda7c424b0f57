// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"io"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
)

// This file is about conversations that a vendor keeps: what they called is learnt
// from the replies that pass, and what was put into them once stays there.

// knownCall finds a call that the request does not bring.
func (p *preparation) knownCall(callID string) (injection.KnownCall, bool) {
	call, ok := p.engine.threads.Find(callID, p.scanned.Previous)
	return injection.KnownCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments}, ok
}

// addedName names an image's sight in a conversation that the vendor keeps, as it
// went on from the reply before it. A request that is sent again goes on from the
// same reply, and is given the image again.
func addedName(callID, response string) string { return "call " + callID + " of " + response }

// skipAdded marks the sights whose images the vendor keeps already.
func (p *preparation) skipAdded() {
	if !p.scanned.Stateful {
		return
	}
	p.names = make([]string, len(p.plan.Sights))
	for i := range p.plan.Sights {
		s := &p.plan.Sights[i]
		if s.CallID == "" || s.State != injection.Wanted {
			continue
		}
		call, known := p.engine.threads.Find(s.CallID, p.scanned.Previous)
		p.names[i] = addedName(s.CallID, call.Response)
		if known && call.Response != p.scanned.Previous && p.engine.threads.Added(p.names[i]) {
			s.State = injection.ShownInConversation
		}
	}
}

// Tap reads the reply as it passes, for what later requests leave to be
// remembered: the calls of a conversation that the vendor keeps, and that it has
// the images that were put in, once the reply is complete. Nil means that nothing
// is to be learnt. The caller closes it behind the last byte.
func (p *Prepared) Tap(contentType string) io.WriteCloser {
	of := p.of
	if of.request.Dialect != message.OpenAIResponses || of.request.Counting {
		return nil
	}
	return of.engine.threads.Tap(contentType, of.markAdded)
}

// markAdded remembers that the vendor has the images of the request.
func (p *preparation) markAdded() {
	for i, name := range p.names {
		if name != "" && p.record.Sights[i].Outcome == SightInjected {
			p.engine.threads.MarkAdded(name)
		}
	}
}
