// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// upload keeps data, its size told or not.
func (r *rig) upload(data []byte, told bool) *reference.Kept {
	r.t.Helper()
	size := int64(-1)
	if told {
		size = int64(len(data))
	}
	kept, err := r.engine.Upload(background, iotest.OneByteReader(bytes.NewReader(data)), size)
	if err != nil {
		r.t.Fatal(err)
	}
	return kept
}

func TestAnUploadCanBeLookedAt(t *testing.T) {
	for _, told := range []bool{true, false} {
		r := newRig(t)
		r.use(nil)
		data := square(t, 8, 1)
		kept := r.upload(data, told)
		if !kept.Uploaded || kept.URI != "vision://"+kept.Reference.ID || kept.Reference.Path != kept.URI || kept.Reference.ByteCount != int64(len(data)) {
			t.Errorf("kept = %+v", kept)
		}
		got := r.view(engine.Request{Path: kept.URI, Prompt: "what"})
		if *got.VisualReference.Size != *kept.Reference.Size || got.VisualReference.SHA256 != kept.Reference.SHA256 || got.VisualReference.Path != kept.URI {
			t.Errorf("reference = %+v", got.VisualReference)
		}
		again := r.view(engine.Request{Path: r.file("same.png", data), Prompt: "what"})
		if !again.Cached {
			t.Error("the same bytes as a file are looked at once more")
		}
		found, err := r.engine.Reference(kept.Reference.ID)
		if err != nil || found.Reference.SHA256 != kept.Reference.SHA256 {
			t.Errorf("found %+v, %v", found, err)
		}
	}
}

func TestTheReferenceOfAFileIsItsPathAsLongAsTheFileIsTheSame(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 8, 1))
	uri := "vision://" + r.view(engine.Request{Path: path, Prompt: "what"}).VisualReference.ID
	if got := r.view(engine.Request{Path: uri, Prompt: "what"}); !got.Cached || got.VisualReference.Path != path {
		t.Errorf("by its reference: %+v", got.VisualReference)
	}
	r.file("a.png", square(t, 8, 2))
	r.refused(engine.Request{Path: uri, Prompt: "what"}, fault.ImageReadFailed, "ReferenceChanged")
	must(t, os.Remove(path))
	r.refused(engine.Request{Path: uri, Prompt: "what"}, fault.InvalidToolInput, "NotFound")
	r.refused(engine.Request{Path: "vision://vis_0123456789abcdef", Prompt: "what"}, fault.InvalidToolInput, "ReferenceUnknown")
	r.refused(engine.Request{Path: "vision://../../etc", Prompt: "what"}, fault.InvalidToolInput, "ReferenceMalformed")
	if _, err := r.engine.Reference("vis_0123456789abcdef"); fault.As(err).Reason != "ReferenceUnknown" {
		t.Errorf("found %v", err)
	}
}

