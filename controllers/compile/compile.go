// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"maps"
	"slices"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Compile turns the objects of one namespace into its router document and a
// verdict on each. It never fails: an object that is not valid is left out
// with a verdict, and takes nothing else with it; of a baseline, what it restricts
// is kept (see restraint). The document always passes
// router.Validate when in.Namespace is set; whether it is too large to publish
// is for router.Marshal to say.
//
// Names are unique among in.Policies and among in.Providers of one namespace,
// as the API server guarantees.
func Compile(in Input) Output {
	providers, accepted := compileProviders(in), baselines(in)
	baselines := over(in, accepted)
	policies := compilePolicies(in, providers, baselines)
	markOverridden(policies)
	return assemble(in, providers, policies, compileBaselines(in, providers, accepted, baselines))
}

// compilePolicies compiles every policy of the namespace, oldest first.
func compilePolicies(in Input, providers *providerSet, over []*layer) []*policy {
	var policies []*policy
	for i := range in.Policies {
		if p := &in.Policies[i]; p.Namespace == in.Namespace {
			policies = append(policies, &policy{object: p})
		}
	}
	slices.SortFunc(policies, func(a, b *policy) int { return olderFirst(a.object, b.object) })
	for _, p := range policies {
		switch accepted := p.judge(in); {
		case !accepted:
		case isBaseline(p.object):
			p.verdict.ResolvedRefs = providers.atHome(p.object)
		default:
			p.compile(ProfileID(p.object.Name), providers, over)
		}
	}
	return policies
}

// compileBaselines compiles the baselines that serve in the namespace by
// themselves, each with the others laid over it.
func compileBaselines(in Input, providers *providerSet, accepted []*v1alpha1.VisionPolicy, over []*layer) []*policy {
	if !ServedByBaselines(in) {
		return nil
	}
	policies := make([]*policy, 0, len(accepted))
	for _, b := range accepted {
		p := &policy{object: b}
		if p.judge(in) {
			p.compile(BaselineProfileID(b.Name), providers, over)
		}
		policies = append(policies, p)
	}
	return policies
}

// assemble gathers what was compiled in its total order: profiles by ID,
// providers by name, and of these only the ones that a profile refers to.
func assemble(in Input, providers *providerSet, policies, alone []*policy) Output {
	out := Output{
		Document: &router.Document{Version: router.Version, Namespace: in.Namespace,
			Profiles: []router.Profile{}, Providers: []router.Provider{}},
		Pods:      make(map[string]PodProfile, len(policies)+len(alone)),
		Origins:   make(map[string][]Origin, len(policies)+len(alone)),
		Policies:  make(map[string]PolicyVerdict, len(policies)),
		Baselines: make(map[string]PolicyVerdict, len(alone)),
		Providers: providers.verdicts,
	}
	for _, p := range policies {
		out.Policies[p.object.Name] = p.verdict
	}
	for _, p := range alone {
		out.Baselines[p.object.Name] = p.verdict
	}
	used := make(map[string]bool, len(providers.accepted))
	for _, p := range slices.Concat(policies, alone) {
		if p.profile == nil {
			continue
		}
		out.Document.Profiles = append(out.Document.Profiles, *p.profile)
		out.Pods[p.profile.ID], out.Origins[p.profile.ID] = p.pods, p.origins
		for _, use := range p.profile.Providers {
			used[use.Provider] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		out.Document.Providers = append(out.Document.Providers, providers.accepted[name].Provider)
	}
	slices.SortFunc(out.Document.Profiles, func(a, b router.Profile) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
