// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
)

// list answers with all models that requests of the dialect may name, on one page.
func (x *trip) list() {
	served, err := x.Models(x.call.dialect)
	if err != nil {
		x.fail(err)
		return
	}
	names := namesOf(served)
	switch x.call.dialect {
	case message.AnthropicMessages:
		x.answer(anthropicList(served, names))
	case message.GeminiContents:
		x.answer(geminiList(served, names))
	default:
		x.answer(openAIList(served, names))
	}
}

// describe answers with one model.
func (x *trip) describe() {
	served, err := x.Models(x.call.dialect)
	if err != nil {
		x.fail(err)
		return
	}
	i := indexOf(served, x.call.model)
	if i < 0 {
		f := fault.New(fault.InvalidToolInput, "ModelNotFound", "the model %s is not served here", named(x.call.model)).
			With("field", "model").Hint("List the models to see what is served.")
		f.HTTPStatus = http.StatusNotFound
		x.fail(f)
		return
	}
	switch x.call.dialect {
	case message.AnthropicMessages:
		x.answer(anthropicModelOf(&served[i], x.call.model))
	case message.GeminiContents:
		x.answer(geminiModelOf(&served[i], x.call.model))
	default:
		x.answer(openAIModelOf(&served[i], x.call.model))
	}
}

// namesOf are the names under which models are listed: their own, and the route
// for each after the first of a name, which the plain name does not lead to.
func namesOf(served []engine.Served) []string {
	names, taken := make([]string, len(served)), make(map[string]bool, len(served))
	for i := range served {
		names[i] = served[i].Name
		if taken[names[i]] {
			names[i] = served[i].Route.String()
		}
		taken[names[i]] = true
	}
	return names
}

// indexOf finds a model by its own name or its route; -1 when none is it.
func indexOf(served []engine.Served, name string) int {
	for i := range served {
		if served[i].Name == name {
			return i
		}
	}
	for i := range served {
		if served[i].Route.String() == name {
			return i
		}
	}
	return -1
}

// answer answers with JSON of the runtime's own.
func (x *trip) answer(v any) {
	body, err := json.Marshal(v)
	if err != nil {
		x.fail(err)
		return
	}
	x.Result = Answered
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = x.w.Write(body) // a client that is gone needs none
}

// openAIModel is OpenAI's model object. When a model was made nobody here knows.
type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

func openAIModelOf(s *engine.Served, name string) openAIModel {
	return openAIModel{ID: name, Object: "model", OwnedBy: s.Provider}
}

func openAIList(served []engine.Served, names []string) any {
	data := make([]openAIModel, len(served))
	for i := range served {
		data[i] = openAIModelOf(&served[i], names[i])
	}
	return struct {
		Object string        `json:"object"`
		Data   []openAIModel `json:"data"`
	}{"list", data}
}

// anthropicModel is Anthropic's ModelInfo. Limits that nobody declared are 0, as
// the vendor's API has them for models without.
type anthropicModel struct {
	Type           string `json:"type"`
	ID             string `json:"id"`
	DisplayName    string `json:"display_name"`
	CreatedAt      string `json:"created_at"`
	MaxInputTokens int64  `json:"max_input_tokens"`
	MaxTokens      int64  `json:"max_tokens"`
}

// unknownTime is what the vendor gives where the release is not known.
const unknownTime = "1970-01-01T00:00:00Z"

func anthropicModelOf(s *engine.Served, name string) anthropicModel {
	m := anthropicModel{Type: "model", ID: name, DisplayName: s.Name, CreatedAt: unknownTime}
	if s.Model != nil {
		m.MaxInputTokens, m.MaxTokens = s.Model.ContextWindowTokens, s.Model.MaxOutputTokens
	}
	return m
}

func anthropicList(served []engine.Served, names []string) any {
	data := make([]anthropicModel, len(served))
	for i := range served {
		data[i] = anthropicModelOf(&served[i], names[i])
	}
	var first, last *string
	if len(names) > 0 {
		first, last = &names[0], &names[len(names)-1]
	}
	return struct {
		Data    []anthropicModel `json:"data"`
		HasMore bool             `json:"has_more"`
		FirstID *string          `json:"first_id"`
		LastID  *string          `json:"last_id"`
	}{data, false, first, last}
}

// geminiModel is Google's Model. Limits that nobody declared are left out.
type geminiModel struct {
	Name             string   `json:"name"`
	Version          string   `json:"version"`
	DisplayName      string   `json:"displayName"`
	InputTokenLimit  int64    `json:"inputTokenLimit,omitempty"`
	OutputTokenLimit int64    `json:"outputTokenLimit,omitempty"`
	Methods          []string `json:"supportedGenerationMethods"`
}

// geminiMethods are what the proxy serves of a model; streaming goes without
// saying, as in the vendor's own list.
var geminiMethods = []string{"generateContent", "countTokens"}

func geminiModelOf(s *engine.Served, name string) geminiModel {
	m := geminiModel{Name: name, DisplayName: s.Name, Methods: geminiMethods}
	if !strings.HasPrefix(name, models) {
		m.Name = models + name
	}
	if s.Model != nil {
		m.InputTokenLimit, m.OutputTokenLimit = s.Model.ContextWindowTokens, s.Model.MaxOutputTokens
	}
	return m
}

func geminiList(served []engine.Served, names []string) any {
	data := make([]geminiModel, len(served))
	for i := range served {
		data[i] = geminiModelOf(&served[i], names[i])
	}
	return struct {
		Models []geminiModel `json:"models"`
	}{data}
}
