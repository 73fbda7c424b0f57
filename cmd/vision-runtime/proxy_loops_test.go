// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/loop"
	strict "github.com/visionoperator/vision-operator/test/upstream"
)

// TestAgentsLoopThroughTheRuntime plays every conversation in every dialect: each image
// that was viewed is in every later request once, beside its call, no prefix ever
// changes, and nothing is signed over another conversation.
func TestAgentsLoopThroughTheRuntime(t *testing.T) {
	m := withModels(t, strict.Options{}, nil)
	eachWay(t, agentNames, func(t *testing.T, name string, stream bool) {
		for _, s := range loop.Scenarios() {
			t.Run(s.Name, func(t *testing.T) { m.loop(t, name, stream, s) })
		}
	})
	for _, secret := range []string{key, agentKey, "iVBORw0KGgo"} {
		if strings.Contains(m.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// loop plays one conversation and checks what the vendor got.
func (m *models) loop(t *testing.T, name string, stream bool, s loop.Scenario) *loop.Report {
	t.Helper()
	m.strict.Reset()
	report := m.play(t, m.agent(name, stream), s)
	m.flawless(t)
	complain(t, "views", report.Check(m.strict, true))
	for _, r := range m.strict.Requests() {
		if strings.Contains(r.Query, agentKey) || strings.Contains(strings.Join(headerValues(r.Header), " "), agentKey) {
			t.Errorf("%s carries the agent's own credential", r.Path)
		}
	}
	return report
}

func headerValues(h map[string][]string) []string {
	var all []string
	for _, values := range h {
		all = append(all, values...)
	}
	return all
}

func TestGeminisWithoutIDsOfCallsLoopThroughTheRuntime(t *testing.T) {
	m := withModels(t, strict.Options{Nameless: true}, nil)
	eachWay(t, []string{"gemini 2", "gemini 3"}, func(t *testing.T, name string, stream bool) {
		for _, s := range loop.Scenarios() {
			t.Run(s.Name, func(t *testing.T) { m.loop(t, name, stream, s) })
		}
	})
}

// Servers such as Mistral's refuse a user's message behind a tool's: images go behind a
// short message of the assistant's, or into the tool's message where that is taken.
// Agents of theirs have no way to say a word beside the results.
func TestMistralLikeServersLoopThroughTheRuntime(t *testing.T) {
	for _, place := range []string{"", router.ToolImagesInToolResult, router.ToolImagesAssistantThenUser} {
		m := withModels(t, strict.Options{Mistral: true, ToolImages: true}, func(doc *router.Document) {
			eachModel(doc, func(model *router.Model) {
				if strings.HasPrefix(model.Name, "mistral") {
					model.ToolImages = place
				}
			})
		})
		eachWay(t, []string{"mistral"}, func(t *testing.T, name string, stream bool) {
			for _, s := range loop.Scenarios() {
				if s.Beside == nil {
					t.Run(place+" "+s.Name, func(t *testing.T) {
						report := m.loop(t, name, stream, s)
						inTools(t, m.strict, report, place == router.ToolImagesInToolResult)
					})
				}
			}
		})
	}
}

// inTools looks whether the runtime put images into tools' messages. Those that tools
// return themselves stand there in any case.
func inTools(t *testing.T, s *strict.Server, report *loop.Report, want bool) {
	t.Helper()
	own := map[string]bool{}
	for _, v := range report.Views {
		own[v.SHA256] = v.Own
	}
	for _, r := range s.Requests() {
		for _, image := range r.Images {
			if !own[image.SHA256] && image.Result != want {
				t.Errorf("%s: the image at %s stands in a tool's message: %v", r.Conversation, image.Place, image.Result)
			}
		}
	}
}
