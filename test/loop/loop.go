// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package loop plays agents for tests: it sends messages to a model, does what the
// model calls tools for, and sends the results back, as the agents of each dialect
// do. What the model says comes from a Scenario, which package upstream serves.
//
// Like upstream it imports nothing of this project.
package loop

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/visionoperator/vision-operator/test/upstream"
)

// Client is an agent's side of one conversation in one dialect. It keeps the
// history and only ever appends to it.
type Client interface {
	// Human adds what the human says.
	Human(text string)
	// Results adds the results of all calls of the model's last turn, in the order of
	// the calls, and what the human says beside them; "" says nothing.
	Results(outcomes []Outcome, beside string)
	// Send sends the history and adds what the model says; after an error the history
	// is as before, and Send may be tried again.
	Send(ctx context.Context) (Said, error)
}

// Said is what the model said.
type Said struct {
	Text  string
	Calls []Call
}

// Call is a call of a tool, as the model made it. Arguments is JSON, or the text
// of a Custom tool's call. ID is "" where the wire gives none.
type Call struct {
	ID, Name, Arguments string
	Custom              bool
}

// Report is what came of a conversation.
type Report struct {
	// Conversation is how upstream.Request names it.
	Conversation string
	// Said is what the model said, turn by turn.
	Said []Said
	// Views are all views, in the order of their calls.
	Views []View
	// Retries is how often a request had to be sent again.
	Retries int

	shown [][]View // what each request can show, retries included
}

// View is one call of a tool that looks at an image.
type View struct {
	Turn   int
	CallID string
	Tool   string
	Path   string
	// SHA256 is of the file when it was viewed, in hex; "" when there was none.
	SHA256 string
	// Fails says that there is no image to show: no file, or a damaged one.
	Fails bool
	// Own says that the tool's result holds the image itself.
	Own bool
}

// Run plays a scenario to its end.
func Run(ctx context.Context, c Client, w *Workspace, s Scenario) (*Report, error) {
	folder := fresh()
	r := &Report{Conversation: "[" + s.Name + " " + folder + "] " + cmp.Or(s.Opening, "Look at the screen, please.")}
	script := s.Script(folder)
	human := slices.Clone(s.Human)
	c.Human(r.Conversation)
	for turn := range script {
		said, err := r.send(ctx, c, script[turn].Break)
		if err != nil {
			return r, fmt.Errorf("sending turn %d of %s: %w", turn, s.Name, err)
		}
		if err := same(said, script[turn]); err != nil {
			return r, fmt.Errorf("reading turn %d of %s: %w", turn, s.Name, err)
		}
		r.Said = append(r.Said, said)
		switch {
		case len(said.Calls) > 0:
			outcomes, err := w.do(turn, said.Calls)
			if err != nil {
				return r, err
			}
			for _, outcome := range outcomes {
				if outcome.View != nil {
					r.Views = append(r.Views, *outcome.View)
				}
			}
			c.Results(outcomes, s.Beside[turn])
		case turn < len(script)-1 && len(human) > 0:
			c.Human(human[0])
			human = human[1:]
		}
	}
	return r, nil
}

// send sends the history, and once again when the turn is one that breaks off.
func (r *Report) send(ctx context.Context, c Client, breaks bool) (Said, error) {
	r.shown = append(r.shown, slices.Clone(r.Views))
	said, err := c.Send(ctx)
	if !breaks {
		return said, err
	}
	if err == nil {
		return said, fmt.Errorf("a reply that was broken off came as a whole one: %+v", said)
	}
	r.Retries++
	r.shown = append(r.shown, slices.Clone(r.Views))
	return c.Send(ctx)
}

// same compares what was said with the script.
func same(said Said, want upstream.Answer) error {
	if said.Text != want.Text || len(said.Calls) != len(want.Calls) {
		return fmt.Errorf("the model said %+v, want %+v", said, want)
	}
	for i, call := range said.Calls {
		if call.Name != want.Calls[i].Name || !sameJSON(call.Arguments, want.Calls[i].Arguments) {
			return fmt.Errorf("the model called %+v, want %+v", call, want.Calls[i])
		}
	}
	return nil
}

// Check compares what the upstream got with what was viewed, and gives what is
// wrong: an image that is not there exactly once in each request after its view,
// beside its call, or one that was never viewed. Without injects only images that tools returned
// themselves are to be there.
func (r *Report) Check(s *upstream.Server, injects bool) []string {
	var problems []string
	requests := s.Of(r.Conversation)
	if len(requests) != len(r.shown) {
		return []string{fmt.Sprintf("%d requests reached the upstream, %d were sent", len(requests), len(r.shown))}
	}
	for i, request := range requests {
		var want, got []string
		for _, view := range r.shown[i] {
			if !view.Fails && (injects || view.Own) {
				want = append(want, view.SHA256)
			}
		}
		for _, image := range request.Images {
			got = append(got, image.SHA256+image.URL)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			problems = append(problems, fmt.Sprintf("%s: request %d (turn %d) holds the images %v, want %v", r.Conversation, i, request.Turn, got, want))
		}
		for _, view := range r.shown[i] {
			if misplaced := strays(request, view); misplaced != "" {
				problems = append(problems, fmt.Sprintf("%s: request %d (turn %d): %s", r.Conversation, i, request.Turn, misplaced))
			}
		}
	}
	return problems
}

// strays says when an image stands elsewhere than between the call that named it
// and what the model said next.
func strays(request *upstream.Request, view View) string {
	call := slices.IndexFunc(request.Messages, func(m []byte) bool { return bytes.Contains(m, []byte(`"`+view.CallID+`"`)) })
	if view.CallID == "" || call < 0 {
		return ""
	}
	for _, image := range request.Images {
		if image.SHA256 == view.SHA256 && (image.Message <= call || request.Steps[image.Message] != request.Steps[call]) {
			return fmt.Sprintf("the image of the call in message %d stands in message %d, behind another turn", call, image.Message)
		}
	}
	return ""
}

// fresh is a name that no other conversation has.
func fresh() string {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
