// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

func TestWhatIsRefusedBeforeAnyCall(t *testing.T) {
	const whole = 20 << 20
	for name, tc := range map[string]struct {
		edit    func(*router.Document)
		prepare func(r *rig) engine.Request
		kind    fault.Kind
		reason  string
		says    []string
		details map[string]any
		// reference is whether the image could be read, and is named beside the fault.
		reference bool
	}{
		"a blank path": {
			prepare: func(*rig) engine.Request { return engine.Request{Path: " ", Prompt: "what"} },
			kind:    fault.InvalidToolInput, reason: "Blank", details: map[string]any{"field": "path"},
		},
		"a blank prompt": {
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("a.png", square(r.t, 8, 1)), Prompt: "\t\n"}
			},
			kind: fault.InvalidToolInput, reason: "Blank", details: map[string]any{"field": "prompt"},
		},
		"a path outside the workspaces": {
			prepare: func(*rig) engine.Request { return engine.Request{Path: "/etc/hostname", Prompt: "what"} },
			kind:    fault.PolicyDenied, reason: "OutsideWorkspace", details: map[string]any{"field": "path", "path": "/etc/hostname"},
		},
		"a symbolic link that leads out": {
			prepare: func(r *rig) engine.Request {
				must(r.t, os.Symlink("/etc/hostname", filepath.Join(r.space, "link.png")))
				return engine.Request{Path: filepath.Join(r.space, "link.png"), Prompt: "what"}
			},
			kind: fault.PolicyDenied, reason: "OutsideWorkspace",
		},
		"H04: a file that is not there": {
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: filepath.Join(r.space, "gone.png"), Prompt: "what"}
			},
			kind: fault.InvalidToolInput, reason: "NotFound", details: map[string]any{"field": "path"},
		},
		"H10: a directory": {
			prepare: func(r *rig) engine.Request { return engine.Request{Path: r.space, Prompt: "what"} },
			kind:    fault.InvalidToolInput, reason: "NotRegular",
		},
		"a FIFO, without waiting for its writer": {
			prepare: func(r *rig) engine.Request {
				must(r.t, syscall.Mkfifo(filepath.Join(r.space, "fifo.png"), 0o600))
				return engine.Request{Path: filepath.Join(r.space, "fifo.png"), Prompt: "what"}
			},
			kind: fault.InvalidToolInput, reason: "NotRegular",
		},
		"a file of 21 MiB": {
			prepare: func(r *rig) engine.Request {
				path := r.file("big.png", pngHeader(8, 8))
				must(r.t, os.Truncate(path, 21<<20))
				return engine.Request{Path: path, Prompt: "what"}
			},
			kind: fault.BudgetExceeded, reason: "TooManyBytes",
			says:    []string{"21 MiB (22020096 bytes)", "20 MiB (20971520 bytes)", "limits.image.maxBytes", "the policy"},
			details: map[string]any{"byte_count": int64(21 << 20), "max_byte_count": int64(whole)},
		},
		"H06: one byte over the limit": {
			edit: func(d *router.Document) { d.Profiles[0].Limits.Image.MaxBytes = 99 },
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("a.png", append(pngHeader(8, 8), make([]byte, 100-33)...)), Prompt: "what"}
			},
			kind: fault.BudgetExceeded, reason: "TooManyBytes", says: []string{"has 100 bytes", "99 bytes"},
		},
		"an image over the request's total": {
			edit: func(d *router.Document) { d.Profiles[0].Limits.Request.MaxTotalImageBytes = 32 },
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("a.png", pngHeader(8, 8)), Prompt: "what"}
			},
			kind: fault.BudgetExceeded, reason: "TooManyBytes", says: []string{"limits.request.maxTotalImageBytes", "33 bytes", "32 bytes"},
		},
		"a PNG header of 100000 x 100000": {
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("bomb.png", pngHeader(100_000, 100_000)), Prompt: "what"}
			},
			kind: fault.BudgetExceeded, reason: "TooManyPixels", says: []string{"10000000000", "50000000"},
			details: map[string]any{"width": 100_000, "height": 100_000, "pixel_count": uint64(10_000_000_000), "max_pixel_count": int64(50_000_000)},
		},
		"too many pixels, told behind the first 64 KiB": {
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("far.jpg", farJPEG(60_000, 60_000)), Prompt: "what"}
			},
			kind: fault.BudgetExceeded, reason: "TooManyPixels", details: map[string]any{"width": 60_000},
		},
		"H05: a file that is not an image": {
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("notes.png", []byte("just text")), Prompt: "what"}
			},
			kind: fault.InvalidToolInput, reason: "NotAnImage",
			details: map[string]any{"supported_media_types": router.DefaultMediaTypes()},
		},
		"an empty file": {
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("empty.png", nil), Prompt: "what"}
			},
			kind: fault.InvalidToolInput, reason: "NotAnImage",
		},
		"a PNG that ends in its header": {
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("cut.png", pngHeader(8, 8)[:18]), Prompt: "what"}
			},
			kind: fault.InvalidToolInput, reason: "ImageMalformed", says: []string{"image/png"},
		},
		"a side of zero pixels": {
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("flat.png", pngHeader(0, 8)), Prompt: "what"}
			},
			kind: fault.InvalidToolInput, reason: "ImageMalformed", says: []string{"zero pixels"},
		},
		"a type that the policy does not take": {
			edit: func(d *router.Document) { d.Profiles[0].Limits.Image.MediaTypes = []string{"image/jpeg"} },
			prepare: func(r *rig) engine.Request {
				return engine.Request{Path: r.file("a.png", square(r.t, 8, 1)), Prompt: "what"}
			},
			kind: fault.InvalidToolInput, reason: "MediaTypeNotAccepted", says: []string{"image/png", "the policy"},
			details: map[string]any{"supported_media_types": []string{"image/jpeg"}},
		},
		"a type that the model does not take": {
			edit: limits(router.ModelLimits{MediaTypes: []string{"image/jpeg"}}), prepare: small,
			kind: fault.InvalidToolInput, reason: "MediaTypeNotAccepted", says: []string{"models@default/see"}, reference: true,
		},
		"more bytes than the model takes, as sent in base64": {
			edit: limits(router.ModelLimits{MaxImageBytes: 43}), prepare: small,
			kind: fault.BudgetExceeded, reason: "TooManyBytes", reference: true,
			says: []string{"base64", "44 bytes", "43 bytes", "limits.maxImageBytes", "models@default/see"},
		},
		"a longer side than the model takes": {
			edit: limits(router.ModelLimits{MaxImageSide: 7}), prepare: small,
			kind: fault.BudgetExceeded, reason: "ImageTooLarge", reference: true,
			says: []string{"8 x 8", "limits.maxImageSide 7", "models@default/see"},
		},
		"a longer request than the model takes": {
			edit: limits(router.ModelLimits{MaxRequestBytes: 1000}), prepare: small,
			kind: fault.BudgetExceeded, reason: "RequestTooLarge", says: []string{"limits.maxRequestBytes", "1000 bytes"}, reference: true,
		},
		"a model that is not there": {
			prepare: func(r *rig) engine.Request { q := small(r); q.Model = "models/none"; return q },
			kind:    fault.VisionAdapterUnavailable, reason: "RouteNotInRouter", reference: true,
		},
		"a model that cannot see": {
			prepare: func(r *rig) engine.Request { q := small(r); q.Model = "models/text"; return q },
			kind:    fault.VisionAdapterUnavailable, reason: "ModelLacksImageInput", reference: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(tc.edit)
			req := tc.prepare(r)
			f := r.refused(req, tc.kind, tc.reason)
			for _, text := range tc.says {
				if !strings.Contains(f.fault.Message, text) {
					t.Errorf("message %q does not say %q", f.fault.Message, text)
				}
			}
			for name, want := range tc.details {
				if got := f.fault.Details[name]; fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", want, want) {
					t.Errorf("details.%s = %T %v, want %T %v", name, got, got, want, want)
				}
			}
			if f.fault.RecoveryHint == "" || f.fault.Retryable {
				t.Errorf("hint %q, retryable %v", f.fault.RecoveryHint, f.fault.Retryable)
			}
			if got := f.result != nil && f.result.VisualReference != nil; got != tc.reference {
				t.Errorf("the reference is there: %v, want %v", got, tc.reference)
			}
			r.wantCalls(0)
			r.use(nil)
			r.view(engine.Request{Path: r.file("good.png", square(t, 8, 9)), Prompt: "still alive?"})
		})
	}
}

