// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/observe"
)

const (
	// MaxImages is how many images one request may hold.
	MaxImages = 16
	// schemaName is the name of the JSON Schema that this server answers to.
	schemaName = "visual_observation_v1"
)

// Format is how the answer is to be written.
type Format int

// The formats.
const (
	// PlainText is the recognised text alone.
	PlainText Format = iota
	// Object is the visual_observation.v1 object.
	Object
)

// Request is a chat completion request, read and checked.
type Request struct {
	Model string
	// Images are those of the user's messages, in order; at least one.
	Images []Image
	// TextBytes is the length of all texts, for the usage estimate.
	TextBytes int
	Format    Format
	// Schema is what an Object must obey; the zero Schema when none was given.
	Schema observe.Schema
	// MaxTokens limits the answer; 0 when not limited.
	MaxTokens    int
	Stream       bool
	IncludeUsage bool // in the stream's last chunk
}

// Image is the decoded data of one image part.
type Image struct {
	// Param is the path of its part, such as "messages[0].content[1].image_url".
	Param string
	Data  []byte
}

// The wire's shapes; members that this server has no use for are not read.
type (
	wireRequest struct {
		Model               string          `json:"model"`
		Messages            []wireMessage   `json:"messages"`
		ResponseFormat      *wireFormat     `json:"response_format"`
		MaxTokens           *int            `json:"max_tokens"`
		MaxCompletionTokens *int            `json:"max_completion_tokens"`
		N                   *int            `json:"n"`
		Stream              bool            `json:"stream"`
		StreamOptions       *wireStream     `json:"stream_options"`
		ToolChoice          json.RawMessage `json:"tool_choice"`
	}
	wireStream struct {
		IncludeUsage bool `json:"include_usage"`
	}
	wireMessage struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	wirePart struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL *struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	wireFormat struct {
		Type       string `json:"type"`
		JSONSchema *struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
)

// ParseRequest reads the body of POST /v1/chat/completions. Unknown members
// are let pass, as OpenAI's clients send many; what would change the meaning
// of the answer and cannot be done is refused. Its errors are *Error.
func ParseRequest(body []byte) (*Request, error) {
	var wire wireRequest
	if err := json.Unmarshal(body, &wire); err != nil {
		if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && typed.Field != "" {
			return nil, invalid(typed.Field, "invalid_type", "Invalid type for '"+typed.Field+"'.")
		}
		return nil, invalid("", "", "The body of the request could not be parsed as a JSON object.")
	}
	if wire.Model == "" {
		return nil, invalid("model", "missing_required_parameter", "You must provide a model parameter.")
	}
	if wire.N != nil && *wire.N != 1 {
		return nil, invalid("n", "unsupported_value", "This server gives exactly one choice: leave 'n' out or set it to 1.")
	}
	if err := checkToolChoice(wire.ToolChoice); err != nil {
		return nil, err
	}
	req := &Request{Model: wire.Model, Stream: wire.Stream, IncludeUsage: wire.StreamOptions != nil && wire.StreamOptions.IncludeUsage}
	var err error
	if req.MaxTokens, err = maxTokens(wire); err != nil {
		return nil, err
	}
	if req.Format, req.Schema, err = format(wire.ResponseFormat); err != nil {
		return nil, err
	}
	if err := req.readMessages(wire.Messages); err != nil {
		return nil, err
	}
	return req, nil
}

// checkToolChoice refuses an order to call a tool; tools that may be left
// uncalled are left uncalled.
func checkToolChoice(choice json.RawMessage) error {
	switch text := string(bytes.TrimSpace(choice)); text {
	case "", "null", `"none"`, `"auto"`:
		return nil
	}
	return invalid("tool_choice", "unsupported_value", "This server only reads text from images and cannot call tools: set 'tool_choice' to 'none' or 'auto', or leave it out.")
}

func maxTokens(wire wireRequest) (int, error) {
	param, limit := "max_completion_tokens", wire.MaxCompletionTokens
	if limit == nil {
		param, limit = "max_tokens", wire.MaxTokens
	}
	if limit == nil {
		return 0, nil
	}
	if *limit < 1 {
		return 0, invalid(param, "integer_below_min_value", "Invalid '"+param+"': it must be at least 1.")
	}
	return *limit, nil
}

// format says how to answer, or what this server can answer.
func format(wire *wireFormat) (Format, observe.Schema, error) {
	if wire == nil {
		return PlainText, observe.Schema{}, nil
	}
	switch wire.Type {
	case "text":
		return PlainText, observe.Schema{}, nil
	case "json_object":
		return Object, observe.Schema{}, nil
	case "json_schema":
	default:
		return 0, observe.Schema{}, invalid("response_format.type", "unsupported_value", "This server answers to 'response_format' of type 'text', 'json_object' and 'json_schema'.")
	}
	if wire.JSONSchema == nil {
		return 0, observe.Schema{}, invalid("response_format.json_schema", "missing_required_parameter", "Missing required parameter: 'response_format.json_schema'.")
	}
	var schema observe.Schema
	if raw := bytes.TrimSpace(wire.JSONSchema.Schema); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		var err error
		if schema, err = observe.ReadSchema(raw); err != nil {
			return 0, observe.Schema{}, invalid("response_format", "invalid_json_schema", "Invalid 'response_format.json_schema.schema': it is not a JSON object of at most 64 KiB.")
		}
	}
	if wire.JSONSchema.Name != schemaName && !schema.Describes() {
		return 0, observe.Schema{}, invalid("response_format", "unsupported_json_schema",
			"This server reads text from images and cannot fill in a schema of one's own. It answers to the JSON Schema named '"+schemaName+
				"', to any whose properties include "+strings.Join(observe.Keys(), ", ")+", to 'json_object' (the same object) and to 'text' (the recognised text).")
	}
	return Object, schema, nil
}

