// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// proxied makes the document's profile have a proxy, and edits it.
func proxied(edit func(*router.Document)) func(*router.Document) {
	return func(d *router.Document) {
		d.Profiles[0].Runtime.Proxy = &router.Proxy{}
		if edit != nil {
			edit(d)
		}
	}
}

// viewed is a chat in which the assistant has called view_image for each path and
// all calls are answered.
func viewed(model string, paths ...string) string {
	var calls, results []string
	for i, path := range paths {
		arguments, _ := json.Marshal(fmt.Sprintf(`{"path":%q}`, path))
		calls = append(calls, fmt.Sprintf(`{"id":"call_0000000%d","type":"function","function":{"name":"view_image","arguments":%s}}`, i, arguments))
		results = append(results, fmt.Sprintf(`{"role":"tool","tool_call_id":"call_0000000%d","content":"read"}`, i))
	}
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"what is it?"},{"role":"assistant","tool_calls":[%s]},%s]}`,
		model, strings.Join(calls, ","), strings.Join(results, ","))
}

// prepare prepares a chat, and returns the body that would be sent.
func (r *rig) prepare(body string) (string, *engine.Prepared) {
	r.t.Helper()
	return r.prepareAs(message.OpenAIChat, body)
}

func (r *rig) prepareAs(d message.Dialect, body string) (string, *engine.Prepared) {
	r.t.Helper()
	p, err := r.engine.Prepare(context.Background(), engine.ModelRequest{Dialect: d, Body: []byte(body)})
	must(r.t, err)
	r.t.Cleanup(p.Release)
	sent, err := io.ReadAll(p.Body.Reader())
	must(r.t, err)
	if int64(len(sent)) != p.Body.Len() {
		r.t.Errorf("the body has %d bytes and says %d", len(sent), p.Body.Len())
	}
	if !json.Valid(sent) {
		r.t.Errorf("the body is no JSON: %.300s", sent)
	}
	return string(sent), p
}

func (r *rig) unprepared(body string) *fault.Fault {
	r.t.Helper()
	p, err := r.engine.Prepare(context.Background(), engine.ModelRequest{Dialect: message.OpenAIChat, Body: []byte(body)})
	if err == nil {
		p.Release()
		r.t.Fatal("the request was not refused")
	}
	return fault.As(err)
}

func pngURL(data []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(data)
}

func TestARequestWithNothingToShowStaysAsItIs(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	body := `{"model" : "see", "messages":[{"role":"user","content":"hi \u00e9 1e-7"}],"x":1.50 }`
	sent, p := r.prepare(body)
	if sent != body || p.Body.Changed() || len(p.Record.Edits) != 0 {
		t.Errorf("sent %s, record %+v", sent, p.Record)
	}
	if p.Route.String() != "models@default/see" || p.Model != "see" || p.Provider != "team/models" {
		t.Errorf("target %+v", p.Target)
	}
}

func TestARouteInPlaceOfAModelIsReplacedByTheModelsName(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	sent, p := r.prepare(`{"messages":[],"model":"models@default/see-too"}`)
	if sent != `{"messages":[],"model":"see-too"}` || len(p.Record.Edits) != 1 {
		t.Errorf("sent %s, edits %v", sent, p.Record.Edits)
	}
}

func TestGeminisModelStaysTheResourceThatTheBodyNames(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) {
		for i := range d.Providers {
			d.Providers[i].Transport = router.TransportGeminiGenerateContent
		}
	}))
	for body, want := range map[string]string{
		`{"model":"models/see-too","contents":[]}`:                                                             `{"model":"models/see-too","contents":[]}`,
		`{"model":"see-too","contents":[]}`:                                                                    `{"model":"see-too","contents":[]}`,
		`{"model":"models/models@default/see-too","contents":[]}`:                                              `{"model":"models/see-too","contents":[]}`,
		`{"generateContentRequest":{"model":"models/models@default/see-too","contents":[]}}`:                   `{"generateContentRequest":{"model":"models/see-too","contents":[]}}`,
		`{"generateContentRequest":{"model":"models/another","contents":[]},"model":"models/see-too"}`:         `{"generateContentRequest":{"model":"models/see-too","contents":[]},"model":"models/see-too"}`,
		`{"model":"another","generateContentRequest":{"contents":[],"model":"models/models@default/see-too"}}`: `{"model":"see-too","generateContentRequest":{"contents":[],"model":"models/see-too"}}`,
		`{"generateContentRequest":{"model" : "models/see-too","contents":[],"x":1.0},"y":[]}`:                 `{"generateContentRequest":{"model" : "models/see-too","contents":[],"x":1.0},"y":[]}`,
	} {
		p, err := r.engine.Prepare(context.Background(), engine.ModelRequest{Dialect: message.GeminiContents, Model: "see-too", Body: []byte(body)})
		must(t, err)
		sent, err := io.ReadAll(p.Body.Reader())
		must(t, err)
		if string(sent) != want {
			t.Errorf("%s\nwent up as %s", body, sent)
		}
		p.Release()
	}
}

func TestAnImageThatAToolReadIsShown(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	data := square(t, 40, 7)
	body := viewed("see", r.file("a.png", data))
	sent, p := r.prepare(body)
	if strings.Count(sent, pngURL(data)) != 1 || p.Record.Injected != 1 || p.Record.Form != router.InjectionImage {
		t.Errorf("sent %.600s, record %+v", sent, p.Record)
	}
	if !strings.HasPrefix(sent, strings.TrimSuffix(body, "]}")) {
		t.Errorf("what came before was changed: %.400s", sent)
	}
	if log := r.log.String(); !strings.Contains(log, "call_00000000") || !strings.Contains(log, "images shown") {
		t.Errorf("the log does not tell of it: %s", log)
	}
}

func TestAnImageStaysAsItWasShownThoughTheFileChanges(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	first := viewed("see", r.file("a.png", square(t, 40, 7)))
	before, _ := r.prepare(first)
	r.file("a.png", square(t, 40, 8))
	later := strings.TrimSuffix(first, "]}") + `,{"role":"assistant","content":"a square"},{"role":"user","content":"sure?"}]}`
	after, _ := r.prepare(later)
	if prefix := strings.TrimSuffix(before, "]}"); !strings.HasPrefix(after, prefix) {
		t.Errorf("the prefix changed:\n%.500s\n%.500s", before, after)
	}
}

func TestAnImageThatIsNotThereIsOneText(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	sent, p := r.prepare(viewed("see", r.space+"/none.png"))
	if strings.Contains(sent, "image_url") || strings.Count(sent, `"type":"text"`) != 1 || p.Record.Unavailable != 1 {
		t.Errorf("sent %s, record %+v", sent, p.Record)
	}
	if got := p.Record.Sights[0]; got.Outcome != engine.SightUnavailable || got.Reason != "NotFound" {
		t.Errorf("sight %+v", got)
	}
}

func TestInjectionThatIsOffShowsNothing(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) { d.Profiles[0].Injection.Mode = router.InjectionOff }))
	body := viewed("see", r.file("a.png", square(t, 40, 7)))
	if sent, _ := r.prepare(body); sent != body {
		t.Errorf("sent %s", sent)
	}
}

func TestATextOnlyModelIsToldWhatAnImageShows(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	data := square(t, 40, 7)
	body := viewed("text", r.file("a.png", data))
	body = strings.Replace(body, `"content":"what is it?"`, `"content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"`+pngURL(data)+`"}}]`, 1)
	sent, p := r.prepare(body)
	if strings.Contains(sent, "base64") || strings.Count(sent, "A grey square.") != 2 {
		t.Errorf("sent %s", sent)
	}
	if p.Record.Form != router.InjectionObservation || p.Record.Observed != 2 {
		t.Errorf("record %+v", p.Record)
	}
	again, _ := r.prepare(body)
	if again != sent {
		t.Errorf("a second time %s, want %s", again, sent)
	}
	if n := r.upstream.calls.Load(); n != 2 {
		t.Errorf("%d looks, want 2: one for each prompt", n)
	}
}

