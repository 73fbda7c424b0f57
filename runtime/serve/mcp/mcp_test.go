// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/serve/mcp"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

var (
	reference = observation.NewReference("/w/a.png", strings.Repeat("ab", 32), "image/png", 70, 2, 3)
	selection = &observation.Selection{
		SelectedMode: observation.ModeAdapter, VisionProvider: "p", VisionModel: "m",
		SelectionReason: observation.ReasonAuto, Candidates: []observation.Candidate{},
	}
	result = &observation.Result{
		VisualReference: reference,
		Observation: &observation.Observation{
			Type: "visual_observation", Schema: observation.Schema, VisualReferenceID: reference.ID, Prompt: "42",
			GeneratedBy: observation.GeneratedBy{Mode: observation.ModeAdapter, Provider: "p", Model: "m"}, Notice: observation.Notice,
			Summary: "Two <bars> & a line.",
			OCR:     []map[string]any{{"text": "Q3 97%"}}, Elements: []map[string]any{{"id": "bar-1"}},
			Relations: []map[string]any{{"type": "left_of", "a": "bar-1"}}, Issues: []map[string]any{{"description": "cut label"}},
			Uncertainties: []string{"the axis is blurred"}, ExternalSources: []map[string]any{{"url": "https://printed.example"}},
		},
		VisionSelection: selection,
	}
)

// connect opens a session of the SDK's own client with a server over a view.
func connect(t *testing.T, view tool.View) *sdk.ClientSession {
	t.Helper()
	here, there := sdk.NewInMemoryTransports()
	server, err := mcp.NewServer(view, "v1").Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func call(t *testing.T, session *sdk.ClientSession, arguments string) *sdk.CallToolResult {
	t.Helper()
	got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTheToolIsListedWithItsSchemasAndUses(t *testing.T) {
	list, err := connect(t, nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Tools) != 1 || list.Tools[0].Name != "ViewImage" || list.Tools[0].Description != tool.Description {
		t.Fatalf("tools are %+v", list.Tools)
	}
	sameJSON(t, list.Tools[0].InputSchema, tool.InputSchema())
	sameJSON(t, list.Tools[0].OutputSchema, tool.OutputSchema())
}

func TestArgumentsAreNeitherConvertedNorIgnored(t *testing.T) {
	var seen []tool.Call
	session := connect(t, func(_ context.Context, call tool.Call) (*observation.Result, error) {
		seen = append(seen, call)
		return result, nil
	})
	for arguments, reason := range map[string]string{
		`{"path":"a","prompt":42}`:                  "FieldType",
		`{"path":"a","prompt":true}`:                "FieldType",
		`{"path":"a","prompt":null}`:                "FieldType",
		`{"path":"a","prompt":"b","detail":"high"}`: "FieldUnknown",
		`{"PATH":"a","prompt":"b"}`:                 "FieldUnknown",
		`{"path":"a","path":"b","prompt":"c"}`:      "FieldTwice",
		`{"path":"a"}`:                              "FieldMissing",
		`[]`:                                        "MalformedArguments",
	} {
		got := call(t, session, arguments)
		var failure reply.Failure
		decode(t, got.StructuredContent, &failure)
		if !got.IsError || failure.Error.Kind != fault.InvalidToolInput || failure.Error.Reason != reason {
			t.Errorf("%s: got %+v; want reason %s", arguments, failure.Error, reason)
		}
		validOutput(t, got.StructuredContent)
	}
	if got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name}); err != nil || !got.IsError {
		t.Errorf("no arguments at all: %+v, %v", got, err)
	}
	if len(seen) != 0 {
		t.Fatalf("refused arguments reached the view: %+v", seen)
	}
	call(t, session, `{"path":"a","prompt":"42"}`)
	if len(seen) != 1 || seen[0] != (tool.Call{Args: tool.Args{Path: "a", Prompt: "42"}}) {
		t.Errorf("the view saw %+v", seen)
	}
}

