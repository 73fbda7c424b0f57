// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// vendorKey is what the models' server asks for; only the runtime knows it.
const vendorKey = "sk-the-vendors"

// document is a router document in which one server is all vendors' upstream.
func document(url string) *router.Document {
	credential := func(name string) *router.Credential {
		return &router.Credential{Namespace: "team-a", Secret: name, Key: "token", File: "team-a/" + name}
	}
	provider := func(name, transport, path string, models ...string) router.Provider {
		p := router.Provider{
			Name: "team-a/" + name, Transport: transport, Credential: credential(name),
			Endpoints: []router.Endpoint{{Name: "main", URL: url + path, Timeout: "30s"}},
		}
		for _, model := range models {
			p.Models = append(p.Models, router.Model{Name: model, ImageInput: true})
		}
		return p
	}
	return &router.Document{
		Version: router.Version, Namespace: "team-a",
		Profiles: []router.Profile{{
			ID: "policy/default", From: "team-a/default", DefaultModel: router.Auto, PerCallModel: router.PerCallAllowed,
			Providers: []router.ProviderUse{
				{Alias: "anthropic", Provider: "team-a/anthropic"}, {Alias: "google", Provider: "team-a/google"}, {Alias: "openai", Provider: "team-a/openai"},
			},
			Limits: router.Limits{
				Image:   router.ImageLimits{MaxBytes: 20 << 20, MaxPixels: 50_000_000},
				Request: router.RequestLimits{MaxDistinctImages: 16, MaxTotalImageBytes: 20 << 20, MaxProbedPaths: 16, MaxBodyBytes: 64 << 20},
			},
			Cache:   router.Cache{TTL: "1h0m0s", MaxEntries: 100, MaxBytes: 1 << 20},
			Runtime: router.RuntimeOptions{Proxy: &router.Proxy{}},
		}},
		Providers: []router.Provider{
			provider("anthropic", router.TransportAnthropicMessages, "", "claude-opus-5"),
			provider("google", router.TransportGeminiGenerateContent, "/v1beta", "gemini-2.5-pro", "gemini-3-pro"),
			provider("openai", router.TransportOpenAIChatCompletions, "/v1", "gpt-5.1"),
		},
	}
}

// built is the runtime's own binary.
func built(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "vision-runtime")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/vision-runtime")
	build.Dir = "../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the runtime: %v\n%s", err, output)
	}
	return binary
}

// process is a runtime that runs.
type process struct {
	url string
	mu  sync.Mutex
	log strings.Builder
}

// started starts a runtime on a workspace, which ends with the test.
func started(t *testing.T, doc *router.Document, workspace string) *process {
	t.Helper()
	data, err := router.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	routers, secrets := t.TempDir(), t.TempDir()
	write(t, filepath.Join(routers, router.Key), data)
	for _, p := range doc.Providers {
		write(t, filepath.Join(secrets, filepath.FromSlash(p.Credential.File)), []byte(vendorKey))
	}
	command := exec.CommandContext(t.Context(), built(t), "serve", "--router", routers, "--profile", doc.Profiles[0].ID, "--secrets", secrets,
		"--cache", t.TempDir(), "--workspace", workspace, "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	if err := command.Start(); err != nil {
		t.Fatalf("starting the runtime: %v", err)
	}
	t.Cleanup(func() { // the test's context has ended, and with it the process
		_ = command.Wait()
		_ = writer.Close()
	})
	p := &process{}
	listening := make(chan string, 1)
	go p.read(reader, listening)
	select {
	case address := <-listening:
		p.url = "http://" + address
	case <-time.After(time.Minute):
		t.Fatalf("the runtime does not listen:\n%s", p.logged())
	}
	return p
}

// read keeps the log and finds the address in it.
func (p *process) read(log io.Reader, listening chan<- string) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		var line struct{ Msg, Agents string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			listening <- line.Agents
		}
	}
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLoopsThroughTheRuntime plays the agents with the runtime between them and the
// models' server: each image that was viewed is in every later request once, and
// nothing is signed over another conversation.
func TestLoopsThroughTheRuntime(t *testing.T) {
	s, url := served(t, vendorKey)
	workspace := t.TempDir()
	p := started(t, document(url), workspace)
	loops(t, s, bases{openAI: p.url + "/openai/v1", anthropic: p.url + "/anthropic", gemini: p.url + "/gemini"}, workspace, vendorKey)
	log := p.logged()
	for _, secret := range []string{vendorKey, agentKey, "iVBORw0KGgo"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if t.Failed() {
		t.Log(log[max(0, len(log)-4000):])
	}
}