// small asks for a PNG of 33 bytes, 44 in base64, 8 x 8 pixels.
func small(r *rig) engine.Request {
	return engine.Request{Path: r.file("small.png", pngHeader(8, 8)), Prompt: "what"}
}

// limits sets the limits of the model "see", and makes it the default.
func limits(l router.ModelLimits) func(*router.Document) {
	return func(d *router.Document) {
		d.Providers[0].Models[1].Limits = &l
		d.Profiles[0].DefaultModel = "models@default/see"
	}
}

func TestLimitsThatAreJustMet(t *testing.T) {
	r := newRig(t)
	r.use(func(d *router.Document) {
		l := &d.Profiles[0].Limits
		l.Image.MaxBytes, l.Request.MaxTotalImageBytes, l.Image.MaxPixels = 33, 33, 64
		l.Image.MediaTypes = []string{"image/png"}
		d.Providers[0].Models[1].Limits = &router.ModelLimits{MaxImages: 1, MaxImageBytes: 44, MaxImageSide: 8, MaxRequestBytes: 1 << 20, MediaTypes: []string{"image/png"}}
	})
	r.view(small(r))
	size := int64(len(*r.upstream.last.Load()))
	r.use(limits(router.ModelLimits{MaxRequestBytes: size}))
	r.view(engine.Request{Path: "small.png", Prompt: "When"}) // as long, and not in the cache
	r.wantCalls(2)
	r.use(limits(router.ModelLimits{MaxRequestBytes: size - 1}))
	r.refused(engine.Request{Path: "small.png", Prompt: "Whom"}, fault.BudgetExceeded, "RequestTooLarge")
}

