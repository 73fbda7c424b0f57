// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
)

var updateDocs = flag.Bool("update-docs", false, "write the answers of docs/inject.md anew")

const injectDoc = "../../docs/inject.md"

// dot is a PNG of 8x8 pixels.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAIAQAAAADsdIMmAAAADklEQVR4nGMIZVjFgIQBHpwD/W19h+YAAAAASUVORK5CYII="

// pairs are the questions of the document with their answers.
var pairs = regexp.MustCompile("(?s)<!-- request -->\n```json\n(.*?)```\n\n<!-- response -->\n```json\n(.*?)```\n")

// longBase64 is what the document cuts short.
var longBase64 = regexp.MustCompile(`[A-Za-z0-9+/]{80,}=*`)

// documented is an answer as the document has it.
func documented(t *testing.T, body []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(body), "", "  "); err != nil {
		t.Fatal(err)
	}
	return longBase64.ReplaceAllStringFunc(out.String(), func(run string) string { return run[:12] + "…" }) + "\n"
}

func TestTheDocumentsQuestionsHaveTheDocumentsAnswers(t *testing.T) {
	w := newWorld(t)
	data, err := base64.StdEncoding.DecodeString(dot)
	if err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(w.workspace, "chart.png"), data)
	w.write(filepath.Join(w.cache, podKeyFile), bytes.Repeat([]byte{7}, podKeyBytes))
	w.publish(nil)
	s, log := w.start()
	doc, err := os.ReadFile(injectDoc)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	now := pairs.ReplaceAllFunc(doc, func(pair []byte) []byte {
		found++
		parts := pairs.FindSubmatch(pair)
		got := post(t, s.url("/v1/inject"), parts[1])
		if got.status != http.StatusOK || got.header.Get("Content-Length") != fmt.Sprint(len(got.body)) {
			t.Fatalf("status %d, %s: %s", got.status, got.header, got.body)
		}
		want := documented(t, got.body)
		if string(parts[2]) != want && !*updateDocs {
			t.Errorf("the answer is\n%s\nand the document has\n%s", want, parts[2])
		}
		return bytes.Replace(pair, append([]byte("<!-- response -->\n```json\n"), parts[2]...), []byte("<!-- response -->\n```json\n"+want), 1)
	})
	if found != 2 {
		t.Errorf("%d pairs were found", found)
	}
	if *updateDocs {
		if err := os.WriteFile(injectDoc, now, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text := log.String(); strings.Contains(text, "iVBOR") || strings.Contains(text, "on the chart") || !strings.Contains(text, `"msg":"inject answered","outcome":"changed","reason":"Ready"`) {
		t.Errorf("the log is %s", text)
	}
}

func TestQuestionsAreAnsweredThroughTheWholeListener(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start()
	chat := `[{"role":"user","content":"?"},{"role":"assistant","tool_calls":[{"id":"call_8fK2mQ1x","type":"function","function":{"name":"view_image","arguments":"{\"path\":\"a.png\"}"}}]},{"role":"tool","tool_call_id":"call_8fK2mQ1x","content":"read"}]`
	question := []byte(`{"dialect":"openai-chat","model":"eye-1","messages":` + chat + `}`)
	if got := post(t, s.url("/v1/inject"), question); got.status != http.StatusServiceUnavailable || got.fault(t)["reason"] != "NoRouter" {
		t.Errorf("without a router: status %d, %s", got.status, got.body)
	}
	w.picture("a.png")
	w.publish(func(d *router.Document) { d.Profiles[0].Limits.Request.MaxBodyBytes = 4096 })
	eventually(t, "the router is read", func() bool { return s.app.engine.ProfileFound() })
	for _, chunked := range []bool{false, true} {
		r, err := http.NewRequest(http.MethodPost, s.url("/v1/inject"), bytes.NewReader(question))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if chunked {
			r.ContentLength = -1
		}
		var answer struct {
			Decision struct{ Injected int }
			Ranges   []struct{ Text string }
		}
		if got := do(t, r); json.Unmarshal(got.body, &answer) != nil || got.status != http.StatusOK || answer.Decision.Injected != 1 || len(answer.Ranges) != 1 || !strings.Contains(answer.Ranges[0].Text, base64.StdEncoding.EncodeToString(w.loose("a.png"))) {
			t.Errorf("chunked %t: status %d, %s", chunked, got.status, got.body)
		}
	}
	for name, c := range map[string]struct {
		body         string
		status       int
		reason, says string
	}{
		"too long":     {`{"dialect":"openai-chat","messages":["` + strings.Repeat("x", 5000) + `"]}`, 413, "BodyTooLarge", "Send fewer messages"},
		"no JSON":      {`{"dialect":`, 400, "NotJSON", ""},
		"no messages":  {`{"dialect":"openai-chat"}`, 400, "Missing", "dialect"},
		"an open call": {`{"dialect":"openai-chat","messages":[],"tools":[]}`, 400, "UnknownMember", ""},
	} {
		got := post(t, s.url("/v1/inject"), []byte(c.body))
		if f := got.fault(t); got.status != c.status || f["reason"] != c.reason || !strings.Contains(string(got.body), c.says) {
			t.Errorf("%s: status %d, %s", name, got.status, got.body)
		}
	}
	if got := get(t, s.url("/v1/inject")); got.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d", got.status)
	}
	metrics := string(get(t, "http://"+s.healthAt.String()+"/metrics").body)
	for _, line := range []string{`{outcome="changed"} 2`, `{outcome="invalid_tool_input"} 3`, `{outcome="router_unavailable"} 1`} {
		if !strings.Contains(metrics, "vision_inject_requests_total"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if w.upstream.calls() != 0 {
		t.Error("the model was called")
	}
}
