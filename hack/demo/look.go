// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
)

// What the demo asks about, and where the pictures come from.
const (
	prompt         = "Read all text. What failed, and what should the on-call engineer do?"
	sentencePrompt = "Read the sentence."
	screenshot     = "test/images/release-dashboard.png"
	screenshotPage = "test/images/release-dashboard.html"
)

// viewAnswer is the body of POST /v1/view-image, whichever way it went.
type viewAnswer struct {
	observation.Result
	Error *fault.Fault `json:"error"`

	status int
	took   time.Duration
}

// view asks the runtime to look at a file.
func (d *demo) view(ctx context.Context, path, prompt string) (viewAnswer, error) {
	body, err := json.Marshal(map[string]string{"path": path, "prompt": prompt})
	if err != nil {
		return viewAnswer{}, err
	}
	started := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, runtimeURL+"/v1/view-image", bytes.NewReader(body))
	if err != nil {
		return viewAnswer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return viewAnswer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return viewAnswer{}, err
	}
	answer := viewAnswer{status: resp.StatusCode, took: time.Since(started)}
	if err := json.Unmarshal(data, &answer); err != nil {
		return viewAnswer{}, fmt.Errorf("reading the answer (HTTP %d): %w", resp.StatusCode, err)
	}
	return answer, nil
}

// look asks for a file in the agent's workspace and wants an observation.
func (d *demo) look(ctx context.Context, name, prompt string) (viewAnswer, error) {
	answer, err := d.view(ctx, name, prompt)
	if err != nil {
		return answer, err
	}
	if answer.Error != nil {
		return answer, fmt.Errorf("asking for %s: HTTP %d: %w", name, answer.status, answer.Error)
	}
	if answer.Observation == nil {
		return answer, fmt.Errorf("asking for %s: HTTP %d without an observation", name, answer.status)
	}
	return answer, nil
}

// place puts a file into the agent's workspace, as its own container would.
func (d *demo) place(name string, data []byte) error {
	for _, m := range d.pod.Spec.Containers[0].VolumeMounts {
		if path := d.kubelet.mounted[m.Name]; path != "" {
			return os.WriteFile(filepath.Join(path, name), data, 0o644)
		}
	}
	return fmt.Errorf("the agent shares no workspace with the runtime")
}

func (d *demo) lookAtScreenshot(ctx context.Context) error {
	data, err := os.ReadFile(screenshot)
	if err != nil {
		return err
	}
	if err := d.place("screenshot.png", data); err != nil {
		return err
	}
	answer, err := d.look(ctx, "screenshot.png", prompt)
	if err != nil {
		return err
	}
	if answer.Cached {
		return fmt.Errorf("the first look came from a cache")
	}
	paragraph, err := paragraphOf(screenshotPage)
	if err != nil {
		return err
	}
	found, missing := compareWords(paragraph, readText(answer.Observation))
	d.show(fmt.Sprintf("HTTP %d in %s", answer.status, answer.took.Round(time.Millisecond)), brief(&answer.Result))
	d.say("of the %d words of the screenshot's paragraph %d were read", found+len(missing), found)
	if len(missing) > 0 {
		d.say("not read: %q", missing)
	}
	if found < 9*len(missing)+1 {
		return fmt.Errorf("the observation does not hold the screenshot's text")
	}
	d.seen = &answer.Result
	return nil
}

func (d *demo) lookAgain(ctx context.Context) error {
	answer, err := d.look(ctx, "screenshot.png", prompt)
	if err != nil {
		return err
	}
	if !answer.Cached {
		return fmt.Errorf("the second look was not answered from the cache")
	}
	if !reflect.DeepEqual(answer.Observation, d.seen.Observation) {
		return fmt.Errorf("the cached observation differs from the first")
	}
	d.say("the same observation from the cache in %s", answer.took.Round(10*time.Microsecond))
	return nil
}

