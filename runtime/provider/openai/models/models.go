// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package models lists what an OpenAI-compatible server serves, for every
// protocol that such a server speaks. OpenAI's own list gives names alone;
// others say beside them what a model takes, each in its own member.
//
// Sources of the shapes: the OpenAI API reference, "List models"; OpenRouter's
// models API; Mistral's "List available models"; vLLM's ModelCard; Ollama's
// "Show model details"; Together's list, which is an array without a frame.
package models

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// maxName is the longest name of a model that a route can hold, in bytes.
const maxName = 253

// List asks an endpoint for its models: GET {base}/models, and of an Ollama
// server what each of the first maxShown can do. Image input is Unknown where
// nothing tells. At most exchange.MaxElements are returned, in the server's
// order, each name once; names that no route can hold are left out. Errors are
// *fault.Fault.
func List(ctx context.Context, at exchange.Endpoint) ([]provider.Listed, error) {
	reply, err := exchange.Get(ctx, at.Client, at.URL("/models"), nil)
	if err != nil {
		return nil, err
	}
	entries, err := parse(reply)
	if err != nil {
		return nil, err
	}
	listed := make([]provider.Listed, len(entries))
	for i, e := range entries {
		listed[i] = e.listed()
	}
	if root, ok := ollamaRoot(at.BaseURL); ok && slices.ContainsFunc(entries, entry.ofOllama) {
		at.BaseURL = root
		if err := show(ctx, at, listed); err != nil {
			return nil, err
		}
	}
	return listed, nil
}

// entry is one model as servers describe it.
type entry struct {
	ID      string `json:"id"`
	OwnedBy string `json:"owned_by"`
	// Architecture and TopProvider are OpenRouter's, as is ContextLength.
	Architecture struct {
		InputModalities exchange.Array[string] `json:"input_modalities"`
	} `json:"architecture"`
	TopProvider struct {
		MaxCompletionTokens exchange.Count `json:"max_completion_tokens"`
	} `json:"top_provider"`
	ContextLength exchange.Count `json:"context_length"`
	// Capabilities and MaxContextLength are Mistral's. Azure has capabilities
	// of other names.
	Capabilities     capabilities   `json:"capabilities"`
	MaxContextLength exchange.Count `json:"max_context_length"`
	// MaxModelLen is vLLM's.
	MaxModelLen exchange.Count `json:"max_model_len"`
}

// parse reads a list. Entries that are of another shape, or that have no usable
// name, are left out: one of them must not hide the rest.
func parse(reply []byte) ([]entry, error) {
	const what = "a list of models"
	var framed struct {
		Data  json.RawMessage `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	if bytes.HasPrefix(bytes.TrimSpace(reply), []byte("[")) {
		framed.Data = reply
	} else if err := exchange.Read(reply, &framed, what); err != nil {
		return nil, err
	}
	if bad := exchange.ErrorIn(framed.Error); bad != nil {
		return nil, bad
	}
	if len(framed.Data) == 0 {
		return nil, exchange.Unreadable(what)
	}
	var list exchange.Array[json.RawMessage] // of an Ollama server without models it is null
	if err := exchange.Read(framed.Data, &list, what); err != nil {
		return nil, err
	}
	var entries []entry
	seen := map[string]bool{}
	for _, raw := range list {
		var e entry
		if json.Unmarshal(raw, &e) != nil || !usable(e.ID) || seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		entries = append(entries, e)
	}
	return entries, nil
}

// usable reports whether a name can stand in a route.
func usable(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// listed is what an entry tells.
func (e entry) listed() provider.Listed {
	l := provider.Listed{
		Name:                e.ID,
		ContextWindowTokens: int64(max(e.ContextLength, e.MaxContextLength, e.MaxModelLen)),
		MaxOutputTokens:     int64(e.TopProvider.MaxCompletionTokens),
	}
	switch {
	case e.Capabilities.Vision != nil:
		l.ImageInput = answer(*e.Capabilities.Vision)
	case len(e.Architecture.InputModalities) > 0:
		l.ImageInput = answer(slices.Contains(e.Architecture.InputModalities, "image"))
	}
	return l
}

func answer(yes bool) provider.Answer {
	if yes {
		return provider.Yes
	}
	return provider.No
}

// capabilities is an object with vision in it, or anything else, which tells nothing.
type capabilities struct{ Vision *bool }

// UnmarshalJSON never fails: what it cannot read tells nothing.
func (c *capabilities) UnmarshalJSON(data []byte) error {
	var o struct {
		Vision *bool `json:"vision"`
	}
	if json.Unmarshal(data, &o) == nil {
		c.Vision = o.Vision
	}
	return nil
}
