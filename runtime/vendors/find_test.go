// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"slices"
	"strings"
	"testing"
)

func TestTheVendorIsFoundByHostThenByModel(t *testing.T) {
	const chat, messages, gemini = "OpenAIChatCompletions", "AnthropicMessages", "GeminiGenerateContent"
	for _, c := range []struct {
		name, transport, host, model string
		vendor                       string
		by                           How
	}{
		{"OpenAI's host", chat, "api.openai.com", "gpt-4o", "openai", ByHost},
		{"with a port, in capitals, with a final dot", chat, "API.OpenAI.com.:443", "gpt-4o", "openai", ByHost},
		{"a region of it", chat, "eu.api.openai.com", "gpt-4o", "openai", ByHost},
		{"with a final dot and white space", chat, " api.openai.com. ", "mine", "openai", ByHost},
		{"a host with nothing where anything is asked for", chat, "bedrock-runtime.amazonaws.com", "mine", "", ByNothing},
		{"a host that only ends alike", chat, "evilapi.openai.com", "mine", "", ByNothing},
		{"an unheard-of model at OpenAI's", chat, "api.openai.com", "secret", "openai", ByHost},
		{"Azure", chat, "acme.openai.azure.com", "my-deployment", "azure-openai", ByHost},
		{"Azure AI Foundry", chat, "acme.services.ai.azure.com", "gpt-4o", "azure-foundry", ByHost},
		{"Claude at Azure AI Foundry", messages, "acme.services.ai.azure.com", "claude-opus-4-7", "anthropic", ByModel},
		{"Anthropic", messages, "api.anthropic.com", "claude-opus-4-7", "anthropic", ByHost},
		{"Claude on Bedrock", messages, "bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-opus-4-7-v1:0", "bedrock-claude", ByHost},
		{"Nova on Bedrock", chat, "bedrock-runtime.us-east-1.amazonaws.com", "amazon.nova-pro-v1:0", "amazon-nova", ByHost},
		{"another model on Bedrock", chat, "bedrock-runtime.eu-west-1.amazonaws.com", "us.meta.llama4-maverick-v1:0", "bedrock-converse", ByHost},
		{"Claude on Google Cloud", messages, "us-east5-aiplatform.googleapis.com", "claude-opus-4-1@20250805", "vertex-claude", ByHost},
		{"Gemini on Google Cloud", gemini, "aiplatform.googleapis.com", "gemini-2.5-pro", "vertex-gemini", ByHost},
		{"the Gemini API", gemini, "generativelanguage.googleapis.com", "models/gemini-3-pro", "gemini-api", ByHost},
		{"Mistral", chat, "api.mistral.ai", "mistral-large-latest", "mistral", ByHost},
		{"Groq", chat, "api.groq.com", "meta-llama/llama-4-scout", "groq", ByHost},
		{"Ollama by its port", chat, "localhost:11434", "gemma3", "ollama", ByHost},
		{"Ollama by IPv6 and port", chat, "[::1]:11434", "gemma3", "ollama", ByHost},
		{"LM Studio", chat, "127.0.0.1:1234", "gemma3", "lm-studio", ByHost},
		{"its port elsewhere", chat, "gateway.svc:1234", "gemma3", "", ByNothing},
		{"vLLM by its service", chat, "vllm.models.svc:8000", "Qwen/Qwen3-VL-8B", "vllm", ByHost},
		{"Claude behind a gateway", messages, "litellm.svc:4000", "anthropic/claude-sonnet-4.5", "anthropic", ByModel},
		{"GPT behind a gateway", chat, "litellm.svc:4000", "openai/gpt-5.4", "openai", ByModel},
		{"Gemini behind a gateway", chat, "litellm.svc:4000", "gemini/gemini-3-pro", "gemini-api", ByModel},
		{"an open model behind an unknown host", chat, "models.svc", "mistral-small-2506", "", ByNothing},
		{"nothing known", "", "", "", "", ByNothing},
		{"IPv6 without a port", chat, "fd00::11434", "gemma3", "", ByNothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Find(c.transport, c.host, c.model, "")
			if got.Vendor != c.vendor || got.By != c.by {
				t.Errorf("found %q by %s, want %q by %s", got.Vendor, got.By, c.vendor, c.by)
			}
		})
	}
}

func TestADeclaredFamilyTellsTheVendorWhereTheNameSaysNothing(t *testing.T) {
	const chat, messages = "OpenAIChatCompletions", "AnthropicMessages"
	for _, c := range []struct {
		name, host, model, family string
		vendor                    string
		by                        How
	}{
		{"a deployment behind a gateway", "litellm.svc:4000", "eyes", "claude-high", "anthropic", ByModel},
		{"a family by one of its models", "litellm.svc:4000", "eyes", "claude-opus-4-7", "anthropic", ByModel},
		{"a deployment on a host of several", "bedrock-runtime.us-east-1.amazonaws.com", "eyes", "claude-opus-4-7", "bedrock-claude", ByHost},
		{"a name that says another vendor", "litellm.svc:4000", "gpt-5.4", "claude-opus-4-7", "openai", ByModel},
		{"a name that says an open model", "models.svc", "mistral-small-2506", "claude-opus-4-7", "", ByNothing},
		{"a family that nobody knows", "litellm.svc:4000", "eyes", "acme-eyes", "", ByNothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Find(chat, c.host, c.model, c.family); got.Vendor != c.vendor || got.By != c.by {
				t.Errorf("found %q by %s, want %q by %s", got.Vendor, got.By, c.vendor, c.by)
			}
		})
	}
	if got := Find(messages, "api.anthropic.com", "eyes", "gpt-4o"); got.Vendor != "anthropic" {
		t.Errorf("a declared family moves Anthropic's own endpoint to %q", got.Vendor)
	}
}

