// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// turns are what of a conversation's turns decides when images are shown.
type turns struct {
	assistants, humans []int // ascending
}

func turnsOf(r *message.Request) turns {
	t := turns{}
	for i := range r.Turns {
		switch turn := &r.Turns[i]; {
		case turn.Role == message.Assistant:
			t.assistants = append(t.assistants, i)
		case turn.Human():
			t.humans = append(t.humans, i)
		}
	}
	return t
}

// next is the first turn of the assistant after a turn; ok is false when none is.
func (t *turns) next(turn int) (assistant int, ok bool) {
	i, _ := slices.BinarySearch(t.assistants, turn+1)
	if i == len(t.assistants) {
		return 0, false
	}
	return t.assistants[i], true
}

// old tells at which turn a human has spoken since what stands at a turn was
// answered; ok is false when none has. A human's message right behind it, which
// interrupts, does not count: the image would never have been shown.
func (t *turns) old(turn int) (human int, ok bool) {
	assistant, ok := t.next(turn)
	if !ok {
		return 0, false
	}
	i, _ := slices.BinarySearch(t.humans, assistant+1)
	if i == len(t.humans) {
		return 0, false
	}
	return t.humans[i], true
}

// OldAt is the turn, as an index in Request.Turns, from which on the image of a
// sight that is Old is no longer shown.
func (p *Plan) OldAt(sight int) int {
	human, _ := p.turns.old(p.Sights[sight].Turn)
	return human
}

// step is a run of the assistant's turns, from first up to answers, with the
// turns that follow it up to end. Before the assistant's first turn there is one
// without a run: that of a conversation that the vendor keeps.
type step struct {
	first, answers, end int
	calls, results      message.Span // in Request.Calls and Request.Results
}

// steps are those of a request, in order.
func steps(r *message.Request) []step {
	var all []step
	call, result := 0, 0
	for turn := 0; turn < len(r.Turns); {
		s := step{first: turn}
		for turn < len(r.Turns) && r.Turns[turn].Role == message.Assistant {
			turn++
		}
		s.answers = turn
		for turn < len(r.Turns) && r.Turns[turn].Role != message.Assistant {
			turn++
		}
		s.end = turn
		s.calls.Start = call
		for call < len(r.Calls) && r.Calls[call].Turn < s.end {
			call++
		}
		s.calls.End, s.results.Start = call, result
		for result < len(r.Results) && r.Results[result].Turn < s.end {
			result++
		}
		s.results.End = result
		all = append(all, s)
	}
	return all
}

// answered is a step's calls with their answers.
type answered struct {
	// first is the first result of each of the step's calls, -1 without one.
	first []int
	// kept are the results of calls that the vendor keeps.
	kept []int
}

func answersOf(r *message.Request, s step) answered {
	a := answered{first: make([]int, s.calls.Len())}
	for i := range a.first {
		a.first[i] = -1
	}
	stateful := r.Stateful || len(r.References) > 0
	for k := s.results.Start; k < s.results.End; k++ {
		switch call := r.Results[k].Call - s.calls.Start; {
		case call >= 0 && call < len(a.first):
			if a.first[call] < 0 {
				a.first[call] = k
			}
		case stateful:
			a.kept = append(a.kept, k)
		}
	}
	return a
}

// lacks says what stands against showing a step's images, as a reason of a Skip;
// "" when the step is complete: every call that it waits for has its answer. A
// call without an id has none, unless its wire has no ids (see message.Result).
func (rules *Rules) lacks(r *message.Request, s step, a answered) string {
	reason := ""
	for i, result := range a.first {
		call := &r.Calls[s.calls.Start+i]
		switch {
		case rules.WaitFor == router.WaitForVisionToolCalls && !rules.Vision(call.Name):
		case result >= 0:
		case call.ID == "" && r.Dialect != message.GeminiContents:
			return SkipMissingID
		default:
			reason = SkipUnanswered
		}
	}
	return reason
}

// lastResult is the turn behind which a message for all images of a complete
// step stands: the last one that answers what the step waits for, and whatever
// other results follow it at once.
func (rules *Rules) lastResult(r *message.Request, s step, a answered) int {
	last := s.answers
	for i, result := range a.first {
		waits := rules.WaitFor != router.WaitForVisionToolCalls || rules.Vision(r.Calls[s.calls.Start+i].Name)
		if waits && result >= 0 {
			last = max(last, r.Results[result].Turn)
		}
	}
	for _, result := range a.kept {
		last = max(last, r.Results[result].Turn)
	}
	for last+1 < s.end && r.Turns[last+1].ToolResults {
		last++
	}
	return last
}
