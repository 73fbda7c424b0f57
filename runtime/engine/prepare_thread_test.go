// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// stateful is a request that answers a call of a conversation that the vendor keeps.
func stateful(previous, call string) string {
	return fmt.Sprintf(`{"model":"see","previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":"read"}]}`, previous, call)
}

// reply lets a reply pass that calls view_image.
func reply(t *testing.T, p *engine.Prepared, id, call, path string) {
	t.Helper()
	tap := p.Tap("application/json")
	if tap == nil {
		t.Fatal("nothing is learnt from a reply of the Responses API")
	}
	_, err := fmt.Fprintf(tap, `{"id":%q,"output":[{"type":"function_call","call_id":%q,"name":"view_image","arguments":%q}]}`, id, call, `{"path":"`+path+`"}`)
	must(t, err)
	must(t, tap.Close())
}

func TestACallThatTheVendorKeepsIsShownAsItWasMade(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	path := r.file("a.png", square(t, 40, 7))
	_, first := r.prepareAs(message.OpenAIResponses, `{"model":"see","input":"what is it?"}`)
	reply(t, first, "resp_1", "call_abcdef12", path)

	sent, p := r.prepareAs(message.OpenAIResponses, stateful("resp_1", "call_abcdef12"))
	if strings.Count(sent, `"input_image"`) != 1 || p.Record.Injected != 1 || !p.Record.HistoryNotVisible {
		t.Errorf("sent %.500s, record %+v", sent, p.Record)
	}
	reply(t, p, "resp_2", "call_zzzzzz99", path)
	if again, _ := r.prepareAs(message.OpenAIResponses, stateful("resp_1", "call_abcdef12")); again != sent {
		t.Errorf("the same request again is %.500s", again)
	}
	if later, p := r.prepareAs(message.OpenAIResponses, stateful("resp_2", "call_abcdef12")); strings.Contains(later, "input_image") || p.Record.Injected != 0 {
		t.Errorf("an image that the vendor has is sent again: %.500s", later)
	}
}

func TestACallThatNobodyKnowsShowsNothing(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	body := stateful("resp_1", "call_abcdef12")
	sent, p := r.prepareAs(message.OpenAIResponses, body)
	if sent != body || p.Record.Skipped["CallNotVisible"] != 1 {
		t.Errorf("sent %s, record %+v", sent, p.Record)
	}
}

func TestNothingIsLearntFromOtherReplies(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	if _, p := r.prepare(`{"model":"see","messages":[]}`); p.Tap("application/json") != nil {
		t.Error("a reply of another dialect is read")
	}
	p, err := r.engine.Prepare(t.Context(), engine.ModelRequest{Dialect: message.OpenAIResponses, Counting: true, Body: []byte(`{"model":"see","input":"x"}`)})
	must(t, err)
	defer p.Release()
	if p.Tap("application/json") != nil {
		t.Error("a count is read as a reply")
	}
}

func TestMarkdownImagesOfHumansAreAttachedWhereThePolicySaysSo(t *testing.T) {
	r := newRig(t)
	r.file("a.png", square(t, 40, 7))
	body := `{"model":"see","messages":[{"role":"user","content":"see ![a square](a.png) and ![far](https://example.com/b.png)"}]}`
	r.use(proxied(nil))
	if sent, _ := r.prepare(body); sent != body {
		t.Errorf("by default %s", sent)
	}
	r.use(proxied(func(d *router.Document) { d.Profiles[0].Injection.MarkdownImages = router.MarkdownAttach }))
	sent, p := r.prepare(body)
	if strings.Count(sent, `"image_url":`) != 1 || !strings.Contains(sent, `"see ![a square](a.png) and ![far](https://example.com/b.png)"`) || p.Record.Skipped["RemoteImage"] != 1 {
		t.Errorf("sent %.500s, record %+v", sent, p.Record)
	}
}
