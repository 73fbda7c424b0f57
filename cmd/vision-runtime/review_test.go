// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// chat is a chat's body about an image of the world, by a model.
func (w *world) chat(model, name string) []byte {
	return fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"user","content":[{"type":"text","text":"a secret question"},{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`,
		model, base64.StdEncoding.EncodeToString(w.loose(name)))
}

// judgement reads the answer of a review.
func judgement(t *testing.T, a answer) *review.Response {
	t.Helper()
	var envelope struct{ Response *review.Response }
	if err := json.Unmarshal(a.body, &envelope); err != nil || a.status != http.StatusOK || envelope.Response == nil {
		t.Fatalf("status %d, %v: %s", a.status, err, a.body)
	}
	return envelope.Response
}

func TestAModelRequestIsReviewedInEitherFormAndNothingIsCalledOrLogged(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, log := w.start()
	seen := w.chat("eye-1", "a.png")
	for name, a := range map[string]answer{
		"raw":      post(t, s.url("/v1/review?path="+url.QueryEscape("/v1/chat/completions")+"&uid=7"), seen),
		"envelope": post(t, s.url("/v1/review"), fmt.Appendf(nil, `{"request":{"uid":"7","path":"/v1/chat/completions","body":%s}}`, seen)),
	} {
		if got := judgement(t, a); !got.Allowed || got.UID != "7" || len(got.Decisions) != 1 || got.Patch != nil {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	blind := post(t, s.url("/v1/review?dialect=openai-chat"), w.chat("lab@main/text-1", "a.png"))
	if got := judgement(t, blind); got.Allowed || got.Status.Code != http.StatusFailedDependency {
		t.Errorf("%s", blind.body)
	}
	history := fmt.Appendf(nil, `{"messages":[%s,{"role":"assistant","content":"x"},{"role":"user","content":"And?"}]}`,
		strings.TrimSuffix(strings.SplitN(string(w.chat("", "b.png")), `"messages":[`, 2)[1], "]}"))
	if got := judgement(t, post(t, s.url("/v1/review?dialect=openai-chat&model=text-1&patchTypes=ByteRanges"), history)); !got.Degraded() {
		t.Errorf("%+v", got)
	}
	if got := post(t, s.url("/v1/review"), []byte(`{}`)); got.status != http.StatusBadRequest {
		t.Errorf("status %d", got.status)
	}
	if n := w.upstream.calls(); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
	metrics := string(get(t, "http://"+s.healthAt.String()+"/metrics").body)
	for _, line := range []string{`{outcome="allowed"} 2`, `{outcome="denied"} 1`, `{outcome="degraded"} 1`, `{outcome="invalid_tool_input"} 1`} {
		if !strings.Contains(metrics, "vision_review_requests_total"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if text := log.String(); strings.Contains(text, "secret question") || strings.Contains(text, "iVBOR") ||
		!strings.Contains(text, `"msg":"review answered","outcome":"denied"`) || !strings.Contains(text, "ModelLacksImageInput") {
		t.Errorf("the log is %s", text)
	}
}

func TestAGatewayPutsInWhatTheProxyWould(t *testing.T) {
	w := newWorld(t)
	w.publish(withProxy)
	s, log := w.start()
	body := fmt.Appendf(nil, `{"model":"eye-1","messages":[{"role":"user","content":"What?"},{"role":"assistant","tool_calls":[{"id":"call_7f3kq92mzx5t","type":"function","function":{"name":"view_image","arguments":%q}}]},{"role":"tool","tool_call_id":"call_7f3kq92mzx5t","content":"read"}]}`,
		fmt.Sprintf(`{"path":%q}`, w.picture("a.png")))
	asked := post(t, s.url("/v1/review?operation=Inject&path=/v1/chat/completions"), body)
	got := judgement(t, asked)
	var edits []review.Edit
	if err := json.Unmarshal(got.Patch, &edits); err != nil || !got.Allowed || got.PatchType != review.ByteRanges || len(edits) == 0 {
		t.Fatalf("%v: %s", err, asked.body)
	}
	patched := string(body)
	for _, e := range edits {
		patched = patched[:e.Offset] + e.Text + patched[e.Offset+e.Length:]
	}
	if sent := post(t, s.url("/openai/v1/chat/completions"), body); sent.status != http.StatusOK {
		t.Fatalf("status %d: %s", sent.status, sent.body)
	}
	if went := string(w.upstream.bodies[0]); went != patched || strings.Count(went, "data:image/png;base64,") != 1 {
		t.Errorf("the proxy sent\n%s\nand the review makes\n%s", went, patched)
	}
	if n := w.upstream.calls(); n != 1 {
		t.Errorf("the model was called %d times", n)
	}
	if text := log.String(); strings.Contains(text, "iVBOR") || strings.Count(text, `"msg":"images shown"`) != 2 {
		t.Errorf("the log is %s", text)
	}
	if got := post(t, s.url("/v1/review?operation=Inject&path=/v1/chat/completions&patchTypes=JSONPatch"), body); got.status != http.StatusBadRequest || got.fault(t)["reason"] != "PatchTypeUnsupported" {
		t.Errorf("status %d, %s", got.status, got.body)
	}
}

func TestReviewsFollowTheRouter(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start()
	body := w.chat("eye-1", "a.png")
	if got := post(t, s.url("/v1/review?dialect=openai-chat"), body); got.status != http.StatusServiceUnavailable || got.fault(t)["reason"] != "NoRouter" {
		t.Errorf("without a router: status %d, %s", got.status, got.body)
	}
	w.publish(func(d *router.Document) { d.Profiles[0].Limits.Image.MaxPixels = 10 })
	eventually(t, "the router is read", func() bool { return s.app.engine.ProfileFound() })
	if got := judgement(t, post(t, s.url("/v1/review?dialect=openai-chat"), body)); got.Allowed || got.Status.Reason != "TooManyPixels" {
		t.Errorf("%+v", got)
	}
}

// A Service for gateways listens on every address, and answers to its own names.
func TestGatewaysReachTheListenerByTheNamesThatAreAllowed(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	cfg, err := parseServe([]string{
		"--router", w.router, "--profile", "policy/default", "--listen", ":0", "--health-listen", "127.0.0.1:0", "--no-proxy",
		"--allowed-hosts", "vision-review,vision-review.team-a.svc", "--allowed-hosts", "10.1.2.3",
	}, nil)
	if err != nil || !cfg.noProxy {
		t.Fatalf("%+v, %v", cfg, err)
	}
	s, err := start(cfg, newLogger(&lines{}, cfg.logLevel))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.shutdown(time.Second) })
	at, body := s.agentsAt.String()[strings.LastIndexByte(s.agentsAt.String(), ':'):], w.chat("eye-1", "a.png")
	for host, want := range map[string]int{
		"vision-review": 200, "vision-review.team-a.svc": 200, "vision-review.team-a.svc:8080": 200, "10.1.2.3" + at: 200, "127.0.0.1" + at: 200,
		"vision-review.team-b.svc": 403, "127.0.0.1:1": 403, "10.1.2.4" + at: 403,
	} {
		r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1"+at+"/v1/review?dialect=openai-chat", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		if got := do(t, r); got.status != want {
			t.Errorf("%s: status %d; want %d: %s", host, got.status, want, got.body)
		}
	}
}
