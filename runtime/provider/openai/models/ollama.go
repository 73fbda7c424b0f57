// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

const (
	// maxShown bounds how many models of one list are asked about one by one.
	maxShown = 32
	// shownAtOnce is how many of these calls are under way at the same time.
	shownAtOnce = 4
)

// ofOllama reports whether an entry is from Ollama, whose own models belong to
// "library"; a server with one of these is an Ollama server.
func (e entry) ofOllama() bool { return e.OwnedBy == "library" }

// ollamaRoot is where Ollama's own API begins: it serves OpenAI's below /v1.
func ollamaRoot(base string) (string, bool) {
	return strings.CutSuffix(strings.TrimRight(base, "/"), "/v1")
}

// show completes what a list tells about the first maxShown models by asking
// for each of them. A model whose call fails stays as it was. Only when every
// call fails, and calling again may help, is it show that failed: better an
// older list than one that knows nothing.
func show(ctx context.Context, root exchange.Endpoint, listed []provider.Listed) error {
	asked := listed[:min(len(listed), maxShown)]
	failures := make([]error, len(asked))
	turns := make(chan struct{}, shownAtOnce)
	var calls sync.WaitGroup
	for i := range asked {
		turns <- struct{}{}
		calls.Go(func() {
			defer func() { <-turns }()
			failures[i] = showOne(ctx, root, &asked[i])
		})
	}
	calls.Wait()
	worthRepeating := func(err error) bool { return err != nil && fault.As(err).Retryable }
	if ctx.Err() != nil || !slices.Contains(failures, nil) {
		if i := slices.IndexFunc(failures, worthRepeating); i >= 0 {
			return failures[i]
		}
	}
	return nil
}

// showOne asks POST {root}/api/show about one model.
func showOne(ctx context.Context, root exchange.Endpoint, about *provider.Listed) error {
	body, err := exchange.Plain(struct {
		Model string `json:"model"`
	}{about.Name})
	if err != nil {
		return exchange.Unwritable(err)
	}
	reply, err := exchange.Post{Client: root.Client, URL: root.URL("/api/show"), Body: body}.Do(ctx)
	if err != nil {
		return err
	}
	return readShown(reply, about)
}

// errNotShown is a reply to show that has no capabilities, as those of old
// versions have none.
var errNotShown = errors.New("reading a model's capabilities: there are none")

// readShown reads what Ollama shows of a model into about.
func readShown(reply []byte, about *provider.Listed) error {
	var shown struct {
		Capabilities exchange.Array[string] `json:"capabilities"`
		Window       window                 `json:"model_info"`
	}
	if err := exchange.Read(reply, &shown, "a model's description"); err != nil {
		return err
	}
	if shown.Capabilities == nil {
		return exchange.Failed("InvalidResponse", false, "the provider's reply is not a model's description").Because(errNotShown)
	}
	about.ContextWindowTokens = max(about.ContextWindowTokens, int64(shown.Window))
	about.ImageInput = answer(slices.Contains(shown.Capabilities, "vision"))
	return nil
}

// window is the greatest context length among the facts of a model, such as
// "llama.context_length"; the greatest, so that order tells nothing.
type window exchange.Count

// UnmarshalJSON reads an object fact by fact, up to exchange.MaxElements of
// them, so that the rest takes no memory.
func (w *window) UnmarshalJSON(data []byte) error {
	*w = 0
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return err // null, or facts of another shape, tell nothing
	}
	for range exchange.MaxElements {
		if !d.More() {
			break
		}
		name, err := d.Token()
		if err != nil {
			return err
		}
		var n exchange.Count
		if err := d.Decode(&n); err != nil {
			return err
		}
		if key, _ := name.(string); strings.HasSuffix(key, ".context_length") {
			*w = max(*w, window(n))
		}
	}
	return nil
}
