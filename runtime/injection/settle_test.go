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

// pictureOf is a part with an image of the digest that settled reads out of it.
func pictureOf(d message.Dialect, digest string) string {
	switch d {
	case message.OpenAIChat:
		return fmt.Sprintf(`{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}`, digest)
	case message.OpenAIResponses:
		return fmt.Sprintf(`{"type":"input_image","image_url":"data:image/png;base64,%s"}`, digest)
	case message.AnthropicMessages:
		return fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, digest)
	}
	return fmt.Sprintf(`{"inlineData":{"mimeType":"image/png","data":%q}}`, digest)
}

// shows is a body in which "PIC" of a human's text is an image part of that digest.
func shows(t *testing.T, d message.Dialect, digest string, talk ...turn) []byte {
	t.Helper()
	body := string(bodyOf(t, d, talk))
	part := pictureOf(d, digest)
	if d == message.GeminiContents {
		return []byte(strings.ReplaceAll(body, `{"text":"PIC"}`, part))
	}
	return []byte(strings.ReplaceAll(body, `"content":"PIC"`, `"content":[`+part+`]`))
}

func TestWhatTheConversationShowsAlreadyIsNotShownAgain(t *testing.T) {
	const a, digest, other = "call_a1b2c3d4", "AAAA", "BBBB"
	before := []turn{asks("look"), makes(view(a, "a.png")), gets(seen(a))}
	tests := []struct {
		name, digest string
		keep         string
		talk         []turn
		want         State
	}{
		{"D27: the client shows it after the result", digest, "", append(before[:3:3], asks("PIC")), ShownInConversation},
		{"D27: it stays so when the assistant has answered", digest, "", append(before[:3:3], asks("PIC"), says("I see"), asks("so?")), ShownInConversation},
		{"another image is another", other, "", append(before[:3:3], asks("PIC")), Wanted},
		{"after the assistant's next turn it does not count", digest, "", append(before[:3:3], says("where?"), asks("PIC")), Wanted},
		{"before the call it does not count", digest, "", []turn{asks("PIC"), before[1], before[2]}, Wanted},
		{"an old one that the client shows needs no text", digest, router.KeepCurrentTurn, append(before[:3:3], asks("PIC"), says("yes"), asks("so?")), ShownInConversation},
		{"an old one that it does not show stays old", other, router.KeepCurrentTurn, append(before[:3:3], asks("PIC"), says("yes"), asks("so?")), Old},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, d message.Dialect, place string) {
				body := shows(t, d, test.digest, test.talk...)
				r, err := message.Scan(d, body)
				if err != nil || len(r.Images) != 1 {
					t.Fatalf("%v, %d images in %s", err, len(r.Images), body)
				}
				p := Find(r, body, RulesOf(router.Injection{Keep: test.keep}), place, nil)
				p.Settle(r, digestsIn(r, body), []string{digest})
				if got := p.Sights[0].State; got != test.want {
					t.Errorf("got %s; want %s", got, test.want)
				}
				p = Find(r, body, RulesOf(router.Injection{}), place, nil)
				p.Settle(r, make([]string, 1), make([]string, 1))
				if got := p.Sights[0].State; got != Wanted {
					t.Errorf("with no digest known, got %s", got)
				}
			})
		})
	}
}

// digestsIn takes the data of images for their digests.
func digestsIn(r *message.Request, body []byte) []string {
	var all []string
	for _, i := range r.Images {
		all = append(all, string(body[i.Data.Start:i.Data.End]))
	}
	return all
}

func TestAnImageBesideItsMarkdownIsShownAlready(t *testing.T) {
	for _, d := range message.Dialects() {
		for _, test := range []struct {
			talk []turn
			want []State
		}{
			{[]turn{asks("![a](a.png)"), asks("PIC")}, []State{ShownInConversation}},
			{[]turn{asks("![a](a.png)"), says("no"), asks("PIC")}, []State{Wanted}},
			{[]turn{asks("PIC"), asks("![a](a.png)")}, []State{Wanted}},
		} {
			body := shows(t, d, "AAAA", test.talk...)
			r, err := message.Scan(d, body)
			if err != nil {
				t.Fatal(err)
			}
			p := Find(r, body, RulesOf(router.Injection{MarkdownImages: router.MarkdownAttach}), places(d)[0], nil)
			p.Settle(r, digestsIn(r, body), []string{"AAAA"})
			if got := []State{p.Sights[0].State}; !slices.Equal(got, test.want) {
				t.Errorf("%s, %v: got %s", d, test.talk, got)
			}
		}
	}
}

func TestAnImageOfACallThatTheVendorKeepsIsSettledFromItsResult(t *testing.T) {
	body := []byte(`{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"call_a1b2c3d4","output":"ok"},
		{"role":"user","content":[` + pictureOf(message.OpenAIResponses, "AAAA") + `]}]}`)
	r, err := message.Scan(message.OpenAIResponses, body)
	if err != nil {
		t.Fatal(err)
	}
	known := func(id string) (KnownCall, bool) {
		return KnownCall{Name: "view_image", Arguments: `{"path":"a.png"}`}, true
	}
	p := Find(r, body, RulesOf(router.Injection{}), router.ToolImagesInToolResult, known)
	p.Settle(r, digestsIn(r, body), []string{"AAAA"})
	if p.Sights[0].State != ShownInConversation {
		t.Errorf("got %s", p.Sights[0].State)
	}
}

func TestSightsWithoutAnImageAreNotSettled(t *testing.T) {
	const a = "call_a1b2c3d4"
	body := shows(t, message.AnthropicMessages, "AAAA", asks("look"), makes(view(a, "a.png")), gets(got{id: a, text: "no", failed: true}), asks("PIC"))
	r, err := message.Scan(message.AnthropicMessages, body)
	if err != nil {
		t.Fatal(err)
	}
	p := Find(r, body, RulesOf(router.Injection{}), router.ToolImagesInToolResult, nil)
	p.Settle(r, digestsIn(r, body), []string{"AAAA"})
	if p.Sights[0].State != ErrorResult {
		t.Errorf("got %s", p.Sights[0].State)
	}
}
