// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"github.com/visionoperator/vision-operator/runtime/provider"
)

// body is a request in three pieces, so that the image's base64 (a third
// larger than the image) is made while it is sent and never held whole.
type body struct {
	prefix []byte // up to and including "data:<type>;base64,"
	image  []byte
	suffix []byte // from the quote that ends the data URL
}

func (b *body) size() int64 {
	return int64(len(b.prefix)) + int64(base64.StdEncoding.EncodedLen(len(b.image))) + int64(len(b.suffix))
}

func (b *body) reader() io.Reader {
	return io.MultiReader(bytes.NewReader(b.prefix), &base64Reader{rest: b.image}, bytes.NewReader(b.suffix))
}

// The wire's shapes. Field order is the order of the bytes.
type (
	request struct {
		Model               string          `json:"model"`
		Messages            []message       `json:"messages"`
		MaxTokens           int64           `json:"max_tokens,omitempty"`
		MaxCompletionTokens int64           `json:"max_completion_tokens,omitempty"`
		ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	}
	message struct {
		Role    string `json:"role"`
		Content any    `json:"content"` // a string, or []part
	}
	part struct {
		Type     string    `json:"type"`
		Text     string    `json:"text,omitempty"`
		ImageURL *imageURL `json:"image_url,omitempty"`
	}
	imageURL struct {
		URL string `json:"url"`
	}
	responseFormat struct {
		Type       string     `json:"type"`
		JSONSchema jsonSchema `json:"json_schema"`
	}
	jsonSchema struct {
		Name   string          `json:"name"`
		Strict bool            `json:"strict"`
		Schema json.RawMessage `json:"schema"`
	}
)

// plan lays a request out. The text comes before the image; the image's own
// bytes are left out of the JSON and marked by where the data URL ends.
func plan(req provider.Request, limit limitField) (*body, error) {
	var out request
	out.Model = req.Model
	if req.Instructions != "" {
		out.Messages = append(out.Messages, message{Role: "system", Content: req.Instructions})
	}
	head := "data:" + req.Image.MediaType + ";base64,"
	out.Messages = append(out.Messages, message{Role: "user", Content: []part{
		{Type: "text", Text: req.Prompt},
		{Type: "image_url", ImageURL: &imageURL{URL: head}},
	}})
	if limit == maxCompletionTokens {
		out.MaxCompletionTokens = req.MaxOutputTokens
	} else {
		out.MaxTokens = req.MaxOutputTokens
	}
	if req.Schema != nil {
		out.ResponseFormat = &responseFormat{Type: "json_schema", JSONSchema: jsonSchema{
			Name: req.Schema.Name, Strict: true, Schema: req.Schema.JSON,
		}}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing chat completion request: %w", err)
	}
	// Quotes within texts are escaped, so the mark can only be the URL's own
	// member; a schema comes after it, so the first one is it.
	mark, err := json.Marshal(imageURL{URL: head})
	if err != nil {
		return nil, fmt.Errorf("writing chat completion request: %w", err)
	}
	at := bytes.Index(data, mark)
	if at < 0 {
		return nil, fmt.Errorf("writing chat completion request: %w", errNoMark)
	}
	cut := at + len(mark) - len(`"}`)
	return &body{prefix: data[:cut], image: req.Image.Data, suffix: data[cut:]}, nil
}

// base64Reader encodes as it is read.
type base64Reader struct {
	rest    []byte
	chunk   [4096]byte
	pending []byte // part of chunk that was not read yet
}

// Read fills p with base64, padded at the end of the image.
func (r *base64Reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(r.pending) == 0 {
			if len(r.rest) == 0 {
				break
			}
			take := min(len(r.rest), len(r.chunk)/4*3)
			base64.StdEncoding.Encode(r.chunk[:], r.rest[:take])
			r.pending = r.chunk[:base64.StdEncoding.EncodedLen(take)]
			r.rest = r.rest[take:]
		}
		c := copy(p[n:], r.pending)
		r.pending = r.pending[c:]
		n += c
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
