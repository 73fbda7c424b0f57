// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// asked are a call of view_image and its answer.
func asked(id, path string) (ask, read string) {
	return fmt.Sprintf(`{"type":"ai","content":"","tool_calls":[{"name":"view_image","args":{"path":%q},"id":%q}]}`, path, id),
		fmt.Sprintf(`{"type":"tool","content":"read","tool_call_id":%q}`, id)
}

// sent is what a framework sends to its model: the history without what Remove names,
// with what Insert and Append hold.
func sent(history []string, d injection.Decision) []string {
	var all []string
	for i, m := range history {
		for _, in := range d.Insert {
			if in.Before == i {
				all = append(all, string(in.Message))
			}
		}
		if !slices.Contains(d.Remove, i) {
			all = append(all, m)
		}
	}
	if d.Append != nil {
		all = append(all, string(d.Append))
	}
	return all
}

// A loop of six calls of the model, two of which look at one path: what it was sent
// once begins everything that it is sent later, with each image once.
func TestWhatAListWasShownIsTheBeginningOfEverythingThatItIsShownLater(t *testing.T) {
	for name, stores := range map[string]bool{"a history that stays as it is": false, "one that keeps what was appended": true} {
		history := []string{human}
		var pictures []injection.Shown
		var before []string
		for turn := range 6 {
			id, path := fmt.Sprintf("call_8fK2mQ1%d", turn), "/w/a.png"
			tool := "view_image"
			if turn%3 == 2 {
				tool = "click"
			} else {
				pictures = append(pictures, injection.Shown{Picture: picture(id)})
			}
			ask, read := asked(id, path)
			history = append(history, strings.Replace(ask, "view_image", tool, 1), read)
			p := planned(t, history...)
			if len(p.Sights) != len(pictures) {
				t.Fatalf("%s: %d sights; want %d", name, len(p.Sights), len(pictures))
			}
			d := p.Decide(pictures)
			now := sent(history, d)
			if !slices.Equal(now[:len(before)], before) || len(d.Remove) != 0 {
				t.Errorf("%s, turn %d: it was\n%s\nand is\n%s", name, turn, before, now)
			}
			for _, s := range pictures {
				url := appendedURL(t, s.Picture)
				if n := strings.Count(strings.Join(now, ""), url); n != 1 {
					t.Errorf("%s, turn %d: an image is there %d times", name, turn, n)
				}
			}
			if (d.Append != nil) != (tool == "view_image") {
				t.Errorf("%s, turn %d: append %s", name, turn, d.Append)
			}
			before = now
			if stores {
				history = now
			}
		}
	}
}

// appendedURL is how a picture stands in a message.
func appendedURL(t *testing.T, p *injection.Picture) string {
	t.Helper()
	return appended(t, planned(t, ask, read1).Decide([]injection.Shown{{Picture: p}})).Content[2].ImageURL.URL
}

func TestListsOfPoliciesThatKeepTheCurrentTurn(t *testing.T) {
	rules := injection.RulesOf(router.Injection{Keep: router.KeepCurrentTurn})
	ours := string(planned(t, ask, read1).Decide(shownAs(picture("a"))).Append)
	cat := `{"type":"ai","content":"a cat"}`
	p := listed(t, human, ask, read1, cat).Plan(rules, listKey, nil)
	if d := p.Decide(shownAs(picture("a"))); len(d.Insert) != 1 || string(d.Insert[0].Message) != ours {
		t.Errorf("before a human speaks: %+v", d)
	}
	for name, stored := range map[string][]string{"not stored": {human, ask, read1, cat, human}, "stored": {human, ask, read1, ours, cat, human}} {
		p := listed(t, stored...).Plan(rules, listKey, nil)
		if p.Sights[0].State != injection.Old {
			t.Errorf("%s: it is %s", name, p.Sights[0].State)
		}
		d := p.Decide([]injection.Shown{{Text: p.Unavailable(0, "")}})
		whole := strings.Join(sent(stored, d), "")
		if strings.Contains(whole, "image_url") || strings.Count(whole, "not shown any more: /w/a.png") != 1 {
			t.Errorf("%s: %s", name, whole)
		}
	}
	// An interruption right behind the result is no answer, and what the tool itself returned stays.
	if p := listed(t, ask, read1, human).Plan(rules, listKey, nil); p.Sights[0].State != injection.Wanted {
		t.Errorf("interrupted: %s", p.Sights[0].State)
	}
	own := `{"type":"tool","tool_call_id":"call_1","content":[{"type":"image","base64":"YQ=="}]}`
	if p := listed(t, ask, own, cat, human).Plan(rules, listKey, nil); p.Inject || p.Sights[0].State != injection.ShownByTool {
		t.Errorf("the tool's own: %+v", p.Sights)
	}
}

