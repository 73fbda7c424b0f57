// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// What a scanned request says is required is what a review says, at every
// length of the conversation.
func TestLabelsAreThoseOfTheScannedRequest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	roles := []message.Role{message.System, message.User, message.User, message.Assistant, message.Assistant, message.Tool, message.Nobody}
	labels := map[bool]int{}
	for range 3000 {
		scanned := &message.Request{}
		in := preflight.Input{Limits: defaults(), Candidate: seeing()}
		for k := range 1 + r.IntN(8) {
			turn := message.Turn{Role: roles[r.IntN(len(roles))]}
			turn.ToolResults = turn.Role == message.Tool || turn.Role == message.User && r.IntN(2) == 0
			scanned.Turns = append(scanned.Turns, turn)
			for range r.IntN(3) {
				result := turn.ToolResults || turn.Role == message.User && r.IntN(2) == 0
				scanned.Images = append(scanned.Images, message.Image{Turn: k, InToolResult: result})
				in.Images = append(in.Images, preflight.Image{Turn: k, InResult: result, SHA256: "same"})
			}
		}
		in.Turns = preflight.TurnsOf(scanned)
		for i, d := range preflight.Review(in).Decisions {
			if want := scanned.Required(i); d.Required != want {
				t.Fatalf("image %d of turn %d of %+v: required %t; the request says %t", i, scanned.Images[i].Turn, scanned.Turns, d.Required, want)
			}
			labels[d.Required]++
		}
	}
	if labels[true] < 500 || labels[false] < 500 {
		t.Errorf("labels are %v", labels)
	}
}

func TestTurnsOfAScannedRequest(t *testing.T) {
	span := func(start, end int) message.Span { return message.Span{Start: start, End: end} }
	scanned := &message.Request{
		Dialect: message.AnthropicMessages,
		Turns: []message.Turn{
			{Role: message.User, Span: span(0, 100), TextBytes: 20},
			{Role: message.Assistant, Span: span(102, 150), TextBytes: 30, Signed: true},
			{Role: message.User, ToolResults: true, Span: span(150, 400), TextBytes: 10},
			{Role: message.System, Span: span(400, 600), TextBytes: 90},
		},
		Images: []message.Image{{Turn: 2, Data: span(200, 300)}, {Turn: 2, Data: span(310, 350)}},
	}
	want := []preflight.Turn{
		{Kind: preflight.Human, TextBytes: 20, BodyBytes: 100},
		{Kind: preflight.Assistant, TextBytes: 30, BodyBytes: 50, Signed: true},
		{Kind: preflight.Results, TextBytes: 10, BodyBytes: 110},
		{Kind: preflight.Other},
	}
	if got := preflight.TurnsOf(scanned); !slices.Equal(got, want) {
		t.Errorf("turns %+v; want %+v", got, want)
	}
	scanned.Dialect = message.OpenAIChat
	want[3] = preflight.Turn{Kind: preflight.Other, TextBytes: 90, BodyBytes: 200}
	if got := preflight.TurnsOf(scanned); !slices.Equal(got, want) {
		t.Errorf("a chat's instructions are a turn as any other: %+v; want %+v", got, want)
	}
}

// What holds of facts holds of bodies: a conversation is written as JSON at each
// of its lengths, scanned, and reviewed under limits that it grows into.
func TestAConversationAsSentKeepsWhatWasLeftOut(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	left := map[string]int{}
	for range 60 {
		var messages []string
		body := func(n int) []byte {
			return []byte(`{"model":"claude-opus-4-7","messages":[` + strings.Join(messages[:n], ", ") + `],"system":[{"type":"text","text":"` + strings.Repeat("s", 900) + `"}],"max_tokens":100}`)
		}
		for k := range 12 {
			data := strings.Repeat("QUJD", 1+r.IntN(200))
			image := fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}`, data)
			text := fmt.Sprintf(`{"type":"text","text":"%s"}`, strings.Repeat("é\\n", r.IntN(1500)))
			switch {
			case k%2 == 1:
				messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":[%s]}`, text))
			case r.IntN(3) == 0:
				messages = append(messages, fmt.Sprintf(`{"role":"user","content":[%s,%s]}`, text, image))
			default:
				messages = append(messages, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[%s,%s]}]}`, image, text))
			}
		}
		limited := seeing()
		limited.Declared.ContextWindowTokens = int64(3000 + r.IntN(9000))
		limited.Declared.Limits = &router.ModelLimits{MaxRequestBytes: int64(5000 + r.IntN(25_000))}
		var before []preflight.Decision
		for n := 1; n <= len(messages); n += 2 {
			v := reviewBody(t, body(n), limited)
			for i, d := range before {
				if d.Outcome == preflight.Degraded && (v.Decisions[i].Outcome != d.Outcome || v.Decisions[i].Note() != d.Note()) {
					t.Fatalf("%s was left out, and is %+v after %d messages", d.ID, v.Decisions[i], n)
				}
			}
			for _, d := range v.Decisions {
				if d.Outcome == preflight.Degraded {
					left[d.Reason]++
				}
			}
			before = v.Decisions
		}
	}
	if left[preflight.ReasonWindow] == 0 || left[preflight.ReasonBody] == 0 {
		t.Errorf("left out: %v", left)
	}
}

func reviewBody(t *testing.T, body []byte, candidate preflight.Candidate) preflight.Verdict {
	t.Helper()
	scanned, err := message.Scan(message.AnthropicMessages, body)
	if err != nil {
		t.Fatal(err)
	}
	in := preflight.Input{
		Limits: defaults(), Candidate: candidate, Turns: preflight.TurnsOf(scanned),
		TextBytes: scanned.TextBytes, BodyBytes: int64(len(body)), MaxOutputTokens: scanned.MaxOutputTokens,
	}
	for i, img := range scanned.Images {
		in.Images = append(in.Images, preflight.Image{
			ID: scanned.ID(i), Turn: img.Turn, InResult: img.InToolResult, Base64Bytes: int64(img.Data.Len()),
			Bytes: int64(img.Data.Len()) / 4 * 3, MediaType: img.MediaType, Width: 100, Height: 100,
		})
	}
	return preflight.Review(in)
}
