// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/router"
)

var background = context.Background()

// refusal is a fault and what came beside it.
type refusal struct {
	fault  *fault.Fault
	result *observation.Result
}

// refused asks and returns the fault, which must be of a kind and a reason.
func (r *rig) refused(req engine.Request, kind fault.Kind, reason string) refusal {
	r.t.Helper()
	result, err := r.engine.View(background, req)
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		r.t.Fatalf("View gave %v; want a fault", err)
	}
	if f.Kind != kind || f.Reason != reason {
		r.t.Fatalf("fault = %s %s (%s); want %s %s", f.Kind, f.Reason, f.Message, kind, reason)
	}
	if data, err := json.Marshal(f); err != nil || leaks(string(data)) {
		r.t.Errorf("the fault does not render, or leaks: %s %v", data, err)
	}
	return refusal{f, result}
}

func (r *rig) view(req engine.Request) *observation.Result {
	r.t.Helper()
	result, err := r.engine.View(background, req)
	if err != nil {
		r.t.Fatalf("View refused: %v", err)
	}
	return result
}

func (r *rig) wantCalls(n int64) {
	r.t.Helper()
	if got := r.upstream.calls.Load(); got != n {
		r.t.Errorf("%d upstream calls, want %d", got, n)
	}
}

func TestALookAtAnImage(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 64, 128)
	path := r.file("a.png", data)
	got := r.view(engine.Request{Path: path, Prompt: "  42  "})
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	ref := got.VisualReference
	if ref.SHA256 != digest || ref.ID != "vis_"+digest[:16] || ref.Path != path || ref.MIME != "image/png" || ref.ByteCount != int64(len(data)) || *ref.Size != (observation.Size{Width: 64, Height: 64}) {
		t.Errorf("reference = %+v", ref)
	}
	o := got.Observation
	by := observation.GeneratedBy{Mode: observation.ModeAdapter, Provider: "models", Model: "see", SelectionReason: observation.ReasonAuto}
	if o.Summary != "A grey square." || o.VisualReferenceID != ref.ID || o.Prompt != "42" || o.GeneratedBy != by {
		t.Errorf("observation = %+v; what the model says of itself must not count", o)
	}
	if s := got.VisionSelection; s.VisionModelRef != "models@default/see" || len(s.Candidates) != 2 {
		t.Errorf("selection = %+v", s)
	}
	if got.Cached {
		t.Error("the first answer is said to be cached")
	}
	for _, want := range []string{`"model":"see"`, `"max_tokens":16384`, `"strict":true`, `"text":"42"`} {
		if !strings.Contains(string(*r.upstream.last.Load()), want) {
			t.Errorf("the request lacks %s", want)
		}
	}
}

func TestH03_AReferenceNamesTheFileByItsBytes(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := append(pngHeader(320, 240), "pixels"...)
	got := r.view(engine.Request{Path: r.file("a.png", data), Prompt: "what"}).VisualReference
	sum := sha256.Sum256(data)
	if got.ByteCount != 39 || got.SHA256 != hex.EncodeToString(sum[:]) || !strings.HasPrefix(got.ID, "vis_") || *got.Size != (observation.Size{Width: 320, Height: 240}) {
		t.Errorf("reference = %+v", got)
	}
}

func TestASecondCallIsAnsweredFromTheCache(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	data := square(t, 8, 1)
	first := r.view(engine.Request{Path: r.file("a.png", data), Prompt: "what"})
	again := r.view(engine.Request{Path: r.file("copy.png", data), Prompt: " what\n", Model: "models/see"})
	r.wantCalls(1)
	if !again.Cached || again.Observation.Summary != first.Observation.Summary || filepath.Base(again.VisualReference.Path) != "copy.png" {
		t.Errorf("the second answer is %+v", again)
	}
	if again.Observation.GeneratedBy.SelectionReason != observation.ReasonExplicit {
		t.Error("the second answer tells the first one's way of choosing")
	}
	again.Observation.Summary = "changed by a caller"
	if r.view(engine.Request{Path: "a.png", Prompt: "what"}).Observation.Summary != "A grey square." {
		t.Error("a caller changed what is kept")
	}
	for name, req := range map[string]engine.Request{
		"another prompt": {Path: "a.png", Prompt: "what else"},
		"another model":  {Path: "a.png", Prompt: "what", Model: "models/see-too"},
		"another image":  {Path: r.file("b.png", square(t, 8, 2)), Prompt: "what"},
	} {
		if r.view(req).Cached {
			t.Errorf("%s was answered from the cache", name)
		}
	}
	r.wantCalls(4)
}

