// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// at is a request to a vendor's model, under a policy that lets 1000 images pass.
func at(in preflight.Input, transport, host, model string, edit ...func(*router.Model)) preflight.Input {
	m := &router.Model{Name: model, ImageInput: true, Limits: &router.ModelLimits{}}
	for _, e := range edit {
		e(m)
	}
	in.Candidate = preflight.Candidate{Route: "own@default/" + model, Model: model, Transport: transport, Host: host, Declared: m}
	in.Limits.Request.MaxDistinctImages = 1000
	in.Limits.Request.MaxTotalImageBytes, in.Limits.Image.MaxBytes = 1<<30, 1<<30
	in.Limits.Image.MaxPixels = 1 << 40
	return in
}

func anthropic(in preflight.Input, edit ...func(*router.Model)) preflight.Input {
	return at(in, router.TransportAnthropicMessages, "api.anthropic.com", "claude-opus-4-7", edit...)
}

func openAI(in preflight.Input) preflight.Input {
	return at(in, router.TransportOpenAIChatCompletions, "api.openai.com", "gpt-5.5")
}

func deepSeek(in preflight.Input) preflight.Input {
	return at(in, router.TransportOpenAIChatCompletions, "api.deepseek.com", "deepseek-flash")
}

// shown puts images into tool results, one a turn, and asks about the last.
func shown(images ...preflight.Image) preflight.Input {
	turns := []said{human()}
	for _, img := range images {
		turns = append(turns, assistant(), results(img))
	}
	return request(turns...)
}

func TestAnthropicsRuleForManyImages(t *testing.T) {
	wide := sized("wide", 2001, 100)
	small := pictures("p", 30)
	middle := func(n int) []preflight.Image {
		return append(append(append([]preflight.Image{}, small[:5]...), wide), small[5:n-1]...)
	}
	for name, tc := range map[string]struct {
		in   preflight.Input
		left string
	}{
		"20 images, one of 2001 px in history, are all admitted":                         {anthropic(shown(middle(20)...)), ""},
		"of 21 images, the one of 2001 px in history is left out":                        {anthropic(shown(middle(21)...)), "12.0"},
		"of 21 images, each of 2000 px, none is left out":                                {anthropic(shown(append(small[:20:20], sized("edge", 2000, 2000))...)), ""},
		"of 21 images, the last of 2001 px is what is asked about: older ones make room": {anthropic(shown(append(small[:20:20], wide)...)), "2.0"},
		"duplicates count": {anthropic(shown(append([]preflight.Image{wide}, repeat(small[0], 20)...)...)), "2.0"},
		"behind a gateway, a model of the vendor's is held to it": {at(shown(middle(21)...), router.TransportOpenAIChatCompletions, "gateway.svc", "claude-opus-4-7"), "12.0"},
		"a side that the provider declares leaves the rule":       {anthropic(shown(middle(21)...), func(m *router.Model) { m.Limits.MaxImageSide = 7000 }), "12.0"},
	} {
		t.Run(name, func(t *testing.T) {
			v := preflight.Review(tc.in)
			if !v.Allowed || left(v) != tc.left {
				t.Fatalf("allowed %t, left out %q; want %q: %v", v.Allowed, left(v), tc.left, v.Refusal)
			}
			for _, d := range v.Decisions {
				if d.Outcome == preflight.Degraded {
					contains(t, d.Message, "21 images", "side of more than 2000 pixels", "https://platform.claude.com/")
				}
			}
		})
	}
	v := preflight.Review(anthropic(request(human(append(small[:20:20], wide)...))))
	if v.Allowed || v.Refusal.Reason != preflight.ReasonSideAmongMany {
		t.Fatalf("21 required images, one of 2001 px: allowed %t, %v", v.Allowed, v.Refusal)
	}
	contains(t, v.Refusal.Message, "21 required images", "2000 pixels", "more than 20 images", "the vendor anthropic")
}

func repeat(img preflight.Image, n int) []preflight.Image {
	list := make([]preflight.Image, n)
	for i := range list {
		list[i] = img
	}
	return list
}

