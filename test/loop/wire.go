// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Wire is how a client reaches the model.
type Wire struct {
	// Base is the address to which the dialect's own paths are added:
	// "…/v1" for OpenAI's dialects, and what comes before "/v1" or "/v1beta" for the others.
	Base string
	// Key is the agent's own credential.
	Key    string
	Model  string
	Stream bool
	// HTTP is http.DefaultClient when nil.
	HTTP *http.Client
	// Seen is given every response's head, when it is set.
	Seen func(*http.Response)
}

// Status is the error of a request that was refused.
type Status struct {
	Code int
	Body string
}

func (s *Status) Error() string { return fmt.Sprintf("status %d: %s", s.Code, s.Body) }

// post sends a document and gives the reply as a stream of documents: the events
// of a streamed one, or the one of another.
func (w *Wire) post(ctx context.Context, path string, header map[string]string, body any) ([]json.RawMessage, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Base+path, bytes.NewReader(encoded(body)))
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	client := w.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("sending a request: %w", err)
	}
	defer response.Body.Close()
	if w.Seen != nil {
		w.Seen(response)
	}
	if response.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		return nil, &Status{response.StatusCode, string(answer)}
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") != w.Stream {
		return nil, fmt.Errorf("reading a reply: its type is %q, and streaming is %v", response.Header.Get("Content-Type"), w.Stream)
	}
	if w.Stream {
		return events(response.Body)
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading a reply: %w", err)
	}
	return []json.RawMessage{answer}, nil
}

// events reads the data of server-sent events.
func events(body io.Reader) ([]json.RawMessage, error) {
	var all []json.RawMessage
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		if !json.Valid([]byte(data)) {
			return nil, fmt.Errorf("reading an event: no JSON: %.200s", data)
		}
		all = append(all, json.RawMessage(data))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading events: %w", err)
	}
	return all, nil
}

// errCut says that a stream ended before the reply did.
var errCut = errors.New("the reply ended before its end")

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of what this package itself puts together
	}
	return data
}

// object is a JSON object.
type object = map[string]any

// list is a JSON array.
type list = []any

// dataURL is a PNG as OpenAI's dialects take it.
func dataURL(png []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
}

// parameters is what every tool takes.
func parameters() object {
	return object{"type": "object", "properties": object{
		"path": object{"type": "string"}, "prompt": object{"type": "string"}, "command": object{"type": "string"},
	}}
}

// toolNames are the tools that an agent offers.
var toolNames = []string{"run_command", "view_image", "ViewImage", "mcp__files__view_image", "files__ViewImage", "mcp_files_view_image"}
