// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func asDataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

func TestAnAnimationIsToldByTheBytes(t *testing.T) {
	const head, frame = "GIF89a\x08\x00\x08\x00\x00\x00\x00", "\x2c\x00\x00\x00\x00\x08\x00\x08\x00\x00\x02\x01\x00\x00"
	for frames, reason := range map[int]string{1: "", 2: preflight.ReasonAnimated} {
		image := asDataURL("image/gif", []byte(head+strings.Repeat(frame, frames)+";"))
		got := judged(t, &review.Request{Dialect: message.OpenAIChat, Body: chatWith("gpt-5.5", image)})
		if got.Allowed != (reason == "") || got.Decisions[0].Reason != reason {
			t.Errorf("%d frames: %+v", frames, got)
		}
	}
}

// An image that is shown lying costs some models more than it does upright.
func TestTheOrientationCounts(t *testing.T) {
	photo := func(orientation byte) string {
		exif := "\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string([]byte{orientation}) + "\x00\x00\x00\x00\x00\x00"
		frame := "\xff\xc0\x00\x11\x08\x02\x58\x03\xe8\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"
		return asDataURL("image/jpeg", []byte("\xff\xd8"+exif+frame+"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\xff\xd9"))
	}
	for orientation, want := range map[byte]int64{1: 37 * 22, 6: 23 * 36} {
		got := judged(t, &review.Request{Dialect: message.OpenAIChat, Body: chatWith("mistral-small-2506", photo(orientation))})
		if !got.Allowed || got.Decisions[0].Tokens != want {
			t.Errorf("orientation %d: %+v, want %d tokens", orientation, got.Decisions, want)
		}
	}
}

func TestHowAnImageIsGivenIsHeldAgainstTheVendor(t *testing.T) {
	doc := document()
	doc.Providers[1].Endpoints[0].URL = "https://bedrock-runtime.us-east-1.amazonaws.com"
	for source, reason := range map[string]string{
		`{"type":"base64","media_type":"image/png","data":"@png:9x9@"}`: "",
		`{"type":"url","url":"https://example.com/a.png"}`:              preflight.ReasonSource,
		`{"type":"file","file_id":"file_1"}`:                            preflight.ReasonSource,
	} {
		body := filled(fmt.Appendf(nil, `{"model":"claude-opus-4-7","messages":[{"role":"user","content":[{"type":"image","source":%s}]}]}`, source))
		got, err := review.Review(t.Context(), &review.Request{Dialect: message.AnthropicMessages, Body: body}, grants(doc))
		if err != nil || got.Allowed != (reason == "") || got.Decisions[0].Reason != reason {
			t.Errorf("%s: %+v, %v", source, got, err)
		}
	}
}

// In the place of a computer's screenshot no text may stand, wherever it is.
func TestAScreenshotInHistoryIsRequired(t *testing.T) {
	const screenshot = `{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,@png:%dx9@"}}`
	const result = `{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/png;base64,@png:%dx9@"}]}`
	for kind, allowed := range map[string]bool{screenshot: false, result: true} {
		var items []string
		for i := range 3 {
			items = append(items, fmt.Sprintf(kind, i+1), `{"role":"assistant","content":"Seen."}`)
		}
		body := filled([]byte(`{"model":"eye-1","input":[` + strings.Join(items, ",") + `,{"role":"user","content":"And?"}]}`))
		got := judged(t, &review.Request{Dialect: message.OpenAIResponses, Body: body})
		if got.Allowed != allowed || got.Degraded() != allowed || got.Decisions[0].Required == allowed || !allowed && got.Status.Reason != preflight.ReasonImages {
			t.Errorf("%s: %+v, %+v", kind, got, got.Status)
		}
	}
}

func TestOfModelsOfOneNameTheAllowedOneCounts(t *testing.T) {
	doc := document()
	doc.Profiles[1].Allow = []router.AllowList{{From: "team-a/narrow", Globs: []string{"far@*/eye-2"}}}
	got, err := review.Review(t.Context(), &review.Request{Profile: "policy/narrow", Dialect: message.OpenAIChat, Body: chatWith("eye-2", onePNG)}, grants(doc))
	if err != nil || !got.Allowed || got.Tokens.Window != 200_000 {
		t.Errorf("%+v, %v", got, err)
	}
}

// An image that the model made itself stays, even for a model that sees none.
func TestTheAssistantsOwnImagesStay(t *testing.T) {
	const part = `{"inlineData":{"mimeType":"image/png","data":"@png:%dx9@"}}`
	body := filled(fmt.Appendf(nil, `{"contents":[{"role":"user","parts":[`+part+`]},{"role":"model","parts":[`+part+`]},{"role":"user","parts":[{"text":"And?"}]}]}`, 1, 2))
	got := judged(t, &review.Request{Dialect: message.GeminiContents, Model: "text-1", Body: body})
	if !got.Degraded() || len(got.Decisions) != 2 || got.Decisions[0].Outcome != preflight.Degraded || got.Decisions[1].Outcome != preflight.Admitted {
		t.Errorf("%+v, %+v", got, got.Status)
	}
}
