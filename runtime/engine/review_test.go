// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// counted is a listener at which a provider could be reached; it counts who comes.
func counted(t *testing.T) (address string, came *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	came = &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String(), came
}

// asChat reads a body as a chat's, for a model.
func asChat(model string) func([]byte) (*review.Request, error) {
	return func(body []byte) (*review.Request, error) {
		return &review.Request{Dialect: message.OpenAIChat, Model: model, Body: body}, nil
	}
}

func imageOf(t *testing.T) string {
	return `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + base64.StdEncoding.EncodeToString(square(t, 64, 9)) + `"}}`
}

func TestARequiredImageForAModelThatTakesTextIsRefusedBeforeAnyConnection(t *testing.T) {
	r := newRig(t)
	address, came := counted(t)
	r.use(func(d *router.Document) {
		d.Providers[0].Endpoints[0].URL = "http://" + address + "/v1"
		d.Providers[0].Discovery = &router.Discovery{Interval: "10m"}
	})
	required := fmt.Sprintf(`{"messages":[{"role":"user","content":[%s]}]}`, imageOf(t))
	optional := fmt.Sprintf(`{"messages":[{"role":"user","content":[%s]},{"role":"assistant","content":"A square."},{"role":"user","content":"And?"}]}`, imageOf(t))
	got, err := r.engine.Review(t.Context(), strings.NewReader(required), int64(len(required)), asChat("models/text"))
	if err != nil || got.Response.Allowed || got.Response.Status.Reason != preflight.ReasonBlind || got.Response.Decisions[0].Outcome != preflight.Refused {
		t.Errorf("required: %+v, %v", got, err)
	}
	got, err = r.engine.Review(t.Context(), strings.NewReader(optional), -1, asChat("models/text"))
	if err != nil || !got.Response.Degraded() || !bytes.Contains(got.Response.Patch, []byte(preflight.Note(preflight.ReasonBlind))) {
		t.Errorf("optional: %+v, %v", got, err)
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	// That the listener counts at all: a look at an image connects.
	_, err = r.engine.View(t.Context(), engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "?", Model: "models/see"})
	if err == nil || came.Load() == 0 {
		t.Errorf("a look made %d connections, %v", came.Load(), err)
	}
}

func TestAReviewIsUnderTheProfileThatItNames(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) {
		strict := d.Profiles[0]
		strict.ID = "policy/strict"
		strict.Limits.Image.MaxPixels = 100
		d.Profiles = append(d.Profiles, strict)
	})
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":[%s]}]}`, imageOf(t))
	for profile, want := range map[string]string{"": "", "policy/p": "", "policy/strict": preflight.ReasonPixels, "policy/gone": "ProfileNotFound"} {
		got, err := r.engine.Review(t.Context(), strings.NewReader(body), -1, func(b []byte) (*review.Request, error) {
			return &review.Request{Dialect: message.OpenAIChat, Model: "see", Profile: profile, Body: b}, nil
		})
		if err != nil || got.Response.Allowed != (want == "") || want != "" && got.Response.Status.Reason != want {
			t.Errorf("%q: %+v, %v", profile, got, err)
		}
	}
}

func TestAReviewThatCannotBeReadIsAFault(t *testing.T) {
	r := newRig(t)
	judge := func(from io.Reader, size int64, read func([]byte) (*review.Request, error)) string {
		_, err := r.engine.Review(t.Context(), from, size, read)
		f, ok := errors.AsType[*fault.Fault](err)
		if !ok {
			return fmt.Sprint(err)
		}
		return f.Reason
	}
	if got := judge(strings.NewReader("{}"), 2, asChat("see")); got != "NoRouter" {
		t.Errorf("without a router: %s", got)
	}
	r.use(func(d *router.Document) { d.Profiles[0].Limits.Request.MaxBodyBytes = 10 })
	refused := fault.New(fault.InvalidToolInput, "Odd", "odd")
	for name, tc := range map[string]struct {
		from io.Reader
		size int64
		read func([]byte) (*review.Request, error)
		want string
	}{
		"a body that is cut":            {strings.NewReader("{"), 2, asChat("see"), "BodyUnreadable"},
		"a body over the limit":         {strings.NewReader(strings.Repeat(" ", 11)), -1, asChat("see"), "BodyTooLarge"},
		"a reader that refuses":         {io.MultiReader(strings.NewReader("{"), failing{refused}), -1, asChat("see"), "Odd"},
		"a form that is not understood": {strings.NewReader("{}"), 2, func([]byte) (*review.Request, error) { return nil, refused }, "Odd"},
	} {
		if got := judge(tc.from, tc.size, tc.read); got != tc.want {
			t.Errorf("%s: %s; want %s", name, got, tc.want)
		}
	}
}

func TestAReviewOfUntoldLengthIsReadToTheLimitAndNoFurther(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) { d.Profiles[0].Limits.Request.MaxBodyBytes = 1000 })
	from := &endless{}
	_, err := r.engine.Review(t.Context(), from, -1, asChat("see"))
	if f, ok := errors.AsType[*fault.Fault](err); !ok || f.Reason != "BodyTooLarge" || from.read > 1001 {
		t.Errorf("%v after %d bytes", err, from.read)
	}
}

// endless is a body that goes on.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
