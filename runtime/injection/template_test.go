// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// planOf is a plan of one sight.
func planOf(s Sight, place string, template router.InjectionTemplate) *Plan {
	return &Plan{Place: place, Sights: []Sight{s}, rules: RulesOf(router.Injection{Template: template})}
}

var (
	called  = Sight{Kind: Called, Path: "a.png", Tool: "view_image", State: Wanted}
	picture = &Picture{SHA256: strings.Repeat("ab", 32), MediaType: "image/png", Width: 3, Height: 4, Size: 70}
)

func TestWhatTheTextsSay(t *testing.T) {
	const user, result = router.ToolImagesUserMessage, router.ToolImagesInToolResult
	item := func(template string) router.InjectionTemplate { return router.InjectionTemplate{Item: template} }
	with := func(change func(s *Sight)) Sight {
		s := called
		change(&s)
		return s
	}
	tests := []struct {
		name, want string
		sight      Sight
		place      string
		template   router.InjectionTemplate
		picture    *Picture
	}{
		{"D15: the default names path and type", "- a.png (image/png)", called, user, router.InjectionTemplate{}, picture},
		{"D18: a type that is not known is told so", "- a.png (unknown)", called, user, router.InjectionTemplate{}, &Picture{}},
		{"in a tool's result there is no default", "", called, result, router.InjectionTemplate{}, picture},
		{"but what the policy sets", "a.png!", called, result, item("{path}!"), picture},
		{"beside Markdown too there is the default", "- a.png (image/png)", with(func(s *Sight) { s.Kind = Markdown }), result, router.InjectionTemplate{}, picture},
		{"every variable", "a.png image/png 3 4 70 " + strings.Repeat("ab", 32) + " view_image 2 line line", with(func(s *Sight) { s.OCR = "line\nline" }), user,
			item("{path} {mime} {width} {height} {bytes} {sha256} {source} {index} {ocr}"), picture},
		{"what is not known is told so, but for text", "unknown unknown unknown unknown []", called, user, item("{width} {height} {bytes} {sha256} [{ocr}]"), &Picture{}},
		{"white space alone is no text", "", called, user, item(" {ocr}\n"), picture},
		{"the source of Markdown", "Markdown", with(func(s *Sight) { s.Kind = Markdown }), user, item("{source}"), picture},
		{"braces around anything else stay", "{x} {} {path {a.png} } {{", called, user, item("{x} {} {path {{path}} } {{"), picture},
		{"a value is not interpreted", "{sha256} {bytes}", with(func(s *Sight) { s.Path = "{sha256}" }), user, item("{path} {{mime}"), &Picture{MediaType: "bytes}"}},
		{"a path cannot begin a new line nor turn the text", "a b c\uFFFDd\uFFFDe", with(func(s *Sight) { s.Path = "a\nb\tc\x1bd\u202ee" }), user, item("{path}"), picture},
		{"bytes that are no text", "a\uFFFD", with(func(s *Sight) { s.Path = "a\xff" }), user, item("{path}"), picture},
		{"a long path is cut between characters", strings.Repeat("é", 510) + "…", with(func(s *Sight) { s.Path = strings.Repeat("é", 2000) }), user, item("{path}"), picture},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := planOf(test.sight, test.place, test.template).ItemText(0, test.picture, 2); got != test.want {
				t.Errorf("got %q; want %q", got, test.want)
			}
		})
	}
}

func TestWhatStandsInThePlaceOfAnImage(t *testing.T) {
	with := func(state State) Sight {
		s := called
		s.State = state
		return s
	}
	own := router.InjectionTemplate{Unavailable: "no {path}, {mime}: {reason}"}
	tests := []struct {
		name, want string
		sight      Sight
		template   router.InjectionTemplate
	}{
		{"D19: a file that cannot be read has one text with its reason", "[image a.png is not available: gone]", with(Wanted), router.InjectionTemplate{}},
		{"the policy's own", "no a.png, unknown: gone", with(Wanted), own},
		{"a failed result has its own reason", "no a.png, unknown: the tool reported an error", with(ErrorResult), own},
		{"D14: so has a call that names no file", "[image unknown is not available: the call names no file]", Sight{Kind: Called, State: NoPath}, router.InjectionTemplate{}},
		{"an old one has a constant text", "[image of an earlier turn, not shown any more: a.png]", with(Old), own},
		{"one that comes out as white space gives way", "[image a.png is not available: gone]", with(Wanted), router.InjectionTemplate{Unavailable: " {ocr} "}},
		{"beside Markdown there is nothing", "", Sight{Kind: Markdown, Path: "a.png", State: Wanted}, own},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := planOf(test.sight, router.ToolImagesUserMessage, test.template).Unavailable(0, "gone"); got != test.want {
				t.Errorf("got %q; want %q", got, test.want)
			}
		})
	}
}

