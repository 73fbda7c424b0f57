// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// ofSee edits the model "see", and makes it the default.
func ofSee(edit func(*router.Document, *router.Model)) func(*router.Document) {
	return func(d *router.Document) {
		d.Profiles[0].DefaultModel = "models@default/see"
		edit(d, &d.Providers[0].Models[1])
	}
}

// sides asks for a PNG of that size that holds no picture.
func sides(width, height uint32) func(*rig) engine.Request {
	return func(r *rig) engine.Request {
		return engine.Request{Path: r.file(fmt.Sprintf("%d-%d.png", width, height), pngHeader(width, height)), Prompt: "what"}
	}
}

func TestALookGoesThroughTheChainOfPreflight(t *testing.T) {
	moving := []byte("GIF89a\x08\x00\x08\x00\x00\x00\x00" + strings.Repeat("\x2c\x00\x00\x00\x00\x08\x00\x08\x00\x00\x02\x01\x00\x00", 2) + ";")
	for name, tc := range map[string]struct {
		edit   func(*router.Document, *router.Model)
		ask    func(*rig) engine.Request
		kind   fault.Kind
		reason string
		says   []string
	}{
		"a side that the vendor of the model does not take": {
			edit: func(_ *router.Document, m *router.Model) { m.Name = "claude-opus-4-7" }, ask: sides(8001, 10),
			kind: fault.BudgetExceeded, reason: "ImageTooLarge", says: []string{"the image is 8001 x 10 pixels", "the vendor anthropic publishes maxSide 8000", "https://"},
		},
		"the same, where the provider tells the family of a name that says nothing": {
			edit: func(_ *router.Document, m *router.Model) { m.Family = "claude-high" }, ask: sides(8001, 10),
			kind: fault.BudgetExceeded, reason: "ImageTooLarge", says: []string{"the vendor anthropic"},
		},
		"an animation where the vendor takes stills": {
			edit: func(_ *router.Document, m *router.Model) { m.Name = "gpt-5.4" },
			ask:  func(r *rig) engine.Request { return engine.Request{Path: r.file("a.gif", moving), Prompt: "what"} },
			kind: fault.InvalidToolInput, reason: "AnimationNotAccepted", says: []string{"the image is animated", "the vendor openai"},
		},
		"an image that alone costs more than the window": {
			edit: func(_ *router.Document, m *router.Model) { m.ContextWindowTokens = 500 }, ask: sides(1000, 1000),
			kind: fault.BudgetExceeded, reason: "ContextWindowExceeded", says: []string{"the image alone costs about", "models@default/see", "contextWindowTokens 500"},
		},
		"an image that costs more than the policy allows": {
			edit: func(d *router.Document, _ *router.Model) { d.Profiles[0].Limits.Request.MaxImageTokens = 500 }, ask: sides(1000, 1000),
			kind: fault.BudgetExceeded, reason: "TooManyImageTokens", says: []string{"the image costs about", "limits.request.maxImageTokens 500"},
		},
		"a size that the rules of the family reject": {
			edit: func(_ *router.Document, m *router.Model) { m.Name = "qwen2.5-vl-72b-instruct" }, ask: sides(4000, 10),
			kind: fault.BudgetExceeded, reason: "ImageCostsTooMuch", says: []string{"aspect ratio"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(ofSee(func(d *router.Document, m *router.Model) {
				tc.edit(d, m)
				d.Profiles[0].DefaultModel = "models@default/" + m.Name
			}))
			f := r.refused(tc.ask(r), tc.kind, tc.reason)
			for _, text := range tc.says {
				if !strings.Contains(f.fault.Message, text) {
					t.Errorf("message %q does not say %q", f.fault.Message, text)
				}
			}
			if _, named := f.fault.Details["image"]; named || f.fault.RecoveryHint == "" || f.result.VisualReference == nil || f.result.VisionSelection == nil {
				t.Errorf("fault %+v beside %+v", f.fault, f.result)
			}
			if field := f.fault.Details["field"]; (field == "path") != (tc.kind == fault.InvalidToolInput) {
				t.Errorf("details.field is %v", field)
			}
			r.wantCalls(0)
		})
	}
}

// TestTheOrientationOfALookCounts has a photograph that costs Mistral's models
// 814 tokens upright and 828 lying.
func TestTheOrientationOfALookCounts(t *testing.T) {
	photo := func(orientation byte) []byte {
		exif := "\xff\xe1\x00\x22Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string([]byte{orientation}) + "\x00\x00\x00\x00\x00\x00"
		frame := "\xff\xc0\x00\x11\x08\x02\x58\x03\xe8\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01"
		return []byte("\xff\xd8" + exif + frame + "\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\xff\xd9")
	}
	r := newRig(t)
	r.use(ofSee(func(d *router.Document, m *router.Model) {
		m.Family, d.Profiles[0].Limits.Request.MaxImageTokens = "mistral", 820
	}))
	r.view(engine.Request{Path: r.file("upright.jpg", photo(1)), Prompt: "what"})
	r.refused(engine.Request{Path: r.file("lying.jpg", photo(6)), Prompt: "what"}, fault.BudgetExceeded, "TooManyImageTokens")
	r.wantCalls(1)
}

