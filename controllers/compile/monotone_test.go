// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// A baseline takes away, and fills in what a policy does not say: it never raises
// a limit that any layer sets, never adds a route to the providers that the
// policy names, and never permits what any layer denies.
func TestAddingABaselineGrantsNothingThatALayerWithholds(t *testing.T) {
	tightened := map[string]int{}
	for seed := range int64(2000) {
		r := rand.New(rand.NewSource(seed))
		in := monotoneInput(r)
		before := Compile(in)
		baseline := v1alpha1.VisionPolicy{Spec: randomSpec(r)}
		baseline.Namespace, baseline.Name, baseline.CreationTimestamp = "vision-system", "added", metav1.Unix(int64(r.Intn(4)), 0)
		baseline.Spec.NamespaceSelector = []*metav1.LabelSelector{{}, {MatchLabels: in.NamespaceLabels}}[r.Intn(2)]
		in.Policies = append(in.Policies, baseline)
		after := Compile(in)
		if err := router.Validate(after.Document); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range before.Document.Profiles {
			old := &before.Document.Profiles[i]
			at := slices.IndexFunc(after.Document.Profiles, func(p router.Profile) bool { return p.ID == old.ID })
			if at < 0 {
				t.Errorf("seed %d: profile %s is gone", seed, old.ID)
				continue
			}
			c := comparison{t: t, at: fmt.Sprintf("seed %d, %s", seed, old.ID), tightened: tightened,
				set: said(before.Origins[old.ID]), named: slices.ContainsFunc(before.Origins[old.ID], func(o Origin) bool {
					return o.Field == "spec.providers" && o.From == old.From
				}), old: old, now: &after.Document.Profiles[at],
				oldDocument: before.Document, nowDocument: after.Document}
			c.compare()
		}
	}
	for _, what := range []string{"limits", "media types", "routes", "denials"} {
		if tightened[what] < 50 {
			t.Errorf("baselines took away %s only %d times; the test needs more", what, tightened[what])
		}
	}
}

// said are the fields that some layer sets.
func said(origins []Origin) map[string]bool {
	fields := map[string]bool{}
	for _, o := range origins {
		if o.From != FromDefault {
			fields[o.Field] = true
		}
	}
	return fields
}

// comparison is of one profile before and after.
type comparison struct {
	t         *testing.T
	at        string
	tightened map[string]int
	set       map[string]bool
	// named says that the object itself names its providers.
	named                    bool
	old, now                 *router.Profile
	oldDocument, nowDocument *router.Document
}

func (c *comparison) compare() {
	c.limits()
	c.routes()
	c.denial("spec.perCallModel", c.old.PerCallModel == router.PerCallDenied, c.now.PerCallModel == router.PerCallDenied)
	c.denial("spec.runtime.mcp", !c.old.Runtime.MCP, !c.now.Runtime.MCP)
	c.denial("spec.runtime.proxy.enabled", c.old.Runtime.Proxy == nil, c.now.Runtime.Proxy == nil)
	c.denial("spec.limits.image.onOversize", c.old.Limits.Image.OnOversize == router.OversizeRefuse, c.now.Limits.Image.OnOversize == router.OversizeRefuse)
}

func (c *comparison) limits() {
	old, now := limitsOf(&c.old.Limits), limitsOf(&c.now.Limits)
	for field, was := range old {
		switch is := now[field]; {
		case c.set[field] && is > was:
			c.t.Errorf("%s: %s rose from %d to %d", c.at, field, was, is)
		case is < was:
			c.tightened["limits"]++
		}
	}
	if types := c.old.Limits.Image.MediaTypes; len(types) > 0 && len(c.now.Limits.Image.MediaTypes) == 0 {
		c.t.Errorf("%s: every media type is accepted, after %v", c.at, types)
	}
	for _, mediaType := range c.now.Limits.Image.MediaTypes {
		if types := c.old.Limits.Image.MediaTypes; len(types) > 0 && mediaType != NoMediaType && !slices.Contains(types, mediaType) {
			c.t.Errorf("%s: %s is accepted, which %v does not hold", c.at, mediaType, types)
		}
	}
	if was := c.old.Limits.Image.MediaTypes; len(was) > 0 && !slices.Equal(was, c.now.Limits.Image.MediaTypes) {
		c.tightened["media types"]++
	}
}

func limitsOf(l *router.Limits) map[string]int64 {
	return map[string]int64{
		"spec.limits.image.maxBytes": l.Image.MaxBytes, "spec.limits.image.maxPixels": l.Image.MaxPixels,
		"spec.limits.request.maxDistinctImages": l.Request.MaxDistinctImages, "spec.limits.request.maxTotalImageBytes": l.Request.MaxTotalImageBytes,
		"spec.limits.request.maxProbedPaths": l.Request.MaxProbedPaths, "spec.limits.request.maxBodyBytes": l.Request.MaxBodyBytes,
		"spec.limits.request.maxImageTokens": l.Request.MaxImageTokens,
	}
}