func TestUploadsAreHeldAgainstThePolicy(t *testing.T) {
	whole := square(t, 8, 1)
	for name, tc := range map[string]struct {
		edit   func(*router.Document)
		from   io.Reader
		size   int64
		kind   fault.Kind
		reason string
	}{
		"longer than the policy takes, as told": {
			from: strings.NewReader(""), size: 21 << 20, kind: fault.BudgetExceeded, reason: "TooManyBytes",
		},
		"longer than the policy takes, as it turns out": {
			edit: func(d *router.Document) { d.Profiles[0].Limits.Image.MaxBytes = 50 },
			from: bytes.NewReader(whole), size: -1, kind: fault.BudgetExceeded, reason: "TooManyBytes",
		},
		"shorter than told":   {from: bytes.NewReader(whole[:10]), size: int64(len(whole)), kind: fault.InvalidToolInput, reason: "BodyUnreadable"},
		"a body that breaks":  {from: iotest.ErrReader(errors.New("gone")), size: -1, kind: fault.InvalidToolInput, reason: "BodyUnreadable"},
		"nothing":             {from: strings.NewReader(""), size: -1, kind: fault.InvalidToolInput, reason: "Blank"},
		"no image":            {from: strings.NewReader("just text"), size: 9, kind: fault.InvalidToolInput, reason: "NotAnImage"},
		"too many pixels":     {from: bytes.NewReader(pngHeader(100_000, 100_000)), size: -1, kind: fault.BudgetExceeded, reason: "TooManyPixels"},
		"a type for no model": {from: bytes.NewReader(bmp()), size: -1, kind: fault.InvalidToolInput, reason: "MediaTypeNotAccepted"},
		"no profile is there": {edit: func(d *router.Document) { d.Profiles = nil }, from: bytes.NewReader(whole), size: -1, kind: fault.PolicyDenied, reason: "ProfileNotFound"},
		"the policy's own list": {
			edit: func(d *router.Document) { d.Profiles[0].Limits.Image.MediaTypes = []string{"image/jpeg"} },
			from: bytes.NewReader(whole), size: -1, kind: fault.InvalidToolInput, reason: "MediaTypeNotAccepted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(tc.edit)
			kept, err := r.engine.Upload(background, tc.from, tc.size)
			if f := fault.As(err); kept != nil || f.Kind != tc.kind || f.Reason != tc.reason {
				t.Errorf("kept %v, %s %s; want %s %s", kept, f.Kind, f.Reason, tc.kind, tc.reason)
			} else if f.Details["field"] != nil || strings.Contains(f.RecoveryHint, "path") {
				t.Errorf("an upload has no path; the fault is %+v", f)
			}
		})
	}
}

func TestABodyOfUntoldSizeIsReadAsItIsAndTakesLittleMoreMemoryThanItMay(t *testing.T) {
	for _, tc := range []struct{ size, most, memory int64 }{
		{0, 20 << 20, 1 << 20},
		{1, 1, 1 << 10},
		{100, 50, 1 << 10},                     // over most
		{200 << 10, 20 << 20, 1 << 20},         // in the first room
		{256 << 10, 256 << 10, 1 << 20},        // just as large as that
		{1 << 20, 20 << 20, 21 << 20},          // what is acquired for it is most
		{20 << 20, 20 << 20, 21 << 20},         // just most
		{20<<20 + 10, 20 << 20, 21 << 20},      // over most
		{30 << 20, 1 << 30, 25<<20 + 97<<20},   // a policy that takes far larger ones
		{30 << 20, 100 << 20, 25<<20 + 97<<20}, // and less than four times the second room
	} {
		data := bytes.Repeat([]byte("0123456789abcdef"), int(tc.size/16)+1)[:tc.size]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := engine.ReadUntold(iotest.HalfReader(bytes.NewReader(data)), tc.most)
		runtime.ReadMemStats(&after)
		if err != nil || !bytes.Equal(got, data[:min(tc.size, tc.most+1)]) {
			t.Errorf("%d of at most %d bytes: read %d, %v", tc.size, tc.most, len(got), err)
		}
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > tc.memory+64<<10 {
			t.Errorf("%d of at most %d bytes took %d bytes of memory; want at most %d", tc.size, tc.most, took, tc.memory)
		}
	}
}

func TestAnUploadIsHeldAgainstTheLimitsOfTheDayItIsLookedAt(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	uri := r.upload(square(t, 8, 1), true).URI
	r.use(func(d *router.Document) { d.Profiles[0].Limits.Image.MaxPixels = 63 })
	r.refused(engine.Request{Path: uri, Prompt: "what"}, fault.BudgetExceeded, "TooManyPixels")
	r.use(func(d *router.Document) { d.Profiles[0].Limits.Image.MaxBytes = 63 })
	r.refused(engine.Request{Path: uri, Prompt: "what"}, fault.BudgetExceeded, "TooManyBytes")
}

// stalled is a body that does not come until its context ends.
type stalled struct {
	ctx   context.Context
	begun chan<- struct{}
}

