// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/router"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
)

// defaults are the limits of a policy that sets none.
func defaults() router.Limits {
	return router.Limits{
		Image:   router.ImageLimits{MaxBytes: 20 * mib, MaxPixels: 50_000_000},
		Request: router.RequestLimits{MaxDistinctImages: 8, MaxTotalImageBytes: 20 * mib, MaxProbedPaths: 16, MaxBodyBytes: 64 * mib},
	}
}

// seeing is a candidate of no known vendor that takes images and declares no limits.
func seeing() preflight.Candidate {
	return preflight.Candidate{
		Route: "own@local/any-model", Model: "any-model", Transport: router.TransportOpenAIChatCompletions, Host: "models.team.svc",
		Declared: &router.Model{Name: "any-model", ImageInput: true},
	}
}

// blind is a candidate that takes text only.
func blind(name string) preflight.Candidate {
	c := seeing()
	c.Route, c.Model, c.Declared = "own@local/"+name, name, &router.Model{Name: name}
	return c
}

// said is a turn with its images.
type said struct {
	kind   preflight.Kind
	images []preflight.Image
}

func human(images ...preflight.Image) said   { return said{preflight.Human, images} }
func results(images ...preflight.Image) said { return said{preflight.Results, images} }
func assistant() said                        { return said{preflight.Assistant, nil} }

// request is a conversation under the default limits, for a model that sees.
// Images are named by turn and place, such as "2.0".
func request(turns ...said) preflight.Input {
	in := preflight.Input{Limits: defaults(), Candidate: seeing()}
	for t, turn := range turns {
		in.Turns = append(in.Turns, preflight.Turn{Kind: turn.kind})
		for i, img := range turn.images {
			img.Turn, img.ID = t, fmt.Sprintf("%d.%d", t, i)
			in.Images = append(in.Images, img)
		}
	}
	return in
}

// picture is a small PNG of some bytes, whose content has a name.
func picture(name string, bytes int64) preflight.Image {
	return preflight.Image{
		SHA256: name, Bytes: bytes, Base64Bytes: (bytes + 2) / 3 * 4,
		MediaType: "image/png", Width: 100, Height: 100,
	}
}

// pictures are n different ones of 1 KiB.
func pictures(prefix string, n int) []preflight.Image {
	list := make([]preflight.Image, n)
	for i := range list {
		list[i] = picture(fmt.Sprintf("%s%d", prefix, i), kib)
	}
	return list
}

// sized is a picture with other sides.
func sized(name string, width, height int) preflight.Image {
	p := picture(name, kib)
	p.Width, p.Height = width, height
	return p
}

// outcomes writes a verdict's decisions down: "0.0 admitted, 0.1 degraded TooManyImages".
func outcomes(v preflight.Verdict) string {
	list := make([]string, len(v.Decisions))
	for i, d := range v.Decisions {
		list[i] = strings.TrimSpace(d.ID + " " + string(d.Outcome) + " " + d.Reason)
	}
	return strings.Join(list, ", ")
}

// count is how many decisions have an outcome.
func count(v preflight.Verdict, o preflight.Outcome) int {
	n := 0
	for _, d := range v.Decisions {
		if d.Outcome == o {
			n++
		}
	}
	return n
}

// left are the ids of the images that were left out, in order.
func left(v preflight.Verdict) string {
	var list []string
	for _, d := range v.Decisions {
		if d.Outcome == preflight.Degraded {
			list = append(list, d.ID)
		}
	}
	return strings.Join(list, " ")
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}
