// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// album is a chat in which a human has shown an image, then asked, and the
// assistant has viewed b.png and c.png, one after the other, within a policy that
// keeps two images: the human's is left out.
type album struct {
	*gallery
	image string
}

func newAlbum(t *testing.T, keep string) *album {
	t.Helper()
	a := &album{newGallery(t, inMemory(1)), base64.StdEncoding.EncodeToString(square(t, 8, 1))}
	a.write("b.png", square(t, 8, 2))
	a.write("c.png", square(t, 8, 3))
	a.use(proxied(func(d *router.Document) {
		d.Profiles[0].Limits.Request.MaxDistinctImages = 2
		d.Profiles[0].Injection.Keep = keep
	}))
	return a
}

// send sends the conversation with the rest behind it, and fails unless the
// human's image is left out.
func (a *album) send(rest string) (string, *engine.Prepared) {
	a.t.Helper()
	view := func(id, path string) string {
		return fmt.Sprintf(`,{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":{"name":"view_image","arguments":"{\"path\":\"%s\"}"}}]},`+
			`{"role":"tool","tool_call_id":%q,"content":"read"}`, id, path, id)
	}
	sent, p := a.prepare(`{"model":"see","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + a.image + `"}}]},` +
		`{"role":"assistant","content":"a square"},{"role":"user","content":"and the others?"}` +
		view("call_b0a1c2d3e4f5", "b.png") + view("call_c0a1c2d3e4f5", "c.png") + rest + `]}`)
	if strings.Contains(sent, a.image) || !strings.Contains(sent, preflight.Note(preflight.ReasonImages)) {
		a.t.Errorf("the human's image is not left out: %s", sent)
	}
	return sent, p
}

const answered = `,{"role":"assistant","content":"two more squares"},{"role":"user","content":"thanks"}`

func TestAFileThatChangedBringsNothingBackThatWasLeftOutForIt(t *testing.T) {
	a := newAlbum(t, router.KeepThread)
	if _, p := a.send(""); p.Record.Injected != 2 || p.Record.Degraded != 1 {
		t.Fatalf("first: %+v", p.Record)
	}
	a.write("b.png", square(t, 8, 9)) // its bytes are kept no more
	sent, p := a.send(answered)
	if p.Record.Injected != 1 || p.Record.Degraded != 1 || p.Record.Unavailable != 1 || !strings.Contains(sent, "b.png is not available: Changed") {
		t.Errorf("later: %+v in %s", p.Record, sent)
	}
	if len(p.Record.Decisions) != 2 {
		t.Errorf("there are decisions about what is not there: %+v", p.Record.Decisions)
	}
}

func TestAnImageThatChangedAfterItWasLeftOutStaysLeftOut(t *testing.T) {
	a := newAlbum(t, router.KeepThread)
	a.send("")
	view := `,{"role":"assistant","tool_calls":[{"id":"call_d0a1c2d3e4f5","type":"function","function":{"name":"view_image","arguments":"{\"path\":\"d.png\"}"}}]},` +
		`{"role":"tool","tool_call_id":"call_d0a1c2d3e4f5","content":"read"}`
	a.write("d.png", square(t, 8, 4))
	before, p := a.send(view)
	if p.Record.Injected != 2 || p.Record.Degraded != 2 {
		t.Fatalf("before: %+v", p.Record)
	}
	a.write("b.png", square(t, 8, 9))
	after, p := a.send(view + answered)
	if !strings.HasPrefix(after, strings.TrimSuffix(before, "]}")) || p.Record.Degraded != 2 || p.Record.Unavailable != 0 {
		t.Errorf("it was\n%s\nand became\n%s", before, after)
	}
}

func TestAHumanWhoSpeaksBringsNothingBackThatWasLeftOut(t *testing.T) {
	a := newAlbum(t, router.KeepCurrentTurn)
	a.send("")
	sent, p := a.send(answered)
	if p.Record.Injected != 0 || strings.Count(sent, "image of an earlier turn") != 2 || len(p.Record.Decisions) != 1 {
		t.Errorf("later: %+v in %s", p.Record, sent)
	}
}

func TestWhatATextOnlyModelWasToldOutlivesTheImage(t *testing.T) {
	g := newGallery(t, inMemory(1))
	g.use(proxied(nil))
	body := viewed("text", g.write("a.png", square(t, 8, 1)))
	before, p := g.prepare(body)
	if p.Record.Observed != 1 {
		t.Fatalf("before: %+v", p.Record)
	}
	g.write("a.png", square(t, 8, 2)) // its bytes are kept no more
	after, p := g.prepare(strings.TrimSuffix(body, "]}") + answered + "]}")
	if !strings.HasPrefix(after, strings.TrimSuffix(before, "]}")) || p.Record.Observed != 1 || p.Record.Unavailable != 0 || p.Record.Sights[0].Outcome != engine.SightObserved {
		t.Errorf("it was\n%s\nand became\n%s\n%+v", before, after, p.Record)
	}
	if n := g.upstream.calls.Load(); n != 1 {
		t.Errorf("%d looks; want the first alone", n)
	}
}

func TestWhatATextOnlyModelWasNotToldIsUnavailableWithTheImage(t *testing.T) {
	g := newGallery(t, inMemory(1))
	g.use(proxied(nil))
	body := viewed("see", g.write("a.png", square(t, 8, 1)))
	g.prepare(body)
	g.write("a.png", square(t, 8, 2))
	sent, p := g.prepare(strings.Replace(strings.TrimSuffix(body, "]}"), `"see"`, `"text"`, 1) + answered + "]}")
	if p.Record.Observed != 0 || p.Record.Degraded != 0 || p.Record.Unavailable != 1 || !strings.Contains(sent, "is not available: Changed") {
		t.Errorf("got %+v in %s", p.Record, sent)
	}
}

func TestGeminisResponsesTakeFewerTypesThanItsOtherParts(t *testing.T) {
	g := newGallery(t, nil)
	g.use(proxied(func(d *router.Document) {
		d.Providers[0].Transport = router.TransportGeminiGenerateContent
		d.Providers[0].Models = []router.Model{{Name: "gemini-3-pro", ImageInput: true}, {Name: "gemini-2.5-flash", ImageInput: true}}
	}))
	g.write("a.gif", stillGIF(t, 1))
	for model, want := range map[string]string{"gemini-3-pro": engine.SightDegraded, "gemini-2.5-flash": engine.SightInjected} {
		body := `{"model":"models/` + model + `","contents":[{"role":"user","parts":[{"text":"look"}]},` +
			`{"role":"model","parts":[{"functionCall":{"id":"call_a0b1c2d3e4","name":"view_image","args":{"path":"a.gif"}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"id":"call_a0b1c2d3e4","name":"view_image","response":{}}}]}]}`
		p, err := g.engine.Prepare(t.Context(), engine.ModelRequest{Dialect: message.GeminiContents, Model: model, Body: []byte(body)})
		must(t, err)
		if got := p.Record.Sights[0]; got.Outcome != want {
			t.Errorf("%s: %+v", model, got)
		}
		p.Release()
	}
}
