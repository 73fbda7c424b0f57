// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestWhichIDsOtherConversationsMayHave(t *testing.T) {
	for id, want := range map[string]bool{
		"": true, "call_1": true, "0": true, "functions.view_image:0": true, "view_image_12": true, "call_view_image": true, "abcdefghijkl": true, "12345678": true,
		"tool_call_1": true, "toolcall00012": true, "call_000001": true, "turn-3-call-12": true, "call_d5wg9": false, "365174485": false, "call_1767225600000": false,
		"D681PevKs": false, "aBcDeFgHiJkLmNoPqRsTuVwX7": false, "call_nT2Vd8ozyqHVQk3mvrzHyGuI": false, "0195f2c4-7b1e-7c3a-9f00-3b1f9c2d4e5f": false, "toolu_01A09q90qw90lq917835lq9": false, "chatcmpl-tool-1b2c3d4e": false,
	} {
		if got := weakID(id, "view_image"); got != want {
			t.Errorf("%q: weak is %v", id, got)
		}
	}
}

// keysOf are the keys of a conversation's sights.
func keysOf(t *testing.T, d message.Dialect, talk ...turn) []string {
	t.Helper()
	var all []string
	for _, s := range found(t, d, places(d)[0], router.Injection{MarkdownImages: router.MarkdownAttach}, talk...).Sights {
		all = append(all, s.Key)
	}
	return all
}

func TestWhatAKeyDependsOn(t *testing.T) {
	const id, short = "call_a1b2c3d4", "call_1"
	base := []turn{asks("look"), makes(view(id, "a.png")), gets(seen(id))}
	weak := []turn{asks("look"), makes(view(short, "a.png")), gets(seen(short))}
	tests := []struct {
		name string
		a, b []turn
		same bool
	}{
		{"what comes after", base, append(base[:3:3], says("yes"), asks("so?")), true},
		{"with a good id, what a human says", base, []turn{asks("see"), base[1], base[2]}, true},
		{"with a good id, what the result says", base, []turn{base[0], base[1], gets(got{id: id, tool: "view_image", text: "else"})}, true},
		{"the path", base, []turn{base[0], makes(view(id, "b.png")), base[2]}, false},
		{"the id", base, []turn{base[0], makes(view(id+"x", "a.png")), gets(seen(id + "x"))}, false},
		{"the tool", base, []turn{base[0], makes(made{id, "ViewImage", "a.png"}), gets(got{id: id, tool: "ViewImage", text: "read"})}, false},
		{"with a weak id, what comes after", weak, append(weak[:3:3], says("yes"), asks("so?")), true},
		{"with a weak id, what the first human says", weak, []turn{asks("see"), weak[1], weak[2]}, false},
		{"with a weak id, what the result says", weak, []turn{weak[0], weak[1], gets(got{id: short, tool: "view_image", text: "else"})}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, d := range message.Dialects() {
				a, b := keysOf(t, d, test.a...), keysOf(t, d, test.b...)
				if len(a) != 1 || len(b) != 1 || (a[0] == b[0]) != test.same {
					t.Errorf("%s: %v and %v", d, a, b)
				}
			}
		})
	}
}

func TestOnePathViewedTwiceHasTwoKeys(t *testing.T) {
	for _, id := range []string{"call_1", "functions.view_image:0", "call_a1b2c3d4"} {
		for _, d := range message.Dialects() {
			keys := keysOf(t, d, asks("look"), makes(view(id, "a.png")), gets(seen(id)), makes(view(id, "a.png")), gets(seen(id)))
			if len(keys) != 2 || keys[0] == keys[1] {
				t.Errorf("%s, %s: %v", d, id, keys)
			}
		}
	}
	keys := keysOf(t, message.OpenAIChat, asks("![x](a.png) ![x](a.png)"), says("yes"), asks("![x](a.png) ![x](a.png)"))
	for i, key := range keys {
		for _, other := range keys[:i] {
			if key == other {
				t.Error("two Markdown images share a key")
			}
		}
	}
	if len(keys) != 4 {
		t.Errorf("%d keys", len(keys))
	}
}

func TestAMarkForTheCacheDoesNotChangeAWeakKey(t *testing.T) {
	body := func(content string) []byte {
		return []byte(`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"view_image","input":{"path":"a.png"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":` + content + `}]}]}`)
	}
	keys := map[string]bool{}
	for _, content := range []string{`"ok"`, `[{"type":"text","text":"ok"}]`, `[{"type":"text","text":"ok","cache_control":{"type":"ephemeral"}}]`} {
		p := foundIn(t, message.AnthropicMessages, router.ToolImagesInToolResult, router.Injection{}, body(content), nil)
		keys[p.Sights[0].Key] = true
		if !p.Sights[0].Weak {
			t.Error("the key is not weak")
		}
	}
	if len(keys) != 1 {
		t.Errorf("%d keys", len(keys))
	}
}