// routes holds the allowed routes of both, without aliases, against each other.
// Where the object itself names no providers, the baseline may be the first that
// does, and the routes are others.
func (c *comparison) routes() {
	old, now := allowedRoutes(c.oldDocument, c.old), allowedRoutes(c.nowDocument, c.now)
	if !c.named && !slices.Equal(c.old.Providers, c.now.Providers) {
		return
	}
	for route := range now {
		if !old[route] {
			c.t.Errorf("%s: route %s is new", c.at, route)
		}
	}
	if len(now) < len(old) {
		c.tightened["routes"]++
	}
}

func allowedRoutes(doc *router.Document, p *router.Profile) map[string]bool {
	routes := map[string]bool{}
	for entry := range doc.Catalog(p).All() {
		if p.Allows(entry.Route, entry.Provider.Name) {
			routes[entry.Provider.Name+" "+entry.Route.String()] = true
		}
	}
	return routes
}

// denial wants what a layer denied denied.
func (c *comparison) denial(field string, was, is bool) {
	switch {
	case was && c.set[field] && !is:
		c.t.Errorf("%s: %s was denied, and is not any more", c.at, field)
	case !was && is:
		c.tightened["denials"]++
	}
}

// monotoneInput is a namespace with policies of its own and a baseline, all good.
func monotoneInput(r *rand.Rand) Input {
	in := Input{Namespace: "team", OperatorNamespace: "vision-system", NamespaceLabels: map[string]string{"stage": "test"}}
	for i, namespace := range []string{"team", "team", "models", "vision-system"} {
		p := benchProvider(i)
		p.Namespace = namespace
		p.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromAll)}
		if r.Intn(2) == 0 {
			p.Spec.Credentials = v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}}
		}
		in.Providers = append(in.Providers, p)
	}
	for i := range 3 {
		p := v1alpha1.VisionPolicy{Spec: randomSpec(r)}
		p.Namespace, p.Name, p.CreationTimestamp = "team", fmt.Sprintf("policy-%d", i), metav1.Unix(int64(i), 0)
		in.Policies = append(in.Policies, p)
	}
	p := v1alpha1.VisionPolicy{Spec: randomSpec(r)}
	p.Namespace, p.Name, p.CreationTimestamp = "vision-system", "there", metav1.Unix(2, 0)
	p.Spec.NamespaceSelector = &metav1.LabelSelector{}
	in.Policies = append(in.Policies, p)
	return in
}

// randomSpec is a good spec that says each thing, or does not.
func randomSpec(r *rand.Rand) v1alpha1.VisionPolicySpec {
	number := func() *int64 { return maybe(r, int64(1+r.Intn(5))) }
	image := v1alpha1.ImageLimits{MaxBytes: number(), MaxPixels: number(),
		MediaTypes: some(r, "image/png", "image/jpeg", "image/webp"), OnOversize: maybe(r, pickOne(r, v1alpha1.OnOversizeRefuse, v1alpha1.OnOversizeDownscale))}
	request := v1alpha1.RequestLimits{MaxDistinctImages: number(), MaxTotalImageBytes: number(), MaxProbedPaths: number(), MaxBodyBytes: number(), MaxImageTokens: number()}
	spec := v1alpha1.VisionPolicySpec{
		PodSelector:   maybe(r, metav1.LabelSelector{MatchLabels: map[string]string{"app": pickOne(r, "a", "b")}}),
		AllowedModels: some(r, "*", "*0@*/*", "*main/vision-0", "*/vision-2"),
		PerCallModel:  maybe(r, pickOne(r, v1alpha1.PerCallModelAllowed, v1alpha1.PerCallModelDenied)),
		Limits:        maybe(r, v1alpha1.Limits{Image: maybe(r, image), Request: maybe(r, request)}),
		Runtime:       maybe(r, v1alpha1.Runtime{MCP: maybe(r, r.Intn(2) == 0), Proxy: maybe(r, v1alpha1.Proxy{Enabled: maybe(r, r.Intn(2) == 0)})}),
		Injection:     maybe(r, v1alpha1.Injection{Mode: maybe(r, v1alpha1.InjectionObservation), Tools: some(r, "a", "b")}),
		Cache:         maybe(r, v1alpha1.Cache{TTL: maybe(r, v1alpha1.Duration("1h")), Persist: maybe(r, true)}),
	}
	for _, ref := range []v1alpha1.ProviderReference{{Name: "provider-000"}, {Name: "provider-001", Alias: "one"},
		{Name: "provider-002", Namespace: "models"}, {Name: "provider-003", Namespace: "vision-system", Alias: "provider-000-x"}} {
		if r.Intn(3) == 0 {
			spec.Providers = append(spec.Providers, ref)
		}
	}
	return spec
}

// maybe is a pointer to the value, or nil.
func maybe[T any](r *rand.Rand, value T) *T {
	if r.Intn(2) == 0 {
		return nil
	}
	return &value
}

func pickOne[T any](r *rand.Rand, values ...T) T { return values[r.Intn(len(values))] }

// some are a few of the values, or nil.
func some(r *rand.Rand, values ...string) []string {
	picked := map[string]bool{}
	for range r.Intn(len(values)) {
		picked[pickOne(r, values...)] = true
	}
	return slices.Sorted(maps.Keys(picked))
}