// readMessages collects texts' lengths and images.
func (r *Request) readMessages(messages []wireMessage) error {
	if len(messages) == 0 {
		return invalid("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	for i, m := range messages {
		param := fmt.Sprintf("messages[%d]", i)
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool", "function":
		default:
			return invalid(param+".role", "invalid_value", "Invalid '"+param+".role': expected system, developer, user, assistant or tool.")
		}
		if err := r.readContent(m, param); err != nil {
			return err
		}
	}
	if len(r.Images) == 0 {
		return invalid("messages", "missing_image", "This server only reads text from images: the user's messages hold none. Add a content part of type 'image_url' with a data: URL.")
	}
	return nil
}

// readContent reads null, a string, or a list of parts.
func (r *Request) readContent(m wireMessage, param string) error {
	param += ".content"
	content := bytes.TrimSpace(m.Content)
	if len(content) == 0 || bytes.Equal(content, []byte("null")) {
		return nil
	}
	if content[0] == '"' {
		var text string
		if err := json.Unmarshal(content, &text); err != nil {
			return invalid(param, "invalid_type", "Invalid '"+param+"'.")
		}
		r.TextBytes += len(text)
		return nil
	}
	var parts []wirePart
	if err := json.Unmarshal(content, &parts); err != nil {
		return invalid(param, "invalid_type", "Invalid type for '"+param+"': expected a string or an array of content parts.")
	}
	for j, p := range parts {
		if err := r.readPart(p, m.Role, fmt.Sprintf("%s[%d]", param, j)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) readPart(p wirePart, role, param string) error {
	switch p.Type {
	case "text", "refusal":
		r.TextBytes += len(p.Text)
		return nil
	case "image_url":
	default:
		return invalid(param+".type", "invalid_value", "Invalid '"+param+".type': this server reads parts of type 'text' and 'image_url'.")
	}
	param += ".image_url"
	if role != "user" {
		return invalid(param, "invalid_value", "Invalid '"+param+"': images are only allowed in messages with role 'user'.")
	}
	if p.ImageURL == nil || p.ImageURL.URL == "" {
		return invalid(param, "missing_required_parameter", "Missing required parameter: '"+param+".url'.")
	}
	if len(r.Images) == MaxImages {
		return invalid("messages", "too_many_images", fmt.Sprintf("A request may hold at most %d images.", MaxImages))
	}
	data, err := dataURL(p.ImageURL.URL, param)
	if err != nil {
		return err
	}
	r.Images = append(r.Images, Image{Param: param, Data: data})
	return nil
}

// dataURL decodes data:image/<type>;base64,<data>. What the image is, is later
// found in its bytes: the type in the URL only has to be an image's.
func dataURL(url, param string) ([]byte, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	if !strings.EqualFold(scheme, "data") {
		return nil, invalid(param, "invalid_image_url", "Invalid '"+param+"': this server never fetches images. Send the image itself as a data: URL (data:image/png;base64,…).")
	}
	head, payload, ok := strings.Cut(rest, ",")
	mediaType, parameters, _ := strings.Cut(strings.ToLower(head), ";")
	if !ok || !strings.HasSuffix(";"+parameters, ";base64") {
		return nil, invalid(param, "invalid_image_url", "Invalid '"+param+"': the data: URL is not base64-encoded.")
	}
	switch mediaType {
	case "image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp":
	default:
		return nil, unsupportedImage(param)
	}
	encoding := base64.StdEncoding
	if len(payload)%4 != 0 {
		encoding = base64.RawStdEncoding
	}
	data, err := encoding.DecodeString(payload)
	if err != nil || len(data) == 0 {
		return nil, invalid(param, "invalid_base64", "Invalid '"+param+"': the base64 data are empty or damaged.")
	}
	return data, nil
}

func unsupportedImage(param string) *Error {
	return invalid(param, "invalid_image_format", "You uploaded an unsupported image. Please make sure your image has one of the following formats: ['png', 'jpeg', 'gif', 'webp'].")
}