func TestFiftyEqualCallsAtOnceAreOneUpstreamCall(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 8, 1))
	release := make(chan struct{})
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		<-release
		content, _ := json.Marshal(seen)
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":` + string(content) + `}}]}`))
	})
	var group sync.WaitGroup
	var fresh atomic.Int64
	for range 50 {
		group.Go(func() {
			result, err := r.engine.View(background, engine.Request{Path: path, Prompt: "what"})
			if err != nil {
				t.Errorf("a call failed: %v", err)
			} else if !result.Cached {
				fresh.Add(1)
			}
		})
	}
	for r.upstream.calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(release)
	group.Wait()
	r.wantCalls(1)
	if fresh.Load() != 1 {
		t.Errorf("%d answers say that they made the call", fresh.Load())
	}
}

func TestAFailureIsToldWithTheReferenceAndIsNotKept(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 8, 1))
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
	}{
		"a rate limit":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, "RateLimited", true},
		"a refused key": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "Unauthorized", false},
		"a reply that is no answer": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"secret prose"}}]}`))
		}, "InvalidResponse", false},
	} {
		t.Run(name, func(t *testing.T) {
			r.upstream.answerWith(tc.handler)
			f := r.refused(engine.Request{Path: path, Prompt: "what"}, fault.VisionObservationFailed, tc.reason)
			if f.fault.Retryable != tc.retryable || f.fault.Details["vision_model_ref"] != "models@default/see" {
				t.Errorf("fault = %+v", f.fault)
			}
			if f.result == nil || f.result.VisualReference == nil || f.result.VisionSelection.VisionModel != "see" || f.result.Observation != nil {
				t.Errorf("result = %+v; want the reference and the selection", f.result)
			}
		})
	}
	if got := strings.Count(r.log.String(), "observation failed"); got != 3 {
		t.Errorf("three failures made %d log lines:\n%s", got, r.log.String())
	}
	r.upstream.reply.Store(nil)
	if r.view(engine.Request{Path: path, Prompt: "what"}).Cached {
		t.Error("a failure was kept")
	}
}

func TestACallerWhoLeavesGetsAFaultAndTheReference(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	ctx, cancel := context.WithCancel(background)
	r.upstream.answerWith(func(_ http.ResponseWriter, req *http.Request) {
		cancel()
		<-req.Context().Done()
	})
	result, err := r.engine.View(ctx, engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "what"})
	if f := fault.As(err); f.Reason != "Canceled" || result.VisualReference == nil {
		t.Errorf("fault = %+v, result = %+v", f, result)
	}
}

func TestAPolicyEditIsObeyedByTheNextCallAlsoOverTheCache(t *testing.T) {
	r := newRig(t)
	path := r.file("a.png", square(t, 64, 1))
	req := engine.Request{Path: path, Prompt: "what", Model: "models/see"}
	if f := r.refused(req, fault.RouterUnavailable, "NoRouter"); !f.fault.Retryable {
		t.Error("a router that comes later is not retryable")
	}
	r.use(nil)
	r.view(req)
	r.use(func(d *router.Document) {
		d.Profiles[0].Allow = []router.AllowList{{From: "team/p", Globs: []string{"models@*/see-too"}}}
	})
	f := r.refused(req, fault.PolicyDenied, "ModelNotAllowed")
	if f.result.VisualReference == nil || f.result.VisionSelection.SelectedMode != observation.ModeUnavailable {
		t.Errorf("result = %+v", f.result)
	}
	r.use(func(d *router.Document) { d.Profiles[0].PerCallModel = router.PerCallDenied })
	r.refused(req, fault.PolicyDenied, "PerCallModelDenied")
	r.use(func(d *router.Document) { d.Profiles[0].Limits.Image.MaxPixels = 64*64 - 1 })
	r.refused(req, fault.BudgetExceeded, "TooManyPixels")
	r.use(func(d *router.Document) { d.Profiles = nil })
	r.refused(req, fault.PolicyDenied, "ProfileNotFound")
	if r.engine.ProfileFound() || r.engine.MCPEnabled() {
		t.Error("a profile that is gone is said to be there")
	}
	r.use(nil)
	if !r.view(req).Cached || !r.engine.ProfileFound() || !r.engine.MCPEnabled() {
		t.Error("what was granted again is not served as before")
	}
	r.wantCalls(1)
}

func TestAnInvalidDocumentLeavesTheOneBefore(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	bad := r.document()
	bad.Profiles[0].Limits.Image.MaxBytes = 0
	if err := r.engine.Use(bad); err == nil {
		t.Error("a document with a zero limit was taken")
	}
	r.view(engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "what"})
}

func TestASwapInTheMiddleOfARequestDoesNotMix(t *testing.T) {
	r := newRig(t)
	other := newUpstream(t, strings.Replace(seen, "A grey square.", "From the other.", 1))
	r.use(nil)
	path := r.file("a.png", square(t, 8, 1))
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		r.use(func(d *router.Document) {
			d.Providers[0].Endpoints[0].URL = other.URL
			d.Providers[0].Models = d.Providers[0].Models[2:] // "see" is gone
		})
		content, _ := json.Marshal(seen)
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":` + string(content) + `}}]}`))
	})
	got := r.view(engine.Request{Path: path, Prompt: "what"})
	if got.Observation.Summary != "A grey square." || got.Observation.GeneratedBy.Model != "see" || got.VisionSelection.VisionModel != "see" {
		t.Errorf("the request that was under way got %+v by %+v", got.Observation, got.VisionSelection)
	}
	after := r.view(engine.Request{Path: path, Prompt: "what"})
	if after.Cached || after.Observation.Summary != "From the other." || after.VisionSelection.VisionModel != "see-too" {
		t.Errorf("the request after the swap got %+v", after.Observation)
	}
}

