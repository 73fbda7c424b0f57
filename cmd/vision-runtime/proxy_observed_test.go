// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/loop"
	strict "github.com/visionoperator/vision-operator/test/upstream"
)

// blind makes the models ones that take text alone.
func blind(doc *router.Document) {
	eachModel(doc, func(m *router.Model) { m.ImageInput = false })
}

var dataURL = regexp.MustCompile(`data:image/png;base64,([A-Za-z0-9+/=]+)`)

// recognized is what the model that looks sees in an image: its digest.
func recognized(body []byte) string {
	found := dataURL.FindSubmatch(body)
	if found == nil {
		return "no image"
	}
	png, _ := base64.StdEncoding.DecodeString(string(found[1]))
	return recognizedAs(digestOf(png))
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func recognizedAs(sha256 string) string { return "the picture " + sha256[:16] }

// TestTextOnlyModelsAreToldWhatWasViewed plays every conversation with models that refuse
// images: each view is told as text where its image would be, in every later request
// alike, and each image is looked at once.
func TestTextOnlyModelsAreToldWhatWasViewed(t *testing.T) {
	for name, change := range map[string]func(*router.Document){
		"a text-only model": blind,
		"observations for a model that sees": func(doc *router.Document) {
			doc.Profiles[0].Injection.Mode = router.InjectionObservation
			// What looks is the policy's model, and none of those that are talked to.
			doc.Profiles[0].DefaultModel = "lab@main/eye-1"
		},
	} {
		m := withModels(t, strict.Options{TextOnly: true}, change)
		m.upstream.set(func(u *upstream) { u.sees = recognized })
		eachWay(t, agentNames, func(t *testing.T, agent string, stream bool) {
			for _, s := range loop.Scenarios() {
				t.Run(name+"/"+s.Name, func(t *testing.T) {
					m.strict.Reset()
					looks := m.upstream.calls()
					report := m.play(t, m.agent(agent, stream), s)
					m.flawless(t)
					told(t, m, report)
					seen := 0
					for _, v := range report.Views {
						if !v.Fails {
							seen++
						}
					}
					if got := m.upstream.calls() - looks; got != seen {
						t.Errorf("a model looked %d times at %d images", got, seen)
					}
				})
			}
		})
	}
}

// told looks for each view in the requests after it, as text, once.
func told(t *testing.T, m *models, report *loop.Report) {
	t.Helper()
	for _, r := range m.strict.Of(report.Conversation) {
		all := readable(bytes.Join(r.Messages, nil))
		for _, v := range report.Views {
			if v.Fails || v.Turn >= r.Turn {
				continue
			}
			if n := strings.Count(all, recognizedAs(v.SHA256)); n != 1 {
				t.Errorf("turn %d is told %d times of the view of turn %d", r.Turn, n, v.Turn)
			}
		}
	}
}

var plainData = regexp.MustCompile(`"data":"([A-Za-z0-9+/=]+)"`)

// readable is a body with the texts that stand in it as data, as within a Gemini
// tool's answer, which has no other place for them.
func readable(body []byte) string {
	return plainData.ReplaceAllStringFunc(string(body), func(data string) string {
		text, err := base64.StdEncoding.DecodeString(plainData.FindStringSubmatch(data)[1])
		if err != nil || !utf8.Valid(text) {
			return data
		}
		return string(text)
	})
}

// twice is a conversation in which one picture was viewed two times.
func (m *models) twice(dialect string) *spoken {
	path := m.picture("same.png")
	return &spoken{dialect: dialect, model: seeing[dialect], turns: []said{
		{who: "human", text: "look"}, {who: "call", id: "call_q7Rk2Zb9Lw4T", path: path}, {who: "result", id: "call_q7Rk2Zb9Lw4T", text: "viewed"},
		{who: "model", text: "and again"}, {who: "human", text: "do"},
		{who: "call", id: "call_m3Xv8Pd5Hn6J", path: path}, {who: "result", id: "call_m3Xv8Pd5Hn6J", text: "viewed"},
	}}
}

// TestTheSameImageIsLookedAtOnceAndToldAlikeForGood sends one conversation several times,
// also to a runtime that has been restarted.
func TestTheSameImageIsLookedAtOnceAndToldAlikeForGood(t *testing.T) {
	m, u := recorded(t, blind)
	m.upstream.set(func(u *upstream) { u.sees = recognized })
	before := map[string][]byte{}
	send := func(dialect string) []byte {
		s := m.twice(dialect)
		got := post(t, m.server.url(s.path()), written(s.body(), nil))
		if header := got.header.Get("X-Vision-Injection"); got.status != http.StatusOK || header != "form=observation, observed=2" {
			t.Fatalf("%s: status %d, header %q: %s", dialect, got.status, header, got.body)
		}
		return u.last()
	}
	for _, dialect := range dialects {
		before[dialect] = send(dialect)
		if n := strings.Count(string(before[dialect]), "the picture "); n != 2 || bytes.Contains(before[dialect], []byte("iVBORw0KGgo")) {
			t.Errorf("%s: told %d times: %s", dialect, n, before[dialect])
		}
	}
	for range 2 {
		for _, dialect := range dialects {
			if again := send(dialect); !bytes.Equal(again, before[dialect]) {
				t.Errorf("%s: %s\nis sent again as\n%s", dialect, before[dialect], again)
			}
		}
		m.restart()
		// What looks now would see something else.
		m.upstream.set(func(u *upstream) { u.sees = func([]byte) string { return "the picture, as another saw it" } })
	}
	if n := m.upstream.calls(); n != 1 {
		t.Errorf("a model looked %d times", n)
	}
}

// TestWithoutAModelThatLooksRequiredImagesRefuseAndOthersAreLeftOut has the model that
// looks fail.
func TestWithoutAModelThatLooksRequiredImagesRefuseAndOthersAreLeftOut(t *testing.T) {
	m, u := recorded(t, blind)
	m.upstream.set(func(u *upstream) { u.status = http.StatusBadRequest })
	picture := onePixel(t)
	view := []said{{who: "human", text: "look"}, {who: "call", id: "call_t9Gs4Yc1Bf7K", path: m.picture("a.png")}, {who: "result", id: "call_t9Gs4Yc1Bf7K", text: "viewed"}}
	later := []said{{who: "model", text: "I see."}, {who: "human", text: "and now?"}}
	for _, dialect := range dialects {
		for name, turns := range map[string][]said{"an image of the human's": {{who: "human", text: "look", image: picture}}, "a view": view} {
			t.Run(dialect+"/"+name, func(t *testing.T) {
				s := spoken{dialect: dialect, model: seeing[dialect], turns: turns}
				got := post(t, m.server.url(s.path()), written(s.body(), nil))
				if code := codeOf(t, dialect, got); code != "vision_observation_failed" {
					t.Errorf("the code is %q: %d %s", code, got.status, got.body)
				}
				s.turns = append(s.turns[:len(s.turns):len(s.turns)], later...)
				for range 2 {
					if got = post(t, m.server.url(s.path()), written(s.body(), nil)); got.status != http.StatusOK {
						t.Fatalf("an older image refuses: %d %s", got.status, got.body)
					}
					if n := strings.Count(string(u.last()), "[image left out: no model could look at it]"); n != 1 || got.header.Get("X-Vision-Injection") != "form=observation, degraded=1" {
						t.Errorf("left out %d times, header %q: %s", n, got.header.Get("X-Vision-Injection"), u.last())
					}
				}
			})
		}
	}
}

// codeOf is the code of an error in a dialect's own shape.
func codeOf(t *testing.T, dialect string, got answer) string {
	t.Helper()
	var said struct {
		Type  string
		Error struct {
			Type, Status, Message string
			Code                  json.RawMessage
			Details               []struct {
				Type     string `json:"@type"`
				Reason   string
				Metadata map[string]string
			}
		}
	}
	if err := json.Unmarshal(got.body, &said); err != nil || said.Error.Message == "" {
		t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	var code string
	switch _ = json.Unmarshal(said.Error.Code, &code); dialect {
	case "anthropic":
		if said.Type != "error" || said.Error.Type == "" {
			t.Errorf("no error of Anthropic's: %s", got.body)
		}
	case "gemini":
		if said.Error.Status == "" {
			t.Errorf("no error of Gemini's: %s", got.body)
		}
		for _, d := range said.Error.Details {
			if d.Metadata["code"] != "" {
				code = d.Metadata["code"]
			}
		}
	}
	return code
}

// TestModeImageRefusesModelsThatSeeNone holds a policy that wants images alone.
func TestModeImageRefusesModelsThatSeeNone(t *testing.T) {
	m, u := recorded(t, func(doc *router.Document) {
		blind(doc)
		doc.Profiles[0].Injection.Mode = router.InjectionImage
	})
	for _, dialect := range dialects {
		s := spoken{dialect: dialect, model: seeing[dialect], turns: []said{{who: "human", text: "look", image: onePixel(t)}}}
		if got := post(t, m.server.url(s.path()), written(s.body(), nil)); got.status/100 != 4 || u.last() != nil {
			t.Errorf("%s: %d %s", dialect, got.status, got.body)
		}
	}
}