func TestAFailedLookAtARequiredImageRefusesTheRequest(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	f := r.unprepared(viewed("text", r.file("a.png", square(t, 40, 7))))
	if f.Kind != fault.VisionObservationFailed {
		t.Errorf("fault %+v", f)
	}
}

func TestAFailedLookAtAnOlderImageIsANote(t *testing.T) {
	r := newRig(t)
	r.use(proxied(nil))
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	body := strings.TrimSuffix(viewed("text", r.file("a.png", square(t, 40, 7))), "]}") + `,{"role":"assistant","content":"yes"},{"role":"user","content":"go on"}]}`
	sent, p := r.prepare(body)
	if !strings.Contains(sent, "no model could look at it") || p.Record.Degraded != 1 || p.Record.Observed != 0 {
		t.Errorf("sent %s, record %+v", sent, p.Record)
	}
}

func TestImagesAloneAreRefusedForAModelThatTakesNone(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) { d.Profiles[0].Injection.Mode = router.InjectionImage }))
	if f := r.unprepared(viewed("text", r.file("a.png", square(t, 40, 7)))); f.Reason != "ModelLacksImageInput" {
		t.Errorf("fault %+v", f)
	}
}

func TestInjectedImagesOverALimitAreLeftOutAndRefuseNothing(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) { d.Profiles[0].Limits.Request.MaxDistinctImages = 1 }))
	sent, p := r.prepare(viewed("see", r.file("a.png", square(t, 40, 7)), r.file("b.png", square(t, 40, 8))))
	if strings.Count(sent, `"image_url":`) != 1 || p.Record.Injected != 1 || p.Record.Degraded != 1 {
		t.Errorf("sent %.700s, record %+v", sent, p.Record)
	}
}

