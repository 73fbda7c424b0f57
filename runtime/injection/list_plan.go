// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Reasons of a Decision, beside those of a Skip.
const (
	// Ready: the message that Append holds is to stand last.
	Ready = "Ready"
	// ListOff: the policy shows no images.
	ListOff = "InjectionOff"
	// ListNoAssistant: there is no message of the assistant's.
	ListNoAssistant = "NoAssistantMessage"
	// ListNoVisionCalls: its newest one calls no vision tool.
	ListNoVisionCalls = "NoVisionCalls"
	// ListInjected: a message of ours that shows these calls is there.
	ListInjected = "AlreadyInjected"
	// ListShown: every image is in the conversation already, as tools returned it or
	// as a message after the calls holds it.
	ListShown = "AlreadyShown"
	// Unavailable: humans' Markdown names images, and none of them can be shown.
	Unavailable = "ImagesUnavailable"
)

// NotViewed is the state of a sight whose path the viewed-images state does not
// hold, though that was given: the view failed.
const NotViewed State = "NotViewed"

// ListPlan is what is to be shown of a list: the calls of vision tools of the
// assistant's messages, one sight each, in their order.
type ListPlan struct {
	*Plan
	// Inject says that Decide is to be asked, for the newest message of the
	// assistant's or for an older one.
	Inject bool
	// Reason is Ready where the newest message's images are to be shown, else why not.
	Reason string
	// Remove are the indices of messages of ours that are to be left out, ascending:
	// of calls that they do not stand behind, stranded by an interruption, without
	// their images, of an older turn where the policy keeps the current one, with
	// images for a model that takes text alone, or told twice.
	Remove []int

	list   *List
	key    []byte
	viewed Viewed
	// ours are the list's messages of ours.
	ours  []oursMessage
	steps []listStep
	keys  listKeys
}

// listStep is a message of the assistant's whose images are to be shown, and the
// messages behind it up to its next one.
type listStep struct {
	// ai is the message's index, and end that of the next one: of the list's end
	// where it is the newest.
	ai, end int
	// sights are its sights' in Plan.Sights.
	sights message.Span
	// ready says that a message is to be written for it.
	ready bool
	// standing is what ListPlan.shownBehind found, once it has looked.
	standing []string
	looked   bool
}

// Decision is the answer to a list.
type Decision struct {
	// Inject says that Append or Insert hold a message.
	Inject bool `json:"inject"`
	// Reason is Ready, or why nothing is put in.
	Reason string `json:"reason"`
	// Append is one message of the user's, in the form of the list's own, that is to
	// stand behind the last message: what the newest message of the assistant's is shown.
	Append json.RawMessage `json:"append,omitempty"`
	// Insert are those of older ones, as they were when they were appended, ascending.
	Insert []Insertion `json:"insert,omitempty"`
	// Remove are the indices of the list's messages that are to be left out; see ListPlan.
	Remove []int `json:"remove,omitempty"`
}

// Insertion is a message that was appended for an older call of the model, and that
// every later one is shown at the same place.
type Insertion struct {
	// Before is the index of the list's message before which it stands: the one that
	// the assistant answered with.
	Before  int             `json:"before"`
	Message json.RawMessage `json:"message"`
}

// Plan decides whether a list is to be shown images, as system D does but that
//
//   - every call that is waited for must have an id and an answer behind it;
//   - a message counts as ours by its HMAC with key alone, over the ids of the calls
//     and the digests of the images, which must be those it holds. Texts, an id with
//     our prefix, or a marker of another key make no message ours: it is anybody's,
//     and stays;
//   - what was shown for older messages of the assistant's is shown again where it
//     stood, so that the conversation's beginning never changes; or, where the policy
//     keeps the current turn alone, a constant text in its place;
//   - behind the newest one, only its own calls are shown, not all that was ever viewed.
//
// key must not be empty; with an empty one no message is ours. viewed is the state of
// viewed images, nil when there is none: it tells the digests that files must have.
func (l *List) Plan(rules *Rules, key []byte, viewed Viewed) *ListPlan {
	p := &ListPlan{
		Plan: &Plan{Place: router.ToolImagesUserMessage, rules: rules},
		list: l, key: key, viewed: viewed, keys: listKeys{list: l},
	}
	p.Reason = p.decide()
	return p
}

// decide fills in the steps, the sights and what is removed, and gives the reason.
func (p *ListPlan) decide() (reason string) {
	if p.rules.Mode == router.InjectionOff {
		return ListOff
	}
	p.ours = p.list.ours(p.key)
	reason = ListNoAssistant
	human := p.newestHuman()
	kept := map[int]bool{}
	for ai := range p.list.messages {
		if p.list.messages[ai].role == message.Assistant {
			s := listStep{ai: ai, end: p.list.next(ai)}
			old := p.rules.Keep == router.KeepCurrentTurn && s.end < human
			reason = p.step(s, old, kept)
		}
	}
	for _, o := range p.ours {
		if !kept[o.at] {
			p.Remove = append(p.Remove, o.at)
		}
	}
	return reason
}