func TestTheCallersOwnModelComesByMeta(t *testing.T) {
	var seen []tool.Call
	session := connect(t, func(_ context.Context, call tool.Call) (*observation.Result, error) {
		seen = append(seen, call)
		return result, nil
	})
	ask := func(meta sdk.Meta) *sdk.CallToolResult {
		t.Helper()
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{
			Meta: meta, Name: tool.Name, Arguments: json.RawMessage(`{"path":"a","prompt":"b"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for name, test := range map[string]struct {
		meta sdk.Meta
		want string
	}{
		"none":              {nil, ""},
		"other keys":        {sdk.Meta{"example.com/x": 1, "primary-model": 2}, ""},
		"a route":           {sdk.Meta{tool.PrimaryModelMeta: "openai@eu/gpt-6"}, "openai@eu/gpt-6"},
		"a short route":     {sdk.Meta{tool.PrimaryModelMeta: " openai/gpt-6 "}, "openai/gpt-6"},
		"a blank says none": {sdk.Meta{tool.PrimaryModelMeta: ""}, ""},
		"beside a progress": {sdk.Meta{tool.PrimaryModelMeta: "a/b", "progressToken": "t"}, "a/b"},
	} {
		seen = nil
		if got := ask(test.meta); got.IsError || len(seen) != 1 || seen[0].PrimaryModel != test.want || seen[0].Path != "a" {
			t.Errorf("%s: the view saw %+v", name, seen)
		}
	}
	seen = nil
	for kind, value := range map[string]any{
		"number": 42, "boolean": true, "null": nil, "object": map[string]any{"model": "a/b"}, "array": []any{"a/b"}, "": "gpt-6",
	} {
		got := ask(sdk.Meta{tool.PrimaryModelMeta: value})
		var failure reply.Failure
		decode(t, got.StructuredContent, &failure)
		if !got.IsError || failure.Error.Reason != "PrimaryModelMalformed" {
			t.Errorf("%v: got %+v", value, failure.Error)
			continue
		}
		text := got.Content[0].(*sdk.TextContent).Text
		if !strings.Contains(text, tool.PrimaryModelMeta) || !strings.Contains(text, kind) {
			t.Errorf("the text names neither the key nor the type: %s", text)
		}
		validOutput(t, got.StructuredContent)
	}
	if len(seen) != 0 {
		t.Errorf("a refused call reached the view: %+v", seen)
	}
}

func TestAPolicyMayCloseTheHTTPTransport(t *testing.T) {
	enabled := true
	route := mcp.Route(mcp.NewServer(nil, "v1"), func() bool { return enabled })
	ask := func(method string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1:8970/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		w := httptest.NewRecorder()
		route.Handler.ServeHTTP(w, r)
		return w
	}
	if w := ask(http.MethodPost); w.Code != http.StatusOK {
		t.Fatalf("enabled: status %d: %s", w.Code, w.Body)
	}
	if w := ask(http.MethodGet); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: status %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
	enabled = false
	w := ask(http.MethodPost)
	var failure reply.Failure
	if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || w.Code != http.StatusNotFound || failure.Error.Reason != "MCPDisabled" {
		t.Errorf("disabled: status %d: %s", w.Code, w.Body)
	}
}

func TestStdioEndsWhenThePeerCloses(t *testing.T) {
	in, peer := io.Pipe()
	done := make(chan error)
	go func() {
		done <- mcp.ServeStdio(t.Context(), mcp.NewServer(nil, "v1"), in, discard{})
	}()
	_ = peer.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

func sameJSON(t *testing.T, got, want any) {
	t.Helper()
	var a, b any
	decode(t, got, &a)
	decode(t, want, &b)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got %v\nwant %v", a, b)
	}
}

func validOutput(t *testing.T, value any) {
	t.Helper()
	var schema jsonschema.Schema
	decode(t, tool.OutputSchema(), &schema)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	decode(t, value, &plain)
	if err := resolved.Validate(plain); err != nil {
		t.Errorf("%v is no valid output: %v", plain, err)
	}
}

func decode(t *testing.T, from, into any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