func TestWhyAModelIsNotServed(t *testing.T) {
	r := newRig(t)
	for name, tc := range map[string]struct {
		edit   func(*router.Document)
		body   string
		status int
		reason string
		says   string
	}{
		"it is unknown": {nil, `{"model":"other","messages":[]}`, 404, "ModelNotFound", "other"},
		"none is named": {nil, `{"messages":[]}`, 400, "ModelMissing", "model"},
		"it is not allowed": {func(d *router.Document) {
			d.Profiles[0].Allow = []router.AllowList{{From: "team/p", Globs: []string{"*/text"}}}
		}, `{"model":"see","messages":[]}`, 403, "ModelNotAllowed", "models@default/see"},
		"another dialect has it": {func(d *router.Document) { d.Providers[0].Transport = router.TransportAnthropicMessages }, `{"model":"see","messages":[]}`, 404, "ModelNotFound", "models@default/see, which speaks AnthropicMessages"},
		"there is no proxy":      {func(d *router.Document) { d.Profiles[0].Runtime.Proxy = nil }, `{"model":"see","messages":[]}`, 403, "ProxyDisabled", "proxy"},
		"it is no request":       {nil, `{"model":"see"`, 400, "NotJSON", "JSON"},
		"data is told by facts":  {nil, `{"model":"see","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"sha256":"` + strings.Repeat("a", 64) + `","bytes":9}}]}]}`, 400, "FactsNotData", "facts"},
	} {
		t.Run(name, func(t *testing.T) {
			r.use(proxied(tc.edit))
			f := r.unprepared(tc.body)
			if f.Status() != tc.status || f.Reason != tc.reason || !strings.Contains(f.Message, tc.says) {
				t.Errorf("%d %s: %s", f.Status(), f.Reason, f.Message)
			}
		})
	}
}

func TestModelsAreThoseThatADialectMayName(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) {
		d.Profiles[0].Allow = []router.AllowList{{From: "team/p", Globs: []string{"*/see*"}}}
	}))
	for d, want := range map[message.Dialect]string{
		message.OpenAIChat: "see see-too ", message.OpenAIResponses: "see see-too ", message.AnthropicMessages: "", message.GeminiContents: "",
	} {
		served, err := r.engine.Models(d)
		must(t, err)
		got := ""
		for _, s := range served {
			got += s.Name + " "
		}
		if got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestPassthroughIsWhatThePolicyOpens(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) {
		d.Profiles[0].Runtime.Proxy.Passthrough = []router.PassthroughRule{{Method: "GET", Path: "/openai/v1/files/*"}}
	}))
	pass := func(method, path string) *engine.Target {
		target, err := r.engine.Passthrough(t.Context(), method, path, message.OpenAIChat, "")
		must(t, err)
		return target
	}
	if got := pass("GET", "/openai/v1/files/f1"); got == nil || got.Provider != "team/models" || got.Model != "" {
		t.Errorf("an open path goes to %+v", got)
	}
	if pass("DELETE", "/openai/v1/files/f1") != nil || pass("GET", "/openai/v1/other") != nil {
		t.Error("a path is open that no rule opens")
	}
}

