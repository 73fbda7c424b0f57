// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
	strict "github.com/visionoperator/vision-operator/test/upstream"
)

// recording is an upstream that takes everything, but for what it is told to refuse, and keeps what came last.
type recording struct {
	mu      sync.Mutex
	body    []byte
	refusal string // of the next request; "" for none
}

// refuse refuses the next request as Anthropic does, with a message.
func (u *recording) refuse(message string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refusal = message
}

func (u *recording) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	refusal := u.refusal
	u.body, u.refusal = body, ""
	u.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if refusal != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, refusal)
		return
	}
	_, _ = io.WriteString(w, `{}`)
}

func (u *recording) last() []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.body
}

// recorded is a runtime before such an upstream.
func recorded(t *testing.T, change func(*router.Document)) (*models, *recording) {
	t.Helper()
	m, u := laidOut(t, strict.Options{}), &recording{}
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	m.url = server.URL
	m.publish(change)
	m.server, m.log = m.start()
	return m, u
}

// seeing are the models of each dialect that see.
var seeing = map[string]string{"chat": "gpt-5.1", "responses": "gpt-5.1", "anthropic": "claude-opus-5", "gemini": "gemini-2.5-pro"}

// rounds is how many bodies of each dialect these tests make up.
const rounds = 150

// TestBodiesWithNothingToDoGoUpAsTheyCame sends conversations, written as oddly as JSON
// allows, in which there is no image to show.
func TestBodiesWithNothingToDoGoUpAsTheyCame(t *testing.T) {
	m, u := recorded(t, nil)
	picture := onePixel(t)
	for seed, dialect := range dialects {
		t.Run(dialect, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(uint64(seed), 1))
			for range rounds {
				s := spoken{dialect: dialect, model: seeing[dialect], stream: chance.IntN(2) == 0, turns: idle(chance, picture)}
				body := written(s.body(), chance)
				got := post(t, m.server.url(s.path()), body)
				if got.status != http.StatusOK {
					t.Fatalf("%s\nis answered with %d %s", body, got.status, got.body)
				}
				if !bytes.Equal(u.last(), body) {
					t.Fatalf("%s\nwent up as\n%s", body, u.last())
				}
				if header := got.header.Get("X-Vision-Injection"); header != "" {
					t.Errorf("%s\nis told of as %q", body, header)
				}
			}
		})
	}
	if strings.Contains(m.log.String(), `"images shown"`) {
		t.Error("the log tells of images that were shown")
	}
}

// idle are turns in which there is nothing to show: of words, and images that are there.
func idle(chance *rand.Rand, picture []byte) []said {
	words := []string{"hello", "a \"quoted\" wörd / \\ and\nmore", "漢字 \U0001F600", "![not attached](a.png)", strings.Repeat("x", 3000)}
	var turns []said
	for range 1 + chance.IntN(4) {
		human := said{who: "human", text: words[chance.IntN(len(words))]}
		if chance.IntN(3) == 0 {
			human.image = picture
		}
		turns = append(turns, human, said{who: "model", text: words[chance.IntN(len(words))]})
	}
	return append(turns, said{who: "human", text: "and now?"})
}

// TestWhatWasEditedIsTheClientsAgainWithoutTheRangesOfTheLog takes out of what went up
// what the log says was put in, and puts back what it says was deleted: that is
// what the client sent.
func TestWhatWasEditedIsTheClientsAgainWithoutTheRangesOfTheLog(t *testing.T) {
	for name, change := range map[string]func(*router.Document){
		"images put in":            nil,
		"images put in, some gone": func(doc *router.Document) { doc.Profiles[0].Limits.Request.MaxDistinctImages = 2 },
		"images told as text": func(doc *router.Document) {
			eachModel(doc, func(model *router.Model) { model.ImageInput = false })
		},
	} {
		m, u := recorded(t, change)
		picture := onePixel(t)
		for seed, dialect := range dialects {
			t.Run(name+"/"+dialect, func(t *testing.T) {
				chance := rand.New(rand.NewPCG(uint64(seed), 2))
				inserted, deleted := 0, 0
				for round := range rounds / 3 {
					s := spoken{dialect: dialect, model: seeing[dialect], turns: m.viewing(chance, picture, fmt.Sprintf("%d-%d", seed, round))}
					body := written(s.body(), chance)
					before := len(m.log.String())
					got := post(t, m.server.url(s.path()), body)
					if got.status != http.StatusOK {
						t.Fatalf("%s\nis answered with %d %s", body, got.status, got.body)
					}
					sent := u.last()
					if !json.Valid(sent) {
						t.Fatalf("%s\nwent up as\n%s", body, sent)
					}
					edits := editsIn(t, m.log.String()[before:])
					if err := restored(body, sent, edits); err != nil {
						t.Fatalf("%v:\n%s\nwent up as\n%s", err, body, sent)
					}
					for _, e := range edits {
						inserted, deleted = inserted+e.Inserted, deleted+e.Deleted
					}
				}
				if inserted == 0 || (deleted == 0) != (change == nil) {
					t.Errorf("%d bytes were put in and %d deleted: this tests nothing", inserted, deleted)
				}
			})
		}
	}
}

// viewing are turns with calls of view_image among others.
func (m *models) viewing(chance *rand.Rand, picture []byte, name string) []said {
	turns := idle(chance, picture)
	for i := range 1 + chance.IntN(3) {
		path := fmt.Sprintf("%s-%d.png", name, i)
		if chance.IntN(4) > 0 { // else there is none
			m.picture(path)
		}
		id := fmt.Sprintf("call_%s_%d_abcdef", name, i)
		turns = append(turns, said{who: "call", path: path, id: id}, said{who: "result", id: id, text: "viewed \"it\""})
		if chance.IntN(2) == 0 {
			turns = append(turns, said{who: "model", text: "I see."}, said{who: "human", text: "go on", image: picture})
		}
	}
	return turns
}