func TestAProviderThatMovesIsAskedAnew(t *testing.T) {
	r := newRig(t)
	other := newUpstream(t, strings.Replace(seen, "A grey square.", "From the other.", 1))
	req := engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "what"}
	r.use(nil)
	r.view(req)
	r.use(func(d *router.Document) { d.Providers[0].Endpoints[0].URL = other.URL })
	if got := r.view(req); got.Cached || got.Observation.Summary != "From the other." {
		t.Errorf("got %+v", got.Observation)
	}
}

func TestKeysAreReadAtEveryCall(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 8, 1))
	var sent string
	r.upstream.answerWith(func(w http.ResponseWriter, req *http.Request) {
		sent = req.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	})
	for _, k := range []string{"sk-one", "sk-two"} {
		r.writeKey(k + "\n")
		r.refused(engine.Request{Path: path, Prompt: "what"}, fault.VisionObservationFailed, "Unauthorized")
		if sent != "Bearer "+k {
			t.Errorf("sent %q", sent)
		}
	}
	r.writeKey("")
	r.refused(engine.Request{Path: path, Prompt: "what"}, fault.VisionAdapterUnavailable, "CredentialEmpty")
	must(t, os.Remove(filepath.Join(r.secrets, "team", "models")))
	f := r.refused(engine.Request{Path: path, Prompt: "what", Model: "models/see"}, fault.VisionAdapterUnavailable, "CredentialNotMounted")
	if f.result.VisualReference == nil || f.result.VisionSelection.Candidates[0].Reason != observation.ReasonCredentialNotMounted {
		t.Errorf("result = %+v", f.result)
	}
	r.refused(engine.Request{Path: path, Prompt: "what"}, fault.VisionAdapterUnavailable, "NoCandidate")
	r.wantCalls(2)
}

