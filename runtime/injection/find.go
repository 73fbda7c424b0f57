// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// maxSights is the most sights of either kind that a conversation has, and the
// most skips that are told: the first ones. Vendors take far fewer images.
const maxSights = message.MaxImages

// Find finds every place of a conversation at which an image is to be shown, and
// says what else names one and why it is none. body is what was scanned; place is
// one of router's ToolImages values, see Place. With the mode Off there are none.
//
// A result of a call that the body does not hold is looked up by known, in bodies
// of conversations that the vendor keeps. It takes linear time but for sorting.
func Find(r *message.Request, body []byte, rules *Rules, place string, known Known) *Plan {
	f := &finder{
		r: r, body: body, rules: rules, known: known,
		plan: &Plan{Place: place, rules: rules, turns: turnsOf(r)},
		keys: keys{r: r, body: body}, vision: map[string]bool{},
	}
	if rules.Mode == router.InjectionOff {
		return f.plan
	}
	f.pictured = pictured(r)
	for _, s := range steps(r) {
		f.step(s)
	}
	called := f.plan.Sights
	if rules.Markdown {
		f.plan.Sights = nil
		for i := range r.Texts {
			f.text(i)
		}
		if place == router.ToolImagesInToolResult {
			f.plan.Sights = append(called, f.plan.Sights...)
		} else {
			f.plan.Sights = append(f.plan.Sights, called...)
		}
	}
	slices.SortStableFunc(f.plan.Sights, func(a, b Sight) int { return cmp.Compare(a.Turn, b.Turn) })
	f.age()
	return f.plan
}

// finder is one search.
type finder struct {
	r      *message.Request
	body   []byte
	rules  *Rules
	known  Known
	plan   *Plan
	keys   keys
	vision map[string]bool // what Rules.Vision says, by name
	// pictured says of each result whether it holds an image part.
	pictured []bool
}

func pictured(r *message.Request) []bool {
	all := make([]bool, len(r.Results))
	for i := range r.Images {
		if result := r.Images[i].Result; result >= 0 && result < len(all) {
			all[result] = true
		}
	}
	return all
}

// call is a call of a vision tool with its answer, in the body or at the vendor.
type call struct {
	name, id     string
	path, prompt string
	hasPath      bool
	digest       [32]byte // of its arguments
	index        int      // in Request.Calls, -1 at the vendor
	result       int      // in Request.Results, -1 while there is none
	at           string   // the sight's ID
	ordinal      int
}

// step finds the sights of one step.
func (f *finder) step(s step) {
	a := answersOf(f.r, s)
	calls := f.visionCalls(s, a)
	if len(calls) == 0 {
		return
	}
	if reason := f.rules.lacks(f.r, s, a); reason != "" {
		for _, c := range calls {
			f.skip(c.at, reason)
		}
		return
	}
	last := f.rules.lastResult(f.r, s, a)
	if f.plan.Place == router.ToolImagesInToolResult {
		slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.result, b.result) })
	}
	for i := range calls {
		f.called(&calls[i], last)
	}
}

// visionCalls are a step's calls of vision tools: those of the body in their
// order, then those at the vendor in the order of their results.
func (f *finder) visionCalls(s step, a answered) []call {
	var calls []call
	for i, result := range a.first {
		index := s.calls.Start + i
		c := &f.r.Calls[index]
		if !f.isVision(c.Name) {
			continue
		}
		found := callOf(f.r, f.body, index, f.rules)
		found.index, found.result, found.at = index, result, f.r.CallAt(index)
		calls = append(calls, found)
	}
	seen := map[string]bool{} // the ids of calls that the vendor keeps
	for _, result := range a.kept {
		at := f.r.ResultAt(result)
		kept, ok := f.lookUp(f.r.Results[result].CallID)
		if !ok {
			f.skip(at, SkipNotVisible)
			continue
		}
		if !f.isVision(kept.Name) || seen[kept.ID] {
			continue
		}
		seen[kept.ID] = true
		found := callOf(keptRequest(f.r.Dialect, kept), []byte(kept.Arguments), 0, f.rules)
		found.index, found.result, found.at = -1, result, at
		calls = append(calls, found)
	}
	for i := range calls {
		calls[i].ordinal = f.keys.ordinal(Called, calls[i].name+string(calls[i].digest[:]))
	}
	return calls
}

func (f *finder) lookUp(id string) (KnownCall, bool) {
	if f.known == nil || id == "" {
		return KnownCall{}, false
	}
	kept, ok := f.known(id)
	kept.ID = id
	return kept, ok
}

