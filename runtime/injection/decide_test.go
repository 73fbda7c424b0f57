// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// The ids that begin the names are those of docs/behaviours.md.
func TestWhenImagesAreShown(t *testing.T) {
	const a, b = "call_a1b2c3d4", "call_b1b2c3d4"
	tests := []struct {
		name string
		talk []turn
		want []string
	}{
		{"D01, D25: an empty conversation shows nothing", nil, nil},
		{"D02, D25: without a turn of the assistant nothing is shown", []turn{asks("look at a.png")}, nil},
		{"D03: the newest of two assistant's turns decides about its own calls", []turn{
			asks("look"), makes(view(a, "a.png")), gets(seen(a)), makes(view(b, "b.png")), gets(seen(b)),
		}, []string{"a.png Wanted", "b.png Wanted"}},
		{"D03: the calls of the newest turn are open, those before it are answered", []turn{
			asks("look"), makes(view(a, "a.png")), gets(seen(a)), makes(view(b, "b.png")),
		}, []string{"a.png Wanted", "!CallsUnanswered"}},
		{"D04, D05, D09: an assistant's turn without calls shows nothing", []turn{asks("look"), says("no"), asks("please")}, nil},
		{"D06, D26: the call of a vision tool with its answer is shown", []turn{
			asks("look"), makes(view(a, "a.png")), gets(seen(a)),
		}, []string{"a.png Wanted"}},
		{"D07: a vision tool among other tools is shown", []turn{
			asks("look"), makes(other(b), view(a, "a.png")), gets(done(b), seen(a)),
		}, []string{"a.png Wanted"}},
		{"D08, D25: other tools alone show nothing", []turn{asks("look"), makes(other(a)), gets(done(a))}, nil},
		{"D10: two calls that are both answered are shown", []turn{
			asks("look"), makes(view(a, "a.png"), view(b, "b.png")), gets(seen(a), seen(b)),
		}, []string{"a.png Wanted", "b.png Wanted"}},
		{"D11, D25: one of two calls without an answer shows neither", []turn{
			asks("look"), makes(view(a, "a.png"), view(b, "b.png")), gets(seen(a)),
		}, []string{"!CallsUnanswered", "!CallsUnanswered"}},
		{"D11: a call of another tool without an answer holds the image back", []turn{
			asks("look"), makes(view(a, "a.png"), other(b)), gets(seen(a)),
		}, []string{"!CallsUnanswered"}},
		{"D13: an answer before the assistant's turn answers nothing", []turn{
			asks("look"), gets(seen(a)), makes(view(a, "a.png")),
		}, []string{"!CallsUnanswered"}},
		{"D13: an answer to the same id of an earlier turn answers nothing", []turn{
			asks("look"), makes(view(a, "a.png")), gets(seen(a)), makes(view(a, "b.png")), gets(done(b)),
		}, []string{"a.png Wanted", "!CallsUnanswered"}},
		{"answers may span messages", []turn{
			asks("look"), makes(view(a, "a.png"), view(b, "b.png")), gets(seen(a)), gets(seen(b)),
		}, []string{"a.png Wanted", "b.png Wanted"}},
		{"an interrupted turn that a human goes on with shows nothing", []turn{
			asks("look"), makes(view(a, "a.png"), other(b)), gets(seen(a)), asks("stop"),
		}, []string{"!CallsUnanswered"}},
		{"a last message of the assistant changes nothing about what is before it", []turn{
			asks("look"), makes(view(a, "a.png")), gets(seen(a)), says("It shows"),
		}, []string{"a.png Wanted"}},
		{"D27: a tool that returned its own image is not shown again", []turn{
			asks("look"), makes(view(a, "a.png")), gets(got{id: a, tool: "view_image", image: true}),
		}, []string{"a.png ShownByTool"}},
		{"D14: a call that names no file is told apart", []turn{
			asks("look"), makes(view(a, "-")), gets(seen(a)),
		}, []string{" NoPath"}},
		{"D14: so is one that names nothing but white space", []turn{
			asks("look"), makes(view(a, " ")), gets(seen(a)),
		}, []string{"  NoPath"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, d message.Dialect, place string) {
				if got := told(found(t, d, place, router.Injection{}, test.talk...)); !slices.Equal(got, test.want) {
					t.Errorf("got %q; want %q", got, test.want)
				}
			})
		})
	}
}

func TestTheNamesThatHostsGiveToTheToolAreKnown(t *testing.T) {
	for tool, want := range map[string]bool{
		"view_image": true, "ViewImage": true, "mcp__vision__view_image": true, "vision__ViewImage": true,
		"mcp_vision_view_image": true, "mcp_vision_ViewImage": true,
		"view_images": false, "review_image": false, "viewimage": false, "VIEW_IMAGE": false, "preview_image": false, "": false,
	} {
		if got := RulesOf(router.Injection{}).Vision(tool); got != want {
			t.Errorf("%q: %v", tool, got)
		}
	}
	rules := RulesOf(router.Injection{Tools: []string{"read_*"}, ExcludeTools: []string{"read_file"}})
	for tool, want := range map[string]bool{"read_image": true, "read_file": false, "view_image": false} {
		if got := rules.Vision(tool); got != want {
			t.Errorf("with own globs, %q: %v", tool, got)
		}
	}
}

