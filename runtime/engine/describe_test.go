// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// podKey is the pod's in tests.
var podKey = bytes.Repeat([]byte{7}, 32)

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// shown describes an image, which is required.
func shown(data []byte, prompt string) engine.Description {
	return engine.Description{
		SHA256: digestOf(data), Prompt: prompt, Required: true,
		Open: func() (io.Reader, int64, error) { return bytes.NewReader(data), int64(len(data)), nil },
	}
}

func optional(d engine.Description) engine.Description {
	d.Required = false
	return d
}

// describe wants texts of all images.
func (r *rig) describe(list ...engine.Description) []engine.Described {
	r.t.Helper()
	texts, bad := r.engine.DescribeAll(context.Background(), list...)
	if bad != nil {
		r.t.Fatalf("describing: %v (%s)", bad, bad.Reason)
	}
	if len(texts) != len(list) {
		r.t.Fatalf("%d texts of %d images", len(texts), len(list))
	}
	return texts
}

// failing describes one image and wants the fault.
func (r *rig) failing(d engine.Description, kind fault.Kind, reason string) *fault.Fault {
	r.t.Helper()
	_, bad := r.engine.DescribeAll(context.Background(), d)
	if bad == nil || bad.Kind != kind || bad.Reason != reason {
		r.t.Fatalf("got %+v; want %s, %s", bad, kind, reason)
	}
	if _, has := bad.Details["field"]; has || leaks(fmt.Sprintf("%+v", *bad)) {
		r.t.Errorf("the fault tells too much: %+v", *bad)
	}
	return bad
}

func TestAnImageBecomesADelimitedText(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 8, 1)
	got := r.describe(shown(data, "what is it?"))[0]
	r.wantCalls(1)
	if got.Source != "observed" || got.Route != "models@default/see" || got.Fault != nil {
		t.Errorf("got %+v", got)
	}
	mark, _, _ := strings.Cut(got.Text, "\n")
	if !strings.HasSuffix(got.Text, mark) || !strings.Contains(got.Text, "A grey square.") || !strings.Contains(got.Text, observation.ReferenceID(digestOf(data))) {
		t.Errorf("got\n%s", got.Text)
	}
	if body := string(*r.upstream.last.Load()); !strings.Contains(body, "what is it?") || !strings.Contains(body, base64.StdEncoding.EncodeToString(data)) {
		t.Errorf("the model was asked %s", body)
	}
}

func TestTheSameImageIsLookedAtOncePerRequestAndPrompt(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	one, two := square(t, 8, 1), square(t, 8, 2)
	var opened atomic.Int64
	counted := shown(one, "what")
	open := counted.Open
	counted.Open = func() (io.Reader, int64, error) { opened.Add(1); return open() }
	got := r.describe(optional(counted), shown(two, "what"), counted, shown(one, "why"))
	r.wantCalls(3)
	if opened.Load() != 1 {
		t.Errorf("its data was read %d times", opened.Load())
	}
	if got[0].Text != got[2].Text || got[0].Text == got[1].Text {
		t.Errorf("got %+v", got)
	}
}

func TestRequestsThatMeetShareALook(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	arrived, answer := make(chan struct{}, 8), make(chan struct{})
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		r.upstream.look(w)
	})
	texts := make([]string, 4)
	var all sync.WaitGroup
	for i := range texts {
		all.Go(func() { texts[i] = r.describe(shown(square(t, 8, 1), "what"))[0].Text })
	}
	<-arrived
	close(answer)
	all.Wait()
	r.wantCalls(1)
	for _, text := range texts {
		if text == "" || text != texts[0] {
			t.Errorf("got\n%s\nand\n%s", texts[0], text)
		}
	}
}

func TestAReplayHasEqualBytes(t *testing.T) {
	changed := strings.Replace(seen, "A grey square.", "Another answer.", 1)
	for name, tc := range map[string]struct {
		edit  func(*router.Document) // before the replay
		again bool                   // a restart is between them
		calls int64
	}{
		"at once":                           {},
		"after the observation has expired": {edit: func(d *router.Document) { d.Profiles[0].Cache.TTL = "1ns" }},
		"after a restart":                   {again: true},
		"after a restart without what had been observed": {again: true, edit: func(d *router.Document) { d.Profiles[0].Cache.Persist = false }},
		"with a fallback more":                           {edit: func(d *router.Document) { d.Profiles[0].FallbackModels = []string{"models@default/see-too"} }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.restart(nil)
			r.use(func(d *router.Document) { d.Profiles[0].Cache.Persist = true })
			d := shown(square(t, 8, 1), "what")
			first := r.describe(d)[0]
			r.upstream.answer = changed
			if tc.again {
				r.restart(nil)
			}
			r.use(tc.edit)
			again := r.describe(d)[0]
			if again.Text != first.Text || again.Source != "kept" {
				t.Errorf("%s gave\n%s\nafter\n%s", again.Source, again.Text, first.Text)
			}
			r.wantCalls(1)
		})
	}
}

