// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

// What a sight shows is pinned when it is first looked at, under the sight's key:
// an image by its digest, a failure by its reason. Later requests show the pinned
// bytes without another look at the path, so that what comes before in a
// conversation never changes. There are these ways out of a pin:
//
//   - A failure at a Fresh sight is looked at again: the assistant has not answered
//     yet, so an agent that repeats the request may get the image after all.
//   - A Weak key at a Fresh sight is looked at again, and what is found takes the
//     pin's place, a failure too: another conversation may have the same key, and
//     must not be shown this one's image.
//   - A result of ViewImage that tells another digest than the pin's is another
//     conversation, or an edited one, and is looked at by that digest.
//   - Where the bytes were evicted, the path is read again. It must have the same
//     bytes; if it has not, the sight is "Changed" for good. A system that fails to
//     read (IO) says so in this request alone.
//
// A sight that no pin is known for, as after a restart without a directory, is
// looked at as if it were new, Fresh or not.
//
// Images of sights are shown as they are or not at all: where the policy has
// oversized images downscaled (limits.image.onOversize), that is for ViewImage and
// for images of requests that are shown as text.

// reasonChanged says that a path has no longer the bytes that were shown.
const reasonChanged = string(workspace.Changed)

// resolved is what was found at a sight.
type resolved struct {
	// picture is nil when nothing is to be shown; facts are those of its bytes.
	picture *injection.Picture
	facts   probe.Facts
	// sha256 is the digest of what the sight shows or showed, as far as it is known:
	// also of a sight that is Old.
	sha256 string
	// was is what the sight showed before, where it shows that no more; its SHA256 is ""
	// where nothing is known of it.
	was pin.Pin
	// reason is a CamelCase word that says why a Wanted sight has no picture: that of
	// a workspace.Error, of a refusal by the policy or of a fault of a reference.
	reason string
}

// resolve finds what the sights of a plan show, in their order: by their pins, by
// the digest that a result tells, or at their paths, of which a request has at
// most limits.request.maxProbedPaths opened; which ones depends on the conversation
// alone, and the others are "TooManyPaths". What is no image, or over a limit of
// the policy, is refused before it is read. Pictures are valid until release, which
// may be called once. The only fault is a context that ended.
func (e *Engine) resolve(ctx context.Context, plan *injection.Plan, r *message.Request, limits *router.Limits) (found []resolved, release func(), bad *fault.Fault) {
	strict := *limits
	strict.Image.OnOversize = ""
	v := &resolution{engine: e, pins: e.options.Pins, limits: &strict, open: map[string]*pin.Content{}}
	found = make([]resolved, len(plan.Sights))
	may := v.mayProbe(plan, r)
	for i := range plan.Sights {
		s := &plan.Sights[i]
		switch s.State {
		case injection.Wanted:
			if found[i], bad = v.sight(ctx, s, may == nil || may[i]); bad != nil {
				v.release()
				return nil, nil, bad
			}
		case injection.Old:
			found[i] = v.old(s)
		case injection.ShownByTool, injection.ShownInConversation, injection.ErrorResult, injection.NoPath:
		}
	}
	return found, v.release, nil
}

// resolution is the sights of one request on their way.
type resolution struct {
	engine *Engine
	pins   *pin.Store
	limits *router.Limits
	open   map[string]*pin.Content // by digest
}

func (v *resolution) release() {
	for _, c := range v.open {
		_ = c.Close() // only read from
	}
	v.open = nil
}

// mayProbe chooses the sights whose paths may be opened; nil is all. All of the
// conversation take part, those with a pin too, so that the choice for one never
// depends on what is kept.
func (v *resolution) mayProbe(plan *injection.Plan, r *message.Request) []bool {
	most := v.limits.Request.MaxProbedPaths
	if int64(len(plan.Sights)) <= most {
		return nil
	}
	var paths []preflight.Path
	var at []int
	for i := range plan.Sights {
		if s := &plan.Sights[i]; s.State == injection.Wanted {
			paths = append(paths, preflight.Path{Name: v.spelled(s.Path), Turn: s.Turn, Required: s.Fresh, Soft: true})
			at = append(at, i)
		}
	}
	may := make([]bool, len(plan.Sights))
	for i, ok := range preflight.ProbePaths(preflight.TurnsOf(r), paths, most).May {
		may[at[i]] = ok
	}
	return may
}

// spelled is one spelling of a path, however it is written.
func (v *resolution) spelled(path string) string {
	path = strings.TrimSpace(path)
	if dirs := v.engine.options.Workspaces.Dirs(); len(dirs) > 0 && filepath.IsLocal(path) {
		path = filepath.Join(dirs[0], path)
	}
	return filepath.Clean(path)
}

// old is what is known of a sight that is Old.
func (v *resolution) old(s *injection.Sight) resolved {
	found := resolved{sha256: v.digest(s)}
	if p, _ := v.pins.Get(s.Key); p.SHA256 == found.sha256 {
		found.was = p
	}
	return found
}

// digest is that of what a sight showed or is told to show; "" when it is not known.
func (v *resolution) digest(s *injection.Sight) string {
	if pin.IsDigest(s.SHA256) {
		return s.SHA256
	}
	p, _ := v.pins.Get(s.Key)
	return p.SHA256
}

// sight finds what one sight shows. Equal ones at the same time look once.
func (v *resolution) sight(ctx context.Context, s *injection.Sight, may bool) (resolved, *fault.Fault) {
	if found, ok := v.pinned(s); ok {
		return found, nil
	}
	done, err := v.pins.Lock(ctx, s.Key)
	if err != nil {
		return resolved{}, ended(err)
	}
	defer done()
	if found, ok := v.pinned(s); ok {
		return found, nil
	}
	if p, known := v.pins.Get(s.Key); known && holds(s, p) {
		return v.restore(ctx, s, p, may)
	}
	return v.look(ctx, s, may)
}

