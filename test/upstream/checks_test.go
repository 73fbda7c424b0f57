// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/test/upstream"
)

// thinker is a conversation with a model that thinks, as a client keeps it.
type thinker struct {
	t        *testing.T
	post     func(path, body string, headers ...string) (int, string)
	messages []any
}

func (c *thinker) says(role string, content any) {
	c.messages = append(c.messages, map[string]any{"role": role, "content": content})
}

// ask sends the messages and is the status and the answer.
func (c *thinker) ask(thinking string, messages []any, headers ...string) (int, string) {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"model": "m", "max_tokens": 9, "thinking": json.RawMessage(thinking), "messages": messages})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.post("/v1/messages", string(body), headers...)
}

const adaptive = `{"type":"adaptive"}`

// turn lets the model speak and keeps what it said.
func (c *thinker) turn() {
	c.t.Helper()
	status, answer := c.ask(adaptive, c.messages)
	var reply struct{ Content []map[string]any }
	if err := json.Unmarshal([]byte(answer), &reply); err != nil || status != http.StatusOK || len(reply.Content) < 2 {
		c.t.Fatalf("%d %s", status, answer)
	}
	c.says("assistant", reply.Content)
	c.says("user", "go on")
}

func TestReasoningIsBoundToWhatStandsBeforeIt(t *testing.T) {
	s, post := served(t, upstream.Options{Key: ""})
	c := &thinker{t: t, post: post}
	c.says("user", "hello")
	for range 3 {
		c.turn()
	}
	// without is the conversation without the thinking of those messages.
	without := func(indices ...int) []any {
		messages := append([]any(nil), c.messages...)
		for _, i := range indices {
			content := messages[i].(map[string]any)["content"].([]map[string]any)
			messages[i] = map[string]any{"role": "assistant", "content": content[1:]}
		}
		return messages
	}
	edited := append([]any{map[string]any{"role": "user", "content": "good bye"}}, c.messages[1:]...)
	for _, tc := range []struct {
		name       string
		messages   []any
		thinking   string
		beta, want string
	}{
		{"the conversation as it was", c.messages, adaptive, "", ""},
		{"a first message that was edited", edited, adaptive, "", "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."},
		{"the same, with blocks to be dropped", edited, `{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`, "thinking-binding-controls-2026-08-01", ""},
		{"without the first thinking", without(1), adaptive, "", ""},
		{"without the first two", without(1, 3), adaptive, "", ""},
		{"without any", without(1, 3, 5), adaptive, "", ""},
		{"without one in the middle", without(3), adaptive, "", "messages.5.content.0: Invalid `signature`"},
		{"an edit, without any", append(edited[:1:1], without(1, 3, 5)[1:]...), adaptive, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s.Reset()
			status, answer := c.ask(tc.thinking, tc.messages, "Anthropic-Beta", tc.beta)
			if tc.want == "" {
				if status != http.StatusOK || len(s.Mismatches()) != 0 {
					t.Errorf("%d %s, mismatches %v", status, answer, s.Mismatches())
				}
				return
			}
			if status != http.StatusBadRequest || !strings.Contains(message(t, answer), tc.want) || len(s.Mismatches()) != 1 {
				t.Errorf("%d %s, mismatches %v", status, answer, s.Mismatches())
			}
		})
	}
}