func TestLimitsOfVendors(t *testing.T) {
	still := typed("image/gif")
	moving := picture("a", kib)
	moving.MediaType, moving.Animated = "image/gif", true
	remote := picture("a", 0)
	remote.Source, remote.Base64Bytes = "url", 0
	webp := typed("image/webp")
	movingWebP := webp
	movingWebP.Animated = true
	known := func(m *router.Model) { m.ContextWindowTokens = 200_000 }
	for name, tc := range map[string]struct {
		in     preflight.Input
		reason string // "" when it is admitted
		says   []string
	}{
		"a side of 8000 px":                      {anthropic(request(human(sized("a", 8000, 10)))), "", nil},
		"a side of 8001 px":                      {anthropic(request(human(sized("a", 8001, 10)))), preflight.ReasonSide, []string{"8001 x 10", "the vendor anthropic publishes maxSide 8000", "https://"}},
		"7 864 320 bytes are 10 MiB in base64":   {anthropic(request(human(picture("a", 7_864_320)))), "", nil},
		"one byte more is over 10 MiB in base64": {anthropic(request(human(picture("a", 7_864_321)))), preflight.ReasonBytes, []string{"maxImageBase64Bytes 10 MiB (10485760 bytes)"}},
		"5 MiB in base64 elsewhere": {
			at(request(human(picture("a", 3_932_161))), router.TransportAnthropicMessages, "bedrock-runtime.us-east-1.amazonaws.com", "anthropic.claude-opus-4-7"),
			preflight.ReasonBytes, []string{"the vendor bedrock-claude", "5 MiB (5242880 bytes)"},
		},
		"bytes that the provider declares replace the vendor's": {
			anthropic(request(human(picture("a", 7_864_321))), func(m *router.Model) { m.Limits.MaxImageBytes = 20 * mib }), "", nil,
		},
		"101 images of a model with a window of 200 000": {anthropic(request(human(pictures("p", 101)...)), known), preflight.ReasonImages, []string{"101 required images", "maxImages 100"}},
		"101 images of a model with an unknown window":   {anthropic(request(human(pictures("p", 101)...))), "", nil},
		"an animated GIF where stills are taken":         {openAI(request(human(moving))), preflight.ReasonAnimated, []string{"is animated", "the vendor openai"}},
		"a still GIF where stills are taken":             {openAI(request(human(still))), "", nil},
		"an animated GIF where the first frame is shown": {anthropic(request(human(moving))), "", []string{"1 of the images are animated", "the first frame alone"}},
		"a type that the vendor leaves out":              {at(request(human(webp)), router.TransportOpenAIChatCompletions, "api.x.ai", "grok-4"), preflight.ReasonMediaType, []string{"image/webp, which the vendor xai does not accept"}},
		"a type that the provider declares": {
			at(request(human(webp)), router.TransportOpenAIChatCompletions, "api.x.ai", "grok-4", func(m *router.Model) { m.Limits.MediaTypes = []string{"image/webp"} }), "", nil,
		},
		"a type that the vendor leaves out, where the provider only adds another": {
			at(request(human(webp)), router.TransportOpenAIChatCompletions, "api.x.ai", "grok-4", func(m *router.Model) { m.Limits.MediaTypes = []string{"image/heic"} }),
			preflight.ReasonMediaType, []string{"image/webp, which the vendor xai does not accept"},
		},
		"a type that the provider adds to the vendor's": {
			at(request(human(typed("image/heic"))), router.TransportOpenAIChatCompletions, "api.x.ai", "grok-4", func(m *router.Model) { m.Limits.MediaTypes = []string{"image/heic"} }), "", nil,
		},
		"a family that the provider declares of a name that says nothing": {
			at(request(human(sized("a", 8001, 10))), router.TransportOpenAIChatCompletions, "gateway.svc", "eyes", func(m *router.Model) { m.Family = "claude-high" }),
			preflight.ReasonSide, []string{"the vendor anthropic publishes maxSide 8000"},
		},
		"an animation of another type than the vendor refuses": {
			at(request(human(movingWebP)), router.TransportOpenAIChatCompletions, "api.openai.com", "gpt-5.5"), "", nil,
		},
		"14 images, one of 4097 px, where 15 have another limit": {deepSeek(request(human(append(pictures("p", 13), sized("w", 4097, 10))...))), "", nil},
		"15 images, one of 4097 px": {
			deepSeek(request(human(append(pictures("p", 14), sized("w", 4097, 10))...))), preflight.ReasonSideAmongMany, []string{"15 required images", "4096 pixels", "the vendor deepseek"},
		},
		"15 images, one of 4096 px": {deepSeek(request(human(append(pictures("p", 14), sized("w", 4096, 10))...))), "", nil},
		"a URL where only bytes are taken": {
			at(request(human(remote)), router.TransportOpenAIChatCompletions, "ollama.team.svc:11434", "qwen3-vl"), preflight.ReasonSource, []string{"is given as url", "the vendor ollama"},
		},
		"an area that the vendor does not take": {
			at(request(human(sized("a", 5761, 5760))), router.TransportOpenAIChatCompletions, "api.groq.com", "llama-4"), preflight.ReasonPixels, []string{"33183360 pixels", "33177600"},
		},
		"the total of bytes, each occurrence counted": {
			at(request(human(repeat(picture("a", 5*mib), 4)...)), router.TransportOpenAIChatCompletions, "api.cohere.com", "command-a-vision"),
			preflight.ReasonTotalBytes, []string{"20 MiB (20971520 bytes)", "each occurrence counted", "20000000 bytes"},
		},
		"the total of base64, each occurrence counted": {
			at(request(human(repeat(picture("a", 4*mib), 2)...)), router.TransportOpenAIChatCompletions, "api.fireworks.ai", "some-vl"),
			preflight.ReasonTotalBytes, []string{"as sent (base64)", "10000000 bytes"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := preflight.Review(tc.in)
			if tc.reason == "" {
				if !v.Allowed {
					t.Errorf("refused: %v", v.Refusal)
				}
				contains(t, fmt.Sprint(v.Warnings), tc.says...)
				return
			}
			if v.Allowed || v.Refusal.Reason != tc.reason || v.Refusal.RecoveryHint == "" {
				t.Fatalf("allowed %t: %+v", v.Allowed, v.Refusal)
			}
			contains(t, v.Refusal.Message, tc.says...)
		})
	}
}

