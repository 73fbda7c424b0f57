// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/loop"
	strict "github.com/visionoperator/vision-operator/test/upstream"
)

// agentKey is the credential of agents; it must never be seen upstream.
const agentKey = "sk-of-the-agents"

// models is a runtime between agents and one strict server that is every vendor's.
type models struct {
	*world
	strict *strict.Server
	url    string // of the strict server
	tools  *loop.Workspace
	server *server
	log    *lines
}

// withModels lays out a world in which the strict server serves all models, and
// starts a runtime in it. change, which may be nil, has the last word on the document.
func withModels(t *testing.T, options strict.Options, change func(*router.Document)) *models {
	t.Helper()
	m := laidOut(t, options)
	m.publish(change)
	m.server, m.log = m.start()
	return m
}

// laidOut is a world with a strict server, and no runtime yet.
func laidOut(t *testing.T, options strict.Options) *models {
	t.Helper()
	options.Key = key
	if options.Script == nil {
		options.Script = loop.Script
	}
	m := &models{world: newWorld(t), strict: strict.New(options)}
	m.tools = &loop.Workspace{Dir: m.workspace}
	upstream := httptest.NewServer(m.strict)
	t.Cleanup(upstream.Close)
	m.url = upstream.URL
	for _, name := range []string{"anthropic", "google", "openai"} {
		m.write(m.secrets+"/team-a/"+name, []byte(key))
	}
	return m
}

// publish puts a document in place in which the strict server has the models. What
// looks at images for models that see none is the world's own upstream.
func (m *models) publish(change func(*router.Document)) {
	m.t.Helper()
	m.world.publish(func(doc *router.Document) {
		m.serveModels(doc)
		if change != nil {
			change(doc)
		}
	})
}

func (m *models) serveModels(doc *router.Document) {
	withProxy(doc)
	profile := &doc.Profiles[0]
	profile.Limits.Request.MaxDistinctImages = 16
	for _, p := range []struct {
		name, transport, path string
		models                []string
	}{
		{"anthropic", router.TransportAnthropicMessages, "", []string{"claude-opus-5"}},
		{"google", router.TransportGeminiGenerateContent, "/v1beta", []string{"gemini-2.5-pro", "gemini-3-pro"}},
		{"openai", router.TransportOpenAIChatCompletions, "/v1", []string{"gpt-5.1", "mistral-large-2512"}},
	} {
		profile.Providers = append(profile.Providers, router.ProviderUse{Alias: p.name, Provider: "team-a/" + p.name})
		provider := router.Provider{
			Name: "team-a/" + p.name, Transport: p.transport,
			Endpoints:  []router.Endpoint{{Name: "main", URL: m.url + p.path, Timeout: "30s"}},
			Credential: &router.Credential{Namespace: "team-a", Secret: p.name + "-key", Key: "token", File: "team-a/" + p.name},
		}
		for _, model := range p.models {
			provider.Models = append(provider.Models, router.Model{Name: model, ImageInput: true})
		}
		doc.Providers = append(doc.Providers, provider)
	}
	slices.SortFunc(doc.Providers, func(a, b router.Provider) int { return strings.Compare(a.Name, b.Name) })
}

// eachModel changes the models that the strict server has.
func eachModel(doc *router.Document, change func(*router.Model)) {
	for i := range doc.Providers {
		if p := &doc.Providers[i]; p.Name != "team-a/lab" {
			for k := range p.Models {
				change(&p.Models[k])
			}
		}
	}
}

// agentNames are the ways in which agents speak to models.
var agentNames = []string{
	"chat", "responses", "responses, previous", "responses, conversation", "anthropic", "gemini 3", "gemini 2",
}

// agent is an agent without a history.
func (m *models) agent(name string, stream bool) loop.Client {
	wire := func(path, model string) loop.Wire {
		return loop.Wire{Base: m.server.url(path), Key: agentKey, Model: model, Stream: stream}
	}
	switch name {
	case "chat":
		return &loop.Chat{Wire: wire("/openai/v1", "gpt-5.1")}
	case "mistral":
		return &loop.Chat{Wire: wire("/openai/v1", "mistral-large-2512"), ToolImages: true}
	case "responses":
		return &loop.Responses{Wire: wire("/openai/v1", "gpt-5.1")}
	case "responses, previous":
		return &loop.Responses{Wire: wire("/openai/v1", "gpt-5.1"), Keeps: "previous"}
	case "responses, conversation":
		return &loop.Responses{Wire: wire("/openai/v1", "gpt-5.1"), Keeps: "conversation"}
	case "anthropic":
		return &loop.Anthropic{Wire: wire("/anthropic", "claude-opus-5")}
	case "gemini 3":
		return &loop.Gemini{Wire: wire("/gemini", "gemini-3-pro")}
	case "gemini 2":
		return &loop.Gemini{Wire: wire("/gemini", "gemini-2.5-pro")}
	}
	m.t.Fatalf("there is no agent %q", name)
	return nil
}

// restart ends the runtime and starts it at the same addresses.
func (m *models) restart() { m.restartAs(nil) }

// restartAs is restart with a configuration that may be another.
func (m *models) restartAs(change func(*serveConfig)) {
	m.t.Helper()
	cfg := m.config()
	cfg.listen, cfg.healthListen = m.server.agentsAt.String(), m.server.healthAt.String()
	if change != nil {
		change(&cfg)
	}
	if err := m.server.shutdown(5 * time.Second); err != nil {
		m.t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections() // those of agents, to the runtime that has ended
	m.log = &lines{}
	s, err := start(cfg, newLogger(m.log, slog.LevelDebug))
	if err != nil {
		m.t.Fatal(err)
	}
	m.server = s
	m.t.Cleanup(func() { _ = s.shutdown(time.Second) })
}

// metrics is what the runtime counts.
func (m *models) metrics(t *testing.T) string {
	t.Helper()
	return string(get(t, "http://"+m.server.healthAt.String()+"/metrics").body)
}

// before is an agent that something happens to before it sends its n-th request, from
// 0 on.
type before struct {
	loop.Client
	send map[int]func()
	sent int
}

// Send asks the model.
func (b *before) Send(ctx context.Context) (loop.Said, error) {
	if happens := b.send[b.sent]; happens != nil {
		happens()
	}
	b.sent++
	return b.Client.Send(ctx)
}

// play plays a scenario to its end, and is what came of it.
func (m *models) play(t *testing.T, c loop.Client, s loop.Scenario) *loop.Report {
	t.Helper()
	report, err := loop.Run(t.Context(), c, m.tools, s)
	if err != nil {
		t.Fatalf("%v\nrefused: %q", err, m.strict.Refusals())
	}
	return report
}

// flawless reports what the strict server found wrong: that a signature stands over
// something else, a refusal, a prefix that changed, or an image that is gone.
func (m *models) flawless(t *testing.T) {
	t.Helper()
	complain(t, "mismatches", m.strict.Mismatches())
	complain(t, "refusals", m.strict.Refusals())
	complain(t, "prefixes", m.strict.SharedPrefixesEqual())
	complain(t, "images", m.strict.ImagesOnce())
}

func complain(t *testing.T, about string, problems []string) {
	t.Helper()
	if len(problems) > 0 {
		t.Errorf("%s:\n%s", about, strings.Join(problems, "\n"))
	}
}

// eachWay runs a test for each agent, streamed and not.
func eachWay(t *testing.T, names []string, test func(t *testing.T, name string, stream bool)) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, name, false) })
		t.Run(name+", streamed", func(t *testing.T) { test(t, name, true) })
	}
}