func (d *demo) lookAtSentence(ctx context.Context) error {
	sentence, err := makeUpSentence()
	if err != nil {
		return err
	}
	d.sentence = sentence
	picture, err := drawSentence(sentence)
	if err != nil {
		return err
	}
	if err := d.place("sentence.png", picture); err != nil {
		return err
	}
	d.say("drew: %q", sentence)
	answer, err := d.look(ctx, "sentence.png", sentencePrompt)
	if err != nil {
		return err
	}
	read := readText(answer.Observation)
	d.say("read: %q", read)
	if _, missing := compareWords(sentence, read); len(missing) > 0 {
		return fmt.Errorf("the observation lacks %q", missing)
	}
	return nil
}

// lookOverMCP calls the tool with the official client and compares the answer
// with the one over HTTP.
func (d *demo) lookOverMCP(ctx context.Context) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "vision-demo", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: mcpURL}, nil)
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", mcpURL, err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ViewImage",
		Arguments: map[string]any{"path": "screenshot.png", "prompt": prompt}})
	if err != nil {
		return fmt.Errorf("calling ViewImage: %w", err)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if result.IsError || !ok {
		return fmt.Errorf("the tool answered %+v", result)
	}
	overHTTP, err := d.look(ctx, "screenshot.png", prompt)
	if err != nil {
		return err
	}
	same, err := equalJSON(result.StructuredContent, overHTTP.Result)
	if err != nil {
		return err
	}
	if !same {
		return fmt.Errorf("the MCP answer differs from the HTTP answer")
	}
	d.show("the tool's text", clip(text.Text, 1200))
	d.say("its structured content equals the HTTP answer")
	return nil
}

func equalJSON(a, b any) (bool, error) {
	var decoded [2]any
	for i, v := range []any{a, b} {
		data, err := json.Marshal(v)
		if err != nil {
			return false, err
		}
		if err := json.Unmarshal(data, &decoded[i]); err != nil {
			return false, err
		}
	}
	return reflect.DeepEqual(decoded[0], decoded[1]), nil
}

// brief is an answer with its long lists cut, for reading.
func brief(r *observation.Result) string {
	short := *r
	o := *r.Observation
	for _, list := range []*[]map[string]any{&o.OCR, &o.Elements, &o.Relations} {
		if len(*list) > 2 {
			rest := len(*list) - 2
			*list = append(append([]map[string]any{}, (*list)[:2]...), map[string]any{"…": fmt.Sprintf("%d more", rest)})
		}
	}
	short.Observation = &o
	text, err := json.MarshalIndent(&short, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "\n…"
}

// readText joins what an observation says was written in the image.
func readText(o *observation.Observation) string {
	var lines []string
	for _, entry := range o.OCR {
		if text, ok := entry["text"].(string); ok {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, " ")
}

var (
	firstParagraph = regexp.MustCompile(`(?s)<p>(.*?)</p>`)
	word           = regexp.MustCompile(`[\pL\pN][\pL\pN.:]*[\pL\pN]|[\pL\pN]`)
)

// paragraphOf reads the first paragraph of the page that a screenshot shows.
func paragraphOf(page string) (string, error) {
	data, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	match := firstParagraph.FindSubmatch(data)
	if match == nil {
		return "", fmt.Errorf("%s has no paragraph", page)
	}
	return string(match[1]), nil
}

// compareWords counts the words of want that got has too, and lists the others.
func compareWords(want, got string) (found int, missing []string) {
	have := map[string]bool{}
	for _, w := range word.FindAllString(strings.ToLower(got), -1) {
		have[w] = true
	}
	for _, w := range word.FindAllString(strings.ToLower(want), -1) {
		if have[w] {
			found++
			continue
		}
		missing = append(missing, w)
	}
	return found, missing
}

var sentenceWords = strings.Fields(`amber bridge candle desert engine forest garden harbor island
	jungle kitchen lantern marble number orange painter quarry ribbon silver timber umbrella
	velvet winter yellow zebra anchor basket copper dragon emerald`)

// makeUpSentence draws words at random.
func makeUpSentence() (string, error) {
	words := []string{"The"}
	for range 6 {
		i, err := rand.Int(rand.Reader, big.NewInt(int64(len(sentenceWords))))
		if err != nil {
			return "", err
		}
		words = append(words, sentenceWords[i.Int64()])
	}
	return strings.Join(words, " ") + ".", nil
}