// holds reports whether a pin stands for a sight.
func holds(s *injection.Sight, p pin.Pin) bool {
	shown := p.SHA256 != "" // once at least
	switch {
	case s.Fresh && (s.Weak || !shown):
		return false
	case shown && pin.IsDigest(s.SHA256) && s.SHA256 != p.SHA256:
		return false
	}
	return true
}

// pinned is what a sight shows by its pin alone; false where there is none that
// holds, or its bytes are gone.
func (v *resolution) pinned(s *injection.Sight) (resolved, bool) {
	p, known := v.pins.Get(s.Key)
	if !known || !holds(s, p) {
		return resolved{}, false
	}
	if p.Reason != "" {
		return resolved{sha256: v.digest(s), was: p, reason: p.Reason}, true
	}
	c, ok := v.content(p.SHA256)
	if !ok {
		return resolved{}, false
	}
	return shown(c, p.Facts), true
}

// content opens what is kept under a digest, once for all sights of the request.
func (v *resolution) content(sha256 string) (*pin.Content, bool) {
	if c, ok := v.open[sha256]; ok {
		return c, true
	}
	c, ok := v.pins.Content(sha256)
	if ok {
		v.open[sha256] = c
	}
	return c, ok
}

func shown(c *pin.Content, facts probe.Facts) resolved {
	return resolved{
		picture: &injection.Picture{
			SHA256: c.SHA256, MediaType: facts.MediaType, Width: facts.Width, Height: facts.Height, Size: c.Size, Data: c,
		},
		facts: facts, sha256: c.SHA256,
	}
}

// restore reads a path again whose bytes were shown and are gone.
func (v *resolution) restore(ctx context.Context, s *injection.Sight, p pin.Pin, may bool) (resolved, *fault.Fault) {
	if may {
		c, bad := v.read(ctx, s.Path, &p)
		switch {
		case bad == nil && c.SHA256 == p.SHA256:
			return shown(c, p.Facts), nil
		case bad != nil && bad.Reason == reasonCanceled:
			return resolved{}, bad
		case bad != nil && bad.Reason == string(workspace.IO):
			return resolved{sha256: p.SHA256, was: p, reason: bad.Reason}, nil
		}
		p.Reason = reasonChanged
	} else {
		p.Reason = preflight.ReasonPaths
	}
	v.pins.Put(s.Key, p)
	return resolved{sha256: p.SHA256, was: p, reason: p.Reason}, nil
}

// look looks at a sight for the first time, and pins what it finds.
func (v *resolution) look(ctx context.Context, s *injection.Sight, may bool) (resolved, *fault.Fault) {
	want := s.SHA256
	if !pin.IsDigest(want) {
		want = ""
	}
	c, bad := v.find(ctx, s.Path, want, may)
	var facts probe.Facts
	if bad == nil {
		facts, bad = v.judge(ctx, c)
	}
	if bad == nil {
		v.pins.Put(s.Key, pin.Pin{SHA256: c.SHA256, Size: c.Size, Facts: facts})
		return shown(c, facts), nil
	}
	if bad.Reason == reasonCanceled {
		return resolved{}, bad
	}
	v.pins.Put(s.Key, pin.Pin{Reason: bad.Reason})
	return resolved{sha256: want, reason: bad.Reason}, nil
}

// find opens the bytes of a first look: those that are kept under the digest that
// a result tells, else those at the path.
func (v *resolution) find(ctx context.Context, path, want string, may bool) (*pin.Content, *fault.Fault) {
	if c, ok := v.content(want); ok {
		return c, nil
	}
	if !may {
		return nil, fault.New(fault.BudgetExceeded, preflight.ReasonPaths, "the request names too many different image files")
	}
	c, bad := v.read(ctx, path, nil)
	if bad == nil && want != "" && c.SHA256 != want {
		return nil, changed(nil)
	}
	return c, bad
}

// judge probes bytes that are kept and holds them against the policy. Where the
// header alone does not tell how large an image is or whether it moves, all of it
// is read, one image at a time.
func (v *resolution) judge(ctx context.Context, c *pin.Content) (probe.Facts, *fault.Fault) {
	if bad := checkBytes(c.Size, v.limits); bad != nil {
		return probe.Facts{}, bad
	}
	facts, err := probe.Reader(io.NewSectionReader(c, 0, c.Size))
	if err == nil && c.Size > probe.MaxHeader && (!facts.SizeKnown() || facts.Animated == probe.Unknown) {
		done, bad := v.alone(ctx)
		if bad != nil {
			return facts, bad
		}
		defer done()
		data := make([]byte, c.Size)
		if n, err := c.ReadAt(data, 0); n < len(data) {
			return facts, unreadable(err)
		}
		facts, err = probe.Content(data)
	}
	if _, ok := errors.AsType[*probe.Error](err); err != nil && !ok {
		return facts, unreadable(err)
	}
	return facts, checkFacts(facts, err, v.limits)
}

// wholeImages is the key of a turn that no sight has: 64 digits are none of it.
const wholeImages = "whole images"

// alone waits until no other request holds an image whole to pin it.
func (v *resolution) alone(ctx context.Context) (done func(), bad *fault.Fault) {
	done, err := v.pins.Lock(ctx, wholeImages)
	if err != nil {
		return nil, ended(err)
	}
	return done, nil
}