// step takes one message of the assistant's, and adds to kept the message of ours
// that shows its images already.
func (p *ListPlan) step(s listStep, old bool, kept map[int]bool) (reason string) {
	sights, reason := p.look(&s)
	if reason == "" && len(p.Sights)+len(sights) > maxSights {
		reason = SkipTooMany
	}
	if reason != "" {
		for i := range sights {
			if s.end < len(p.list.messages) && len(p.Skips) < maxSights {
				p.Skips = append(p.Skips, Skip{sights[i].ID, reason})
			}
		}
		return reason
	}
	at, there := p.there(&s, sights)
	reason = ListShown
	for i := range sights {
		switch sight := &sights[i]; {
		case sight.State == ShownByTool:
		case old:
			if sight.State == Wanted {
				sight.State = Old
			}
			reason = Ready
		case there:
			sight.State = ShownInConversation
			reason = ListInjected
		default:
			reason = Ready
		}
	}
	if there && !old {
		kept[at] = true
	}
	s.ready = reason == Ready
	p.Inject = p.Inject || s.ready
	s.sights = message.Span{Start: len(p.Sights), End: len(p.Sights) + len(sights)}
	p.Sights = append(p.Sights, sights...)
	p.steps = append(p.steps, s)
	return reason
}

// there is the first message of ours that shows all of a step's calls, in a form that
// the rules' mode has: with the mode Observation, none that holds an image.
func (p *ListPlan) there(s *listStep, sights []Sight) (at int, ok bool) {
	calls := make([]string, len(sights))
	for i := range sights {
		calls[i] = sights[i].CallID
	}
	blind := p.rules.Mode == router.InjectionObservation
	from, _ := p.oursAt(s.ai)
	for _, o := range p.ours[from:] {
		if o.at >= s.end {
			break
		}
		if o.whole && slices.Equal(o.marker.Calls, calls) && (!blind || !o.shows()) {
			return o.at, true
		}
	}
	return 0, false
}

// oursAt is where in ours the message of an index stands, or would stand.
func (p *ListPlan) oursAt(message int) (i int, is bool) {
	return slices.BinarySearchFunc(p.ours, message, func(o oursMessage, at int) int { return cmp.Compare(o.at, at) })
}

// look makes a sight of each call of a vision tool of a message of the assistant's.
// The reason is "" when all that is waited for has been answered.
func (p *ListPlan) look(s *listStep) (sights []Sight, reason string) {
	l := p.list
	answers := map[string]*listMessage{}
	last := s.ai // the last answer
	for i := s.ai + 1; i < s.end; i++ {
		m := &l.messages[i]
		if m.role != message.Tool || m.callID == "" {
			continue
		}
		last = i
		if answers[m.callID] == nil {
			answers[m.callID] = m
		}
	}
	for i := range l.messages[s.ai].calls {
		call := &l.messages[s.ai].calls[i]
		vision := p.rules.Vision(call.name)
		if vision {
			sight := p.sight(call, answers[call.id], s.end == len(l.messages))
			sight.Turn = last
			sights = append(sights, sight)
		}
		switch {
		case reason != "" || !vision && p.rules.WaitFor == router.WaitForVisionToolCalls:
		case call.id == "":
			reason = SkipMissingID
		case answers[call.id] == nil:
			reason = SkipUnanswered
		}
	}
	if len(sights) == 0 {
		return nil, ListNoVisionCalls
	}
	return sights, reason
}

// sight is what one call is to show; fresh says that it is the newest message's.
func (p *ListPlan) sight(call *listCall, answer *listMessage, fresh bool) Sight {
	s := Sight{
		ID: call.id, Kind: Called, Call: -1, Result: -1, Text: -1,
		Tool: call.name, CallID: call.id, Fresh: fresh, State: Wanted,
	}
	path, named := call.argument(p.rules.PathArguments...)
	s.Path = path
	s.Prompt, _ = call.argument("prompt")
	s.Key, s.Weak = p.keys.called(call, answer)
	if answer != nil {
		p.rules.refer(&s, p.list.body[answer.content.Start:answer.content.End])
	}
	viewed, known := p.viewed.Of(&s)
	if viewed.SHA256 != "" {
		s.SHA256 = viewed.SHA256
	}
	switch {
	case answer != nil && slices.ContainsFunc(partsOf(p.list.body, answer.content), func(part message.Span) bool {
		_, is := listImage(p.list.body, part)
		return is
	}):
		s.State = ShownByTool
	case answer != nil && answer.failed:
		s.State = ErrorResult
	case !named || strings.TrimSpace(path) == "":
		s.State = NoPath
	case fresh && p.viewed != nil && !known:
		s.State = NotViewed
	}
	return s
}
