// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"slices"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/vendors"
)

// ofVendor are the limits that the vendor publishes. A number or list that the
// provider declares of the model stands in place of the vendor's of the same
// name: who runs a provider knows it better than a table does. Types that it
// only adds are added to the vendor's.
func (t *terms) ofVendor(c *Candidate, model *router.Model) {
	declared := model.Limits
	if declared == nil {
		declared = &router.ModelLimits{}
	}
	found := vendors.Find(c.Transport, c.Host, c.Model, model.Family)
	for _, v := range found.All() {
		if v.UpToWindow > 0 && (model.ContextWindowTokens <= 0 || model.ContextWindowTokens > v.UpToWindow) {
			continue
		}
		b := bound{max: v.Value, limit: string(v.Name), owner: "the vendor " + found.Vendor, source: v.Source}
		switch {
		case v.Name == vendors.MaxRequestBytes && declared.MaxRequestBytes > 0:
		case v.Advice:
			t.advice = append(t.advice, advice{b, v})
		case v.Name == vendors.MaxRequestBytes:
			t.body = append(t.body, b)
		case t.sees:
			t.ofVendorImages(b, v, model, declared)
		}
	}
}

// ofVendorImages takes one limit on images.
func (t *terms) ofVendorImages(b bound, v vendors.Limit, model *router.Model, declared *router.ModelLimits) {
	add := func(into *[]bound, instead int64) {
		if instead == 0 {
			*into = append(*into, b)
		}
	}
	switch v.Name {
	case vendors.MaxImages:
		add(&t.images, declared.MaxImages)
	case vendors.MaxImagesPerMessage:
		add(&t.perTurn, 0)
	case vendors.MaxImageBytes:
		add(&t.imageBytes, declared.MaxImageBytes)
	case vendors.MaxImageBase64Bytes:
		add(&t.imageBase64, declared.MaxImageBytes)
	case vendors.MaxTotalImageBytes:
		add(&t.totalBytes, 0)
	case vendors.MaxTotalBase64Bytes:
		add(&t.totalBase64, 0)
	case vendors.MaxPixels:
		add(&t.pixels, 0)
	case vendors.MaxSide:
		if v.FromImages == 0 {
			add(&t.side, declared.MaxImageSide)
		} else if t.many == nil { // a bound on the number of images, for those with a longer side
			b.max = int64(v.FromImages) - 1
			t.many = &many{bound: b, side: v.Value}
		}
	case vendors.MediaTypes:
		if _, complete := model.AcceptedMediaTypes(); !complete {
			t.types = append(t.types, words{b, slices.Concat(v.Words, declared.MediaTypes)})
		}
	case vendors.Sources:
		t.sources = append(t.sources, words{b, v.Words})
	case vendors.Animation:
		t.stills = append(t.stills, words{b, v.For})
	}
}

// advice is a limit whose excess is not refused.
type advice struct {
	bound
	vendors.Limit
}

// warn says what goes past the vendor's advice.
func (a *advice) warn(l *ledger, warn func(string, ...any)) {
	switch a.Name {
	case vendors.MaxRequestBytes:
		if n := l.bodyBeside() + l.all.base64; n > a.max {
			warn("the request as sent has %s and may be refused; %s %s%s", Size(n), a.named(), Size(a.max), a.published())
		}
	case vendors.Animation:
		n := 0
		for i := range l.entries {
			if e := &l.entries[i]; e.kept && e.Animated && (len(a.For) == 0 || slices.Contains(a.For, e.MediaType)) {
				n++
			}
		}
		if n > 0 {
			warn("%d of the images are animated; %s shows the model the first frame alone%s", n, a.owner, a.published())
		}
	}
}
