// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// maxCandidates is how many candidates a verdict holds, as status.candidates.
const maxCandidates = 64

// compile judges one policy and, when it is valid, makes its profile.
func (p *policy) compile(in Input, providers *providerSet) {
	p.verdict.Unprogrammed = validation.UnprogrammedPolicy(p.object)
	p.verdict.Accepted = acceptPolicy(in, p.object)
	p.verdict.ResolvedRefs = Verdict{Reason: v1alpha1.ReasonNotAccepted, Message: "the policy is not accepted"}
	if !p.verdict.Accepted.OK {
		return
	}
	if isBaseline(p.object) {
		p.verdict.ResolvedRefs = Verdict{OK: true, Reason: v1alpha1.ReasonResolved, Message: "baselines are not compiled by this build"}
		return
	}
	uses, problems := resolveProviders(in.Namespace, p.object, providers)
	profile, catalog, redundant := profileDocument(p.object, uses)
	if bad := checkProfile(in.Namespace, profile, uses); len(bad) > 0 {
		p.verdict.Accepted = Verdict{Reason: v1alpha1.ReasonInvalid, Message: joinProblems(bad)}
		return
	}
	choice := chooseRoutes(profile, catalog)
	p.profile, p.pods = profile, podProfile(p.object, profile)
	p.verdict.Profile, p.verdict.Redundant = profile.ID, redundant
	p.verdict.DefaultRoute, p.verdict.Candidates = choice.defaultRoute, choice.candidates
	p.verdict.ResolvedRefs = refsVerdict(append(problems, choice.problems...), Verdict{
		OK: true, Reason: v1alpha1.ReasonResolved, Message: choice.resolved()})
}

// acceptPolicy judges a policy by what it says alone.
func acceptPolicy(in Input, p *v1alpha1.VisionPolicy) Verdict {
	if problems := checkPolicy(p); len(problems) > 0 {
		return Verdict{Reason: v1alpha1.ReasonInvalid, Message: joinProblems(problems)}
	}
	if isBaseline(p) && in.Namespace != in.OperatorNamespace {
		return Verdict{Reason: v1alpha1.ReasonNotBaselineNamespace, Message: fmt.Sprintf(
			"spec.namespaceSelector: a baseline is accepted only in the operator's own namespace, %q", in.OperatorNamespace)}
	}
	return Verdict{OK: true, Reason: v1alpha1.ReasonAccepted, Message: "the policy is valid"}
}

// use is a provider under the alias that a policy's routes give it.
type use struct {
	alias string
	*provider
}

// resolveProviders finds the providers that a policy may use, in its order of
// preference. A reference that does not resolve is left out and told; the
// others stay.
func resolveProviders(namespace string, p *v1alpha1.VisionPolicy, providers *providerSet) ([]use, []problem) {
	if p.Spec.Providers == nil {
		return everyProvider(namespace, providers)
	}
	var uses []use
	var problems []problem
	for i, ref := range p.Spec.Providers {
		found, bad := resolveProvider(namespace, ref, providers)
		if bad != nil {
			bad.message = fmt.Sprintf("spec.providers[%d]: %s", i, bad.message)
			problems = append(problems, *bad)
			continue
		}
		uses = append(uses, use{alias: aliasOf(ref), provider: found})
	}
	return uses, problems
}

func everyProvider(namespace string, providers *providerSet) ([]use, []problem) {
	uses := make([]use, 0, len(providers.accepted))
	for _, p := range providers.accepted {
		uses = append(uses, use{alias: p.object, provider: p})
	}
	if len(uses) == 0 {
		return nil, []problem{{v1alpha1.ReasonNoProviders, fmt.Sprintf(
			"namespace %q has no accepted VisionProvider, and spec.providers names none", namespace)}}
	}
	return uses, nil
}

func resolveProvider(namespace string, ref v1alpha1.ProviderReference, providers *providerSet) (*provider, *problem) {
	if ref.Namespace != "" && ref.Namespace != namespace {
		return nil, &problem{v1alpha1.ReasonRefNotPermitted, fmt.Sprintf(
			"VisionProvider %q of namespace %q: this build does not serve references to another namespace", ref.Name, ref.Namespace)}
	}
	found := providers.byObject[ref.Name]
	if found == nil {
		if _, rejected := providers.verdicts[namespace+"/"+ref.Name]; rejected {
			return nil, &problem{v1alpha1.ReasonProviderNotAccepted, fmt.Sprintf("VisionProvider %q is not accepted", ref.Name)}
		}
		return nil, &problem{v1alpha1.ReasonProviderNotFound, fmt.Sprintf("VisionProvider %q does not exist", ref.Name)}
	}
	return found, nil
}

func aliasOf(ref v1alpha1.ProviderReference) string {
	if ref.Alias != "" {
		return ref.Alias
	}
	return ref.Name
}

// checkProfile holds a profile against the document's own rules.
func checkProfile(namespace string, profile *router.Profile, uses []use) []string {
	doc := &router.Document{Version: router.Version, Namespace: namespace, Profiles: []router.Profile{*profile}}
	for i, u := range uses {
		if !slices.ContainsFunc(uses[:i], func(other use) bool { return other.provider == u.provider }) {
			doc.Providers = append(doc.Providers, u.standIn)
		}
	}
	return documentProblems("profiles[0]", doc)
}

// markOverridden tells each accepted policy whose selector equals an older
// one's, or an equally old one's before it by name, which policy wins. A policy
// that is not accepted wins too, as in Serving: its pods are told what is wrong
// with it, and never fall to another. Policies are given oldest first.
func markOverridden(policies []*policy) {
	winners := make(map[string]*policy, len(policies))
	for _, p := range policies {
		if _, err := podSelector(p.object); err != nil || isBaseline(p.object) {
			continue // serves no pod
		}
		key := selectorKey(p.object.Spec.PodSelector)
		winner, taken := winners[key]
		switch {
		case !taken:
			winners[key] = p
		case p.profile != nil:
			p.verdict.Overridden = overriddenBy(winner)
		}
	}
}

func overriddenBy(winner *policy) Verdict {
	state := ""
	if winner.profile == nil {
		state = " (although it is not accepted)"
	}
	return Verdict{OK: true, Reason: v1alpha1.ReasonEqualSelector, Message: fmt.Sprintf(
		"VisionPolicy %q has an equal podSelector and comes first%s; a pod gets this policy only when its annotation %s names it",
		winner.object.Name, state, v1alpha1.PolicyAnnotation)}
}
