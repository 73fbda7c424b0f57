// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestTheMessageForAStepStandsBehindAllItsResults(t *testing.T) {
	const a, b = "call_a1b2c3d4", "call_b1b2c3d4"
	talk := []turn{asks("look"), makes(other(b), view(a, "a.png")), gets(seen(a)), gets(done(b)), asks("so?")}
	for _, waitFor := range []string{router.WaitForAllToolCalls, router.WaitForVisionToolCalls} {
		p := found(t, message.OpenAIChat, router.ToolImagesUserMessage, router.Injection{WaitFor: waitFor}, talk...)
		if got := pathsOf(p); !slices.Equal(got, []string{"a.png@3"}) {
			t.Errorf("%s: got %q", waitFor, got)
		}
	}
	known := func(id string) (KnownCall, bool) {
		return KnownCall{Name: "view_image", Arguments: `{"path":"` + id + `"}`}, true
	}
	body := `{"previous_response_id":"r","input":[{"role":"user","content":"x"},{"type":"function_call_output","call_id":"a","output":"ok"},
		{"role":"user","content":"y"},{"type":"function_call_output","call_id":"b","output":"ok"},{"role":"user","content":"z"}]}`
	p := foundIn(t, message.OpenAIResponses, router.ToolImagesUserMessage, router.Injection{}, []byte(body), known)
	if got := pathsOf(p); !slices.Equal(got, []string{"a@3", "b@3"}) {
		t.Errorf("of calls that the vendor keeps: got %q", got)
	}
}

func TestTheFirstOfTwoAnswersCounts(t *testing.T) {
	const a = "call_a1b2c3d4"
	p := found(t, message.OpenAIChat, router.ToolImagesInToolResult, router.Injection{}, asks("look"), makes(view(a, "a.png")), gets(seen(a)), asks("x"), gets(seen(a)))
	if got := pathsOf(p); !slices.Equal(got, []string{"a.png@2"}) {
		t.Errorf("got %q", got)
	}
}

func TestAResultThatTakesNoImageIsFollowedByAMessage(t *testing.T) {
	body := `{"input":[{"type":"apply_patch_call","call_id":"call_12346","operation":{}},{"type":"apply_patch_call_output","call_id":"call_12346","status":"completed","output":"x"}]}`
	p := foundIn(t, message.OpenAIResponses, router.ToolImagesUserMessage, router.Injection{Tools: []string{"apply_patch"}}, []byte(body), nil)
	if got := told(p); !slices.Equal(got, []string{" NoPath"}) {
		t.Errorf("got %q", got)
	}
}

func TestAConversationHasSoManySights(t *testing.T) {
	var calls []made
	var answers []got
	for i := range maxSights + 5 {
		id := fmt.Sprintf("call_%08d", i)
		calls, answers = append(calls, view(id, "a.png")), append(answers, seen(id))
	}
	p := found(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{}, makes(calls...), gets(answers...))
	if len(p.Sights) != maxSights || len(p.Skips) != 5 || p.Skips[0].Reason != SkipTooMany {
		t.Errorf("%d sights, %d skips", len(p.Sights), len(p.Skips))
	}
	p = found(t, message.OpenAIResponses, router.ToolImagesInToolResult, router.Injection{}, makes(calls...))
	if len(p.Sights) != 0 || len(p.Skips) != maxSights {
		t.Errorf("of open calls: %d sights, %d skips", len(p.Sights), len(p.Skips))
	}
}

func TestEitherSignOfMarkdownMayBeEscaped(t *testing.T) {
	for _, begin := range []string{`![`, `\u0021[`, `!\u005b`, `!\u005B`, `\u0021\u005b`} {
		body := `{"messages":[{"role":"user","content":"` + begin + `a](a.png)"}]}`
		p := foundIn(t, message.AnthropicMessages, router.ToolImagesInToolResult, router.Injection{MarkdownImages: router.MarkdownAttach}, []byte(body), nil)
		if got := told(p); !slices.Equal(got, []string{"a.png Wanted"}) {
			t.Errorf("%s: got %q", begin, got)
		}
	}
}

func TestAnEnormousResultIsNotSearched(t *testing.T) {
	raw := `{"visual_reference":{"sha256":"` + strings.Repeat("ab", 32) + `"},"x":"` + strings.Repeat(" ", maxAnswer) + `"}`
	if got := referenceIn([]byte(raw)); got.digest != "" {
		t.Errorf("got %q", got)
	}
}

func TestWhatTheAssistantMadeItselfDoesNotCountAsShown(t *testing.T) {
	const a = "call_a1b2c3d4"
	body := string(bodyOf(t, message.GeminiContents, []turn{asks("look"), makes(view(a, "a.png")), gets(seen(a)), says("PIC")}))
	body = strings.ReplaceAll(body, `{"text":"PIC"}`, pictureOf(message.GeminiContents, "AAAA"))
	settled(t, message.GeminiContents, body, nil, Wanted)
}

func TestAnImageBeforeTheAssistantsLastItemDoesNotCountAsShown(t *testing.T) {
	body := `{"previous_response_id":"r","input":[{"role":"user","content":[` + pictureOf(message.OpenAIResponses, "AAAA") + `]},
		{"type":"item_reference","id":"fc_1"},{"type":"function_call_output","call_id":"call_a1b2c3d4","output":"ok"}]}`
	settled(t, message.OpenAIResponses, body, func(string) (KnownCall, bool) {
		return KnownCall{Name: "view_image", Arguments: `{"path":"a.png"}`}, true
	}, Wanted)
}

// settled holds the one sight of a body, whose image is AAAA, against a state.
func settled(t *testing.T, d message.Dialect, body string, known Known, want State) {
	t.Helper()
	r, err := message.Scan(d, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	p := Find(r, []byte(body), RulesOf(router.Injection{}), router.ToolImagesInToolResult, known)
	if len(p.Sights) != 1 || len(r.Images) != 1 {
		t.Fatalf("%d sights, %d images", len(p.Sights), len(r.Images))
	}
	p.Settle(r, digestsIn(r, []byte(body)), []string{"AAAA"})
	if got := p.Sights[0].State; got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}
