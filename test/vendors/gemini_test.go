// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

const (
	takesJSONSchema = "gemini-2.5-flash"
	takesSchema     = "gemini-2.0-flash"
)

func google(t *testing.T, s *server) *genai.Client {
	t.Helper()
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: s.url, APIVersion: "v1beta"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// generateContent is a request made of the SDK's types. The SDK has none for the
// whole of it: its client lays the parts out so.
type generateContent struct {
	Contents          []*genai.Content        `json:"contents,omitempty"`
	SystemInstruction *genai.Content          `json:"systemInstruction,omitempty"`
	GenerationConfig  *genai.GenerationConfig `json:"generationConfig,omitempty"`
}

// config is what the SDK's client takes beside the contents.
func (g generateContent) config() *genai.GenerateContentConfig {
	if g.SystemInstruction == nil && g.GenerationConfig == nil {
		return nil
	}
	config := &genai.GenerateContentConfig{SystemInstruction: g.SystemInstruction}
	if c := g.GenerationConfig; c != nil {
		config.MaxOutputTokens, config.ResponseMIMEType = c.MaxOutputTokens, c.ResponseMIMEType
		config.ResponseSchema, config.ResponseJsonSchema = c.ResponseSchema, c.ResponseJsonSchema
	}
	return config
}

func TestGeminiRequests(t *testing.T) {
	answer := geminiSays(t, genai.FinishReasonStop, &genai.Part{Text: "ok"})
	for name, req := range map[string]provider.Request{
		"plain": plain(takesJSONSchema), "with responseSchema": structured(takesSchema), "with responseJsonSchema": structured(takesJSONSchema),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			if got := observed(t, gemini.New(s.endpoint(t, "/v1beta")), req); got.Reason != "" {
				t.Fatal(got.Reason)
			}
			ours := s.last(t, 1)
			request := strictly[generateContent](t, ours.body)
			meansContent(t, request, req)

			if _, err := google(t, s).Models.GenerateContent(context.Background(), req.Model, request.Contents, request.config()); err != nil {
				t.Fatal(err)
			}
			// The SDK gives the system's text a role, which the API does not read.
			if request.SystemInstruction != nil {
				request.SystemInstruction.Role = genai.RoleUser
				ours.body = encoded(t, request)
			}
			sameCall(t, ours, s.last(t, 2), "Content-Type")
		})
	}
}

// meansContent compares the request with what was to be asked.
func meansContent(t *testing.T, request generateContent, req provider.Request) {
	t.Helper()
	if len(request.Contents) != 1 || request.Contents[0].Role != genai.RoleUser || len(request.Contents[0].Parts) != 2 {
		t.Fatalf("not one content of the user's with two parts: %+v", request.Contents)
	}
	parts := request.Contents[0].Parts
	if parts[0].Text != req.Prompt || parts[1].InlineData == nil || parts[1].InlineData.MIMEType != "image/png" {
		t.Fatalf("not the prompt and then the image: %+v", parts)
	}
	if !bytes.Equal(parts[1].InlineData.Data, picture.Data) {
		t.Errorf("the image is %q", parts[1].InlineData.Data)
	}
	config := request.GenerationConfig
	if req.Schema == nil {
		if config != nil || request.SystemInstruction != nil {
			t.Error("a plain look has a configuration or a system text")
		}
		return
	}
	if system := request.SystemInstruction; system == nil || len(system.Parts) != 1 || system.Parts[0].Text != req.Instructions {
		t.Error("the system text is not the instructions")
	}
	if config == nil || config.ResponseMIMEType != "application/json" || int64(config.MaxOutputTokens) != req.MaxOutputTokens {
		t.Fatalf("the configuration is %+v", config)
	}
	if req.Model == takesJSONSchema {
		if config.ResponseSchema != nil {
			t.Error("both forms of schema are sent")
		}
		sameJSON(t, lowered(t, req, lower.GeminiJSONSchema), encoded(t, config.ResponseJsonSchema))
		return
	}
	if config.ResponseJsonSchema != nil || config.ResponseSchema == nil || len(config.ResponseSchema.PropertyOrdering) != len(config.ResponseSchema.Properties) {
		t.Fatalf("the schema is %+v", config.ResponseSchema)
	}
	sameJSON(t, lowered(t, req, lower.GeminiSchema), encoded(t, config.ResponseSchema))
}

func lowered(t *testing.T, req provider.Request, to lower.Dialect) []byte {
	t.Helper()
	out, err := lower.Lower(req.Schema.JSON, to)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGeminiGoldenRequests(t *testing.T) {
	goldens(t, "gemini", func(t *testing.T, body []byte) {
		_ = strictly[generateContent](t, body)
	})
}

// geminiSays is a reply as the SDK writes it, with parts as its content.
func geminiSays(t *testing.T, reason genai.FinishReason, parts ...*genai.Part) []byte {
	t.Helper()
	return geminiAnswers(t, &genai.GenerateContentResponse{
		Candidates: []*genai.Candidate{{FinishReason: reason, Content: &genai.Content{Role: genai.RoleModel, Parts: parts}}},
	})
}

// geminiAnswers is a reply as the SDK writes it, with what was used.
func geminiAnswers(t *testing.T, reply *genai.GenerateContentResponse) []byte {
	t.Helper()
	reply.ModelVersion, reply.ResponseID = "gemini-2.5-flash-001", "r1"
	reply.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount: int32(counts.InputTokens), CandidatesTokenCount: 13, ThoughtsTokenCount: 20, TotalTokenCount: 1057,
		PromptTokensDetails: []*genai.ModalityTokenCount{{Modality: genai.MediaModalityImage, TokenCount: 258}},
	}
	return encoded(t, reply)
}