func TestAnEndpointWithABrokenCABundleIsRefusedAloneAndTheRestServes(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) {
		p := &d.Providers[0]
		p.Endpoints = append(p.Endpoints, router.Endpoint{Name: "broken", URL: "https://x.example", Timeout: "1s", CABundle: "nonsense"})
	})
	path := r.file("a.png", square(t, 8, 1))
	f := r.refused(engine.Request{Path: path, Prompt: "what", Model: "models@broken/see"}, fault.VisionAdapterUnavailable, "EndpointInvalid")
	if f.result.VisualReference == nil || f.fault.Details["selected_mode"] != observation.ModeUnavailable || f.fault.Details["candidates"] == nil {
		t.Errorf("result = %+v, details = %v", f.result, f.fault.Details)
	}
	r.view(engine.Request{Path: path, Prompt: "what"})
}

func TestImagesThatDoNotFitAtOnceWaitForTheirTurn(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	req := engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "what"}
	release, err := r.engine.Fill(background)
	must(t, err)
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := r.engine.View(ctx, req); fault.As(err).Reason != "Canceled" || fault.As(err).Kind != fault.ImageReadFailed {
		t.Errorf("the call that found no room gave %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := r.engine.View(background, req)
		done <- err
	}()
	release()
	must(t, <-done)
	// Whatever came of a request, it let go of what it held.
	r.refused(engine.Request{Path: req.Path, Prompt: "what", Model: "models/text"}, fault.VisionAdapterUnavailable, "ModelLacksImageInput")
	r.refused(engine.Request{Path: r.file("far.jpg", farJPEG(60_000, 60_000)), Prompt: "what"}, fault.BudgetExceeded, "TooManyPixels")
	soon, stop := context.WithTimeout(background, 10*time.Second)
	defer stop()
	release, err = r.engine.Fill(soon)
	must(t, err)
	release()
}

func TestRequestsOfSmallImagesAreBoundedInNumber(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	req := engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "what"}
	rest, err := r.engine.FillButOne(background)
	must(t, err)
	r.view(req) // there is room for one
	release, err := rest()
	must(t, err)
	soon, stop := context.WithTimeout(background, 100*time.Millisecond)
	defer stop()
	if _, err := r.engine.View(soon, req); fault.As(err).Reason != "Canceled" {
		t.Errorf("the call that found no room gave %v", err)
	}
	release()
	r.view(req)
}

func TestLargeRepliesWaitForTheirTurnAndSmallOnesDoNot(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 8, 1))
	release, err := r.engine.FillReplies(background)
	must(t, err)
	r.view(engine.Request{Path: path, Prompt: "small"})
	r.upstream.answer = seen + strings.Repeat(" ", 2*provider.SmallReply)
	soon, stop := context.WithTimeout(background, 300*time.Millisecond)
	defer stop()
	if _, err := r.engine.View(soon, engine.Request{Path: path, Prompt: "large"}); fault.As(err).Reason != "Canceled" {
		t.Errorf("the large reply that had no turn gave %v", err)
	}
	release()
	for range 5 { // more than there are turns
		r.view(engine.Request{Path: path, Prompt: "large"})
		r.use(func(doc *router.Document) { doc.Profiles[0].Cache.MaxBytes = 1 }) // nothing is kept
	}
	r.upstream.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("?", 2*provider.SmallReply))
	})
	r.refused(engine.Request{Path: path, Prompt: "large and bad"}, fault.VisionObservationFailed, "InvalidResponse")
	later, stopLater := context.WithTimeout(background, 10*time.Second)
	defer stopLater()
	release, err = r.engine.FillReplies(later)
	must(t, err)
	release()
}

func TestRepliesAreParsedOneAtATime(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 8, 1))
	release := r.engine.HoldParsing()
	soon, stop := context.WithTimeout(background, 300*time.Millisecond)
	defer stop()
	if _, err := r.engine.View(soon, engine.Request{Path: path, Prompt: "what"}); fault.As(err).Reason != "Canceled" {
		t.Errorf("while another reply is parsed, a view gave %v", err)
	}
	r.wantCalls(1)
	release()
	r.view(engine.Request{Path: path, Prompt: "else"})
}
