// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/test/loop"
	"github.com/visionoperator/vision-operator/test/upstream"
)

// agents are agents of every dialect and way, by name, for a server at that address.
func agents(base string, stream bool) map[string]loop.Client {
	wire := func(path, model string) loop.Wire {
		return loop.Wire{Base: base + path, Key: "secret", Model: model, Stream: stream}
	}
	return map[string]loop.Client{
		"chat":                     &loop.Chat{Wire: wire("/v1", "gpt-5.1")},
		"responses":                &loop.Responses{Wire: wire("/v1", "gpt-5.1")},
		"responses, previous":      &loop.Responses{Wire: wire("/v1", "gpt-5.1"), Keeps: "previous"},
		"responses, conversations": &loop.Responses{Wire: wire("/v1", "gpt-5.1"), Keeps: "conversation"},
		"anthropic":                &loop.Anthropic{Wire: wire("", "claude-opus-5")},
		"gemini 3":                 &loop.Gemini{Wire: wire("", "gemini-3-pro")},
		"gemini 2":                 &loop.Gemini{Wire: wire("", "gemini-2.5-pro")},
		"gemini, nameless":         &loop.Gemini{Wire: wire("", "gemini-3-flash")},
	}
}

// TestAgentsTalkWithTheUpstream plays every scenario without anything between agent
// and model: nothing is refused, nothing is signed wrongly, and only the images that
// tools returned themselves arrive.
func TestAgentsTalkWithTheUpstream(t *testing.T) {
	for _, scenario := range loop.Scenarios() {
		for _, stream := range []bool{false, true} {
			for name := range agents("", stream) {
				way := ""
				if stream {
					way = ", streamed"
				}
				t.Run(scenario.Name+"/"+name+way, func(t *testing.T) {
					s := upstream.New(upstream.Options{Script: loop.Script, Key: "secret", Nameless: strings.HasSuffix(name, "nameless")})
					h := httptest.NewServer(s)
					defer h.Close()
					client := agents(h.URL, stream)[name]
					report, err := loop.Run(t.Context(), client, &loop.Workspace{Dir: t.TempDir()}, scenario)
					if err != nil {
						t.Fatal(err)
					}
					if len(report.Said) != 6 {
						t.Errorf("the model spoke %d times", len(report.Said))
					}
					for _, problems := range [][]string{s.Mismatches(), s.Refusals(), s.SharedPrefixesEqual(), s.ImagesOnce(), report.Check(s, false)} {
						if len(problems) > 0 {
							t.Error(strings.Join(problems, "\n"))
						}
					}
					if missing := report.Check(s, true); len(missing) == 0 && strings.Contains(scenario.Name, "view") {
						t.Error("views without images are not found missing")
					}
				})
			}
		}
	}
}

func TestAgentsTalkWithAMistralLikeServer(t *testing.T) {
	for _, scenario := range loop.Scenarios() {
		if scenario.Beside != nil {
			continue // a human's word after a tool's is what such a server refuses
		}
		t.Run(scenario.Name, func(t *testing.T) {
			s := upstream.New(upstream.Options{Script: loop.Script, Mistral: true, ToolImages: true})
			h := httptest.NewServer(s)
			defer h.Close()
			client := &loop.Chat{Wire: loop.Wire{Base: h.URL + "/v1", Model: "mistral-large"}, ToolImages: true}
			report, err := loop.Run(t.Context(), client, &loop.Workspace{Dir: t.TempDir()}, scenario)
			if err != nil {
				t.Fatal(err)
			}
			for _, problems := range [][]string{s.Mismatches(), s.Refusals(), s.SharedPrefixesEqual(), report.Check(s, false)} {
				if len(problems) > 0 {
					t.Error(strings.Join(problems, "\n"))
				}
			}
		})
	}
}

func TestALongConversationIsAsLongAsAsked(t *testing.T) {
	s := upstream.New(upstream.Options{Script: loop.Script})
	h := httptest.NewServer(s)
	defer h.Close()
	report, err := loop.Run(t.Context(), agents(h.URL, false)["chat"], &loop.Workspace{Dir: t.TempDir()}, loop.Long(11))
	if err != nil || len(report.Views) != 11 || len(report.Said) != 12 {
		t.Errorf("%d views in %d turns: %v", len(report.Views), len(report.Said), err)
	}
}

// TestAnEditOfTheHistoryIsFound puts between agent and model what must not be: it
// writes an earlier message otherwise, late in the conversation.
func TestAnEditOfTheHistoryIsFound(t *testing.T) {
	for name := range agents("", false) {
		if strings.HasPrefix(name, "responses, ") {
			continue // the agent sends nothing of the history
		}
		t.Run(name, func(t *testing.T) {
			s := upstream.New(upstream.Options{Script: loop.Script})
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				if bytes.Contains(body, []byte("shot-2")) {
					body = bytes.Replace(body, []byte("Viewed "), []byte("Seen "), 1)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				s.ServeHTTP(w, r)
			}))
			defer h.Close()
			report, err := loop.Run(t.Context(), agents(h.URL, false)[name], &loop.Workspace{Dir: t.TempDir()}, loop.Scenarios()[0])
			if len(s.Mismatches()) == 0 || len(s.SharedPrefixesEqual()) == 0 {
				t.Errorf("mismatches %v, prefixes %v", s.Mismatches(), s.SharedPrefixesEqual())
			}
			if name == "chat" { // which signs nothing, and refuses nothing
				return
			}
			refused, ok := errors.AsType[*loop.Status](err)
			if !ok || refused.Code != http.StatusBadRequest || len(s.Mismatches()) != 1 {
				t.Fatalf("the conversation ended with %v", err)
			}
			if len(report.Said) != 2 {
				t.Errorf("it was found after %d turns", len(report.Said))
			}
		})
	}
}