func TestImagesAreToStandThereOnceAndToStay(t *testing.T) {
	one := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel(t, 1) + `"}}`
	two := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel(t, 2) + `"}}`
	for _, tc := range []struct {
		name   string
		bodies []string
		want   string
	}{
		{"two images, then a third message", []string{one + "," + two, one + "," + two}, ""},
		{"an image twice", []string{one + "," + two + "," + one}, "stands there 2 times"},
		{"an image that goes", []string{one + "," + two, two}, "is gone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, post := served(t, upstream.Options{})
			for _, parts := range tc.bodies {
				body := `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello"},` + parts + `]}]}`
				if status, answer := post("/v1/chat/completions", body); status != http.StatusOK {
					t.Fatal(status, answer)
				}
			}
			if got := strings.Join(s.ImagesOnce(), "\n"); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestPrefixesAreToStay(t *testing.T) {
	for _, tc := range []struct {
		name, first, second, want string
	}{
		{"a message more", `{"role":"user","content":"hello"}`, `{"role":"user","content":"hello"},{"role":"user","content":"and"}`, ""},
		{"a message less", `{"role":"user","content":"hello"},{"role":"user","content":"and"}`, `{"role":"user","content":"hello"}`, "1 messages after 2"},
		{"another order of members", `{"role":"user","content":"hello"}`, `{"content":"hello","role":"user"}`, "message 0 was"},
		{"a mark for the cache that moves", `{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}`,
			`{"role":"user","content":[{"type":"text","text":"hello"}]},{"role":"user","content":"and"}`, ""},
		{"a text that changes", `{"role":"user","content":"hello"},{"role":"user","content":"and"}`, `{"role":"user","content":"hello"},{"role":"user","content":"or"}`, "message 1 was"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, post := served(t, upstream.Options{})
			for _, messages := range []string{tc.first, tc.second} {
				if status, answer := post("/v1/messages", `{"model":"m","max_tokens":1,"messages":[`+messages+`]}`); status != http.StatusOK {
					t.Fatal(status, answer)
				}
			}
			if got := strings.Join(s.SharedPrefixesEqual(), "\n"); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestOnlyTheLatestRequestsAreKept(t *testing.T) {
	s, post := served(t, upstream.Options{Keep: 2})
	for _, text := range []string{"one", "two", "three"} {
		post("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)
	}
	requests := s.Requests()
	if len(requests) != 2 || requests[0].Conversation != "two" || requests[1].Conversation != "three" {
		t.Errorf("%d requests are kept, the first of %q", len(requests), requests[0].Conversation)
	}
	if len(s.Of("three")) != 1 || s.Of("three")[0].Body == nil {
		t.Error("the request of a conversation is not found whole")
	}
}

func TestGeminiStreamsAnArrayWhereNoEventsAreAskedFor(t *testing.T) {
	_, post := served(t, upstream.Options{Script: func(string) []upstream.Answer { return []upstream.Answer{{Text: "A text of several pieces."}} }})
	const path, body = "/v1beta/models/gemini-3-pro:streamGenerateContent", `{"contents":[{"parts":[{"text":"hello"}]}]}`
	status, answer := post(path, body)
	var chunks []map[string]any
	if err := json.Unmarshal([]byte(answer), &chunks); err != nil || status != http.StatusOK || len(chunks) < 2 {
		t.Errorf("%d %s: %v", status, answer, err)
	}
	if status, answer = post(path+"?alt=sse", body); status != http.StatusOK || !strings.HasPrefix(answer, "data: {") {
		t.Errorf("with events: %d %s", status, answer)
	}
}

func TestFaultsComeInTheDialectsShape(t *testing.T) {
	for _, tc := range []struct{ path, body, want string }{
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, `"type":"rate_limit_error"`},
		{"/v1/messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, `"type":"rate_limit_error"`},
		{"/v1beta/models/gemini-3-pro:generateContent", `{"contents":[{"parts":[{"text":"x"}]}]}`, `"status":"RESOURCE_EXHAUSTED"`},
	} {
		s, post := served(t, upstream.Options{Fault: func(n uint64) int {
			if n == 1 {
				return http.StatusTooManyRequests
			}
			return 0
		}})
		if status, answer := post(tc.path, tc.body); status != http.StatusTooManyRequests || !strings.Contains(answer, tc.want) {
			t.Errorf("%s: %d %s", tc.path, status, answer)
		}
		if status, answer := post(tc.path, tc.body); status != http.StatusOK {
			t.Errorf("%s, the second time: %d %s", tc.path, status, answer)
		}
		if len(s.Refusals()) != 1 {
			t.Errorf("%s: %q", tc.path, s.Refusals())
		}
	}
}