func TestLimitsFollowTheModel(t *testing.T) {
	for _, c := range []struct {
		host, model string
		name        Name
		want        []int64
	}{
		{"api.anthropic.com", "claude-opus-4-7", MaxImageBase64Bytes, []int64{10485760}},
		{"bedrock-runtime.us-east-1.amazonaws.com", "anthropic.claude-opus-4-7", MaxImageBase64Bytes, []int64{5242880}},
		{"bedrock-runtime.us-east-1.amazonaws.com", "anthropic.claude-opus-4-7", MaxSide, []int64{8000, 2000}},
		{"bedrock-runtime.us-east-1.amazonaws.com", "us.amazon.nova-2-lite-v1:0", MaxImages, []int64{5}},
		{"bedrock-runtime.us-east-1.amazonaws.com", "us.amazon.nova-pro-v1:0", MaxImages, nil},
		{"aiplatform.googleapis.com", "gemini-3-pro-preview", MaxImages, []int64{900, 3000}},
		{"aiplatform.googleapis.com", "gemini-3-flash", MaxImages, []int64{3000}},
		{"aiplatform.googleapis.com", "gemini-2.5-pro", MaxImageBytes, []int64{7_000_000}},
		{"aiplatform.googleapis.com", "gemini-4-argon", MaxImageBytes, []int64{256_000_000}},
	} {
		var got []int64
		for _, l := range Find("", c.host, c.model, "").All() {
			if l.Name == c.name {
				got = append(got, l.Value)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s at %s: %s is %v, want %v", c.model, c.host, c.name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s at %s: %s is %v, want %v", c.model, c.host, c.name, got, c.want)
			}
		}
	}
}

func TestAVendorThatExtendsAnotherReplacesWhatItNames(t *testing.T) {
	const limit = `"source":"s","confidence":"published"}`
	got, err := parse([]byte(`{"vendors":[
		{"name":"a","hosts":[],"limits":[{"name":"maxSide","value":10,` + limit + `,{"name":"maxSide","value":5,"fromImages":2,` + limit + `,{"name":"maxImages","value":3,` + limit + `]},
		{"name":"b","hosts":[],"extends":"a","limits":[{"name":"maxSide","value":7,` + limit + `]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var values []int64
	for _, l := range got[1].Limits {
		values = append(values, l.Value)
	}
	if !slices.Equal(values, []int64{5, 3, 7}) || len(got[0].Limits) != 3 {
		t.Errorf("b has the limits %v and a %d, want 5 (for many images), 3, 7 and 3", values, len(got[0].Limits))
	}
}

func TestABrokenTableIsRefused(t *testing.T) {
	const good = `{"vendors":[{"name":"a","hosts":["a.example"],"limits":[{"name":"maxImages","value":1,"source":"s","confidence":"published"}]}]}`
	if _, err := parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"no JSON":                     {`{"vendors"`, `"vendors"`},
		"an unheard-of field":         {`"hosts"`, `"x":1,"hosts"`},
		"an unheard-of name":          {`maxImages`, `maxImagination`},
		"no value":                    {`"value":1`, `"value":0`},
		"words for a number":          {`"value":1`, `"value":1,"words":["x"]`},
		"a number for words":          {`maxImages`, `mediaTypes`},
		"no source":                   {`"s"`, `""`},
		"a confidence of its own":     {`published`, `sure`},
		"no name":                     {`"a"`, `""`},
		"a base that is not there":    {`"hosts"`, `"extends":"b","hosts"`},
		"a family that is not there":  {`"hosts"`, `"families":["acme"],"hosts"`},
		"an alias for a family":       {`"hosts"`, `"families":["anthropic"],"hosts"`},
		"anywhere without families":   {`"hosts"`, `"anywhere":true,"hosts"`},
		"an animation that is unsaid": {`"maxImages","value":1`, `"animation","words":["played"]`},
		"a first frame as a refusal":  {`"maxImages","value":1`, `"animation","words":["firstFrame"]`},
	} {
		data := strings.Replace(good, edit[0], edit[1], 1)
		if _, err := parse([]byte(data)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := parse([]byte(good + "1")); err == nil {
		t.Error("something after the value is accepted")
	}
}

func FuzzFind(f *testing.F) {
	f.Add("AnthropicMessages", "api.anthropic.com:443", "claude-opus-4-7")
	f.Add("", "[::1]:11434", "x/")
	f.Add("", "bedrock-runtime..amazonaws.com", "/")
	f.Add("", ":", "")
	f.Fuzz(func(t *testing.T, transport, host, model string) {
		got := Find(transport, host, model, "")
		if (got.By == ByNothing) != (got.Vendor == "") || got.By == ByNothing && len(got.All()) > 0 {
			t.Fatalf("found %q by %q with %d limits", got.Vendor, got.By, len(got.All()))
		}
		for _, l := range got.All() {
			if l.Source == "" || l.String() == "" {
				t.Fatalf("%+v", l)
			}
		}
	})
}
