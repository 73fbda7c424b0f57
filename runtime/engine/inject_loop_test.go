// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// listLoop is a framework's: its history, its state of viewed images, and what its model
// was sent last. It does with an answer what docs/inject.md says.
type listLoop struct {
	*rig
	history []string
	viewed  map[string]json.RawMessage
	sent    []string
	calls   int
	stores  bool // it keeps what was put in
	forgets bool // it has no state of viewed images
	model   string
}

func newLoop(t *testing.T, edit func(*router.Document)) *listLoop {
	l := &listLoop{rig: newRig(t), history: []string{`{"type":"human","content":"look"}`}}
	l.use(edit)
	return l
}

// call is one round: the assistant calls a tool, which answers, and the model is
// called again.
func (l *listLoop) call(tool, path string) injectedAnswer {
	l.t.Helper()
	l.calls++
	id := fmt.Sprintf("call_8fK2mQ%dx", l.calls)
	l.history = append(l.history,
		fmt.Sprintf(`{"type":"ai","content":"","tool_calls":[{"name":%q,"args":{"path":%q},"id":%q}]}`, tool, path, id),
		fmt.Sprintf(`{"type":"tool","content":"read","tool_call_id":%q}`, id))
	return l.ask()
}

// ask asks what to put in, and keeps what the model is sent.
func (l *listLoop) ask() injectedAnswer {
	l.t.Helper()
	more := []string{fmt.Sprintf(`"model":%q`, l.model)}
	if !l.forgets {
		viewed, err := json.Marshal(l.viewed)
		must(l.t, err)
		more = append(more, `"viewedImages":`+string(viewed))
	}
	a, _ := l.inject(question("langchain-messages", "["+strings.Join(l.history, ",")+"]", more...))
	l.viewed, l.sent = a.ViewedImages, nil
	for i, m := range l.history {
		for _, in := range a.Insert {
			if in.Before == i {
				l.sent = append(l.sent, string(in.Message))
			}
		}
		if !slices.Contains(a.Remove, i) {
			l.sent = append(l.sent, m)
		}
	}
	if a.Append != nil {
		l.sent = append(l.sent, string(a.Append))
	}
	if l.stores {
		l.history = l.sent
	}
	return a
}

// holds holds what was sent last against the images that it must have, each once.
func (l *listLoop) holds(what string, images ...[]byte) {
	l.t.Helper()
	all := strings.Join(l.sent, "")
	for i, data := range images {
		if n := strings.Count(all, base64Of(data)); n != 1 {
			l.t.Errorf("%s: image %d is there %d times", what, i, n)
		}
	}
	if n := strings.Count(all, `"image_url":{`); n != len(images) {
		l.t.Errorf("%s: %d images; want %d", what, n, len(images))
	}
}

// Six calls of the model over a list: what it was sent stays, and each picture of a
// path that is viewed three times, which has other bytes by then, is there once.
func TestD36_AListsLoopIsAppendOnly(t *testing.T) {
	for name, edit := range map[string]func(*listLoop){
		"with a state": func(*listLoop) {}, "without": func(l *listLoop) { l.forgets = true }, "which keeps what was put in": func(l *listLoop) { l.stores = true },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, nil)
			edit(l)
			var images [][]byte
			var before []string
			for round, tool := range []string{"view_image", "click", "view_image", "view_image", "click", "click"} {
				data := square(t, 40, uint8(round))
				path := l.file("screen.png", data)
				if tool == "view_image" {
					images = append(images, data)
				}
				a := l.call(tool, path)
				l.holds(fmt.Sprint("round ", round), images...)
				if len(l.sent) < len(before) || !slices.Equal(l.sent[:len(before)], before) {
					t.Errorf("round %d: what was sent has changed", round)
				}
				if (a.Append != nil) != (tool == "view_image") || !l.stores && !a.Decision.Inject || len(a.Remove) != 0 {
					t.Errorf("round %d: %+v", round, a.Decision)
				}
				if v := string(a.ViewedImages[path]); !strings.Contains(v, hashed(images[len(images)-1])) {
					t.Errorf("round %d: the state does not tell the newest view: %s", round, v)
				}
				before = l.sent
			}
			if held := strings.Contains(strings.Join(l.history, ""), "base64,"); held != l.stores {
				t.Errorf("the history holds images: %v", held)
			}
		})
	}
}

// Also when the files are gone and the runtime began anew, by the bytes it keeps; and
// without those, the state's digest keeps other bytes from being shown for a call.
func TestWhatAListWasShownOutlivesItsFilesAndTheRuntime(t *testing.T) {
	l := newLoop(t, nil)
	pins := filepath.Join(l.cache, "pins")
	with := func(o *engine.Options) {
		o.PodKey = []byte(strings.Repeat("k", 32))
		if pins == "" {
			return
		}
		store, err := pin.Open(pin.Options{Dir: pins})
		must(t, err)
		t.Cleanup(func() { _ = store.Close() })
		l.closePins, o.Pins = func() { _ = store.Close() }, store
	}
	begin := func() {
		if l.closePins != nil {
			l.closePins()
		}
		l.startWith(with)
		l.use(nil)
	}
	begin()
	data := square(t, 40, 7)
	path := l.file("screen.png", data)
	l.call("view_image", path)
	first := slices.Clone(l.sent)
	must(t, os.Remove(path))
	begin()
	l.call("click", "")
	if l.holds("after a restart", data); !slices.Equal(l.sent[:len(first)], first) {
		t.Error("after a restart: what was sent has changed")
	}
	pins = "" // nothing is kept
	begin()
	l.file("screen.png", square(t, 40, 8))
	if a := l.call("click", ""); a.Decision.Unavailable != 1 || a.Decision.Sights[0].Reason != "Changed" || len(a.Insert) != 1 {
		t.Errorf("other bytes: %+v", a.Decision)
	}
	l.holds("other bytes")
	begin()
	l.file("screen.png", data)
	l.call("click", "")
	if l.holds("the same bytes", data); !slices.Equal(l.sent[:len(first)], first) {
		t.Error("the same bytes: what was sent has changed")
	}
}

