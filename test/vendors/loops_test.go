// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/test/loop"
	"github.com/visionoperator/vision-operator/test/upstream"
)

// bases are the addresses that agents are given, one for each vendor.
type bases struct{ openAI, anthropic, gemini string }

// agentNames are the agents, one for each dialect and way of the vendors.
var agentNames = []string{"chat", "responses", "kept responses", "anthropic", "gemini 3", "gemini 2"}

// agent makes an agent with a vendor's SDK, by base URL alone.
func agent(t *testing.T, name string, at bases, stream bool) loop.Client {
	t.Helper()
	switch name {
	case "chat":
		return &chatAgent{client: agentOfOpenAI(at.openAI), model: "gpt-5.1", stream: stream}
	case "responses", "kept responses":
		return &responsesAgent{client: agentOfOpenAI(at.openAI), model: "gpt-5.1", stream: stream, kept: name != "responses"}
	case "anthropic":
		return &claudeAgent{client: agentOfClaude(at.anthropic), model: "claude-opus-5", stream: stream}
	case "gemini 3":
		return &geminiAgent{client: agentOfGoogle(t, at.gemini), model: "gemini-3-pro", stream: stream}
	case "gemini 2":
		return &geminiAgent{client: agentOfGoogle(t, at.gemini), model: "gemini-2.5-pro", stream: stream}
	}
	t.Fatalf("there is no agent %q", name)
	return nil
}

// served starts the models' server.
func served(t *testing.T, key string) (*upstream.Server, string) {
	t.Helper()
	s := upstream.New(upstream.Options{Script: loop.Script, Key: key})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

// loops plays every scenario with every agent, streamed and not. The models' server
// asks for the key; one that is not the agent's own is the runtime's, which injects.
func loops(t *testing.T, s *upstream.Server, at bases, workspace, key string) {
	t.Helper()
	tools := &loop.Workspace{Dir: workspace}
	for _, name := range agentNames {
		for way, stream := range map[string]bool{"": false, ", streamed": true} {
			for _, scenario := range loop.Scenarios() {
				t.Run(name+way+"/"+scenario.Name, func(t *testing.T) {
					s.Reset()
					report, err := loop.Run(t.Context(), agent(t, name, at, stream), tools, scenario)
					if err != nil {
						t.Fatalf("%v\nrefused: %q", err, s.Refusals())
					}
					for about, problems := range map[string][]string{
						"mismatches": s.Mismatches(), "refusals": s.Refusals(), "prefixes": s.SharedPrefixesEqual(),
						"images": append(s.ImagesOnce(), report.Check(s, key != agentKey)...),
					} {
						if len(problems) > 0 {
							t.Errorf("%s:\n%s", about, strings.Join(problems, "\n"))
						}
					}
					noOther(t, s, key)
				})
			}
		}
	}
}

// noOther looks for the agent's credential where another one is asked for.
func noOther(t *testing.T, s *upstream.Server, key string) {
	t.Helper()
	for _, r := range s.Requests() {
		for name, values := range r.Header {
			if key != agentKey && strings.Contains(strings.Join(values, " ")+r.Query, agentKey) {
				t.Errorf("%s carries the agent's own credential in %s", r.Path, name)
			}
		}
	}
}

// TestLoopsWithoutTheRuntime plays the agents against the models' server itself:
// what the SDKs send is what it takes.
func TestLoopsWithoutTheRuntime(t *testing.T) {
	s, url := served(t, agentKey)
	loops(t, s, bases{openAI: url + "/v1", anthropic: url, gemini: url}, t.TempDir(), agentKey)
}