// restart makes the next process over the same directories, with pins there.
func (r *rig) restart(edit func(*engine.Options)) {
	r.t.Helper()
	if r.closePins != nil {
		r.closePins()
	}
	pins, err := pin.Open(pin.Options{Dir: filepath.Join(r.cache, "pins")})
	must(r.t, err)
	r.closePins = func() { _ = pins.Close() }
	r.t.Cleanup(r.closePins)
	r.startWith(func(o *engine.Options) {
		o.Pins, o.PodKey = pins, podKey
		if edit != nil {
			edit(o)
		}
	})
}

// What is shown is forgotten, and what was seen is not: the pod's key makes the
// same text of it.
func TestTheSameObservationIsShownAlikeAfterARestart(t *testing.T) {
	persist := func(d *router.Document) { d.Profiles[0].Cache.Persist = true }
	r := newRig(t)
	texts := map[string]bool{}
	for _, key := range [][]byte{podKey, podKey, nil, nil} {
		r.startWith(func(o *engine.Options) { o.PodKey = key })
		r.use(persist)
		texts[r.describe(shown(square(t, 8, 1), "what"))[0].Text] = true
	}
	if r.wantCalls(1); len(texts) != 3 {
		t.Errorf("with one key twice, and two that were made up, the texts are %v", texts)
	}
}

func TestATextIsMadeAnewWhenSomethingElseWouldLook(t *testing.T) {
	for name, edit := range map[string]func(*router.Document){
		"another default model": func(d *router.Document) { d.Profiles[0].DefaultModel = "models@default/see-too" },
		"another endpoint":      func(d *router.Document) { d.Providers[0].Endpoints[0].Timeout = "19s" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(nil)
			d := shown(square(t, 8, 1), "what")
			r.describe(d)
			r.use(edit)
			if got := r.describe(d)[0]; got.Source != "observed" {
				t.Errorf("got %+v", got)
			}
			r.wantCalls(2)
		})
	}
}

func TestAnObservationThatIsThereIsNotMadeAgain(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 8, 1)
	r.view(engine.Request{Path: r.file("a.png", data), Prompt: "what"})
	if got := r.describe(shown(data, "what"))[0]; got.Source != "cached" || got.Text == "" {
		t.Errorf("got %+v", got)
	}
	r.wantCalls(1)
}

func TestARequiredImageThatNobodyCanDescribeRefusesTheRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		edit   func(*router.Document)
		answer http.HandlerFunc
		data   []byte
		kind   fault.Kind
		reason string
	}{
		"the provider is down":     {answer: status(http.StatusServiceUnavailable), kind: fault.VisionObservationFailed, reason: "UpstreamStatus"},
		"the reply is no answer":   {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }, kind: fault.VisionObservationFailed},
		"no model can look":        {edit: func(d *router.Document) { d.Providers[0].Models = d.Providers[0].Models[:1] }, kind: fault.VisionObservationFailed, reason: "NoCandidate"},
		"it is over a limit":       {edit: func(d *router.Document) { d.Profiles[0].Limits.Image.MaxBytes = 10 }, kind: fault.BudgetExceeded, reason: "TooManyBytes"},
		"it is over a model's one": {edit: func(d *router.Document) { limitSides(d, 7) }, kind: fault.BudgetExceeded, reason: "ImageTooLarge"},
		"it is no image":           {data: []byte("GIF? no"), kind: fault.InvalidToolInput, reason: "NotAnImage"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(tc.edit)
			if tc.answer != nil {
				r.upstream.answerWith(tc.answer)
			}
			data := tc.data
			if data == nil {
				data = square(t, 8, 1)
			}
			_, bad := r.engine.DescribeAll(context.Background(), shown(data, "what"))
			if bad == nil || bad.Kind != tc.kind || tc.reason != "" && bad.Reason != tc.reason {
				t.Fatalf("got %+v", bad)
			}
			if _, has := bad.Details["field"]; has || leaks(fmt.Sprintf("%+v", *bad)) {
				t.Errorf("the fault tells too much: %+v", *bad)
			}
			got := r.describe(optional(shown(data, "what")))[0]
			if got.Text != "" || got.Fault == nil || got.Fault.Kind != tc.kind {
				t.Errorf("the optional one is %+v", got)
			}
		})
	}
}

func limitSides(d *router.Document, side int64) {
	for i := range d.Providers[0].Models {
		d.Providers[0].Models[i].Limits = &router.ModelLimits{MaxImageSide: side}
	}
}

func TestAFailureIsNotKept(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	r.upstream.answerWith(status(http.StatusUnauthorized))
	d := shown(square(t, 8, 1), "what")
	_ = r.failing(d, fault.VisionObservationFailed, "Unauthorized")
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) { r.upstream.look(w) })
	if got := r.describe(d)[0]; got.Source != "observed" {
		t.Errorf("got %+v", got)
	}
}