func TestGeminiReplies(t *testing.T) {
	thought := &genai.Part{Text: "I look.", Thought: true, ThoughtSignature: []byte("sig")}
	text := &genai.Part{Text: `{"a": "ü <b>"}`, ThoughtSignature: []byte("sig")}
	for name, tc := range map[string]struct {
		reply []byte
		want  string // the fault's reason; empty for a text
	}{
		"a text":                {geminiSays(t, genai.FinishReasonStop, text), ""},
		"a text after thought":  {geminiSays(t, genai.FinishReasonStop, thought, text), ""},
		"a text in pieces":      {geminiSays(t, genai.FinishReasonStop, &genai.Part{Text: `{"a":`}, &genai.Part{Text: `1}`}), ""},
		"a content of no role":  {geminiAnswers(t, &genai.GenerateContentResponse{Candidates: []*genai.Candidate{{Content: &genai.Content{Parts: []*genai.Part{text}}}}}), ""},
		"a reply cut off":       {geminiSays(t, genai.FinishReasonMaxTokens, text), "Truncated"},
		"a thought cut off":     {geminiSays(t, genai.FinishReasonMaxTokens), "Truncated"},
		"a reply for safety":    {geminiSays(t, genai.FinishReasonSafety), "Refused"},
		"a recitation":          {geminiSays(t, genai.FinishReasonRecitation), "Refused"},
		"a prohibited content":  {geminiSays(t, genai.FinishReasonProhibitedContent), "Refused"},
		"an unsafe image":       {geminiSays(t, genai.FinishReasonImageSafety), "Refused"},
		"a reply without parts": {geminiSays(t, genai.FinishReasonStop), "Empty"},
		"a candidate without content": {
			geminiAnswers(t, &genai.GenerateContentResponse{Candidates: []*genai.Candidate{{FinishReason: genai.FinishReasonStop}}}), "Empty",
		},
		"no candidate": {geminiAnswers(t, &genai.GenerateContentResponse{}), "Empty"},
		"a prompt that is blocked": {
			geminiAnswers(t, &genai.GenerateContentResponse{PromptFeedback: &genai.GenerateContentResponsePromptFeedback{BlockReason: genai.BlockedReasonSafety}}), "Refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.reply)
			read, err := google(t, s).Models.GenerateContent(context.Background(), "m", genai.Text("?"), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := reading{Reason: tc.want}
			if tc.want == "" {
				used := read.UsageMetadata
				want.Reply = provider.Reply{Text: read.Text(), Model: read.ModelVersion, Usage: provider.Usage{
					InputTokens: int64(used.PromptTokenCount), OutputTokens: int64(used.CandidatesTokenCount + used.ThoughtsTokenCount),
				}}
				if want.Reply.Usage != counts || want.Reply.Text == "" {
					t.Fatalf("the SDK reads %+v", want)
				}
			}
			if diff := cmp.Diff(want, observed(t, gemini.New(s.endpoint(t, "/v1beta")), plain("m"))); diff != "" {
				t.Errorf("(-theirs +ours):\n%s", diff)
			}
		})
	}
}

// wireModel is a model as the API writes it: the SDK's type, but for the one
// member that the SDK calls otherwise.
type wireModel struct {
	genai.Model
	SupportedActions           []string `json:"supportedActions,omitempty"`
	SupportedGenerationMethods []string `json:"supportedGenerationMethods"`
}

func TestGeminiModels(t *testing.T) {
	s := serve(t, encoded(t, map[string]any{"models": []wireModel{
		{Model: genai.Model{Name: "models/gemini-2.5-flash", Version: "001", InputTokenLimit: 1_048_576, OutputTokenLimit: 65_536}, SupportedGenerationMethods: []string{"generateContent", "countTokens"}},
		{Model: genai.Model{Name: "models/text-embedding-004", InputTokenLimit: 2048}, SupportedGenerationMethods: []string{"embedContent"}},
		{Model: genai.Model{Name: "models/gemini-3-pro", InputTokenLimit: 1_048_576, OutputTokenLimit: 65_536}, SupportedGenerationMethods: []string{"generateContent"}},
	}}))
	ours := listed(t, gemini.New(s.endpoint(t, "/v1beta")))
	first := s.last(t, 1)
	page, err := google(t, s).Models.List(context.Background(), &genai.ListModelsConfig{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var theirs []provider.Listed
	for _, m := range page.Items {
		if bytes.Contains(encoded(t, m.SupportedActions), []byte(`"generateContent"`)) {
			theirs = append(theirs, provider.Listed{
				Name: m.Name[len("models/"):], ContextWindowTokens: int64(m.InputTokenLimit), MaxOutputTokens: int64(m.OutputTokenLimit),
			})
		}
	}
	if diff := cmp.Diff(theirs, ours); diff != "" || len(ours) != 2 {
		t.Errorf("(-theirs +ours):\n%s", diff)
	}
	if second := s.last(t, 2); first.Method != second.Method || first.Path != second.Path {
		t.Errorf("we ask %s %s, they %s %s", first.Method, first.Path, second.Method, second.Path)
	}
}

// MarshalJSON writes the API's member alone; the embedded type would write itself.
func (m wireModel) MarshalJSON() ([]byte, error) {
	type model genai.Model
	return json.Marshal(struct {
		model
		SupportedGenerationMethods []string `json:"supportedGenerationMethods"`
	}{model(m.Model), m.SupportedGenerationMethods})
}
