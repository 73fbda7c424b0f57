// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// talk writes conversations in one dialect, a JSON value of a message or item for
// each thing that is said.
type talk struct {
	dialect    message.Dialect
	head, tail string
	human, say func(text string) string
	call       func(id, path string) string
	result     func(id, text string) string
}

var talks = []talk{
	{
		message.OpenAIChat, `{"model":"m","messages":[`, `],"n":1}`,
		func(s string) string { return `{"role":"user","content":` + s + `}` },
		func(s string) string { return `{"role":"assistant","content":` + s + `}` },
		func(id, path string) string {
			return `{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"view_image","arguments":"{\"path\":\"` + path + `\"}"}}]}`
		},
		func(id, s string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":` + s + `}` },
	},
	{
		message.OpenAIResponses, `{"model":"m","input":[`, `],"store":false}`,
		func(s string) string { return `{"role":"user","content":` + s + `}` },
		func(s string) string {
			return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + s + `}]}`
		},
		func(id, path string) string {
			return `{"type":"function_call","call_id":"` + id + `","name":"view_image","arguments":"{\"path\":\"` + path + `\"}"}`
		},
		func(id, s string) string {
			return `{"type":"function_call_output","call_id":"` + id + `","output":` + s + `}`
		},
	},
	{
		message.AnthropicMessages, `{"model":"m","max_tokens":9,"messages":[`, `]}`,
		func(s string) string { return `{"role":"user","content":` + s + `}` },
		func(s string) string { return `{"role":"assistant","content":` + s + `}` },
		func(id, path string) string {
			return `{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"view_image","input":{"path":"` + path + `"}}]}`
		},
		func(id, s string) string {
			return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":` + s + `}]}`
		},
	},
	{
		message.GeminiContents, `{"contents":[`, `]}`,
		func(s string) string { return `{"role":"user","parts":[{"text":` + s + `}]}` },
		func(s string) string { return `{"role":"model","parts":[{"text":` + s + `}]}` },
		func(_, path string) string {
			return `{"role":"model","parts":[{"functionCall":{"name":"view_image","args":{"path":"` + path + `"}}}]}`
		},
		func(_, s string) string {
			return `{"role":"user","parts":[{"functionResponse":{"name":"view_image","response":{"output":` + s + `}}}]}`
		},
	},
}

// conversation is a random one, as the requests that a client sends: each has the one
// before it as its beginning.
func (w *talk) conversation(r *rand.Rand) []string {
	var said, requests []string
	text := func() string {
		b, _ := json.Marshal(strings.Repeat("wörter \"<&> ", r.IntN(3)) + [...]string{"", " ", "see ![a](m" + fmt.Sprint(r.IntN(3)) + ".png)"}[r.IntN(3)])
		return string(b)
	}
	for n := range 1 + r.IntN(4) {
		said = append(said, w.human(text()))
		for i := range r.IntN(3) {
			id := fmt.Sprintf("call_%d_%d_abcdef", n, i)
			requests = append(requests, w.head+strings.Join(said, ",")+w.tail)
			said = append(said, w.call(id, fmt.Sprintf("/data/%d.png", r.IntN(3))), w.result(id, text()))
			if r.IntN(4) == 0 {
				requests = append(requests, w.head+strings.Join(said, ",")+w.tail)
			}
		}
		requests = append(requests, w.head+strings.Join(said, ",")+w.tail)
		said = append(said, w.say(`"It is `+fmt.Sprint(n)+`."`))
	}
	return requests
}

// show shows a picture, or a text, by what the sight is called alone.
func show(p *injection.Plan) []injection.Shown {
	shown := make([]injection.Shown, len(p.Sights))
	for i, s := range p.Sights {
		switch s.Key[0] & 3 {
		case 0:
			shown[i].Text = p.Unavailable(i, "it does not exist")
		default:
			shown[i].Picture = picture(s.Path + s.Key)
		}
	}
	return shown
}

func TestWhatIsShownOnceIsShownAlikeInEveryLaterRequest(t *testing.T) {
	rules := injection.RulesOf(router.Injection{MarkdownImages: router.MarkdownAttach})
	shared, total := 0, 0
	for _, w := range talks {
		for _, place := range []string{router.ToolImagesInToolResult, router.ToolImagesUserMessage, router.ToolImagesAssistantThenUser} {
			for seed := range uint64(60) {
				before := ""
				for _, body := range w.conversation(rand.New(rand.NewPCG(seed, 7))) {
					r := scanned(t, w.dialect, []byte(body))
					p := injection.Find(r, []byte(body), rules, place, nil)
					shown := show(p)
					s, edited := spliced(t, []byte(body), p.Edits(r, []byte(body), shown))
					if again, _ := spliced(t, []byte(body), p.Edits(r, []byte(body), shown)); again.Len() != s.Len() {
						t.Fatal("edited once more, it is another body")
					}
					if !json.Valid(edited) || !bytes.Equal(restored([]byte(body), edited, s.Ranges()), []byte(body)) {
						t.Fatalf("%s, from %s", edited, body)
					}
					after := scanned(t, w.dialect, edited)
					pictures := 0
					for _, x := range shown {
						if x.Picture != nil {
							pictures++
						}
					}
					if len(after.Images) != pictures {
						t.Fatalf("%d images of %d in %s", len(after.Images), pictures, edited)
					}
					if !strings.HasPrefix(string(edited), before) {
						t.Fatalf("%s %s: %s\nis not how this begins: %s", w.dialect, place, before, edited)
					}
					before = strings.TrimSuffix(string(edited), w.tail)
					if len(edited) > len(body) {
						shared++
					}
					total += pictures
				}
			}
		}
	}
	if shared < 1000 || total < 3000 {
		t.Errorf("%d edited bodies with %d pictures", shared, total)
	}
}

func TestNothingIsEditedWhereNothingIsShown(t *testing.T) {
	w := talks[0]
	body := []byte(w.head + strings.Join([]string{w.human(`"see"`), w.call("call_1_abcdefg", "/a.png"), w.result("call_1_abcdefg", `"read"`)}, ",") + w.tail)
	r := scanned(t, w.dialect, body)
	p := injection.Find(r, body, injection.RulesOf(router.Injection{}), router.ToolImagesInToolResult, nil)
	if len(p.Sights) != 1 {
		t.Fatalf("%d sights", len(p.Sights))
	}
	for _, state := range []injection.State{injection.ShownByTool, injection.ShownInConversation} {
		p.Sights[0].State = state
		if edits := p.Edits(r, body, []injection.Shown{{Picture: picture("a")}}); len(edits) != 0 {
			t.Errorf("%s: %+v", state, edits)
		}
	}
	p.Sights[0].State = injection.Wanted
	if edits := p.Edits(r, body, make([]injection.Shown, 1)); len(edits) != 0 {
		t.Errorf("nothing shown: %+v", edits)
	}
	if edits := p.Edits(r, body, nil); len(edits) != 0 {
		t.Errorf("not told what is shown: %+v", edits)
	}
}

// A screenshot's result is no place for parts, whatever globs say of tools' names.
func TestResultsOfComputersAndShellsStay(t *testing.T) {
	body := []byte(`{"model":"m","input":[{"role":"user","content":"go"},
		{"type":"shell_call","call_id":"call_abcdef123","action":{"commands":["ls"]},"path":"/a.png"},
		{"type":"shell_call_output","call_id":"call_abcdef123","output":[{"stdout":"a"}]}]}`)
	r := scanned(t, message.OpenAIResponses, body)
	if len(r.Results) != 1 || r.Results[0].Takes {
		t.Fatalf("%+v", r.Results)
	}
	p := &injection.Plan{Place: router.ToolImagesInToolResult, Sights: []injection.Sight{{Kind: injection.Called, Call: 0, Result: 0, Text: -1, Turn: 2}}}
	for _, result := range []int{0, -1} {
		p.Sights[0].Result = result
		if edits := p.Edits(r, body, []injection.Shown{{Text: "a note"}}); len(edits) != 0 {
			t.Errorf("%+v", edits)
		}
	}
}

// A string may be white space alone, a text block of Anthropic's may not.
func TestAResultOfWhiteSpaceGivesWay(t *testing.T) {
	for content, gone := range map[string]bool{
		`""`: true, `" \n\t\r"`: true, `"` + strings.Repeat(`\n`, 300) + `"`: true, `"` + strings.Repeat(" ", 5000) + `"`: true,
		`"\u00a0\u2003\u001f\f"`: true, `"\b"`: false, `"\ud83d\ude00"`: false, `"\u0041"`: false, `"\""`: false,
		`"` + strings.Repeat(`\n`, 300) + `x"`: false,
	} {
		body := []byte(`{"messages":[{"role":"user","content":"look"},
			{"role":"assistant","content":[{"type":"tool_use","id":"toolu_a1b2c3d4","name":"view_image","input":{"path":"a.png"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_a1b2c3d4","content":` + content + `}]}]}`)
		r := scanned(t, message.AnthropicMessages, body)
		p := injection.Find(r, body, injection.RulesOf(router.Injection{}), router.ToolImagesInToolResult, nil)
		edited, err := message.Splice(body, p.Edits(r, body, []injection.Shown{{Picture: picture("a")}}))
		if err != nil {
			t.Fatal(err)
		}
		sent, err := io.ReadAll(edited.Reader())
		if err != nil {
			t.Fatal(err)
		}
		if got := !strings.Contains(string(sent), `"text":`+content); got != gone {
			t.Errorf("%.40s: gone %t, want %t: %.400s", content, got, gone, sent)
		}
	}
}
