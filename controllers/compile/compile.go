// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"slices"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Compile turns the objects of one namespace into its router document and a
// verdict on each. It never fails: an object that is not valid is left out
// with a verdict, and takes nothing else with it. The document always passes
// router.Validate when in.Namespace is set; whether it is too large to publish
// is for router.Marshal to say.
//
// Names are unique among in.Policies and among in.Providers of one namespace,
// as the API server guarantees.
func Compile(in Input) Output {
	providers := compileProviders(in)
	policies := compilePolicies(in, providers)
	markOverridden(policies)
	return assemble(in, providers, policies)
}

// policy is one VisionPolicy on its way through Compile.
type policy struct {
	object  *v1alpha1.VisionPolicy
	verdict PolicyVerdict
	// profile is nil when the policy is left out; pods goes with it.
	profile *router.Profile
	pods    PodProfile
}

// compilePolicies compiles every policy of the namespace, oldest first.
func compilePolicies(in Input, providers *providerSet) []*policy {
	var policies []*policy
	for i := range in.Policies {
		if p := &in.Policies[i]; p.Namespace == in.Namespace {
			policies = append(policies, &policy{object: p})
		}
	}
	slices.SortFunc(policies, func(a, b *policy) int { return olderFirst(a.object, b.object) })
	for _, p := range policies {
		p.compile(in, providers)
	}
	return policies
}

// assemble gathers what was compiled in its total order: profiles by ID,
// providers by name, and of these only the ones that a profile refers to.
func assemble(in Input, providers *providerSet, policies []*policy) Output {
	out := Output{
		Document: &router.Document{Version: router.Version, Namespace: in.Namespace,
			Profiles: []router.Profile{}, Providers: []router.Provider{}},
		Pods:      make(map[string]PodProfile, len(policies)),
		Policies:  make(map[string]PolicyVerdict, len(policies)),
		Providers: providers.verdicts,
	}
	used := make(map[string]bool, len(providers.accepted))
	for _, p := range policies {
		out.Policies[p.object.Name] = p.verdict
		if p.profile == nil {
			continue
		}
		out.Document.Profiles = append(out.Document.Profiles, *p.profile)
		out.Pods[p.profile.ID] = p.pods
		for _, use := range p.profile.Providers {
			used[use.Provider] = true
		}
	}
	for _, p := range providers.accepted {
		if used[p.Name] {
			out.Document.Providers = append(out.Document.Providers, p.Provider)
		}
	}
	slices.SortFunc(out.Document.Profiles, func(a, b router.Profile) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