func TestABodyOverTheVendorsLimit(t *testing.T) {
	past := shown(picture("a", 6*mib), picture("b", 6*mib), picture("c", 6*mib), picture("d", 6*mib))
	past.BodyBytes = 40_000_000
	v := preflight.Review(anthropic(past))
	if !v.Allowed || left(v) != "2.0" || v.Decisions[0].Reason != preflight.ReasonBody {
		t.Errorf("allowed %t, left out %q: %v", v.Allowed, left(v), v.Refusal)
	}
	text := request(human())
	text.BodyBytes = 32_000_000
	if v := preflight.Review(anthropic(text)); !v.Allowed {
		t.Errorf("a body of exactly 32 MB: %v", v.Refusal)
	}
	text.BodyBytes++
	v = preflight.Review(anthropic(text))
	if v.Allowed || v.Refusal.Kind != fault.BudgetExceeded || v.Refusal.Status() != 413 {
		t.Errorf("a body of text alone: allowed %t, %v", v.Allowed, v.Refusal)
	}
	declared := anthropic(text, func(m *router.Model) { m.Limits.MaxRequestBytes = 33_000_000 })
	if v := preflight.Review(declared); !v.Allowed {
		t.Errorf("the provider declares more than the vendor: %v", v.Refusal)
	}
	google := at(text, router.TransportGeminiGenerateContent, "generativelanguage.googleapis.com", "gemini-3-pro")
	if v := preflight.Review(google); !v.Allowed || !strings.Contains(fmt.Sprint(v.Warnings), "may be refused") {
		t.Errorf("allowed %t, %q", v.Allowed, v.Warnings)
	}
}

func TestLimitsOfOneMessage(t *testing.T) {
	converse := func(in preflight.Input) preflight.Input {
		return at(in, router.TransportOpenAIChatCompletions, "bedrock-runtime.us-east-1.amazonaws.com", "some-vl")
	}
	v := preflight.Review(converse(request(human(pictures("p", 21)...))))
	if v.Allowed || v.Refusal.Reason != preflight.ReasonImagesInMessage {
		t.Fatalf("allowed %t: %v", v.Allowed, v.Refusal)
	}
	contains(t, v.Refusal.Message, "a message of the request holds 21 required images", "maxImagesPerMessage 20")
	v = preflight.Review(converse(request(human(pictures("p", 22)...), assistant(), human(pictures("q", 20)...), assistant(), human(pictures("r", 21)...), assistant(), human())))
	if !v.Allowed || left(v) != "0.0 0.1 4.0" {
		t.Errorf("allowed %t, left out %q: %v", v.Allowed, left(v), v.Refusal)
	}
}
