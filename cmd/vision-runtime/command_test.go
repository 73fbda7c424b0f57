// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// binaryDir holds the binary that tests run; it is made when it is first needed.
var binaryDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if binaryDir != "" {
		_ = os.RemoveAll(binaryDir)
	}
	os.Exit(code)
}

// built builds the command once, as a release does.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vision-runtime")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	path := filepath.Join(dir, "vision-runtime")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v0.0.0-test", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the command: %w\n%s", err, out)
	}
	return path, nil
})

// process is the built command, serving.
type process struct {
	cmd    *exec.Cmd
	agents string // base URL
	health string // base URL
	rest   chan string
}

// launch runs "serve" over a world and returns once /startupz answers 200, and
// how long that took.
func launch(tb testing.TB, args ...string) (*process, time.Duration) {
	tb.Helper()
	path, err := built()
	if err != nil {
		tb.Fatal(err)
	}
	p := &process{cmd: exec.Command(path, append([]string{"serve"}, args...)...), rest: make(chan string, 1)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		tb.Fatal(err)
	}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.cmd.Process.Kill() })
	log := bufio.NewReader(stderr)
	for p.agents == "" {
		line, err := log.ReadString('\n')
		if err != nil {
			tb.Fatalf("the process ended before it listened: %q", line)
		}
		var entry struct{ Msg, Agents, Probes string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			tb.Fatalf("log line %q is no JSON: %v", line, err)
		}
		if entry.Msg == "listening" {
			p.agents, p.health = "http://"+entry.Agents, "http://"+entry.Probes
		}
	}
	for {
		resp, err := http.Get(p.health + "/startupz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Since(began) > 15*time.Second {
			tb.Fatal("startupz is not 200 after 15 s")
		}
	}
	took := time.Since(began)
	go func() {
		text, _ := io.ReadAll(log)
		p.rest <- string(text)
	}()
	return p, took
}

func (w *world) flags() []string {
	return []string{
		"--router", w.router, "--profile", "policy/default", "--secrets", w.secrets, "--cache", w.cache, "--workspace", w.workspace,
		"--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--log-level", "debug",
	}
}

func TestTheBuiltCommandServesAndEndsCleanlyOnSIGTERM(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	p, _ := launch(t, w.flags()...)
	body := fmt.Appendf(nil, `{"path":%q,"prompt":"look"}`, w.picture("a.png"))
	if got := post(t, p.agents+"/v1/view-image", body); got.status != http.StatusOK {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log := <-p.rest
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("exit: %v; log:\n%s", err, log)
	}
	for line := range strings.Lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log line %q is no JSON", line)
		}
	}
}

