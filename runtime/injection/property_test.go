// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// conversation is a random one: calls of vision and other tools, answered in any
// order, late, not at all, in vain and with images; humans that interrupt; ids
// that are good, weak or not there.
func conversation(rng *rand.Rand) []turn {
	var talk []turn
	texts := []string{"look", "see ![a](a.png)", "![b](b.png) and ![c](../c.png)", "`![d](d.png)`", "look"}
	for range rng.IntN(8) {
		switch rng.IntN(5) {
		case 0, 1:
			talk = append(talk, asks(texts[rng.IntN(len(texts))]))
		case 2:
			talk = append(talk, says("![m](m.png)"))
		default:
			talk = append(talk, exchange(rng, len(talk))...)
		}
	}
	return talk
}

// exchange are the assistant's calls and their answers.
func exchange(rng *rand.Rand, n int) []turn {
	var calls []made
	var answers []got
	for i := range 1 + rng.IntN(3) {
		id := fmt.Sprintf("call_%04d%04d", n, i)
		switch rng.IntN(6) {
		case 0:
			id = fmt.Sprintf("call_%d", i)
		case 1:
			id = ""
		}
		call := made{id, []string{"view_image", "view_image", "shell"}[rng.IntN(3)], []string{"a.png", "b.png", "-"}[rng.IntN(3)]}
		calls = append(calls, call)
		if rng.IntN(8) > 0 {
			answers = append(answers, got{id: id, tool: call.tool, text: "ok", image: rng.IntN(6) == 0, failed: rng.IntN(6) == 0})
		}
	}
	rng.Shuffle(len(answers), func(i, j int) { answers[i], answers[j] = answers[j], answers[i] })
	talk := []turn{makes(calls...)}
	for len(answers) > 0 {
		k := 1 + rng.IntN(len(answers))
		talk = append(talk, gets(answers[:k]...))
		answers = answers[k:]
		if rng.IntN(6) == 0 {
			talk = append(talk, asks("wait"))
		}
	}
	return talk
}

// TestNothingThatWasDecidedChanges holds the plan of each beginning of a
// conversation against that of the whole: what is said later adds sights, and
// nothing else but what the package's comment says.
func TestNothingThatWasDecidedChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	compared := 0
	for range 600 {
		talk := conversation(rng)
		rules := router.Injection{MarkdownImages: router.MarkdownAttach}
		if rng.IntN(2) == 0 {
			rules.Keep = router.KeepCurrentTurn
		}
		for _, d := range message.Dialects() {
			place := places(d)[rng.IntN(len(places(d)))]
			whole := found(t, d, place, rules, talk...)
			for n := range talk {
				compared += sameBeginning(t, d, found(t, d, place, rules, talk[:n]...), whole)
			}
		}
		if t.Failed() {
			t.Fatalf("talk: %+v", talk)
		}
	}
	if compared < 1000 {
		t.Errorf("only %d sights were compared", compared)
	}
}

// sameBeginning holds the sights of a shorter conversation against those of a
// longer one, and says how many there were.
func sameBeginning(t *testing.T, d message.Dialect, short, long *Plan) int {
	t.Helper()
	later := map[string]Sight{}
	for _, s := range long.Sights {
		later[s.ID] = s
	}
	for _, s := range short.Sights {
		now, ok := later[s.ID]
		if s.Fresh && !now.Fresh {
			s.Fresh = false
		}
		if s.State == Wanted && now.State == Old {
			s.State = Old
		}
		if !ok || !reflect.DeepEqual(s, now) {
			t.Errorf("%s: %+v became %+v", d, s, now)
		}
	}
	return len(short.Sights)
}

// TestEachAnsweredCallIsOneSight counts, without the finder, what a complete
// conversation shows.
func TestEachAnsweredCallIsOneSight(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var talk []turn
		want := 0
		for n := range 1 + rng.IntN(5) {
			talk = append(talk, asks("go"))
			var calls []made
			var answers []got
			for i := range 1 + rng.IntN(4) {
				id := fmt.Sprintf("call_%04d%04d", n, i)
				if rng.IntN(2) == 0 {
					calls, answers = append(calls, other(id)), append(answers, done(id))
					continue
				}
				calls, answers = append(calls, view(id, "a.png")), append(answers, seen(id))
				want++
			}
			rng.Shuffle(len(answers), func(i, j int) { answers[i], answers[j] = answers[j], answers[i] })
			talk = append(talk, makes(calls...), gets(answers...))
		}
		for _, d := range message.Dialects() {
			p := found(t, d, places(d)[0], router.Injection{}, talk...)
			keys := map[string]bool{}
			for _, s := range p.Sights {
				keys[s.Key] = true
			}
			if len(p.Sights) != want || len(keys) != want || len(p.Skips) != 0 {
				t.Fatalf("%s: %d sights with %d keys, %d skips; want %d", d, len(p.Sights), len(keys), len(p.Skips), want)
			}
		}
	}
}

// FuzzFind reads any body in any dialect: it must end, refer to what is there,
// and say the same when it is asked again.
func FuzzFind(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		talk := conversation(rng)
		for i, d := range message.Dialects() {
			f.Add(bodyOf(f, d, talk), uint8(i), uint8(rng.IntN(256)))
		}
	}
	f.Add([]byte(`{"previous_response_id":"r","input":[{"type":"function_call_output","call_id":"call_1","output":"visual_reference"}]}`), uint8(1), uint8(7))
	f.Fuzz(func(t *testing.T, body []byte, dialect, options uint8) {
		d := message.Dialects()[int(dialect)%4]
		r, err := message.Scan(d, body)
		if err != nil {
			return
		}
		rules := router.Injection{MarkdownImages: router.MarkdownAttach, Tools: []string{"*"}}
		if options&1 != 0 {
			rules.WaitFor = router.WaitForVisionToolCalls
		}
		if options&2 != 0 {
			rules.Keep = router.KeepCurrentTurn
		}
		place := places(d)[int(options>>4)%len(places(d))]
		known := func(id string) (KnownCall, bool) {
			return KnownCall{Name: "view_image", Arguments: id}, options&4 != 0
		}
		p := Find(r, body, RulesOf(rules), place, known)
		turn := 0
		for i, s := range p.Sights {
			if s.Turn < turn || s.Turn >= len(r.Turns) || s.Call >= len(r.Calls) || s.Result >= len(r.Results) || s.Text >= len(r.Texts) || len(s.Key) != 64 ||
				(s.Kind == Called) != (s.Result >= 0) || (s.Kind == Markdown) != (s.Text >= 0) || len(s.Path) > MaxPath {
				t.Fatalf("got %+v", s)
			}
			turn = s.Turn
			_, _ = p.Unavailable(i, "x"), p.ItemText(i, &Picture{}, 1)
		}
		if again := Find(r, body, RulesOf(rules), place, known); !reflect.DeepEqual(p, again) {
			t.Fatal("two searches differ")
		}
		digests := make([]string, len(r.Images))
		for i := range digests {
			digests[i] = "d"
		}
		sights := make([]string, len(p.Sights))
		for i := range sights {
			sights[i] = "d"
		}
		p.Settle(r, digests, sights)
	})
}
