// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// asInject reads a body as one of a dialect into which images are to be put.
func asInject(d message.Dialect, model string) func([]byte) (*review.Request, error) {
	return func(body []byte) (*review.Request, error) {
		return &review.Request{UID: "u", Dialect: d, Model: model, Operation: review.Inject, Body: body}, nil
	}
}

// verdict is a review's answer as who asks reads it; it knows nothing of ours.
type verdict struct {
	APIVersion, Kind string
	Response         struct {
		UID       string
		Allowed   bool
		Status    struct{ Reason string }
		Warnings  []string
		Decisions []struct {
			ID, Reason string
			Outcome    preflight.Outcome
		}
		PatchType string
		Patch     []struct {
			Offset, Length int
			Text           string
		}
	}
}

// reviewed asks for a verdict, and applies its patch to the body.
func (r *rig) reviewed(body string, read func([]byte) (*review.Request, error)) (v verdict, after string) {
	r.t.Helper()
	got, err := r.engine.Review(r.t.Context(), strings.NewReader(body), int64(len(body)), read)
	must(r.t, err)
	defer got.Release()
	text, err := io.ReadAll(got.Reader())
	must(r.t, err)
	must(r.t, json.Unmarshal(text, &v))
	if int64(len(text)) != got.Len() || v.Kind != review.Kind || v.APIVersion != review.APIVersion {
		r.t.Errorf("%d bytes, says %d: %s", len(text), got.Len(), text)
	}
	for _, e := range v.Response.Patch {
		body = body[:e.Offset] + e.Text + body[e.Offset+e.Length:]
	}
	if !json.Valid([]byte(body)) {
		r.t.Errorf("what the patch makes is no JSON: %.400s", body)
	}
	return v, body
}

// bodyOf is a model request of a dialect that holds messages.
func bodyOf(d message.Dialect, messages string) string {
	member := map[message.Dialect]string{message.OpenAIResponses: "input", message.GeminiContents: "contents"}[d]
	if member == "" {
		member = "messages"
	}
	return fmt.Sprintf(`{"model":"see", %q:%s, "x":1.50}`, member, messages)
}

var transports = map[message.Dialect]string{
	message.OpenAIChat: router.TransportOpenAIChatCompletions, message.OpenAIResponses: router.TransportOpenAIResponses,
	message.AnthropicMessages: router.TransportAnthropicMessages, message.GeminiContents: router.TransportGeminiGenerateContent,
}

func TestAGatewayThatPutsInWhatItIsToldSendsWhatTheProxySends(t *testing.T) {
	for _, d := range message.Dialects() {
		t.Run(string(d), func(t *testing.T) {
			r := newRig(t)
			r.use(proxied(func(doc *router.Document) { doc.Providers[0].Transport = transports[d] }))
			data := square(t, 40, 7)
			body := bodyOf(d, called(d, r.file("a.png", data)))
			v, after := r.reviewed(body, asInject(d, ""))
			if got := v.Response; !got.Allowed || got.UID != "u" || got.PatchType != "ByteRanges" || len(got.Decisions) != 1 || got.Decisions[0].Outcome != preflight.Admitted {
				t.Errorf("%+v", got)
			}
			if strings.Count(after, base64Of(data)) != 1 {
				t.Errorf("the image is not there once: %.600s", after)
			}
			if sent, _ := r.prepareAs(d, body); sent != after {
				t.Errorf("the proxy sends\n%s\nand a gateway\n%s", sent, after)
			}
			if v, same := r.reviewed(after, asInject(d, "")); same != after || v.Response.PatchType != "" || v.Response.Patch != nil {
				t.Errorf("what is shown is shown again: %+v", v.Response)
			}
		})
	}
}

func TestWhatAReviewHasPutInStaysAsItWas(t *testing.T) {
	r := newGallery(t, nil)
	r.use(nil) // without a proxy
	path := r.file("a.png", square(t, 40, 7))
	body := strings.ReplaceAll(bodyOf(message.OpenAIChat, called(message.OpenAIChat, path)), "call_abcdef12", "call_7f3kq92mzx5t8w1c")
	_, first := r.reviewed(body, asInject(message.OpenAIChat, ""))
	must(t, os.WriteFile(path, square(t, 40, 8), 0o600))
	if _, second := r.reviewed(body, asInject(message.OpenAIChat, "")); second != first || first == body {
		t.Errorf("%.400s\nand then\n%.400s", first, second)
	}
}