func (s stalled) Read([]byte) (int, error) {
	s.begun <- struct{}{}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func TestUploadsThatStallKeepNobodyFromLooking(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	ctx, end := context.WithCancel(background)
	begun := make(chan struct{}, 4)
	var uploads sync.WaitGroup
	for range cap(begun) { // more than may be held
		uploads.Go(func() { _, _ = r.engine.Upload(ctx, stalled{ctx, begun}, 20<<20) })
	}
	<-begun
	time.Sleep(50 * time.Millisecond) // for the others to begin, or to wait for it
	looking, stop := context.WithTimeout(background, 10*time.Second)
	defer stop()
	if _, err := r.engine.View(looking, engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "what"}); err != nil {
		t.Error(err)
	}
	end()
	uploads.Wait()
	r.upload(square(t, 8, 2), true) // they gave back what they held
}

func TestWithoutADirectoryThereAreNoUploads(t *testing.T) {
	e := engine.New(engine.Options{Profile: "policy/p"})
	defer e.Close()
	if _, err := e.Upload(background, bytes.NewReader(square(t, 8, 1)), -1); fault.As(err).Kind != fault.RouterUnavailable {
		t.Errorf("without a document: %v", err)
	}
	doc := newRig(t).document()
	must(t, e.Use(doc))
	if _, err := e.Upload(background, bytes.NewReader(square(t, 8, 1)), -1); fault.As(err).Reason != "UploadsUnavailable" {
		t.Errorf("without a directory: %v", err)
	}
}

// bmp is a header of 8 x 8 pixels.
func bmp() []byte {
	b := append([]byte("BM"), make([]byte, 60)...)
	b[14], b[18], b[22] = 40, 8, 8
	return b
}

func TestATypeThatOnlyOneModelTakesGoesToThatModel(t *testing.T) {
	r := newRig(t)
	path := r.file("a.bmp", bmp())
	taking := func(d *router.Document) {
		d.Providers[0].Models[2].Limits = &router.ModelLimits{MediaTypes: []string{"image/png", "image/bmp"}}
	}
	r.use(nil)
	r.refused(engine.Request{Path: path, Prompt: "what"}, fault.InvalidToolInput, "MediaTypeNotAccepted")
	r.use(taking)
	if got := r.view(engine.Request{Path: path, Prompt: "what"}); got.VisionSelection.VisionModel != "see-too" || got.VisualReference.MIME != "image/bmp" {
		t.Errorf("got %+v of %+v", got.VisionSelection, got.VisualReference)
	}
	r.refused(engine.Request{Path: path, Prompt: "what", Model: "models/see"}, fault.InvalidToolInput, "MediaTypeNotAccepted")
	r.use(func(d *router.Document) {
		taking(d)
		d.Profiles[0].Limits.Image.MediaTypes = []string{"image/png"}
	})
	r.refused(engine.Request{Path: path, Prompt: "what"}, fault.InvalidToolInput, "MediaTypeNotAccepted")
}

func TestAModelsListAddsToTheFourTypesUnlessItNamesSomeOfThem(t *testing.T) {
	r := newRig(t)
	files := map[string]string{"png": r.file("a.png", square(t, 8, 1)), "gif": r.file("a.gif", []byte("GIF89a\x08\x00\x08\x00")), "bmp": r.file("a.bmp", bmp())}
	for name, tc := range map[string]struct{ listed, taken, refused []string }{
		"no list":                     {nil, []string{"png", "gif"}, []string{"bmp"}},
		"a list of others":            {[]string{"image/bmp"}, []string{"png", "gif", "bmp"}, nil},
		"a list with one of the four": {[]string{"image/png", "image/bmp"}, []string{"png", "bmp"}, []string{"gif"}},
	} {
		r.use(func(d *router.Document) {
			d.Providers[0].Models[1].Limits = &router.ModelLimits{MediaTypes: tc.listed}
		})
		for _, kind := range tc.taken {
			if _, err := r.engine.View(background, engine.Request{Path: files[kind], Prompt: name, Model: "models/see"}); err != nil {
				t.Errorf("%s: %s: %v", name, kind, err)
			}
		}
		for _, kind := range tc.refused {
			r.refused(engine.Request{Path: files[kind], Prompt: name, Model: "models/see"}, fault.InvalidToolInput, "MediaTypeNotAccepted")
		}
	}
}