// keptRequest is a request that holds nothing but one call, whose arguments are
// the whole body.
func keptRequest(d message.Dialect, kept KnownCall) *message.Request {
	whole := message.Span{End: len(kept.Arguments)}
	return &message.Request{Dialect: d, Calls: []message.Call{{ID: kept.ID, Name: kept.Name, Span: whole, Arguments: whole}}}
}

func callOf(r *message.Request, body []byte, index int, rules *Rules) call {
	c := call{name: r.Calls[index].Name, id: r.Calls[index].ID, digest: r.ArgumentsDigest(body, index)}
	c.path, c.hasPath = r.Argument(body, index, rules.PathArguments...)
	c.hasPath = c.hasPath && strings.TrimSpace(c.path) != ""
	c.prompt, _ = r.Argument(body, index, "prompt")
	return c
}

func (f *finder) isVision(tool string) bool {
	is, ok := f.vision[tool]
	if !ok {
		is = f.rules.Vision(tool)
		f.vision[tool] = is
	}
	return is
}

// called adds the sight of an answered call; last is the turn of the step's last result.
func (f *finder) called(c *call, last int) {
	if len(f.plan.Sights) == maxSights {
		f.skip(c.at, SkipTooMany)
		return
	}
	result := &f.r.Results[max(c.result, 0)]
	s := Sight{
		ID: c.at, Kind: Called, Turn: last, Call: c.index, Result: c.result, Text: -1,
		Tool: c.name, CallID: c.id, Path: c.path, Prompt: c.prompt, State: Wanted,
	}
	inResult := f.plan.Place == router.ToolImagesInToolResult
	if inResult {
		s.Turn = result.Turn
	}
	switch {
	case f.pictured[c.result]:
		s.State = ShownByTool
	case inResult && !result.Takes:
		f.skip(c.at, SkipTakesNone)
		return
	case result.IsError:
		s.State = ErrorResult
	case !c.hasPath:
		s.State = NoPath
	}
	s.Key, s.Weak = f.keys.called(c, result, c.ordinal)
	f.rules.refer(&s, answer(f.r, f.body, result))
	f.plan.Sights = append(f.plan.Sights, s)
}

// text finds the Markdown images of a human's text.
func (f *finder) text(index int) {
	t := &f.r.Texts[index]
	if !mayMention(f.body[t.Value.Start:t.Value.End]) {
		return
	}
	at := f.r.TextAt(index)
	text, ok := f.r.Decoded(f.body, t.Value, maxMarkdownText)
	if !ok {
		f.skip(at, SkipTooLong)
		return
	}
	ordinal := f.keys.ordinal(Markdown, newDigest(text).hex())
	for i, m := range mentions(text) {
		id := at + "#" + strconv.Itoa(i)
		switch {
		case i == maxPictures || len(f.plan.Sights) == maxSights:
			f.skip(id, SkipTooMany)
			return
		case m.skip != "":
			f.skip(id, m.skip)
			continue
		}
		f.plan.Sights = append(f.plan.Sights, Sight{
			ID: id, Kind: Markdown, Turn: t.Turn, Call: -1, Result: -1, Text: index,
			Path: m.path, Prompt: m.alt, State: Wanted,
			Key: f.keys.markdown(text, m.path, t.Turn, i, ordinal), Weak: true,
		})
	}
}

// mayMention reports whether a JSON string may hold a Markdown image: its first
// two characters may be escaped.
func mayMention(raw []byte) bool {
	for _, sign := range []string{"![", `\u0021`, `\u005b`, `\u005B`} {
		if bytes.Contains(raw, []byte(sign)) {
			return true
		}
	}
	return false
}

func (f *finder) skip(id, reason string) {
	if len(f.plan.Skips) < maxSights {
		f.plan.Skips = append(f.plan.Skips, Skip{id, reason})
	}
}

// age marks what may be shown for the first time, and what the policy keeps no more.
func (f *finder) age() {
	current := f.rules.Keep == router.KeepCurrentTurn
	for i := range f.plan.Sights {
		s := &f.plan.Sights[i]
		_, answered := f.plan.turns.next(s.Turn)
		s.Fresh = !answered
		if _, old := f.plan.turns.old(s.Turn); old && current && s.State == Wanted {
			s.State = Old
		}
	}
}

// inResult reports whether the image of a sight stands in a tool's result.
func (p *Plan) inResult(i int) bool {
	return p.Sights[i].Kind == Called && p.Place == router.ToolImagesInToolResult
}