func TestOneRequiredFailureEndsTheOtherLooks(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	bad := []byte("no image")
	r.upstream.answerWith(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() })
	list := []engine.Description{shown(bad, "what")}
	for shade := range byte(9) {
		list = append(list, shown(square(t, 8, shade), "what"))
	}
	_, f := r.engine.DescribeAll(context.Background(), list...)
	if f == nil || f.Reason != "NotAnImage" {
		t.Errorf("got %+v", f)
	}
}

func TestAtMostFourImagesOfARequestAreLookedAtAtOnce(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	var now, most atomic.Int64
	four := make(chan struct{})
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		if n == 4 {
			close(four)
		}
		<-four
		r.upstream.look(w)
	})
	var list []engine.Description
	for shade := range byte(4) {
		list = append(list, shown(square(t, 8, shade), "what"))
	}
	r.describe(list...)
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		time.Sleep(time.Millisecond)
		r.upstream.look(w)
	})
	for shade := range byte(24) {
		list = append(list, shown(square(t, 8, 100+shade), "what"))
	}
	r.describe(list...)
	if most.Load() != 4 {
		t.Errorf("%d at once", most.Load())
	}
}

// Bodies that take all the room that there is for images wait for looks, and
// looks wait for none of it.
func TestLooksNeedNoRoomOfBodies(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	full, err := r.engine.Fill(context.Background())
	must(t, err)
	defer full()
	bodies, err := r.engine.Hold(context.Background(), engine.DefaultMaxHeldBytes)
	must(t, err)
	defer bodies()
	if got := r.describe(shown(square(t, 8, 1), "what"))[0]; got.Source != "observed" {
		t.Errorf("got %+v", got)
	}
}

func TestALookWaitsForRoomOfItsOwnAndLeavesItFree(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	full, err := r.engine.FillLooks(context.Background())
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	d := shown(square(t, 8, 1), "what")
	if _, bad := r.engine.DescribeAll(ctx, d); bad == nil || bad.Reason != "Canceled" || !bad.Retryable || !errors.Is(bad, context.DeadlineExceeded) {
		t.Errorf("without room: %+v", bad)
	}
	full()
	r.describe(d)
	_ = r.failing(shown([]byte("no image"), "what"), fault.InvalidToolInput, "NotAnImage")
	again, err := r.engine.FillLooks(context.Background())
	must(t, err)
	again()
}

func TestAnImageLargerThanAllRoomIsLookedAtAlone(t *testing.T) {
	r := newRig(t)
	r.startWith(func(o *engine.Options) { o.MaxHeldBytes = 1 << 20 })
	r.use(nil)
	data := append(square(t, 8, 1), make([]byte, 2<<20)...)
	if got := r.describe(shown(data, "what"))[0]; got.Source != "observed" {
		t.Errorf("got %+v", got)
	}
}

func TestDataThatIsNotWhatItIsSaidToBe(t *testing.T) {
	good := square(t, 8, 1)
	other := bytes.Clone(good)
	other[len(other)-1] ^= 1
	from := func(read io.Reader, size int, err error) func() (io.Reader, int64, error) {
		return func() (io.Reader, int64, error) { return read, int64(size), err }
	}
	for name, tc := range map[string]struct {
		open   func() (io.Reader, int64, error)
		reason string
	}{
		"another image":      {from(bytes.NewReader(other), len(good), nil), "Changed"},
		"a shorter one":      {from(bytes.NewReader(good[:20]), len(good), nil), "IO"},
		"a part of it":       {from(bytes.NewReader(good), len(good)-1, nil), "Changed"},
		"none":               {from(nil, 0, io.ErrClosedPipe), "IO"},
		"a fault of its own": {from(nil, 0, fault.New(fault.ImageReadFailed, "Evicted", "it is gone")), "Evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(nil)
			d := shown(good, "what")
			d.Open = tc.open
			_ = r.failing(d, fault.VisionObservationFailed, tc.reason)
			r.wantCalls(0)
		})
	}
}

func TestWhatIsReadIsClosed(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 8, 1)
	c := &closing{Reader: bytes.NewReader(data)}
	d := shown(data, "what")
	d.Open = func() (io.Reader, int64, error) { return c, int64(len(data)), nil }
	if r.describe(d); c.closed != 1 {
		t.Errorf("closed %d times", c.closed)
	}
}

type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func TestAnImageThatPanicsIsOneFailure(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	d := shown(square(t, 8, 1), "what")
	d.Open = func() (io.Reader, int64, error) { panic("secret") }
	_ = r.failing(d, fault.VisionObservationFailed, "Internal")
}

func TestImagesOfABodyAreReadOutOfIt(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 8, 1)
	body := fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`,
		base64.StdEncoding.EncodeToString(data))
	scanned, err := message.Scan(message.OpenAIChat, body)
	must(t, err)
	d := shown(data, observation.Question(observation.Asked{}))
	d.Open = func() (io.Reader, int64, error) {
		return message.NewReader(body, &scanned.Images[0]), int64(len(data)), nil
	}
	if got := r.describe(d)[0]; got.Source != "observed" {
		t.Errorf("got %+v", got)
	}
}
