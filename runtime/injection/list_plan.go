// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

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
)

// NotViewed is the state of a sight whose path the viewed-images state does not
// hold, though that was given: the view failed.
const NotViewed State = "NotViewed"

// ListPlan is what is to be shown of a list: the calls of vision tools of its newest
// message of the assistant's, one sight each.
type ListPlan struct {
	*Plan
	// Inject says that Decide is to be asked; else Reason says why not.
	Inject bool
	Reason string
	// Remove are the indices of messages of ours that are to be left out, ascending:
	// of older turns, stranded by an interruption, without their images, or told twice.
	Remove []int

	list   *List
	key    []byte
	viewed Viewed
	// ours are the list's messages of ours.
	ours []oursMessage
	// standing is what Standing found, once it has looked.
	standing []string
	looked   bool
}

// Decision is the answer to a list.
type Decision struct {
	// Inject says that Append is to stand behind the last message.
	Inject bool `json:"inject"`
	// Reason is Ready, or why nothing is appended.
	Reason string `json:"reason"`
	// Append is one message of the user's, in the form of the list's own.
	Append json.RawMessage `json:"append,omitempty"`
	// Remove are the indices of the list's messages that are to be left out; see ListPlan.
	Remove []int `json:"remove,omitempty"`
}

// Plan decides whether a list is to be shown images, as system D does but that
//
//   - every call that is waited for must have an id and an answer behind it;
//   - a message counts as ours by its HMAC with key alone, over the ids of the calls
//     and the digests of the images, which must be those it holds. Texts, an id with
//     our prefix, or a marker of another key make no message ours: it is anybody's,
//     and stays;
//   - only the calls of the newest turn are shown, not all that was ever viewed.
//
// key must not be empty; with an empty one no message is ours. viewed is the state of
// viewed images, nil when there is none: it tells the digests that files must have.
func (l *List) Plan(rules *Rules, key []byte, viewed Viewed) *ListPlan {
	p := &ListPlan{
		Plan: &Plan{Place: router.ToolImagesUserMessage, rules: rules},
		list: l, key: key, viewed: viewed,
	}
	p.Reason = p.decide()
	p.Inject = p.Reason == Ready
	return p
}

// decide fills in the sights and what is removed, and gives the reason.
func (p *ListPlan) decide() string {
	l := p.list
	p.ours = l.ours(p.key)
	for _, o := range p.ours {
		if o.at < l.ai || !o.whole {
			p.Remove = append(p.Remove, o.at)
		}
	}
	switch {
	case p.rules.Mode == router.InjectionOff:
		return ListOff
	case l.ai < 0:
		return ListNoAssistant
	}
	if reason := p.look(); reason != "" {
		return reason
	}
	calls := make([]string, len(p.Sights))
	for i := range p.Sights {
		calls[i] = p.Sights[i].CallID
	}
	there := false
	for _, o := range p.ours {
		if o.at < l.ai || !o.whole {
			continue
		}
		if there || !slices.Equal(o.marker.Calls, calls) {
			p.Remove = append(p.Remove, o.at)
			continue
		}
		there = true
	}
	slices.Sort(p.Remove)
	if there {
		return ListInjected
	}
	if !slices.ContainsFunc(p.Sights, func(s Sight) bool { return s.State != ShownByTool }) {
		return ListShown
	}
	return Ready
}

// look makes a sight of each call of a vision tool of the newest message of the
// assistant's. The reason is "" when all that is waited for has been answered.
func (p *ListPlan) look() (reason string) {
	l := p.list
	answers := map[string]*listMessage{}
	for i := l.ai + 1; i < len(l.messages); i++ {
		if m := &l.messages[i]; m.role == message.Tool && m.callID != "" {
			answers[m.callID] = m
		}
	}
	for i := range l.messages[l.ai].calls {
		call := &l.messages[l.ai].calls[i]
		vision := p.rules.Vision(call.name)
		if vision {
			p.Sights = append(p.Sights, p.sight(call, answers[call.id]))
		}
		switch {
		case reason != "" || !vision && p.rules.WaitFor == router.WaitForVisionToolCalls:
		case call.id == "":
			reason = SkipMissingID
		case answers[call.id] == nil:
			reason = SkipUnanswered
		}
	}
	if len(p.Sights) == 0 {
		return ListNoVisionCalls
	}
	return reason
}

// sight is what one call is to show.
func (p *ListPlan) sight(call *listCall, answer *listMessage) Sight {
	s := Sight{
		ID: call.id, Kind: Called, Turn: p.list.ai, Call: -1, Result: -1, Text: -1,
		Tool: call.name, CallID: call.id, Fresh: true, Weak: weakID(call.id, call.name), State: Wanted,
	}
	path, named := call.argument(p.rules.PathArguments...)
	s.Path = path
	s.Prompt, _ = call.argument("prompt")
	s.Key = listKey(call)
	if answer != nil {
		p.rules.refer(&s, p.list.body[answer.content.Start:answer.content.End])
	}
	viewed, known := p.viewed[path]
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
	case !named:
		s.State = NoPath
	case p.viewed != nil && !known:
		s.State = NotViewed
	}
	return s
}

// listKey names a call's image in pins: the digest of tool, call id and arguments,
// the last as canonical JSON.
func listKey(call *listCall) string {
	var arguments any
	canonical := call.arguments
	if json.Unmarshal(call.arguments, &arguments) == nil {
		canonical, _ = json.Marshal(arguments) // what was just read can be written
	}
	named, _ := json.Marshal([]string{"list", call.name, call.id, string(canonical)})
	sum := sha256.Sum256(named)
	return hex.EncodeToString(sum[:])
}
