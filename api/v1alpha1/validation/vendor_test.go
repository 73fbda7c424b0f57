// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// behind is a provider of one model at some endpoints, with these limits.
func behind(transport v1alpha1.Transport, model string, limits v1alpha1.ModelLimits, urls ...string) *v1alpha1.VisionProvider {
	p := goodProvider()
	p.Spec.Transport = transport
	p.Spec.Models = []v1alpha1.Model{{Name: model, ImageInput: ptr(true), Limits: &limits}}
	p.Spec.Endpoints = nil
	for _, u := range urls {
		p.Spec.Endpoints = append(p.Spec.Endpoints, v1alpha1.Endpoint{Name: "a", URL: u})
	}
	return p
}

func TestLimitsAboveTheVendorsAreWarnedOfWithTheSource(t *testing.T) {
	const (
		chat      = v1alpha1.TransportOpenAIChatCompletions
		messages  = v1alpha1.TransportAnthropicMessages
		anthropic = "https://api.anthropic.com"
		source    = "(https://platform.claude.com/docs/en/build-with-claude/vision)"
		at        = "spec.models[0].limits."
	)
	all := func(add int64) v1alpha1.ModelLimits {
		return v1alpha1.ModelLimits{MaxImages: ptr(600 + add), MaxImageBytes: ptr(10485760 + add), MaxImageSide: ptr(8000 + add), MaxRequestBytes: ptr(32000000 + add)}
	}
	small := func(window int64) func(*v1alpha1.VisionProvider) {
		return func(p *v1alpha1.VisionProvider) { p.Spec.Models[0].ContextWindowTokens = &window }
	}
	for _, c := range []struct {
		name     string
		provider *v1alpha1.VisionProvider
		edit     func(*v1alpha1.VisionProvider)
		want     []string
	}{
		{"the vendor's own", behind(messages, "claude-opus-4-7", all(0), anthropic), nil, nil},
		{"one more than each", behind(messages, "claude-opus-4-7", all(1), anthropic), nil, []string{
			at + "maxImages: 601 is above what anthropic accepts, 600 images " + source,
			at + "maxImageBytes: 10485761 is above what anthropic accepts, 10485760 bytes " + source,
			at + "maxImageSide: 8001 is above what anthropic accepts, 8000 px " + source,
			at + "maxRequestBytes: 32000001 is above what anthropic accepts, 32000000 bytes " + source,
		}},
		{"behind a gateway, by the model", behind(chat, "anthropic/claude-opus-4-7", v1alpha1.ModelLimits{MaxImages: ptr(int64(601))}, "https://gateway.example.com/v1"), nil,
			[]string{at + "maxImages: 601 is above what anthropic accepts, 600 images"}},
		{"a limit of small windows, for a small window", behind(messages, "claude-opus-4-7", v1alpha1.ModelLimits{MaxImages: ptr(int64(101))}, anthropic), small(200_000),
			[]string{at + "maxImages: 101 is above what anthropic accepts, 100 images"}},
		{"a limit of small windows, for a large window", behind(messages, "claude-opus-4-7", v1alpha1.ModelLimits{MaxImages: ptr(int64(101))}, anthropic), small(200_001), nil},
		{"a limit of small windows, for an unknown one", behind(messages, "claude-opus-4-7", v1alpha1.ModelLimits{MaxImages: ptr(int64(101))}, anthropic), nil, nil},
		{"a side that holds among many images alone", behind(messages, "claude-opus-4-7", v1alpha1.ModelLimits{MaxImageSide: ptr(int64(2001))}, anthropic), nil, nil},
		{"a vendor that counts before base64, at its limit", behind(chat, "pixtral-12b", v1alpha1.ModelLimits{MaxImageBytes: ptr(int64(13333336))}, "https://api.mistral.ai/v1"), nil, nil},
		{"a vendor that counts before base64, above it", behind(chat, "pixtral-12b", v1alpha1.ModelLimits{MaxImageBytes: ptr(int64(13333337))}, "https://api.mistral.ai/v1"), nil,
			[]string{at + "maxImageBytes: 13333337 is above what mistral accepts, 13333336 bytes in base64 (10000000 before it) ("}},
		{"types that the vendor does not take", behind(chat, "gpt-5.2", v1alpha1.ModelLimits{MediaTypes: []string{"image/png", "image/heic", "image/avif"}}, "https://api.openai.com/v1"), nil,
			[]string{at + "mediaTypes: openai does not take image/heic, image/avif, but image/png, image/jpeg, image/gif, image/webp ("}},
		{"types that it takes", behind(chat, "gpt-5.2", v1alpha1.ModelLimits{MediaTypes: []string{"image/png"}}, "https://api.openai.com/v1"), nil, nil},
		{"two endpoints of one vendor", behind(messages, "claude-opus-4-7", v1alpha1.ModelLimits{MaxImageSide: ptr(int64(9000))}, anthropic, "https://gateway.example.com"), nil,
			[]string{at + "maxImageSide: 9000"}},
		{"two endpoints of two vendors", behind(messages, "claude-opus-4-7", v1alpha1.ModelLimits{MaxImageBytes: ptr(int64(20000000))}, anthropic, "https://us-east5-aiplatform.googleapis.com/v1"), nil,
			[]string{at + "maxImageBytes: 20000000 is above what anthropic accepts, 10485760", at + "maxImageBytes: 20000000 is above what vertex-claude accepts, 5242880"}},
		{"an open model behind an unknown host", behind(chat, "Qwen/Qwen3-VL-8B", v1alpha1.ModelLimits{MaxImages: ptr(int64(10000))}, "https://models.example.com/v1"), nil, nil},
		{"a model that takes no images", behind(messages, "claude-opus-4-7", all(1), anthropic), func(p *v1alpha1.VisionProvider) {
			p.Spec.Models[0].ImageInput, p.Spec.Discovery = ptr(false), &v1alpha1.Discovery{}
		}, nil},
		{"a URL that does not parse, which is refused", behind(messages, "claude-opus-4-7", all(1), "https://[::1"), nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.edit != nil {
				c.edit(c.provider)
			}
			warned(t, ProviderWarnings(c.provider), c.want)
		})
	}
}

func TestAFamilyThatContradictsTheNameIsWarnedOfByField(t *testing.T) {
	p := behind(v1alpha1.TransportOpenAIChatCompletions, "gpt-4o", v1alpha1.ModelLimits{}, "https://api.openai.com/v1")
	p.Spec.Models[0].Family = "claude-high"
	warned(t, ProviderWarnings(p), []string{"spec.models[0].family: claude-high is not the family"})
}