func TestTextNeverRefusesALook(t *testing.T) {
	r := newRig(t)
	r.use(ofSee(func(_ *router.Document, m *router.Model) { m.ContextWindowTokens = 2000 }))
	req := small(r)
	req.Prompt = strings.Repeat("look closely ", 2000)
	r.view(req)
	r.wantCalls(1)
}

// TestEachFallbackIsJudgedByItsOwnRules has an image that the default takes, the
// first fallback not, and the second again.
func TestEachFallbackIsJudgedByItsOwnRules(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) {
		d.Providers[0].Models = append(d.Providers[0].Models, router.Model{Name: "claude-opus-4-7", ImageInput: true})
		d.Profiles[0].DefaultModel = "models@default/see"
		d.Profiles[0].FallbackModels = []string{"models@default/claude-opus-4-7", "models@default/see-too"}
	})
	r.upstream.answerWith(onlyAnswers(r.upstream, "see-too"))
	result := r.view(sides(8001, 10)(r))
	var got []string
	for _, c := range result.VisionSelection.Candidates {
		got = append(got, c.Model+" "+string(c.Reason))
	}
	want := "see observation_failed, claude-opus-4-7 image_over_model_limits, see-too model_advertises_image_input"
	if strings.Join(got, ", ") != want {
		t.Errorf("candidates %q, want %s", got, want)
	}
}

// askedFor is the output limit of the last request; 0 when there is none.
func (r *rig) askedFor() int64 {
	r.t.Helper()
	var body struct {
		A int64 `json:"max_tokens"`
		B int64 `json:"max_completion_tokens"`
	}
	if err := json.Unmarshal(*r.upstream.last.Load(), &body); err != nil {
		r.t.Fatal(err)
	}
	return max(body.A, body.B)
}

func TestTheReplyIsClampedToWhatTheWindowLeaves(t *testing.T) {
	image := func(width, height int) int64 {
		e, err := tokens.Find("see", "").Estimate(tokens.Image{Width: width, Height: height})
		if err != nil {
			t.Fatal(err)
		}
		return e.Total()
	}
	large := image(3000, 3000)
	if large < 4000 {
		t.Fatalf("the large image costs only %d tokens", large)
	}
	for name, tc := range map[string]struct {
		window, output int64
		width, height  uint32
		least, most    int64
	}{
		"an unknown window clamps nothing":             {0, 100_000, 3000, 3000, 16384, 16384},
		"a large window clamps nothing":                {200_000, 100_000, 3000, 3000, 16384, 16384},
		"what is left after text, image and headroom":  {large + 10_000, 100_000, 3000, 3000, 3000, 5904},
		"a small image leaves more of the same window": {large + 10_000, 100_000, 8, 8, 5905, 16384},
		"a small window keeps little free":             {8000, 100_000, 8, 8, 2500, 5900},
		"a limit that is not told is not made up":      {large + 10_000, 0, 3000, 3000, 0, 0},
		"a limit that fits stays":                      {large + 10_000, 1000, 3000, 3000, 1000, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(ofSee(func(_ *router.Document, m *router.Model) {
				m.ContextWindowTokens, m.MaxOutputTokens = tc.window, tc.output
			}))
			r.view(sides(tc.width, tc.height)(r))
			if got := r.askedFor(); got < tc.least || got > tc.most {
				t.Errorf("%d tokens were asked for, want %d to %d", got, tc.least, tc.most)
			}
		})
	}
}

// TestALongRequestIsMeasuredAsItIsSent has a vendor's limit on requests, which
// counts what surrounds the image.
func TestALongRequestIsMeasuredAsItIsSent(t *testing.T) {
	r := newRig(t)
	const limit = 32_000_000 // Anthropic's
	r.use(ofSee(func(d *router.Document, m *router.Model) {
		m.Name, m.Limits = "claude-opus-4-7", &router.ModelLimits{MaxImageBytes: 1 << 30}
		d.Profiles[0].DefaultModel = "models@default/" + m.Name
		d.Profiles[0].Limits.Image.MaxBytes, d.Profiles[0].Limits.Request.MaxTotalImageBytes = 64<<20, 64<<20
	}))
	look := func(n int) engine.Request {
		return engine.Request{Path: r.file("a.png", append(pngHeader(8, 8), bytes.Repeat([]byte{0}, n-33)...)), Prompt: "what"}
	}
	f := r.refused(look(limit/4*3), fault.BudgetExceeded, "RequestTooLarge")
	if !strings.Contains(f.fault.Message, "the request as sent has 30.5 MiB") || !strings.Contains(f.fault.Message, "the vendor anthropic publishes maxRequestBytes") || f.fault.Status() != 400 {
		t.Errorf("fault %+v, status %d", f.fault, f.fault.Status())
	}
	req := look((limit - 20_000) / 4 * 3)
	r.view(req)
	req.Prompt = strings.Repeat(`"`, 8000) // twice as long once it is JSON
	r.refused(req, fault.BudgetExceeded, "RequestTooLarge")
}

// onlyAnswers has every model of an upstream but one fail in a way that may pass.
func onlyAnswers(u *upstream, model string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !bytes.Contains(*u.last.Load(), []byte(`"model":"`+model+`"`)) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		u.look(w)
	}
}