func TestAReviewLeavesOutAsItPutsIn(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) { d.Profiles[0].Limits.Request.MaxDistinctImages = 1 })
	old := fmt.Sprintf(`{"role":"user","content":[%s]},{"role":"assistant","content":"A square."},`, imageOf(t))
	messages := "[" + old + strings.TrimPrefix(called(message.OpenAIChat, r.file("a.png", square(t, 40, 7))), "[")
	v, after := r.reviewed(bodyOf(message.OpenAIChat, messages), asInject(message.OpenAIChat, ""))
	if got := v.Response.Decisions; len(got) != 2 || got[0].Outcome != preflight.Degraded || got[1].Outcome != preflight.Admitted || !v.Response.Allowed {
		t.Errorf("%+v", v.Response)
	}
	if strings.Count(after, "data:image/png") != 1 || !strings.Contains(after, preflight.Note(preflight.ReasonImages)) {
		t.Errorf("%.600s", after)
	}
}

func TestAReviewThatMayNotPutIn(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) {
		d.Profiles[0].Allow = []router.AllowList{{From: "team/p", Globs: []string{"models@default/see"}}}
	})
	shows := bodyOf(message.OpenAIChat, called(message.OpenAIChat, r.file("a.png", square(t, 40, 7))))
	holds := bodyOf(message.OpenAIChat, fmt.Sprintf(`[{"role":"user","content":[%s]}]`, imageOf(t)))
	v, after := r.reviewed(shows, asInject(message.OpenAIChat, "see-too"))
	if after != shows || !v.Response.Allowed || len(v.Response.Warnings) == 0 || !strings.Contains(v.Response.Warnings[0], "no image is put in") {
		t.Errorf("a model that is not allowed to look: %+v", v.Response)
	}
	for name, tc := range map[string]struct{ body, model, reason string }{
		"an image for a model that is not allowed to look": {holds, "see-too", "ModelNotAllowed"},
		"a body that is no request":                        {`{"model":"see","messages":7}`, "", "WrongType"},
	} {
		v, after := r.reviewed(tc.body, asInject(message.OpenAIChat, tc.model))
		if v.Response.Allowed || v.Response.Status.Reason != tc.reason || after != tc.body {
			t.Errorf("%s: %+v", name, v.Response)
		}
	}
}

func TestAReviewThatCannotPutIn(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	facts := `{"model":"see","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":{"sha256":"` + hashed(nil) + `","bytes":9,"mediaType":"image/png","head":"iVBORw0KGgo="}}}]}]}`
	for name, tc := range map[string]struct {
		body   string
		change func(*review.Request)
		reason string
	}{
		"under another profile":  {`{"messages":[]}`, func(r *review.Request) { r.Profile = "policy/q" }, "ProfileForeign"},
		"images told by facts":   {facts, func(*review.Request) {}, "FactsNotData"},
		"that is not to be sent": {`{"messages":[]}`, func(r *review.Request) { r.DryRun = true }, "DryRunUnsupported"},
	} {
		got, err := r.engine.Review(t.Context(), strings.NewReader(tc.body), -1, func(b []byte) (*review.Request, error) {
			req, _ := asInject(message.OpenAIChat, "")(b)
			tc.change(req)
			return req, nil
		})
		if err == nil || fault.As(err).Reason != tc.reason {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestAPanicLeavesNothingHeld(t *testing.T) {
	r := newRig(t)
	r.startWith(func(o *engine.Options) { o.MaxHeldBytes = 1 << 20 })
	r.use(nil)
	body := `{"messages":[]}` + strings.Repeat(" ", 900<<10)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 3 { // each takes nearly all
		func() {
			defer func() {
				if recover() == nil {
					t.Fatal("there was no room for the review")
				}
			}()
			_, _ = r.engine.Review(ctx, strings.NewReader(body), int64(len(body)), func([]byte) (*review.Request, error) { panic("a defect") })
		}()
	}
	if v, _ := r.reviewed(body, asInject(message.OpenAIChat, "see")); !v.Response.Allowed {
		t.Errorf("%+v", v.Response)
	}
}
