// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import "github.com/visionoperator/vision-operator/runtime/message"

// Kind is who speaks in a turn, as far as images are concerned.
type Kind int

// The kinds.
const (
	// Other is a turn whose images are never required: instructions.
	Other Kind = iota
	// Human is a user's turn that is not made of tool results alone.
	Human
	// Assistant is the model's.
	Assistant
	// Results is a turn that is made of tool results alone, whatever its role on
	// the wire.
	Results
)

// Turn is one message of the conversation.
type Turn struct {
	Kind Kind
	// TextBytes is the turn's share of Input.TextBytes, and BodyBytes its share of
	// Input.BodyBytes, image data left out. With either at 0, a request that
	// ended at an earlier turn is taken to have been as long as this one.
	TextBytes, BodyBytes int64
	// Signed says that the turn holds reasoning that its vendor has signed: images
	// before it are left out in steps; see the package.
	Signed bool
}

// TurnsOf are the turns of a scanned request, by the same indices. Instructions
// that stand outside of the conversation, wherever in the body, count as of its
// beginning: their turns have no bytes of their own.
func TurnsOf(r *message.Request) []Turn {
	outside := r.Dialect == message.AnthropicMessages || r.Dialect == message.GeminiContents
	turns := make([]Turn, len(r.Turns))
	end := -1 // of the turn before; what separates two turns is the second's
	for k, t := range r.Turns {
		turns[k].Kind, turns[k].Signed = kindOf(t), t.Signed
		if t.Role == message.System && outside {
			continue
		}
		if end < 0 {
			end = t.Span.Start
		}
		turns[k].TextBytes, turns[k].BodyBytes = t.TextBytes, int64(t.Span.End-end)
		end = t.Span.End
	}
	for i := range r.Images {
		t := &turns[r.Images[i].Turn]
		t.BodyBytes = max(0, t.BodyBytes-int64(r.Images[i].Data.Len()))
	}
	return turns
}

// kindOf is the kind of a turn of a scanned request.
func kindOf(t message.Turn) Kind {
	switch {
	case t.ToolResults || t.Role == message.Tool:
		return Results
	case t.Role == message.User:
		return Human
	case t.Role == message.Assistant:
		return Assistant
	}
	return Other
}

// fresh are the images that are required for now, by what ends it.
type fresh struct {
	human   []int // until the next human turn
	results []int // until the next turn of the assistant
}

// begin ends what a turn of kind ends, and returns the images that lose a hold.
func (f *fresh) begin(kind Kind) (released []int) {
	switch kind {
	case Human:
		released, f.human = f.human, nil
	case Assistant:
		released, f.results = f.results, nil
	}
	return released
}

// take labels an image that arrives in a turn of kind, and returns how many
// holds keep it required: a result in a human's turn has both.
func (f *fresh) take(i int, kind Kind, result bool) (holds int) {
	if kind == Human {
		f.human = append(f.human, i)
		holds++
	}
	if kind == Results || result && kind != Assistant {
		f.results = append(f.results, i)
		holds++
	}
	return holds
}