// TestWhatWasSentAgainIsTheClientsAgainWithoutTheRangesOfTheLog does so where a vendor
// refuses signed reasoning, in each of the ways to send it again.
func TestWhatWasSentAgainIsTheClientsAgainWithoutTheRangesOfTheLog(t *testing.T) {
	m, u := recorded(t, nil)
	for name, refusal := range map[string]string{
		"the vendor can drop it": "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
		"it is removed":          "messages.1.content.0: Invalid `signature` in `thinking` block",
	} {
		for round := range 20 {
			chance := rand.New(rand.NewPCG(uint64(round), 5))
			id := fmt.Sprintf("toolu_%d_%d_abcdef", len(name), round)
			s := spoken{dialect: "anthropic", model: seeing["anthropic"], turns: []said{
				{who: "human", text: "look " + id}, {who: "call", id: id, path: m.picture("a.png")}, {who: "result", id: id, text: "viewed"}, {who: "model", text: "I see"}, {who: "human", text: "more"},
			}}
			document := append(s.body(), member{"thinking", object{{"type", "adaptive"}}})
			messages := document[2].value.(list)
			call := messages[1].(object)
			call[1].value = append(list{object{{"type", "thinking"}, {"thinking", "hm"}, {"signature", "c2lnbmVk"}}}, call[1].value.(list)...)
			body := written(document, chance)
			before := len(m.log.String())
			u.refuse(refusal)
			got := post(t, m.server.url(s.path()), body)
			if header := got.header.Get("X-Vision-Injection"); got.status != http.StatusOK || header != "form=image, injected=1, signatures=dropped" {
				t.Fatalf("%s: %d %s, header %q", name, got.status, got.body, header)
			}
			if err := restored(body, u.last(), editsIn(t, m.log.String()[before:])); err != nil || !json.Valid(u.last()) {
				t.Fatalf("%s: %v:\n%s\nwent up as\n%s", name, err, body, u.last())
			}
		}
	}
}

// edit is a place at which a body was changed, as the log tells it.
type edit struct{ Offset, Deleted, Inserted int }

// editsIn are the edits of the one request that the log tells of; none where it
// tells of none.
func editsIn(t *testing.T, log string) []edit {
	t.Helper()
	var edits []edit
	for line := range strings.Lines(log) {
		var told struct {
			Msg   string
			Edits []edit
		}
		if err := json.Unmarshal([]byte(line), &told); err != nil {
			t.Fatal(err)
		}
		switch told.Msg {
		case "images shown":
			if edits != nil {
				t.Fatal("the log tells of two requests")
			}
			edits = told.Edits
		case "signed reasoning refused; sent again without it":
			edits = told.Edits // of what was sent in the end
		}
	}
	return edits
}

// restored says what keeps a body from being the client's with those edits.
func restored(client, sent []byte, edits []edit) error {
	at, up := 0, 0
	for _, e := range edits {
		kept := e.Offset - at
		if kept < 0 || e.Deleted < 0 || e.Inserted < 0 || e.Offset+e.Deleted > len(client) || up+kept+e.Inserted > len(sent) {
			return fmt.Errorf("the edit %+v is out of range", e)
		}
		if !bytes.Equal(client[at:e.Offset], sent[up:up+kept]) {
			return fmt.Errorf("before the edit %+v something else was changed", e)
		}
		if e.Deleted == e.Inserted && bytes.Equal(client[e.Offset:e.Offset+e.Deleted], sent[up+kept:up+kept+e.Inserted]) {
			return fmt.Errorf("the edit %+v changes nothing", e)
		}
		at, up = e.Offset+e.Deleted, up+kept+e.Inserted
	}
	if !bytes.Equal(client[at:], sent[up:]) {
		return fmt.Errorf("behind the last of the edits %+v something else was changed", edits)
	}
	return nil
}

// TestARouteIsReplacedByTheModelsNameAlone sends a model's route, however it is written.
func TestARouteIsReplacedByTheModelsNameAlone(t *testing.T) {
	m, u := recorded(t, nil)
	for seed, dialect := range dialects[:3] { // Gemini's is in the path
		chance := rand.New(rand.NewPCG(uint64(seed), 3))
		alias := map[string]string{"anthropic": "anthropic"}[dialect]
		if alias == "" {
			alias = "openai"
		}
		for range rounds / 3 {
			s := spoken{dialect: dialect, model: alias + "@main/" + seeing[dialect], turns: idle(chance, nil)}
			body := written(s.body(), chance)
			if got := post(t, m.server.url(s.path()), body); got.status != http.StatusOK {
				t.Fatalf("%s\nis answered with %d %s", body, got.status, got.body)
			}
			head, tail := common(body, u.last())
			changed, now := body[head:len(body)-tail], u.last()[head:len(u.last())-tail]
			var top struct{ Model string }
			if err := json.Unmarshal(u.last(), &top); err != nil || top.Model != seeing[dialect] {
				t.Fatalf("%s\nwent up with the model %q: %v", body, top.Model, err)
			}
			if longest := 6 * len(s.model); len(changed) > longest || bytes.ContainsAny(changed, "{},:") || len(now) > longest {
				t.Fatalf("%s became %s", changed, now)
			}
		}
	}
}

// common is how much two texts have in common at their beginnings and ends.
func common(a, b []byte) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// onePixel is a small PNG.
func onePixel(t *testing.T) []byte {
	t.Helper()
	return drawn(t, "p")
}
