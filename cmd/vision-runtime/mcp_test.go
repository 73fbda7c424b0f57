// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// session opens a session of the SDK's own client over a transport.
func session(t *testing.T, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test-agent", Version: "1"}, nil)
	opened, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

func streamable(s *server) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: s.url("/mcp"), HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// callTool asks for a look over MCP and checks the answer against the schema
// that the server publishes.
func callTool(t *testing.T, s *sdk.ClientSession, arguments map[string]any) *sdk.CallToolResult {
	t.Helper()
	got, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "ViewImage", Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 1 {
		t.Fatalf("tools: %+v, %v", list, err)
	}
	var schema jsonschema.Schema
	through(t, list.Tools[0].OutputSchema, &schema)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(got.StructuredContent); err != nil {
		t.Errorf("the structured content does not validate: %v", err)
	}
	return got
}

func text(t *testing.T, result *sdk.CallToolResult) string {
	t.Helper()
	if len(result.Content) != 1 {
		t.Fatalf("content is %+v", result.Content)
	}
	return result.Content[0].(*sdk.TextContent).Text
}

func through(t *testing.T, from, into any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOverMCPTheAnswerEqualsTheOneOverHTTP(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	path := w.picture("a.png")
	agent := session(t, streamable(s))

	first := callTool(t, agent, map[string]any{"path": path, "prompt": "42"})
	if first.IsError {
		t.Fatalf("failed: %s", text(t, first))
	}
	if cached := first.StructuredContent.(map[string]any)["cached"]; cached != false {
		t.Errorf("cached is %v", cached)
	}
	again := callTool(t, agent, map[string]any{"path": path, "prompt": "42"})
	overHTTP := view(t, s, path, "42").object(t)
	if !reflect.DeepEqual(again.StructuredContent, any(overHTTP)) {
		t.Errorf("over MCP:\n%v\nover HTTP:\n%v", again.StructuredContent, overHTTP)
	}
	if n := w.upstream.calls(); n != 1 {
		t.Errorf("the model was called %d times", n)
	}
	for _, part := range []string{summary, "ENOSPC 28", "dialog", "the clock is cut off", "vis_"} {
		if !strings.Contains(text(t, again), part) {
			t.Errorf("the text lacks %q:\n%s", part, text(t, again))
		}
	}
	picture, _ := os.ReadFile(path)
	whole, _ := json.Marshal(again)
	if bytes.Contains(whole, []byte(base64.StdEncoding.EncodeToString(picture)[:40])) {
		t.Error("the answer holds image bytes")
	}
}

func TestOverMCPBadInputIsTheSameFaultAsOverHTTPAndTheRuntimeLivesOn(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	agent := session(t, streamable(s))
	for _, test := range badInputs() {
		t.Run(test.name, func(t *testing.T) {
			path := test.path(w)
			got := callTool(t, agent, map[string]any{"path": path, "prompt": "look"})
			overHTTP := view(t, s, path, "look").object(t)
			if !got.IsError || !reflect.DeepEqual(got.StructuredContent, any(overHTTP)) {
				t.Errorf("error: %t\nover MCP:\n%v\nover HTTP:\n%v", got.IsError, got.StructuredContent, overHTTP)
			}
			if !strings.Contains(text(t, got), test.kind) {
				t.Errorf("the text does not name %s: %s", test.kind, text(t, got))
			}
		})
	}
	if got := callTool(t, agent, map[string]any{"path": w.picture("good.png"), "prompt": "look"}); got.IsError {
		t.Errorf("after all that a good image fails: %s", text(t, got))
	}
}

func TestOverMCPAFailedObservationStillReturnsTheReference(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	w.upstream.set(func(u *upstream) { u.status = http.StatusBadRequest })
	s, _ := w.start()
	got := callTool(t, session(t, streamable(s)), map[string]any{"path": w.picture("a.png"), "prompt": "look"})
	structured := got.StructuredContent.(map[string]any)
	if !got.IsError || structured["visual_reference"] == nil {
		t.Errorf("error: %t, structured %v", got.IsError, structured)
	}
	if id := structured["visual_reference"].(map[string]any)["id"].(string); !strings.Contains(text(t, got), id) {
		t.Errorf("the text does not name %s: %s", id, text(t, got))
	}
}

func TestMCPIsClosedWhereTheProfileSaysSo(t *testing.T) {
	w := newWorld(t)
	w.publish(func(doc *router.Document) { doc.Profiles[0].Runtime.MCP = false })
	s, _ := w.start()
	ping := []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if got := post(t, s.url("/mcp"), ping); got.status != 404 || got.fault(t)["reason"] != "MCPDisabled" {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if got := view(t, s, w.picture("a.png"), "look"); got.status != 200 {
		t.Errorf("over HTTP: %d %s", got.status, got.body)
	}
	w.publish(nil)
	eventually(t, "the newer document opens it", func() bool { return post(t, s.url("/mcp"), ping).status != 404 })
}

func TestOverMCPAMissingRouterIsToldToTheModel(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start()
	got := callTool(t, session(t, streamable(s)), map[string]any{"path": w.picture("a.png"), "prompt": "look"})
	if !got.IsError || !strings.Contains(text(t, got), "router_unavailable") {
		t.Errorf("got %s", text(t, got))
	}
}

func TestTheBuiltCommandServesMCPOnStandardInputAndOutput(t *testing.T) {
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.publish(nil)
	var log lines
	cmd := exec.Command(path, "mcp", "--router", w.router, "--profile", "policy/default", "--secrets", w.secrets, "--workspace", w.workspace)
	cmd.Stderr = &log
	agent := session(t, &sdk.CommandTransport{Command: cmd})
	picture := w.picture("a.png")
	got := callTool(t, agent, map[string]any{"path": picture, "prompt": "42"})
	if got.IsError || !strings.Contains(text(t, got), summary) {
		t.Errorf("error: %t: %s", got.IsError, text(t, got))
	}
	again := callTool(t, agent, map[string]any{"path": picture, "prompt": "42"})
	if again.StructuredContent.(map[string]any)["cached"] != true {
		t.Errorf("the second answer does not come from the cache: %v", again.StructuredContent)
	}
	refused := callTool(t, agent, map[string]any{"path": "/etc/passwd", "prompt": "look"})
	if !refused.IsError || !strings.Contains(text(t, refused), "policy_denied") {
		t.Errorf("got %s", text(t, refused))
	}
	if err := agent.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d; log:\n%s", code, log.String())
	}
	for line := range strings.Lines(log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line %q is no JSON", line)
		}
	}
}

// TestHostsThatSpeakAnOlderProtocolAreServed sends what such a host sends, by
// hand: the handshake and then a call, each on its own connection.
func TestHostsThatSpeakAnOlderProtocolAreServed(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	ask := func(version, body string) map[string]any {
		r, err := http.NewRequest(http.MethodPost, s.url("/mcp"), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("MCP-Protocol-Version", version)
		got := do(t, r)
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s: status %d, type %q: %s", version, got.status, got.header.Get("Content-Type"), got.body)
		}
		return got.object(t)["result"].(map[string]any)
	}
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		hello := ask(version, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+
			`","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`)
		if hello["protocolVersion"] != version || hello["serverInfo"].(map[string]any)["name"] != "vision-runtime" {
			t.Errorf("%s: hello is %v", version, hello)
		}
		arguments, _ := json.Marshal(map[string]string{"path": w.picture("a.png"), "prompt": "42"})
		result := ask(version, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ViewImage","arguments":`+string(arguments)+`}}`)
		if result["isError"] == true || result["structuredContent"] == nil {
			t.Errorf("%s: result is %v", version, result)
		}
	}
}

func TestTheBuiltCommandEndsOnSIGTERMWhileItServesMCP(t *testing.T) {
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	for name, looking := range map[string]bool{"idle": false, "while a model is looking": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.publish(nil)
			w.upstream.set(func(u *upstream) { u.hold = make(chan struct{}) })
			cmd := exec.Command(path, "mcp", "--router", w.router, "--profile", "policy/default", "--secrets", w.secrets, "--workspace", w.workspace)
			stdin, err := cmd.StdinPipe() // stays open
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
			if _, err := stdin.Write([]byte(hello + "\n")); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			if looking {
				arguments, _ := json.Marshal(map[string]string{"path": w.picture("a.png"), "prompt": "look"})
				call := `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
					`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ViewImage","arguments":` + string(arguments) + `}}` + "\n"
				if _, err := stdin.Write([]byte(call)); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the model is called", func() bool { return w.upstream.calls() == 1 })
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("exit: %v", err)
				}
			case <-time.After(10 * time.Second):
				_ = cmd.Process.Kill()
				t.Fatal("still running 10 s after SIGTERM")
			}
		})
	}
}