func TestWithoutAnIDACallIsNeverAnswered(t *testing.T) {
	everywhere(t, func(t *testing.T, d message.Dialect, place string) {
		talk := []turn{asks("look"), makes(view("", "a.png"), view("", "b.png")), gets(seen(""), seen(""))}
		want := []string{"!MissingCallID", "!MissingCallID"}
		if d == message.GeminiContents {
			want = []string{"a.png Wanted", "b.png Wanted"} // by name and order
		}
		if got := told(found(t, d, place, router.Injection{}, talk...)); !slices.Equal(got, want) {
			t.Errorf("got %q; want %q", got, want)
		}
		talk = []turn{asks("look"), makes(view("call_12345", "a.png"), other("")), gets(seen("call_12345"), done(""))}
		want = []string{"!MissingCallID"}
		if d == message.GeminiContents {
			want = []string{"a.png Wanted"}
		}
		if got := told(found(t, d, place, router.Injection{}, talk...)); !slices.Equal(got, want) {
			t.Errorf("beside one with an id: got %q; want %q", got, want)
		}
	})
}

func TestGeminisCallsWithoutIDsNeedAsManyResponses(t *testing.T) {
	p := found(t, message.GeminiContents, router.ToolImagesInToolResult, router.Injection{},
		asks("look"), makes(view("", "a.png"), view("", "b.png")), gets(seen("")))
	if got := told(p); !slices.Equal(got, []string{"!CallsUnanswered", "!CallsUnanswered"}) {
		t.Errorf("got %q", got)
	}
}

func TestAPolicyMayWaitForVisionToolsAlone(t *testing.T) {
	rules := router.Injection{WaitFor: router.WaitForVisionToolCalls}
	const a, b, c = "call_a1b2c3d4", "call_b1b2c3d4", "call_c1b2c3d4"
	everywhere(t, func(t *testing.T, d message.Dialect, place string) {
		p := found(t, d, place, rules, asks("look"), makes(view(a, "a.png"), other(b), other("")), gets(seen(a)))
		if got := told(p); !slices.Equal(got, []string{"a.png Wanted"}) {
			t.Errorf("got %q", got)
		}
		p = found(t, d, place, rules, asks("look"), makes(view(a, "a.png"), view(c, "c.png"), other(b)), gets(seen(a), done(b)))
		if got := told(p); !slices.Equal(got, []string{"!CallsUnanswered", "!CallsUnanswered"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestTheModeOffShowsNothing(t *testing.T) {
	p := found(t, message.OpenAIChat, router.ToolImagesUserMessage, router.Injection{Mode: router.InjectionOff, MarkdownImages: router.MarkdownAttach},
		asks("![x](a.png)"), makes(view("call_a1b2c3d4", "a.png")), gets(seen("call_a1b2c3d4")))
	if len(p.Sights)+len(p.Skips) != 0 {
		t.Errorf("got %q", told(p))
	}
}

func TestAFailedResultTakesTextOnly(t *testing.T) {
	const a = "call_a1b2c3d4"
	for _, place := range places(message.AnthropicMessages) {
		p := found(t, message.AnthropicMessages, place, router.Injection{},
			asks("look"), makes(view(a, "a.png")), gets(got{id: a, text: "no such file", failed: true}))
		if got := told(p); !slices.Equal(got, []string{"a.png ErrorResult"}) {
			t.Errorf("%s: got %q", place, got)
		}
	}
}

func TestOldImagesGoWhereThePolicySaysSo(t *testing.T) {
	const a, b = "call_a1b2c3d4", "call_b1b2c3d4"
	first := []turn{asks("look"), makes(view(a, "a.png")), gets(seen(a)), says("I see")}
	tests := []struct {
		name string
		then []turn
		want []string
	}{
		{"until a human speaks, it stays", nil, []string{"a.png Wanted"}},
		{"then it is old", []turn{asks("and b?")}, []string{"a.png Old"}},
		{"what came after the human stays", []turn{asks("and b?"), makes(view(b, "b.png")), gets(seen(b))}, []string{"a.png Old", "b.png Wanted"}},
		{"an interruption right behind the result does not make it old", []turn{asks("and b?"), makes(view(b, "b.png")), gets(seen(b)), asks("wait")},
			[]string{"a.png Old", "b.png Wanted"}},
		{"but what is said after the assistant's answer does", []turn{asks("and b?"), makes(view(b, "b.png")), gets(seen(b)), asks("wait"), says("yes"), asks("well")},
			[]string{"a.png Old", "b.png Old"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, d message.Dialect, place string) {
				talk := slices.Concat(first, test.then)
				if got := told(found(t, d, place, router.Injection{Keep: router.KeepCurrentTurn}, talk...)); !slices.Equal(got, test.want) {
					t.Errorf("got %q; want %q", got, test.want)
				}
				for _, s := range found(t, d, place, router.Injection{}, talk...).Sights {
					if s.State != Wanted {
						t.Errorf("with keep: Thread, %s is %s", s.Path, s.State)
					}
				}
			})
		})
	}
}

func TestWhatAToolReturnedItselfIsNeverOld(t *testing.T) {
	const a = "call_a1b2c3d4"
	p := found(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{Keep: router.KeepCurrentTurn},
		asks("look"), makes(view(a, "a.png")), gets(got{id: a, image: true}), says("yes"), asks("well"))
	if got := told(p); !slices.Equal(got, []string{"a.png ShownByTool"}) {
		t.Errorf("got %q", got)
	}
}