// The oldest image goes first, with a note in its place that stays; none comes back.
func TestTheLimitsOfThePolicyGoOverAllImagesOfAList(t *testing.T) {
	l := newLoop(t, func(d *router.Document) { d.Profiles[0].Limits.Request.MaxDistinctImages = 2 })
	var images [][]byte
	for i := range 4 {
		images = append(images, square(t, 40, uint8(i)))
		a := l.call("view_image", l.file(fmt.Sprint(i, ".png"), images[i]))
		l.holds(fmt.Sprint("view ", i), images[max(0, i-1):]...)
		if want := max(0, i-1); a.Decision.Degraded != want || len(a.Insert) != i {
			t.Errorf("view %d: %d degraded, %d inserted: %+v", i, a.Decision.Degraded, len(a.Insert), a.Decision.Sights)
		}
	}
	noted := l.sent[3]
	l.call("click", "")
	if l.holds("later", images[2:]...); l.sent[3] != noted || !strings.Contains(noted, "image left out") {
		t.Errorf("the note was\n%s\nand is\n%s", noted, l.sent[3])
	}
}

func TestAListsOlderImagesGoWhereThePolicyKeepsTheCurrentTurn(t *testing.T) {
	l := newLoop(t, func(d *router.Document) { d.Profiles[0].Injection.Keep = router.KeepCurrentTurn })
	data := square(t, 40, 7)
	l.call("view_image", l.file("a.png", data))
	l.call("click", "")
	l.holds("while the assistant goes on", data)
	l.history = append(l.history, `{"type":"ai","content":"done"}`, `{"type":"human","content":"and now?"}`)
	a := l.ask()
	l.holds("when a human has spoken")
	if len(a.Insert) != 1 || !strings.Contains(string(a.Insert[0].Message), "image of an earlier turn") || a.Decision.Sights[0].Reason != "Old" {
		t.Errorf("%+v: %+v", a.Decision, a.Insert)
	}
}

func TestATextOnlyModelIsToldAgainWhatAListShowed(t *testing.T) {
	l := newLoop(t, nil)
	l.model = "text"
	l.call("view_image", l.file("a.png", square(t, 40, 7)))
	first := slices.Clone(l.sent)
	a := l.call("click", "")
	if l.holds("a text-only model"); !slices.Equal(l.sent[:len(first)], first) || a.Decision.Observed != 1 || l.upstream.calls.Load() != 1 {
		t.Errorf("%+v, %d looks: %v", a.Decision, l.upstream.calls.Load(), l.sent)
	}
}

func TestAStoredImageBecomesATextWhenTheModelTakesTextAlone(t *testing.T) {
	l := newLoop(t, nil)
	l.stores = true
	data := square(t, 40, 7)
	l.call("view_image", l.file("a.png", data))
	l.holds("a model that sees", data)
	l.model = "text"
	a := l.call("click", "")
	if l.holds("one that does not"); !slices.Equal(a.Remove, []int{3}) || len(a.Insert) != 1 || a.Decision.Observed != 1 {
		t.Errorf("%+v, remove %v, insert %v", a.Decision, a.Remove, a.Insert)
	}
	before := l.sent
	if a := l.call("click", ""); len(a.Remove) != 0 || len(a.Insert) != 0 || !slices.Equal(l.sent[:len(before)], before) {
		t.Errorf("again: %+v, remove %v, insert %v", a.Decision, a.Remove, a.Insert)
	}
}

// A state that was emptied stays so, though older images are shown on.
func TestOlderImagesDoNotFillAStateThatWasEmptied(t *testing.T) {
	l := newLoop(t, nil)
	data := square(t, 40, 7)
	l.call("view_image", l.file("a.png", data))
	l.viewed = map[string]json.RawMessage{"$clear": []byte("true")}
	a := l.call("click", "")
	if l.holds("after the state was emptied", data); len(a.ViewedImages) != 1 {
		t.Errorf("the state is %s", a.ViewedImages)
	}
}

// The state that an answer gave does not hold a later view of the path to its bytes,
// in any dialect; one view's own repetition it does.
func TestAPathThatIsViewedAnewIsNotHeldToWhatAnEarlierCallSaw(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	older, newer := square(t, 40, 7), square(t, 40, 8)
	path := r.file("a.png", newer)
	for _, d := range []string{"openai-chat", "openai-responses", "anthropic-messages", "langchain-messages"} {
		messages := listed(path)
		if d != "langchain-messages" {
			messages = called(message.Dialect(d), path)
		}
		state := func(call string) string {
			return fmt.Sprintf(`"viewedImages":{%q:{"sha256":%q,"call_id":%q}}`, path, hashed(older), call)
		}
		a, raw := r.inject(question(d, messages, state("call_of_before")))
		if a.Decision.Injected != 1 || !strings.Contains(raw, base64Of(newer)) || !strings.Contains(string(a.ViewedImages[path]), hashed(newer)) {
			t.Errorf("%s: %+v, %s", d, a.Decision, a.ViewedImages)
		}
		fresh := r.again()
		fresh.use(nil)
		if b, _ := fresh.inject(question(d, messages, state(a.Decision.Sights[0].CallID))); b.Decision.Injected != 0 || b.Decision.Sights[0].Reason != "Changed" {
			t.Errorf("%s, the same call: %+v", d, b.Decision)
		}
	}
}