func TestOlderCallsOfAListThatNobodyAnsweredAreSkipped(t *testing.T) {
	next, answer := asked("call_9", "/w/b.png")
	p := planned(t, twoAsks, read1, human, next, answer)
	if len(p.Sights) != 1 || p.Sights[0].CallID != "call_9" || len(p.Skips) != 2 || p.Skips[0].Reason != injection.SkipUnanswered {
		t.Errorf("%+v, %+v", p.Sights, p.Skips)
	}
	// An answer that comes after the assistant spoke again answers nothing, and the first of two counts.
	if p := planned(t, ask, `{"type":"ai","content":"well"}`, read1); len(p.Sights) != 0 || p.Inject {
		t.Errorf("a late answer: %+v", p.Sights)
	}
	failed := strings.Replace(read1, `"content":"read"`, `"content":"no","status":"error"`, 1)
	if p := planned(t, ask, read1, failed); p.Sights[0].State != injection.Wanted {
		t.Errorf("answered twice: %s", p.Sights[0].State)
	}
}

// Ids that other conversations have too name no image alone.
func TestWeakIDsOfListsAreOfTheirConversation(t *testing.T) {
	key := func(messages ...string) string {
		p := planned(t, messages...)
		s := p.Sights[len(p.Sights)-1]
		if s.Weak != strings.Contains(s.CallID, "call_1") {
			t.Errorf("%s is weak: %v", s.CallID, s.Weak)
		}
		return s.Key
	}
	first := key(human, ask, read1)
	if key(human, ask, read1, `{"type":"ai","content":"a cat"}`, human) != first {
		t.Error("what comes later counts")
	}
	if key(strings.Replace(human, "look", "see", 1), ask, read1) == first || key(human, ask, strings.Replace(read1, "read", "640x480", 1)) == first || key(human, ask, read1, ask, read1) == first {
		t.Error("another conversation, answer or view has the same key")
	}
	strongAsk, strongRead := asked("call_8fK2mQ1x", "/w/a.png")
	strong := key(human, strongAsk, strongRead)
	if key(strings.Replace(human, "look", "see", 1), strongAsk, strongRead) != strong || key(human, strongAsk, strongRead, strongAsk, strongRead) == strong {
		t.Error("an id of its own depends on more than itself, or names two calls alike")
	}
}

func TestAnEntryOfViewedImagesIsAboutTheCallThatItNames(t *testing.T) {
	digest := picture("b").SHA256
	old := strings.NewReplacer("call_1", "call_0").Replace
	for name, c := range map[string]struct {
		callID string
		want   []string // the digests that the older and the newer view of the path must have
	}{
		"no call, which is the newest view's": {"", []string{"", digest}},
		"the newer call":                      {"call_1", []string{"", digest}},
		"the older call":                      {"call_0", []string{digest, ""}},
		"another call":                        {"call_7", []string{"", ""}},
	} {
		viewed := injection.Viewed{"/w/a.png": {SHA256: digest, CallID: c.callID}}
		p := listed(t, human, old(ask), old(read1), ask, read1).Plan(injection.RulesOf(router.Injection{}), listKey, viewed)
		var got []string
		for _, s := range p.Sights {
			got = append(got, s.SHA256)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
		m := appended(t, p.Decide(shownAs(picture("b"), picture("a"))))
		if shown := m.kinds() == "text text image_url"; shown == (c.want[1] != "") {
			t.Errorf("%s: the newer view, whose bytes are others, is %+v", name, m.Content)
		}
	}
}

func TestTurnsOfAListAreThoseOfItsMessages(t *testing.T) {
	ours := string(planned(t, ask, read1).Decide(shownAs(picture("a"))).Append)
	signed := `{"type":"ai","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"a"}]}`
	got := planned(t, human, ask, read1, ours, signed, `{"type":"ai","content":[{"type":"redacted_thinking","data":"x"}]}`, `{"type":"ai","content":[{"type":"thinking","signature":""}]}`).Turns()
	want := []message.Turn{
		{Role: message.User}, {Role: message.Assistant}, {Role: message.Tool, ToolResults: true}, {},
		{Role: message.Assistant, Signed: true}, {Role: message.Assistant, Signed: true}, {Role: message.Assistant},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v; want %+v", got, want)
	}
}
