// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/vendors"
)

// modelWarnings are about what the runtime obeys of a model that looks at images.
func modelWarnings(at string, p *v1alpha1.VisionProvider, m *v1alpha1.Model) []string {
	if !is(m.ImageInput, true) {
		return nil
	}
	var w []string
	if problem := familyWarning(m.Name, m.Family); problem != "" {
		w = append(w, at+".family: "+problem)
	}
	if m.Limits == nil {
		return w
	}
	seen := map[string]bool{}
	for i := range p.Spec.Endpoints {
		for _, problem := range vendorWarnings(p.Spec.Transport, &p.Spec.Endpoints[i], m) {
			if !seen[problem] {
				seen[problem] = true
				w = append(w, at+".limits."+problem)
			}
		}
	}
	return w
}

// vendorWarnings name the limits of a model that go past its vendor's own: the
// declared one counts, so the runtime sends what the vendor will refuse. Each
// begins with the limit's field.
func vendorWarnings(transport v1alpha1.Transport, e *v1alpha1.Endpoint, m *v1alpha1.Model) []string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil // refused
	}
	own := ofVendor{Limits: vendors.Find(string(transport), u.Host, m.Name, m.Family), model: m}
	l := m.Limits
	w := slices.Concat(
		own.above("maxImages", l.MaxImages, vendors.MaxImages),
		own.above("maxImageBytes", l.MaxImageBytes, vendors.MaxImageBase64Bytes, vendors.MaxImageBytes),
		own.above("maxImageSide", l.MaxImageSide, vendors.MaxSide),
		own.above("maxRequestBytes", l.MaxRequestBytes, vendors.MaxRequestBytes),
	)
	return append(w, own.besides(l.MediaTypes)...)
}

// ofVendor are the limits that the vendor at an endpoint sets for a model.
type ofVendor struct {
	vendors.Limits
	model *v1alpha1.Model
}

// above compares a declared number with the lowest of the vendor's limits of
// these names that holds for every request.
func (v ofVendor) above(name string, declared *int64, names ...vendors.Name) []string {
	if declared == nil {
		return nil
	}
	var lowest *vendors.Limit
	value := int64(0)
	for _, limit := range v.All() {
		if !slices.Contains(names, limit.Name) || limit.FromImages > 0 || limit.Advice || !v.holds(&limit) {
			continue
		}
		// models[].limits count an image as it is sent, in base64.
		sent := limit.Value
		if limit.Name == vendors.MaxImageBytes {
			sent = vendors.Base64Length(limit.Value)
		}
		if lowest == nil || sent < value {
			lowest, value = &limit, sent
		}
	}
	if lowest == nil || *declared <= value {
		return nil
	}
	most := fmt.Sprintf("%d %s", value, lowest.Name.Unit())
	if value != lowest.Value {
		most = fmt.Sprintf("%s in base64 (%d before it)", most, lowest.Value)
	}
	return []string{fmt.Sprintf("%s: %d is above what %s accepts, %s%s", name, *declared, v.Vendor, most, published(lowest))}
}

// holds reports whether a limit is for models with such a window.
func (v ofVendor) holds(limit *vendors.Limit) bool {
	window := v.model.ContextWindowTokens
	return limit.UpToWindow == 0 || window != nil && *window <= limit.UpToWindow
}

// besides names the declared types that the vendor does not take.
func (v ofVendor) besides(types []string) []string {
	limit, ok := v.Get(vendors.MediaTypes)
	if !ok || limit.Advice {
		return nil
	}
	var extra []string
	for _, t := range types {
		if !slices.Contains(limit.Words, t) {
			extra = append(extra, t)
		}
	}
	if len(extra) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("mediaTypes: %s does not take %s, but %s%s", v.Vendor, strings.Join(extra, ", "), strings.Join(limit.Words, ", "), published(&limit))}
}

// published says where a limit is known from.
func published(limit *vendors.Limit) string {
	if limit.Confidence == vendors.ThirdParty {
		return " (as others report: " + limit.Source + ")"
	}
	return " (" + limit.Source + ")"
}