func TestTextsAreBounded(t *testing.T) {
	s := called
	s.Path = strings.Repeat("é", 4000)
	p := planOf(s, router.ToolImagesUserMessage, router.InjectionTemplate{Heading: strings.Repeat("é", 9000), Item: strings.Repeat("{path}", 600), Unavailable: strings.Repeat("{path}", 600)})
	for name, text := range map[string]string{"heading": p.Heading(), "item": p.ItemText(0, picture, 1), "unavailable": p.Unavailable(0, "x")} {
		if len(text) > MaxText || len(text) < MaxText-4 || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
			t.Errorf("the %s has %d bytes", name, len(text))
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("{path} {mime}{", "a{sha256}")
	f.Add("{reason}{{ocr}}", "\xff\n\u2028")
	f.Fuzz(func(t *testing.T, template, path string) {
		s := called
		s.Path = path
		p := planOf(s, router.ToolImagesUserMessage, router.InjectionTemplate{Item: template})
		text := p.ItemText(0, picture, 1)
		if len(text) > MaxText || text != p.ItemText(0, picture, 1) {
			t.Errorf("%d bytes", len(text))
		}
		want := template
		if strings.TrimSpace(template) == "" { // no vendor takes a text of white space
			want = ""
		}
		if !strings.Contains(template, "{") && len(template) <= MaxText && template != "" && text != want {
			t.Errorf("got %q of %q", text, template)
		}
	})
}

func TestRulesHaveTheRuntimesDefaults(t *testing.T) {
	r := RulesOf(router.Injection{})
	if r.Mode != router.InjectionAuto || r.WaitFor != router.WaitForAllToolCalls || r.Keep != router.KeepThread || r.Markdown || r.ItemInResult ||
		len(r.Tools) != 6 || len(r.PathArguments) != 4 || r.Heading == "" || r.Unavailable == "" {
		t.Errorf("got %+v", r)
	}
	r.Tools[0] = "changed"
	if RulesOf(router.Injection{}).Tools[0] != "view_image" {
		t.Error("the defaults can be changed through a copy")
	}
	r = RulesOf(router.Injection{Mode: "Image", Keep: "CurrentTurn", WaitFor: "VisionToolCalls", MarkdownImages: "Attach", ObservationPrompt: "p",
		Tools: []string{"a"}, PathArguments: []string{"b"}, Template: router.InjectionTemplate{Heading: "h", Item: "i", Unavailable: "u"}})
	if r.Mode != "Image" || r.Keep != "CurrentTurn" || r.WaitFor != "VisionToolCalls" || !r.Markdown || r.ObservationPrompt != "p" || r.Tools[0] != "a" ||
		r.PathArguments[0] != "b" || r.Heading != "h" || r.Item != "i" || r.Unavailable != "u" || !r.ItemInResult {
		t.Errorf("got %+v", r)
	}
}

func TestWhereImagesArePut(t *testing.T) {
	const in, user, bridged = router.ToolImagesInToolResult, router.ToolImagesUserMessage, router.ToolImagesAssistantThenUser
	tests := []struct {
		d        message.Dialect
		model    string
		declared *router.Model
		want     string
	}{
		{message.AnthropicMessages, "claude-sonnet-5", nil, in},
		{message.AnthropicMessages, "whatever", nil, in},
		{message.OpenAIResponses, "gpt-6", nil, in},
		{message.OpenAIResponses, "gpt-6", &router.Model{ToolImages: user}, user},
		{message.OpenAIChat, "gpt-6", nil, user},
		{message.OpenAIChat, "gpt-6", &router.Model{ToolImages: in}, in},
		{message.OpenAIChat, "gpt-6", &router.Model{}, user},
		{message.OpenAIChat, "qwen3-vl-8b", nil, user},
		{message.OpenAIChat, "mistral-large-2512", nil, bridged},
		{message.OpenAIChat, "mistralai/Pixtral-12B-2409", nil, bridged},
		{message.OpenAIChat, "ministral-8b", nil, bridged},
		{message.OpenAIChat, "our-own", &router.Model{Family: "pixtral"}, bridged},
		{message.OpenAIChat, "mistral-large", &router.Model{ToolImages: user}, user},
		{message.GeminiContents, "gemini-3-pro", nil, in},
		{message.GeminiContents, "gemini-3.5-flash", nil, in},
		{message.GeminiContents, "gemini-4-pro", nil, in},
		{message.GeminiContents, "gemini-10-pro", nil, in},
		{message.GeminiContents, "gemini-flash-latest", nil, in},
		{message.GeminiContents, "gemini-2.5-flash", nil, user},
		{message.GeminiContents, "models/gemini-2.0-flash", nil, user},
		{message.GeminiContents, "Gemini-1.5-Pro", nil, user},
		{message.GeminiContents, "gemini-2.7-x", nil, user},
		{message.GeminiContents, "gemma-3-27b-it", nil, user},
		{message.GeminiContents, "gemma-4-31b", nil, user},
		{message.GeminiContents, "tuned", &router.Model{Family: "gemini-2.5"}, user},
	}
	for _, test := range tests {
		if got := Place(test.d, test.model, test.declared); got != test.want {
			t.Errorf("%s, %s: got %s; want %s", test.d, test.model, got, test.want)
		}
	}
}
