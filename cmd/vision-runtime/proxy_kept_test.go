// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/loop"
	strict "github.com/visionoperator/vision-operator/test/upstream"
)

// scenario is one of loop's by its name.
func scenario(t *testing.T, name string) loop.Scenario {
	t.Helper()
	all := loop.Scenarios()
	i := slices.IndexFunc(all, func(s loop.Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %q", name)
	}
	return all[i]
}

// stateless are the agents that send their whole history.
var stateless = []string{"chat", "responses", "anthropic", "gemini 3", "gemini 2"}

// TestKeepCurrentTurnShowsImagesUntilTheNextHumanMessage plays a conversation in which a
// human speaks twice. What was viewed before the second time is a constant text from
// then on, which edits the prefix once: signed reasoning is refused once for it.
func TestKeepCurrentTurnShowsImagesUntilTheNextHumanMessage(t *testing.T) {
	m := withModels(t, strict.Options{}, func(doc *router.Document) { doc.Profiles[0].Injection.Keep = router.KeepCurrentTurn })
	eachWay(t, stateless, func(t *testing.T, name string, stream bool) {
		m.strict.Reset()
		// Two views, a text at turn 3; then the human again, a view at turn 4, a text.
		report := m.play(t, m.agent(name, stream), scenario(t, "views in a row"))
		requests := accepted(m.strict.Of(report.Conversation))
		for n, views := range [][]loop.View{nil, report.Views[:1], report.Views[:2], report.Views[:2], nil, report.Views[2:]} {
			wantViews(t, requests[n], views)
			old := strings.Count(readable(requests[n].Body), "[image of an earlier turn, not shown any more: ")
			if want := map[bool]int{true: 2}[n > 3]; old != want {
				t.Errorf("turn %d tells of %d images of earlier turns, want %d", n, old, want)
			}
		}
		for n := range requests[1:] {
			if shared := bytes.Join(requests[n+1].Messages[:len(requests[n].Messages)], nil); bytes.Equal(shared, bytes.Join(requests[n].Messages, nil)) != (n+1 != 4) {
				t.Errorf("the prefix changed at turn %d, or did not change at turn 4", n+1)
			}
		}
		if refused := len(m.strict.Refusals()); name != "chat" && refused != 1 || name == "chat" && refused != 0 {
			t.Errorf("refused: %q", m.strict.Refusals())
		}
	})
}

// attached is a conversation whose human's messages name images in Markdown, and in
// which tools view others.
var attached = loop.Scenario{
	Name: "markdown", Opening: "What is ![the screen](md-1.png)? Not ![this](https://example.com/far.png) or ![that](../out.png).",
	Human: []string{"And ![the other](md-2.png)?"},
	Script: func(f string) []strict.Answer {
		view := func(path string) strict.Answer {
			return strict.Answer{Calls: []strict.Call{{Name: "view_image", Arguments: `{"path":"` + f + "/" + path + `"}`}}}
		}
		return []strict.Answer{view("shot-1.png"), view("shot-2.png"), {Text: "A screen."}, view("shot-3.png"), {Text: "Another."}}
	},
}

// TestMarkdownImagesOfHumansAreAttachedBesideTheirText plays them through a loop of tools:
// each is in every request from its message on, there, once, and the text stays.
func TestMarkdownImagesOfHumansAreAttachedBesideTheirText(t *testing.T) {
	m := withModels(t, strict.Options{Script: attached.Serve}, func(doc *router.Document) { doc.Profiles[0].Injection.MarkdownImages = router.MarkdownAttach })
	eachWay(t, agentNames, func(t *testing.T, name string, stream bool) {
		m.strict.Reset()
		for _, file := range []string{"md-1.png", "md-2.png"} {
			m.write(m.workspace+"/"+file, drawn(t, name+file+map[bool]string{true: " streamed"}[stream]))
		}
		first, second := digestOf(drawn(t, name+"md-1.png"+map[bool]string{true: " streamed"}[stream])), digestOf(drawn(t, name+"md-2.png"+map[bool]string{true: " streamed"}[stream]))
		report := m.play(t, m.agent(name, stream), attached)
		m.flawless(t)
		for n, r := range m.strict.Of(report.Conversation) {
			shown := map[string]bool{}
			for _, image := range r.Images {
				shown[image.SHA256] = true
			}
			if !shown[first] || shown[second] != (n > 2) || len(r.Images) != []int{1, 2, 3, 4, 5}[n] {
				t.Errorf("turn %d holds %d images; of the first message %v, of the second %v", n, len(r.Images), shown[first], shown[second])
			}
			if !strings.Contains(string(bytes.Join(r.Messages, nil)), attached.Opening) {
				t.Errorf("turn %d: the human's text changed", n)
			}
		}
	})
}

// TestARestartWithACacheDirectoryKeepsEveryPrefix ends the runtime in the middle of
// conversations, and starts it again on the same directory: also the file that changed
// since is shown as it was.
func TestARestartWithACacheDirectoryKeepsEveryPrefix(t *testing.T) {
	for name, change := range map[string]func(*router.Document){"seen": nil, "told": blind} {
		m := withModels(t, strict.Options{TextOnly: name == "told"}, change)
		m.upstream.set(func(u *upstream) { u.sees = recognized })
		eachWay(t, stateless, func(t *testing.T, agent string, stream bool) {
			for _, s := range []string{"one path with different contents", "two views in one turn", "a tool with its own image", "a failed view"} {
				t.Run(name+"/"+s, func(t *testing.T) {
					m.strict.Reset()
					restarts := map[int]func(){2: m.restart, 4: m.restart}
					report := m.play(t, &before{Client: m.agent(agent, stream), send: restarts}, scenario(t, s))
					m.flawless(t)
					if change == nil {
						complain(t, "views", report.Check(m.strict, true))
					} else {
						told(t, m, report)
					}
				})
			}
		})
	}
}

// TestARestartForgetsTheCallsThatVendorsKeep: after it, the answer to a call that was
// made before shows nothing, since only the vendor knows what the call was, and the
// reply says so. Later calls are shown as ever.
func TestARestartForgetsTheCallsThatVendorsKeep(t *testing.T) {
	m := withModels(t, strict.Options{}, nil)
	eachWay(t, []string{"responses, previous", "responses, conversation"}, func(t *testing.T, name string, stream bool) {
		m.strict.Reset()
		var headers []string
		client := withHeaders(m.agent(name, stream), func(h http.Header) { headers = append(headers, h.Get("X-Vision-Injection")) })
		report := m.play(t, &before{Client: client, send: map[int]func(){2: m.restart}}, scenario(t, "views in a row"))
		m.flawless(t)
		for n, views := range [][]loop.View{nil, report.Views[:1], report.Views[:1], report.Views[:1], report.Views[:1], {report.Views[0], report.Views[2]}} {
			wantViews(t, m.strict.Of(report.Conversation)[n], views)
		}
		if want := "form=image, skipped=1, history=not_visible"; headers[2] != want {
			t.Errorf("the header of the answer to a forgotten call says %q, want %q", headers[2], want)
		}
	})
}

// TestWithoutACacheDirectoryARestartShowsWhatIsThere: nothing tells a runtime that forgot
// what it showed what a path held then. It shows what the path holds now, in all of
// its places, and from then on the same; a request is never refused for it. Where
// the vendor signs reasoning, it refuses once and is asked without.
func TestWithoutACacheDirectoryARestartShowsWhatIsThere(t *testing.T) {
	m := withModels(t, strict.Options{}, nil)
	forgetful := func() { m.restartAs(func(cfg *serveConfig) { cfg.cache = "" }) }
	eachWay(t, stateless, func(t *testing.T, name string, stream bool) {
		forgetful()
		m.strict.Reset()
		// One path is viewed at turns 0, 1 and 3, with another picture each time.
		report := m.play(t, &before{Client: m.agent(name, stream), send: map[int]func(){2: forgetful}}, scenario(t, "one path with different contents"))
		requests, v := accepted(m.strict.Of(report.Conversation)), report.Views
		for n, views := range [][]loop.View{nil, {v[0]}, {v[1], v[1]}, {v[1], v[1]}, {v[1], v[1], v[2]}, {v[1], v[1], v[2]}} {
			wantViews(t, requests[n], views)
		}
		if refused := len(m.strict.Refusals()); name != "chat" && refused != 1 || name == "chat" && refused != 0 {
			t.Errorf("refused: %q", m.strict.Refusals())
		}
	})
}

// TestWithoutACacheDirectoryAFileThatIsGoneIsToldSo does the same with files that are gone
// when the runtime comes back.
func TestWithoutACacheDirectoryAFileThatIsGoneIsToldSo(t *testing.T) {
	m, u := recorded(t, nil)
	forgetful := func() { m.restartAs(func(cfg *serveConfig) { cfg.cache = "" }) }
	for _, dialect := range dialects {
		forgetful()
		s := m.twice(dialect)
		send := func() string {
			if got := post(t, m.server.url(s.path()), written(s.body(), nil)); got.status != http.StatusOK {
				t.Fatalf("%d %s", got.status, got.body)
			}
			return string(u.last())
		}
		before := send()
		m.write(s.turns[1].path, []byte("no image any more"))
		if kept := send(); kept != before {
			t.Errorf("%s: a file that changed changes what was shown: %s", dialect, kept)
		}
		forgetful()
		if gone := send(); strings.Contains(gone, "iVBORw0KGgo") || strings.Count(gone, " is not available: ") != 2 {
			t.Errorf("%s: %s", dialect, gone)
		}
	}
}
