// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// maxCandidates is how many candidates a verdict holds, as status.candidates.
const maxCandidates = 64

// policy is one VisionPolicy on its way through Compile.
type policy struct {
	object  *v1alpha1.VisionPolicy
	verdict PolicyVerdict
	// profile is nil when the policy is left out; pods and origins go with it.
	profile *router.Profile
	pods    PodProfile
	origins []Origin
}

// judge judges a policy of the namespace by what it says alone, and reports
// whether it is accepted.
func (p *policy) judge(in Input) bool {
	p.verdict.Baseline = isBaseline(p.object)
	p.verdict.Unprogrammed = validation.UnprogrammedPolicy(p.object)
	p.verdict.Accepted = acceptPolicy(in.OperatorNamespace, p.object)
	if !p.verdict.Accepted.OK {
		p.verdict.ResolvedRefs = Verdict{Reason: v1alpha1.ReasonNotAccepted, Message: "the policy is not accepted"}
		p.verdict.Restrains = isBaseline(p.object) && restraint(in.OperatorNamespace, p.object) != nil
	}
	if p.verdict.Restrains {
		p.verdict.Accepted.Message = withNote(p.verdict.Accepted.Message,
			"; the limits, allow-list and denials of this baseline hold all the same, as far as they are valid themselves")
	}
	return p.verdict.Accepted.OK
}

// compile makes the profile of an accepted policy with baselines laid over it.
func (p *policy) compile(id string, providers *providerSet, over []*layer) {
	m := &merge{layers: layersOf(p.object, over), origins: make([]Origin, 0, 48)}
	e := m.effective(id, providers)
	if bad := checkProfile(providers.in.Namespace, e.profile, e.uses); len(bad) > 0 {
		p.verdict.Accepted = Verdict{Reason: v1alpha1.ReasonInvalid, Message: joinProblems(bad)}
		p.verdict.ResolvedRefs = Verdict{Reason: v1alpha1.ReasonNotAccepted, Message: "the policy is not accepted"}
		return
	}
	choice := chooseRoutes(e.profile, e.judge)
	problems := slices.Concat(e.problems, choice.problems)
	p.profile, p.pods, p.origins = e.profile, e.pods, m.origins
	v := &p.verdict
	v.Profile, v.Redundant, v.Candidates = e.profile.ID, e.redundant, choice.candidates
	v.DefaultRoute, v.DefaultProvider = choice.defaultRoute, choice.provider
	if slices.Equal(e.profile.Limits.Image.MediaTypes, []string{NoMediaType}) {
		v.DefaultRoute, v.DefaultProvider = "", ""
		problems = append([]problem{m.noMediaType()}, problems...)
	}
	v.ResolvedRefs = refsVerdict(problems, choice.passedOver, choice.resolved())
	v.Unwise = m.advise(e, &choice, len(problems) == 0)
}

// noMediaType names the layers whose lists of types have none in common.
func (m *merge) noMediaType() problem {
	var from []string
	for _, l := range m.layers {
		if l.image.MediaTypes != nil {
			from = append(from, l.from)
		}
	}
	return problem{v1alpha1.ReasonNoMediaType, fmt.Sprintf(
		"spec.limits.image.mediaTypes: the lists of %s have no type in common, so no image is accepted", strings.Join(from, " and "))}
}

// acceptPolicy judges a policy by what it says alone, wherever it is laid over
// others.
func acceptPolicy(operatorNamespace string, p *v1alpha1.VisionPolicy) Verdict {
	problems := checkPolicy(p)
	if len(problems) == 0 {
		m := &merge{layers: layersOf(p, nil), quiet: true}
		alone := m.effective(ProfileID(p.Name), &providerSet{in: Input{Namespace: p.Namespace}})
		problems = checkProfile(p.Namespace, alone.profile, alone.uses)
	}
	if len(problems) > 0 {
		return Verdict{Reason: v1alpha1.ReasonInvalid, Message: joinProblems(problems)}
	}
	if isBaseline(p) && p.Namespace != operatorNamespace {
		return Verdict{Reason: v1alpha1.ReasonNotBaselineNamespace, Message: fmt.Sprintf(
			"spec.namespaceSelector: a baseline is accepted only in the operator's own namespace, %q", operatorNamespace)}
	}
	return Verdict{OK: true, Reason: v1alpha1.ReasonAccepted, Message: "the policy is valid"}
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
