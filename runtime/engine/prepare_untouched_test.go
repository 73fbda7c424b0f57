// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// A model that takes text alone is told what images show, but for what the vendor
// itself made and what no text may stand for.
func TestWhatTheAssistantShowedAndScreenshotsNeverBecomeText(t *testing.T) {
	image := func(shade byte) string { return pngURL(square(t, 40, shade)) }
	for name, c := range map[string]struct {
		dialect   message.Dialect
		transport string
		body      string
	}{
		"an image of the assistant's turn": {message.OpenAIChat, router.TransportOpenAIChatCompletions,
			`{"model":"text","messages":[{"role":"user","content":"draw"},{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"` + image(1) + `"}}]},{"role":"user","content":"again"}]}`},
		"an image that Gemini generated": {message.GeminiContents, router.TransportGeminiGenerateContent,
			`{"model":"text","contents":[{"role":"user","parts":[{"text":"draw"}]},{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"` + strings.TrimPrefix(image(1), "data:image/png;base64,") + `"}}]},{"role":"user","parts":[{"text":"again"}]}]}`},
		"the result of a computer call": {message.OpenAIResponses, router.TransportOpenAIResponses,
			`{"model":"text","input":[{"role":"user","content":"click"},{"type":"computer_call","call_id":"call_a1b2c3d4","id":"cu_1","action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"},` +
				`{"type":"computer_call_output","call_id":"call_a1b2c3d4","output":{"type":"computer_screenshot","image_url":"` + image(1) + `"}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(proxied(func(d *router.Document) { d.Providers[0].Transport = c.transport }))
			sent, p := r.prepareAs(c.dialect, c.body)
			if sent != c.body || len(p.Record.Decisions) != 1 {
				t.Errorf("sent %.400s, record %+v", sent, p.Record)
			}
			if n := r.upstream.calls.Load(); n != 0 {
				t.Errorf("%d looks", n)
			}
		})
	}
}

func TestAnImageAtAURLIsNotFetchedForAModelThatTakesTextAlone(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	body := `{"model":"text","messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"` + r.upstream.URL + `/a.png"}}]}]}`
	if f := r.unprepared(body); f.Kind != fault.VisionObservationFailed || f.Reason != "ImageNotInRequest" {
		t.Errorf("of the newest message: %+v", f)
	}
	older := strings.TrimSuffix(body, "]}") + `,{"role":"assistant","content":"yes"},{"role":"user","content":"go on"}]}`
	sent, p := r.prepare(older)
	if strings.Contains(sent, "image_url") || !strings.Contains(sent, "no model could look at it") || p.Record.Degraded != 1 {
		t.Errorf("of an older message: sent %s, record %+v", sent, p.Record)
	}
	if n := r.upstream.calls.Load(); n != 0 {
		t.Errorf("%d calls", n)
	}
}
