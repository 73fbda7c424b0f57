// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/rest"
)

// written is an answer; a longer length than text has breaks off.
type written struct {
	text     string
	size     int
	released int
}

func (w *written) Len() int64        { return int64(w.size) }
func (w *written) Reader() io.Reader { return strings.NewReader(w.text) }
func (w *written) Release()          { w.released++ }

// ask sends one question to a listener of the API over inject.
func ask(t *testing.T, body string, inject func(context.Context, io.Reader, int64) (rest.Answer, error)) (*http.Response, string, error) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = "127.0.0.1:8970"
		serve.Handler(rest.Routes(rest.Options{Inject: inject, MaxReviewBytes: func() int64 { return 100 }}), serve.Options{Guard: guard.Options{Port: 8970}}).ServeHTTP(w, r)
	})
	server.Start()
	defer server.Close()
	resp, err := http.Post(server.URL+"/v1/inject", "application/json", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp, string(data), err
}

func TestAnAnswerIsWrittenAsItIsReadAndThenReleased(t *testing.T) {
	answer := &written{text: `{"decision":{}}` + "\n", size: 16}
	resp, body, err := ask(t, `{"x":1}`, func(_ context.Context, r io.Reader, size int64) (rest.Answer, error) {
		if sent, err := io.ReadAll(r); string(sent) != `{"x":1}` || size != 7 || err != nil {
			t.Errorf("asked %q of %d bytes, %v", sent, size, err)
		}
		return answer, nil
	})
	if err != nil || resp.StatusCode != http.StatusOK || body != answer.text || resp.ContentLength != 16 || answer.released != 1 || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v: %v, %q, released %d times", err, resp, body, answer.released)
	}
}

func TestAnAnswerThatEndsTooEarlyIsNoAnswer(t *testing.T) {
	answer := &written{text: `{"decision"`, size: 16}
	_, body, err := ask(t, `{}`, func(_ context.Context, r io.Reader, _ int64) (rest.Answer, error) {
		_, _ = io.Copy(io.Discard, r)
		return answer, nil
	})
	if err == nil || answer.released != 1 {
		t.Errorf("read %q, released %d times", body, answer.released)
	}
}

func TestQuestionsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		failed error
		status int
		reason string
	}{
		"by the policy":                      {`{}`, fault.New(fault.PolicyDenied, "ModelNotAllowed", "no"), 403, "ModelNotAllowed"},
		"for an image that nobody looked at": {`{}`, fault.New(fault.VisionObservationFailed, "X", "no"), 502, "X"},
		"by an error that is no fault":       {`{}`, errors.New("secret"), 502, "Internal"},
		"for its length":                     {`{"a":"` + strings.Repeat("x", 100) + `"}`, nil, 413, "BodyTooLarge"},
	} {
		resp, body, err := ask(t, c.body, func(_ context.Context, r io.Reader, _ int64) (rest.Answer, error) {
			_, _ = io.Copy(io.Discard, r)
			return nil, c.failed
		})
		if err != nil {
			t.Fatal(err)
		}
		var failure struct{ Error struct{ Reason string } }
		if json.Unmarshal([]byte(body), &failure) != nil || resp.StatusCode != c.status || failure.Error.Reason != c.reason || strings.Contains(body, "secret") {
			t.Errorf("%s: status %d, %s", name, resp.StatusCode, body)
		}
	}
}

// The document's examples are as the API is described.
func TestTheExamplesOfInjectionAreAsDescribed(t *testing.T) {
	data, err := rest.Document("v1")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	remarshal(t, json.RawMessage(strings.ReplaceAll(string(data), "#/components/schemas/", "#/$defs/")), &doc)
	text, err := os.ReadFile("../../../docs/inject.md")
	if err != nil {
		t.Fatal(err)
	}
	for mark, schema := range map[string]string{"request": "Injection", "response": "InjectionAnswer"} {
		var described jsonschema.Schema
		remarshal(t, map[string]any{"$ref": "#/$defs/" + schema, "$defs": doc.Components.Schemas}, &described)
		resolved, err := described.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile("(?s)<!-- "+mark+" -->\n```json\n(.*?)```").FindAllSubmatch(text, -1)
		if len(found) != 2 {
			t.Errorf("%d of %s", len(found), mark)
		}
		for _, example := range found {
			var value any
			if err := json.Unmarshal(example[1], &value); err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(value); err != nil {
				t.Errorf("%s: %v", mark, err)
			}
		}
		if err := resolved.Validate(map[string]any{"messages": []any{}, "decision": map[string]any{}}); err == nil {
			t.Errorf("%s: anything goes", mark)
		}
	}
}