func TestSignedReasoningThatIsRefusedBesideAnEditIsLeftOutOnceAndForGood(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) { d.Providers[0].Transport = router.TransportAnthropicMessages }))
	path := r.file("a.png", square(t, 40, 7))
	body := `{"model":"see","max_tokens":9,"messages":[{"role":"user","content":"look"},
{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s1"},{"type":"tool_use","id":"toolu_0001","name":"view_image","input":{"path":"` + path + `"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0001","content":"read"}]},
{"role":"assistant","content":"ok"},{"role":"user","content":"more"}]}`
	refusal := []byte("{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0: Invalid `signature` in `thinking` block\"}}")
	sent, p := r.prepareAs(message.AnthropicMessages, body)
	if !strings.Contains(sent, `"signature":"s1"`) {
		t.Fatalf("sent %s", sent)
	}
	for _, other := range [][]byte{nil, []byte(`{}`), []byte(`{"error":{"type":"invalid_request_error","message":"prompt is too long"}}`)} {
		if _, ok := p.Retry(400, other); ok {
			t.Errorf("%s asks for a second try", other)
		}
	}
	if _, ok := p.Retry(500, refusal); ok {
		t.Error("a server's error asks for a second try")
	}
	again, ok := p.Retry(400, refusal)
	if !ok || !p.Record.SignaturesDropped {
		t.Fatalf("no second try: %+v", p.Record)
	}
	second, err := io.ReadAll(again.Reader())
	must(t, err)
	if bytes.Contains(second, []byte("thinking")) || !bytes.Contains(second, []byte("iVBOR")) || !json.Valid(second) {
		t.Errorf("the second try is %s", second)
	}
	if _, ok := p.Retry(400, refusal); ok {
		t.Error("there is a third try")
	}
	if later, p := r.prepareAs(message.AnthropicMessages, body); later != string(second) || !p.Record.SignaturesDropped {
		t.Errorf("later requests are %s", later)
	}
	marked := strings.Replace(body, `"look"`, `[{"type":"text","text":"look","cache_control":{"type":"ephemeral"}}]`, 1)
	if later, p := r.prepareAs(message.AnthropicMessages, marked); !p.Record.SignaturesDropped {
		t.Errorf("with another mark for the cache later requests are %s", later)
	}
	if _, p := r.prepareAs(message.AnthropicMessages, strings.Replace(body, `"look"`, `"look again"`, 1)); p.Record.SignaturesDropped {
		t.Error("so is another conversation")
	}
}

func TestAVendorThatOffersItIsAskedToLeaveOutReasoningThatDoesNotFit(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) { d.Providers[0].Transport = router.TransportAnthropicMessages }))
	path := r.file("a.png", square(t, 40, 7))
	body := `{"model":"see","max_tokens":9,"messages":[{"role":"user","content":"look"},
{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s1"},{"type":"tool_use","id":"toolu_0001","name":"view_image","input":{"path":"` + path + `"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0001","content":"read"}]}]}`
	refusal := []byte("{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \\\"drop_block\\\".\"}}")
	_, p := r.prepareAs(message.AnthropicMessages, body)
	if p.Header() != nil {
		t.Errorf("headers before: %v", p.Header())
	}
	again, ok := p.Retry(400, refusal)
	if !ok {
		t.Fatal("no second try")
	}
	second, err := io.ReadAll(again.Reader())
	must(t, err)
	if !bytes.Contains(second, []byte(`"prefix_mismatch_behavior":"drop_block"`)) || !bytes.Contains(second, []byte(`"signature":"s1"`)) {
		t.Errorf("the second try is %.400s", second)
	}
	if got := p.Header().Get("Anthropic-Beta"); got != "thinking-binding-controls-2026-08-01" {
		t.Errorf("the header says %q", got)
	}
	if later, p := r.prepareAs(message.AnthropicMessages, body); later != string(second) || p.Header() == nil {
		t.Errorf("later requests are %.400s", later)
	}
}

func TestRequestsThatNoEditTouchedAreNotTriedAgain(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) { d.Providers[0].Transport = router.TransportAnthropicMessages }))
	_, p := r.prepareAs(message.AnthropicMessages, `{"model":"models/see","max_tokens":9,"messages":[{"role":"user","content":"look"},
{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s1"},{"type":"text","text":"x"}]},{"role":"user","content":"more"}]}`)
	if _, ok := p.Retry(400, []byte("{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Invalid `signature` in `thinking` block\"}}")); ok {
		t.Error("a request that was sent as it came is tried again")
	}
}

func TestEqualImagesCountOnceThoughTheyAreReadAgain(t *testing.T) {
	r := newRig(t)
	r.use(proxied(func(d *router.Document) { d.Profiles[0].Limits.Request.MaxDistinctImages = 1 }))
	part := func(shade byte) string {
		data := append(square(t, 40, shade), make([]byte, 100_000)...) // more than a head
		return `{"type":"image_url","image_url":{"url":"` + pngURL(data) + `"}}`
	}
	chat := func(parts ...string) string {
		return `{"model":"see","messages":[{"role":"user","content":[` + strings.Join(parts, ",") + `]}]}`
	}
	if sent, p := r.prepare(chat(part(1), part(1))); sent != chat(part(1), part(1)) || len(p.Record.Decisions) != 2 {
		t.Error("two of the same are two")
	}
	if f := r.unprepared(chat(part(1), part(2))); f.Reason != "TooManyImages" {
		t.Errorf("fault %+v", f)
	}
}