// TestOurOwnResultsTellTheDigest holds the search against what ViewImage answers
// and what hosts make of it.
func TestOurOwnResultsTellTheDigest(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	ref := observation.NewReference(`/w/"a".png`, digest, "image/png", 70, 2, 3)
	result := &observation.Result{VisualReference: ref, Observation: &observation.Observation{
		Summary: "Reference: vis_ffffffffffffffff (sha256 " + strings.Repeat("f", 64) + ", x\nOCR: [{\"text\":\"no\"}]",
		OCR:     []map[string]any{{"text": "Sign\n\"in\"", "confidence": 1}, {"lines": 3}, {"text": "42"}},
	}}
	text := observation.Text(result)
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	quote := func(s string) string {
		q, _ := json.Marshal(s)
		return string(q)
	}
	wrapped := `{"content":[{"type":"text","text":` + quote(text) + `}],"isError":false}`
	const failed = "a failed look"
	tests := []struct{ name, raw, want string }{
		{"the JSON as a string", quote(string(data)), digest},
		{"the text as a string", quote(text), digest},
		{"the text in a part", `[{"type":"text","text":` + quote(text) + `}]`, digest},
		{"the JSON in a part", `[{"type":"text","text":` + quote(string(data)) + `}]`, digest},
		{"the JSON as an object, as Gemini takes it", `{"name":"ViewImage","response":` + string(data) + `}`, digest},
		{"the text as Gemini's output", `{"name":"ViewImage","response":{"output":` + quote(text) + `}}`, digest},
		{"a whole MCP result in a string", quote(wrapped), digest},
		{"that twice", quote(quote(wrapped)), digest},
		{"with a line of the host's before it", quote("Wall time: 1 s\nOutput:\n" + string(data)), digest},
		{"the text with a line before it", quote("Output:\n" + text), digest},
		{failed, quote("Error: ViewImage failed with x: y\nRetryable: true\n" + observation.Text(&observation.Result{VisualReference: ref})), digest},
		{"another tool's words", quote("read a.png, 70 bytes"), ""},
		{"a digest that is none", quote(strings.Replace(string(data), digest, "0123", 1)), ""},
		{"a line whose id is of another digest", quote("Reference: vis_0000000000000000 (sha256 " + digest + ", image/png"), ""},
		{"a line within a line", quote("the text says Reference: " + ref.ID + " (sha256 " + digest + ", image/png"), ""},
		{"half a member", quote(`"visual_reference": {"sha256":`), ""},
		{"no JSON", `{"visual_reference`, ""},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := referenceIn([]byte(test.raw))
			if got.digest != test.want {
				t.Errorf("got %q in %s", got.digest, test.raw)
			}
			want := `Sign "in" 42`
			if test.want == "" || test.name == failed {
				want = ""
			}
			if text := got.ocr(); text != want {
				t.Errorf("the text is %q in %s", text, test.raw)
			}
		})
	}
}

func TestTheDigestIsTakenFromVisionToolsAlone(t *testing.T) {
	const a, b = "call_a1b2c3d4", "call_b1b2c3d4"
	digest := strings.Repeat("0123456789abcdef", 4)
	text := observation.Text(&observation.Result{VisualReference: observation.NewReference("a.png", digest, "image/png", 70, 2, 3)})
	everywhere(t, func(t *testing.T, d message.Dialect, place string) {
		p := found(t, d, place, router.Injection{}, asks("look"), makes(view(a, "a.png"), other(b)),
			gets(got{id: a, tool: "view_image", text: text}, got{id: b, tool: "shell", text: text}))
		if len(p.Sights) != 1 || p.Sights[0].SHA256 != digest {
			t.Errorf("got %+v", p.Sights)
		}
		p = found(t, d, place, router.Injection{}, asks("look"), makes(view(a, "a.png"), other(b)), gets(seen(a), got{id: b, tool: "shell", text: text}))
		if len(p.Sights) != 1 || p.Sights[0].SHA256 != "" {
			t.Errorf("got %+v", p.Sights)
		}
	})
}

func TestATemplateMayHoldWhatViewImageRead(t *testing.T) {
	const a = "call_a1b2c3d4"
	digest := strings.Repeat("0123456789abcdef", 4)
	result, err := json.Marshal(&observation.Result{
		VisualReference: observation.NewReference("a.png", digest, "image/png", 70, 2, 3),
		Observation:     &observation.Observation{OCR: []map[string]any{{"text": "Sign in"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	talk := []turn{asks("look"), makes(view(a, "a.png")), gets(got{id: a, tool: "view_image", text: string(result)})}
	everywhere(t, func(t *testing.T, d message.Dialect, place string) {
		p := found(t, d, place, router.Injection{Template: router.InjectionTemplate{Item: "{path} says {ocr}"}}, talk...)
		if got := p.ItemText(0, picture, 1); got != "a.png says Sign in" {
			t.Errorf("got %q", got)
		}
		if p = found(t, d, place, router.Injection{}, talk...); p.Sights[0].OCR != "" {
			t.Errorf("nobody asks for %q", p.Sights[0].OCR)
		}
	})
}