func TestWhatTheWorkspaceRefusesHasAKind(t *testing.T) {
	for reason, want := range map[workspace.Reason]struct {
		kind      fault.Kind
		retryable bool
	}{
		workspace.Blank:            {fault.InvalidToolInput, false},
		workspace.OutsideWorkspace: {fault.PolicyDenied, false},
		workspace.NotFound:         {fault.InvalidToolInput, false},
		workspace.NotRegular:       {fault.InvalidToolInput, false},
		workspace.TooManyLinks:     {fault.InvalidToolInput, false},
		workspace.TooLarge:         {fault.BudgetExceeded, false},
		workspace.Changed:          {fault.ImageReadFailed, true},
		workspace.IO:               {fault.ImageReadFailed, false},
		"SomethingNew":             {fault.ImageReadFailed, false},
	} {
		f := engine.FileFault(fmt.Errorf("opening: %w", &workspace.Error{Reason: reason, Path: "a.png"}), "a.png")
		if f.Kind != want.kind || f.Retryable != want.retryable || f.Details["path"] != "a.png" || f.RecoveryHint == "" {
			t.Errorf("%s became %+v; want %+v", reason, f, want)
		}
	}
}

func TestWithoutWorkspacesEveryPathIsOutside(t *testing.T) {
	r := newRig(t)
	e := engine.New(engine.Options{Profile: "policy/p"})
	must(t, e.Use(r.document()))
	t.Cleanup(e.Close)
	for _, path := range []string{small(r).Path, "a.png", "/etc/passwd"} {
		_, err := e.View(background, engine.Request{Path: path, Prompt: "what"})
		if f := fault.As(err); f.Kind != fault.PolicyDenied || f.Reason != string(workspace.OutsideWorkspace) ||
			!strings.Contains(f.Message, "no workspace") {
			t.Errorf("fault = %+v", f)
		}
	}
}

func TestThePathOutsideIsAnsweredWithAWayThatIsOpen(t *testing.T) {
	space, err := workspace.Open([]string{t.TempDir()})
	must(t, err)
	t.Cleanup(space.Close)
	kept, err := reference.Open(reference.Options{Dir: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, kept.Close()) })
	doc := newRig(t).document()
	for name, tc := range map[string]struct {
		space  *workspace.Set
		kept   *reference.Keeper
		offers []string
	}{
		"a workspace and uploads": {space, kept, []string{"into a workspace", "/v1/images"}},
		"a workspace alone":       {space, nil, []string{"into a workspace"}},
		"uploads alone":           {nil, kept, []string{"/v1/images"}},
		"neither":                 {nil, nil, []string{"platform team"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := engine.New(engine.Options{Profile: "policy/p", Workspaces: tc.space, References: tc.kept})
			defer e.Close()
			must(t, e.Use(doc))
			_, err := e.View(background, engine.Request{Path: "/etc/passwd", Prompt: "what"})
			f := fault.As(err)
			for _, way := range []string{"into a workspace", "/v1/images", "platform team"} {
				if strings.Contains(f.RecoveryHint, way) != slices.Contains(tc.offers, way) {
					t.Errorf("the hint is %q; it should offer %q and nothing else", f.RecoveryHint, tc.offers)
				}
			}
		})
	}
}

// A cancelled context lets nothing be read: what is still refused for its
// content was refused by its header.
func TestTooManyPixelsAreRefusedBeforeTheBodyIsRead(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("bomb.png", pngHeader(100_000, 100_000))
	must(t, os.Truncate(path, 20<<20))
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := r.engine.View(ctx, engine.Request{Path: path, Prompt: "what"}); fault.As(err).Reason != "TooManyPixels" {
		t.Errorf("the call gave %v", err)
	}
}