func TestWhatAProviderSendsUnaskedIsNotLogged(t *testing.T) {
	w := newWorld(t)
	provider, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	sent := make(chan struct{})
	go func() {
		conn, err := provider.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		// No content, and then some: net/http takes it for an unsolicited reply.
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\nyour "+r.Header.Get("Authorization"))
		close(sent)
		_, _ = io.Copy(io.Discard, conn) // until the client hangs up
	}()
	w.publish(func(doc *router.Document) {
		doc.Providers[0].Endpoints[0].URL = "http://" + provider.Addr().String()
	})
	p, _ := launch(t, w.flags()...)
	body := fmt.Appendf(nil, `{"path":%q,"prompt":"look"}`, w.picture("a.png"))
	if got := post(t, p.agents+"/v1/view-image", body); got.status != http.StatusBadGateway {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	<-sent
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log := <-p.rest
	_ = p.cmd.Wait()
	if strings.Contains(log, key) {
		t.Errorf("the key is in the log:\n%s", log)
	}
	if !strings.Contains(log, "withheld") {
		t.Errorf("the log does not tell that a message was withheld:\n%s", log)
	}
}

func TestCommandLinesThatCannotWork(t *testing.T) {
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	good := []string{"--router", dir, "--profile", "policy/a"}
	tests := []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"no command", nil, 2, []string{"serve, mcp and version"}},
		{"an unknown command", []string{"dance"}, 2, []string{`"dance"`}},
		{"version with an argument", []string{"version", "x"}, 2, []string{`"x"`}},
		{"serve without a router", []string{"serve", "--profile", "policy/a"}, 2, []string{"--router"}},
		{"serve without a profile", []string{"serve", "--router", dir}, 2, []string{"--profile"}},
		{"a profile without a kind", []string{"serve", "--router", dir, "--profile", "default"}, 2, []string{"--profile", `"default"`, "policy/NAME"}},
		{"an unknown flag", append([]string{"serve", "--fast"}, good...), 2, []string{"--fast"}},
		{"an argument of no flag", append([]string{"serve", "here"}, good...), 2, []string{`"here"`}},
		{"a listener without a port", append([]string{"serve", "--listen", "127.0.0.1"}, good...), 2, []string{"--listen", `"127.0.0.1"`, "HOST:PORT"}},
		{"a port out of range", append([]string{"serve", "--health-listen", ":70000"}, good...), 2, []string{"--health-listen", `":70000"`, "65535"}},
		{"a host name to listen on", append([]string{"serve", "--listen", "evil.example:1"}, good...), 2, []string{"--listen", "evil.example"}},
		{"an allowed host with a port", append([]string{"serve", "--allowed-hosts", "vision.team-a.svc,vision:8970"}, good...), 2, []string{"--allowed-hosts", `"vision:8970"`, "without a port"}},
		{"an allowed host that allows all", append([]string{"serve", "--allowed-hosts", "*"}, good...), 2, []string{"--allowed-hosts"}},
		{"an unknown log level", append([]string{"serve", "--log-level", "loud"}, good...), 2, []string{"--log-level", "loud", "debug, info, warn or error"}},
		{"a relative workspace", append([]string{"serve", "--workspace", "pictures"}, good...), 2, []string{"--workspace", `"pictures"`}},
		{"listeners for mcp, which has none", append([]string{"mcp", "--listen", ":1"}, good...), 2, []string{"--listen"}},
		{"a cache directory that is a file", append([]string{"serve", "--listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", "--cache", "/etc/passwd"}, good...), 1, []string{"cache", "/etc/passwd"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			cmd := exec.Command(path, test.args...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != test.code {
				t.Fatalf("ended with %v; want code %d; stderr %s", err, test.code, &stderr)
			}
			for _, part := range test.says {
				if !strings.Contains(stderr.String(), part) {
					t.Errorf("stderr lacks %q: %s", part, &stderr)
				}
			}
			if stdout.Len() > 0 {
				t.Errorf("stdout has %q", &stdout)
			}
		})
	}
}

func TestHelpAndVersionArePrinted(t *testing.T) {
	for name, want := range map[string]string{"help": "vision-runtime serve", "serve --help": "--health-listen", "mcp -h": "vision-runtime mcp --router DIR", "version": "vision-runtime ", "--version": "vision-runtime "} {
		var stdout strings.Builder
		if err := run(context.Background(), strings.Fields(name), nil, &stdout, io.Discard); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%s prints %q", name, &stdout)
		}
	}
}

func TestTheHelpNamesEachValueInAWord(t *testing.T) {
	var stdout strings.Builder
	if err := run(t.Context(), []string{"serve", "--help"}, nil, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	help := strings.Join(strings.Fields(stdout.String()), " ")
	for _, want := range []string{
		"vision-runtime serve --router DIR --profile ID [flags]",
		"--router DIR DIR that holds router.json, as its ConfigMap is mounted, or the file itself",
		"--profile ID ID of the profile", "policy/NAME or baseline/NAME",
		"--secrets DIR DIR of the providers' keys, each at DIR/<namespace>/<provider>",
		"--cache DIR ", "--workspace DIR absolute DIR", "--log-level LEVEL ", "--listen ADDRESS ", "--health-listen ADDRESS ",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, &stdout)
		}
	}
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	w := newWorld(t)
	first, _ := w.start()
	cfg := w.config()
	cfg.listen = first.agentsAt.String()
	if _, err := start(cfg, newLogger(io.Discard, 0)); err == nil || !strings.Contains(err.Error(), cfg.listen) {
		t.Errorf("got %v", err)
	}
}
