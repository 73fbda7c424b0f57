// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/review"
)

// preflighted runs the command, and returns its response and exit code.
func preflighted(t *testing.T, stdin string, args ...string) (r review.Response, code int) {
	t.Helper()
	var stdout bytes.Buffer
	err := run(t.Context(), append([]string{"preflight", "-o", "json"}, args...), strings.NewReader(stdin), &stdout, io.Discard)
	if err != nil {
		code = exitCode(err)
	}
	if uncommon := json.Unmarshal(stdout.Bytes(), &r); uncommon != nil {
		t.Fatalf("%v: %v in %q", err, uncommon, stdout.String())
	}
	return r, code
}

func TestPreflightOfACommandLineThatCannotWorkSaysWhy(t *testing.T) {
	images(t)
	policies := "apiVersion: visionoperator.dev/v1alpha1\nkind: VisionPolicy\nmetadata: {name: one}\n---\napiVersion: visionoperator.dev/v1alpha1\nkind: VisionPolicy\nmetadata: {name: two}\n"
	body := `{"model":"gpt-5.6-sol","messages":[{"role":"user","content":"hello"}]}`
	if err := errors.Join(os.WriteFile("policies.yaml", []byte(policies), 0o600), os.WriteFile("body.json", []byte(body), 0o600)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args string
		says []string
	}{
		"no file":                                   {"", []string{"FILE is missing"}},
		"a wild output":                             {"-o yaml body.json", []string{`"yaml"`, "text and json"}},
		"a wild flag":                               {"--nope body.json", []string{"--nope"}},
		"a wild dialect":                            {"--dialect klingon body.json", []string{"--dialect", `"klingon"`, "gemini-contents"}},
		"an empty namespace":                        {"--namespace= body.json", []string{"--namespace"}},
		"a policy without files":                    {"--policy one body.json", []string{`--policy is "one"`, "--filename"}},
		"a policy by name and by file":              {"--policy one --policy-file policies.yaml body.json", []string{`"one"`, `"policies.yaml"`}},
		"a policy that is not there":                {"--policy three -f policies.yaml body.json", []string{`"three"`, "one, two", `"default"`}},
		"two policies and no choice":                {"-f policies.yaml body.json", []string{"--policy", "2 policies", "one, two"}},
		"standard input for two things":             {"-f - -", []string{"standard input 2 times"}},
		"standard input beside an image":            {"--model gpt-5.6-sol - still.png", []string{"standard input"}},
		"a request beside an image":                 {"--model gpt-5.6-sol still.png body.json", []string{"body.json is a model request", "2 files"}},
		"images for no model":                       {"still.png", []string{"--model is missing"}},
		"images for a model that nobody chose":      {"--model AUTO still.png", []string{"--model is missing"}},
		"a request without a model, and no default": {"--dialect gemini-contents nameless.json", []string{"--model is missing", "nameless.json"}},
	}
	if err := os.WriteFile("nameless.json", []byte(`{"contents":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), append([]string{"preflight"}, strings.Fields(tc.args)...), strings.NewReader(""), io.Discard, io.Discard)
			if exitCode(err) != exitUsage {
				t.Errorf("exit code %d and %v, want %d", exitCode(err), err, exitUsage)
			}
			for _, says := range tc.says {
				if !strings.Contains(fmt.Sprint(err), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		})
	}
}

func TestWhatCannotBeReadOrJudgedExitsWith1(t *testing.T) {
	images(t)
	two := "apiVersion: visionoperator.dev/v1alpha1\nkind: VisionPolicy\nmetadata: {name: one}\n---\napiVersion: visionoperator.dev/v1alpha1\nkind: VisionPolicy\nmetadata: {name: two}\n"
	bad := "apiVersion: visionoperator.dev/v1alpha1\nkind: VisionPolicy\nmetadata: {name: bad}\nspec: {limits: {image: {maxBytes: -7}}}\n"
	small := "apiVersion: visionoperator.dev/v1alpha1\nkind: VisionPolicy\nmetadata: {name: small}\nspec: {limits: {request: {maxBodyBytes: 20}}}\n"
	for name, text := range map[string]string{"two.yaml": two, "bad.yaml": bad, "small.yaml": small} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		args, stdin string
		says        []string
	}{
		"a file that is missing":                  {args: "nope --model m", says: []string{"reading nope", "no such file"}},
		"a folder":                                {args: "folder still.png --model m", says: []string{"reading folder", "a directory"}},
		"an empty file":                           {args: "empty --model m", says: []string{"reading empty", "1 byte"}},
		"nothing at standard input":               {args: "- --model m", says: []string{"reading standard input", "empty"}},
		"JSON of another shape":                   {args: "-", stdin: `{"a":1}`, says: []string{"standard input", "contents, input and messages", "--dialect"}},
		"the shapes of two dialects":              {args: "-", stdin: `{"input":"x","messages":[]}`, says: []string{"input (openai-responses)", "messages (openai-chat)", "--dialect"}},
		"JSON that breaks off":                    {args: "-", stdin: `{"a":1`, says: []string{"not JSON at byte 6 of 6"}},
		"a list":                                  {args: "-", stdin: `[1]`, says: []string{"not an object"}},
		"a review that breaks off":                {args: "-", stdin: `{"request":{"body":7}}`, says: []string{"standard input", "request.body"}},
		"a policy file with two policies":         {args: "still.png --model m --policy-file two.yaml", says: []string{"two.yaml", "1 VisionPolicy", `"default"`, "2"}},
		"a policy file with none":                 {args: "still.png --model m --policy-file missing.yaml", says: []string{"missing.yaml"}},
		"a policy that the API server refuses":    {args: "still.png --model m --policy-file bad.yaml", says: []string{"VisionPolicy default/bad", "spec.limits.image.maxBytes", "1"}},
		"the namespace's one policy, refused too": {args: "still.png --model m -f bad.yaml", says: []string{"VisionPolicy default/bad", "maxBytes"}},
		"another namespace":                       {args: "still.png --model m -n team -f elsewhere.yaml", says: []string{"reading objects", `"team"`, "other"}},
		"a body over the policy's limit":          {args: "- --policy-file small.yaml", stdin: `{"model":"m","messages":[]}`, says: []string{"27 bytes", "limits.request.maxBodyBytes", "20 bytes"}},
	}
	elsewhere := strings.Replace(bad, "{name: bad}", "{name: bad, namespace: other}", 1)
	if err := os.WriteFile("elsewhere.yaml", []byte(elsewhere), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout bytes.Buffer
			err := run(t.Context(), append([]string{"preflight"}, strings.Fields(tc.args)...), strings.NewReader(tc.stdin), &stdout, io.Discard)
			if err == nil || exitCode(err) != exitFailed || stdout.Len() > 0 {
				t.Errorf("exit code %d and %v, printed %q; want %d", exitCode(err), err, stdout.String(), exitFailed)
			}
			for _, says := range tc.says {
				if !strings.Contains(fmt.Sprint(err), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		})
	}
}

func TestTheDialectIsToldByTheShape(t *testing.T) {
	tests := map[string]struct {
		body string
		want message.Dialect
	}{
		"contents":                              {`{"contents":[]}`, message.GeminiContents},
		"contents and instructions":             {`{"systemInstruction":{},"contents":[]}`, message.GeminiContents},
		"input as text":                         {`{"input":"hello"}`, message.OpenAIResponses},
		"input as items":                        {`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]}`, message.OpenAIResponses},
		"a response that goes on":               {`{"previous_response_id":"r"}`, message.OpenAIResponses},
		"text alone":                            {`{"messages":[{"role":"user","content":"hello"}]}`, message.OpenAIChat},
		"no messages yet":                       {`{"messages":[]}`, message.OpenAIChat},
		"messages of another type":              {`{"messages":7,"tools":8,"model":9}`, message.OpenAIChat},
		"an image by URL":                       {`{"messages":[{"role":"user","content":[{"type":"text"},{"type":"image_url"}]}]}`, message.OpenAIChat},
		"an image by source":                    {`{"messages":[{"role":"user","content":[{"type":"text"},{"type":"image"}]}]}`, message.AnthropicMessages},
		"a tool's result as a part":             {`{"messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"tool_result"}]}]}`, message.AnthropicMessages},
		"a tool's result as a message":          {`{"messages":[{"role":"user","content":"x"},{"role":"tool","content":"x"}]}`, message.OpenAIChat},
		"a developer's message":                 {`{"system":"x","messages":[{"role":"developer","content":"x"}]}`, message.OpenAIChat},
		"calls beside the content":              {`{"messages":[{"role":"assistant","tool_calls":[]}]}`, message.OpenAIChat},
		"a message comes before what is beside": {`{"system":"x","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, message.OpenAIChat},
		"tools with input_schema":               {`{"tools":[{"name":"t","input_schema":{}}],"messages":[]}`, message.AnthropicMessages},
		"tools with function":                   {`{"tools":[{"type":"function","function":{}}],"messages":[]}`, message.OpenAIChat},
		"instructions beside":                   {`{"system":"x","max_tokens":9,"messages":[]}`, message.AnthropicMessages},
		"a version as Bedrock wants it":         {`{"anthropic_version":"bedrock-2023-05-31","messages":[]}`, message.AnthropicMessages},
		"a limit in OpenAI's word":              {`{"max_completion_tokens":9,"messages":[]}`, message.OpenAIChat},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var s shape
			if err := json.Unmarshal([]byte(tc.body), &s); err != nil {
				t.Fatal(err)
			}
			if got, err := dialectOf("body.json", &s); got != tc.want || err != nil {
				t.Errorf("got %q and %v, want %q", got, err, tc.want)
			}
		})
	}
}

// inline is a request that holds image files as they are.
func inline(t *testing.T, dialect message.Dialect, files ...string) string {
	t.Helper()
	var parts []string
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, kind := base64.StdEncoding.EncodeToString(data), "image/png"
		if facts, err := probe.Content(data); err == nil {
			kind = facts.MediaType
		}
		parts = append(parts, fmt.Sprintf(map[message.Dialect]string{
			message.OpenAIChat:        `{"type":"image_url","image_url":{"url":"data:%s;base64,%s"}}`,
			message.OpenAIResponses:   `{"type":"input_image","image_url":"data:%s;base64,%s"}`,
			message.AnthropicMessages: `{"type":"image","source":{"type":"base64","media_type":"%s","data":"%s"}}`,
			message.GeminiContents:    `{"inlineData":{"mimeType":"%s","data":"%s"}}`,
		}[dialect], kind, text))
	}
	return fmt.Sprintf(map[message.Dialect]string{
		message.OpenAIChat:        `{"messages":[{"role":"user","content":[%s]}]}`,
		message.OpenAIResponses:   `{"input":[{"role":"user","content":[%s]}]}`,
		message.AnthropicMessages: `{"messages":[{"role":"user","content":[%s]}]}`,
		message.GeminiContents:    `{"contents":[{"role":"user","parts":[%s]}]}`,
	}[dialect], strings.Join(parts, ","))
}

func TestImageFilesGetTheAnswerOfARequestThatHoldsThem(t *testing.T) {
	images(t)
	sets := [][]string{
		{"still.png"}, {"still.png", "turned.jpg", "lies.jpg"}, {"moving.gif"}, {"late.jpg", "still.png"},
		{"notes"}, {"cut.png", "still.png"}, {"drawing.svg"}, {"named.jxl"},
	}
	for _, dialect := range message.Dialects() {
		for _, model := range []string{"claude-opus-4-7", "gpt-5.6-sol", "gemini-3-pro", "qwen3-vl-8b"} {
			for _, files := range sets {
				args := []string{"--dialect", string(dialect), "--model", model}
				byFiles, code := preflighted(t, "", append(args, files...)...)
				byBody, want := preflighted(t, inline(t, dialect, files...), append(args, "-")...)
				sameButID := cmpopts.IgnoreFields(preflight.Decision{}, "ID", "Message")
				if diff := cmp.Diff(byBody.Decisions, byFiles.Decisions, sameButID); diff != "" || code != want {
					t.Errorf("%s, %s, %v: exit codes %d and %d, decisions differ (-body +files):\n%s", dialect, model, files, want, code, diff)
				}
				if byFiles.Allowed != byBody.Allowed || byFiles.Tokens.Images != byBody.Tokens.Images || (code == 0) != byFiles.Allowed {
					t.Errorf("%s, %s, %v: %t and %d tokens by files, %t and %d by body", dialect, model, files, byFiles.Allowed, byFiles.Tokens.Images, byBody.Allowed, byBody.Tokens.Images)
				}
				for i, d := range byFiles.Decisions {
					if d.ID != files[i] || !d.Required {
						t.Errorf("%s: decision %d is on %q, required %t; want %q", dialect, i, d.ID, d.Required, files[i])
					}
				}
			}
		}
	}
}

func TestARefusalNamesTheFileTheLimitAndTheValue(t *testing.T) {
	files := images(t)
	odd := "a \"b\"\n.png"
	big, most := "big.png", int64(20<<20)
	if err := errors.Join(os.WriteFile(odd, files["still.png"], 0o600), os.WriteFile(big, files["still.png"], 0o600), os.Truncate(big, most+1)); err != nil {
		t.Fatal(err)
	}
	r, code := preflighted(t, "", "--model", "gpt-5.6-sol", "still.png", big)
	if want := "the image big.png has 20.0 MiB (20971521 bytes); the policy declares limits.image.maxBytes 20 MiB (20971520 bytes)"; code != exitFailed || r.Status == nil || r.Status.Message != want {
		t.Errorf("exit code %d and %+v, want %q", code, r.Status, want)
	}
	if !json.Valid(r.Status.Body) || !bytes.Contains(r.Status.Body, []byte("big.png")) || bytes.Contains(r.Status.Body, []byte("content[")) {
		t.Errorf("the answer is %s", r.Status.Body)
	}
	if r.Decisions[0].Outcome != preflight.Admitted || r.Decisions[1].Reason != preflight.ReasonBytes {
		t.Errorf("decisions are %+v", r.Decisions)
	}
	if err := errors.Join(os.Truncate(big, most), os.WriteFile(odd, []byte("no image"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if r, code = preflighted(t, "", "--model", "gpt-5.6-sol", big); code != 0 || !r.Allowed {
		t.Errorf("exit code %d and %+v for an image of exactly 20 MiB", code, r.Status)
	}
	if r, _ = preflighted(t, "", "--model", "gpt-5.6-sol", odd); r.Decisions[0].ID != odd || !json.Valid(r.Status.Body) || !strings.Contains(r.Status.Message, `\n.png`) {
		t.Errorf("decisions are %+v, status %+v", r.Decisions, r.Status)
	}
}

func TestBudgetsCountDistinctFiles(t *testing.T) {
	files := images(t)
	var names []string
	for i := range 9 {
		name := fmt.Sprintf("%d.png", i)
		content := slices.Concat(files["still.png"], []byte{byte(min(i, 7))}) // the last two are alike
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if r, code := preflighted(t, "", append(names, "--model", "gpt-5.6-sol")...); code != 0 || len(r.Decisions) != 9 {
		t.Errorf("exit code %d and %+v for 8 contents in 9 files", code, r.Status)
	}
	if r, code := preflighted(t, "", append(names, "still.png", "--model", "gpt-5.6-sol")...); code != exitFailed || r.Status.Reason != preflight.ReasonImages || !strings.Contains(r.Status.Message, "maxDistinctImages 8") {
		t.Errorf("exit code %d and %+v for 9 contents", code, r.Status)
	}
	for _, name := range names[:5] {
		if err := os.Truncate(name, 7<<20); err != nil {
			t.Fatal(err)
		}
	}
	r, code := preflighted(t, "", append(names[:5:5], "--model", "gpt-5.6-sol")...)
	if code != exitFailed || r.Status.Reason != preflight.ReasonTotalBytes || !strings.Contains(r.Status.Message, "35 MiB") || !strings.Contains(r.Status.Message, "maxTotalImageBytes 20 MiB (20971520 bytes)") {
		t.Errorf("exit code %d and %+v for five of 7 MiB", code, r.Status)
	}
}

func TestOf17PathsNoneIsOpened(t *testing.T) {
	images(t)
	var names []string
	for i := range 17 {
		names = append(names, fmt.Sprintf("missing-%d.png", i)) // which opening would tell
	}
	r, code := preflighted(t, "", append(names, "--model", "claude-opus-4-7")...)
	if code != exitFailed || r.Allowed || r.Status.Reason != preflight.ReasonPaths || !strings.Contains(r.Status.Message, "17 different") || !strings.Contains(r.Status.Message, "limits.request.maxProbedPaths 16") {
		t.Fatalf("exit code %d and %+v", code, r.Status)
	}
	var body struct{ Type string }
	if err := json.Unmarshal(r.Status.Body, &body); err != nil || body.Type != "error" {
		t.Errorf("the answer %s is not of the model's dialect", r.Status.Body)
	}
	if len(r.Decisions) != 17 || r.Decisions[16].ID != names[16] || r.Decisions[16].Outcome != preflight.Refused || r.Decisions[16].Reason != preflight.ReasonPaths {
		t.Errorf("decisions are %+v", r.Decisions)
	}
	same := slices.Repeat([]string{"still.png", "./still.png"}, 10)
	if r, code := preflighted(t, "", append(same, "--model", "gpt-5.6-sol")...); code != 0 || len(r.Decisions) != 20 {
		t.Errorf("exit code %d and %+v for one file named 20 times", code, r.Status)
	}
	if err := run(t.Context(), append([]string{"preflight"}, names...), nil, io.Discard, io.Discard); exitCode(err) != exitUsage {
		t.Errorf("without a model: %v", err)
	}
}

func TestTheShortestHeadTellsWhatTheWholeDoes(t *testing.T) {
	for name, data := range images(t) {
		head := data[:min(len(data), probe.MaxHeader)]
		short := shortest(head, int64(len(data)))
		want, refused := probe.Head(head, int64(len(data)))
		got, err := probe.Head(short, int64(len(data)))
		if got != want || fmt.Sprint(err) != fmt.Sprint(refused) {
			t.Errorf("%s: %d of %d bytes tell %+v and %v, not %+v and %v", name, len(short), len(head), got, err, want, refused)
		}
	}
	data, err := os.ReadFile("late.jpg")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(shortest(data[:probe.MaxHeader], int64(len(data)))); n > 64 {
		t.Errorf("%d bytes are kept of a head that tells no size", n)
	}
}

func TestTheModelAndTheLimitsComeFromThePolicy(t *testing.T) {
	images(t)
	objects := `apiVersion: visionoperator.dev/v1alpha1
kind: VisionProvider
metadata: {name: house}
spec:
  transport: AnthropicMessages
  endpoints: [{name: main, url: "https://models.example.com"}]
  credentials: {secretRef: {name: key, key: key}}
  models:
    - {name: seer, imageInput: true, contextWindowTokens: 200000}
    - {name: writer, imageInput: false}
---
apiVersion: visionoperator.dev/v1alpha1
kind: VisionPolicy
metadata: {name: strict}
spec:
  defaultModel: house/seer
  limits: {image: {mediaTypes: [image/png]}}
`
	if err := os.WriteFile("objects.yaml", []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args    []string
		refused string
	}{
		"the policy's default model":      {[]string{"still.png"}, ""},
		"a type that the policy lacks":    {[]string{"still.png", "turned.jpg"}, preflight.ReasonMediaType},
		"a model that is blind, by name":  {[]string{"still.png", "--model", "writer"}, preflight.ReasonBlind},
		"a model that is blind, by route": {[]string{"still.png", "--model", "house@main/writer"}, preflight.ReasonBlind},
		"a model that is not declared":    {[]string{"still.png", "--model", "gpt-5.6-sol"}, ""},
		"auto is the policy's default":    {[]string{"still.png", "--model", "auto"}, ""},
		"the policy by its name":          {[]string{"turned.jpg", "--policy", "strict"}, preflight.ReasonMediaType},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, code := preflighted(t, "", append(tc.args, "-f", "objects.yaml")...)
			if (code == 0) != (tc.refused == "") || (tc.refused != "" && r.Status.Reason != tc.refused) {
				t.Errorf("exit code %d and %+v, want %q", code, r.Status, tc.refused)
			}
		})
	}
	r, _ := preflighted(t, "", "still.png", "-f", "objects.yaml")
	if r.Tokens.Window != 200_000 {
		t.Errorf("the window is %d", r.Tokens.Window)
	}
	var body struct{ Type string }
	r, _ = preflighted(t, "", "still.png", "--model", "writer", "-f", "objects.yaml")
	if err := json.Unmarshal(r.Status.Body, &body); err != nil || body.Type != "error" {
		t.Errorf("the answer %s is not of the provider's dialect", r.Status.Body)
	}
}

// FuzzPreflightOfABody holds the reading of requests against anything: it ends, and
// what it takes has a dialect.
func FuzzPreflightOfABody(f *testing.F) {
	bodies, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(bodies) == 0 {
		f.Fatalf("found no seeds: %v", err)
	}
	for _, path := range bodies {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"request":{"path":"/v1/messages","body":{"messages":[{"content":[{"type":"image"}]}]}}}`))
	f.Add([]byte(`{"messages":[null,7,{"role":8,"content":[9,null]}],"tools":{}}`))
	o := &preflightOptions{files: []string{"-"}, model: "m", namespace: "team"}
	g, err := govern(o, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := ask(o, g, bytes.NewReader(data))
		if err != nil {
			return
		}
		if a.request.Dialect == "" {
			t.Errorf("no dialect for %q", data)
		}
		response, err := review.Review(t.Context(), &a.request, g.grants)
		if err != nil {
			return
		}
		a.rename(response)
		if text := a.text(g, response); !strings.Contains(text, "Verdict") {
			t.Errorf("printed %q", text)
		}
	})
}
