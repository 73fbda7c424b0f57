// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// checkPolicy holds the status of a policy that is no baseline against the
// verdict on it and the published router.
func (t *truth) checkPolicy(p *v1alpha1.VisionPolicy) error {
	out := t.outputs[p.Namespace]
	v, s := out.Policies[p.Name], p.Status
	refs, programmed, reason := boolStatus(v.ResolvedRefs.OK), metav1.ConditionTrue, v1alpha1.ReasonProgrammed
	switch {
	case !v.Accepted.OK:
		refs, programmed, reason = metav1.ConditionUnknown, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted
	case t.foreign(p.Namespace):
		programmed, reason = metav1.ConditionFalse, v1alpha1.ReasonConflict
	case len(v.Unprogrammed) > 0:
		reason = v1alpha1.ReasonPartiallyProgrammed
	}
	digest := ""
	if !t.foreign(p.Namespace) && slices.ContainsFunc(out.Document.Profiles, func(profile router.Profile) bool { return profile.ID == v.Profile }) {
		digest = t.digest(p.Namespace)
	}
	var overridden error
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionOverridden); (c != nil) != v.Overridden.OK {
		overridden = fmt.Errorf("want Overridden %t, got %+v", v.Overridden.OK, c)
	}
	return errors.Join(
		checkCondition(s.Conditions, p.Generation, v1alpha1.ConditionAccepted, boolStatus(v.Accepted.OK), v.Accepted.Reason, v.Accepted.Message),
		checkCondition(s.Conditions, p.Generation, v1alpha1.ConditionResolvedRefs, refs, v.ResolvedRefs.Reason, v.ResolvedRefs.Message),
		checkCondition(s.Conditions, p.Generation, v1alpha1.ConditionProgrammed, programmed, reason, ""),
		t.checkReady(p, v.DefaultProvider),
		checkDigest(s.Router, digest),
		overridden,
		checkRoutes(s, v),
		t.checkPods(p),
	)
}

// checkDigest wants a status to name the router that carries its policy; none when digest is empty.
func checkDigest(got *v1alpha1.RouterStatus, digest string) error {
	want := &v1alpha1.RouterStatus{ConfigMap: router.ConfigMapName, Digest: digest}
	if digest == "" {
		want = nil
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("status.router is %+v, want %+v", got, want)
	}
	return nil
}

func checkRoutes(s v1alpha1.VisionPolicyStatus, v compile.PolicyVerdict) error {
	if s.DefaultRoute != v.DefaultRoute || len(s.Candidates)+len(v.Candidates) > 0 && !reflect.DeepEqual(s.Candidates, v.Candidates) {
		return fmt.Errorf("got the route %q of %v, want %q of %v", s.DefaultRoute, s.Candidates, v.DefaultRoute, v.Candidates)
	}
	return nil
}

// checkReady wants Ready to be the sum of the others, and of the key of the default provider.
func (t *truth) checkReady(p *v1alpha1.VisionPolicy, provider string) error {
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionResolvedRefs, v1alpha1.ConditionProgrammed} {
		if c := meta.FindStatusCondition(p.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue {
			if c == nil {
				return fmt.Errorf("no condition %s", kind)
			}
			return checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionReady, c.Status, c.Reason, c.Message)
		}
	}
	for i := range t.providers {
		if q := &t.providers[i]; provider == q.Namespace+"/"+q.Name && !t.keyThere(q, p.Namespace) {
			return checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsNotResolved, "")
		}
	}
	return checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "")
}

// keyThere reports whether a provider's key can be used in a namespace, as far
// as the operator tells: of a consumer's Secret only that it exists.
func (t *truth) keyThere(p *v1alpha1.VisionProvider, namespace string) bool {
	ref := p.Spec.Credentials.SecretRef
	switch {
	case ref == nil:
		return true
	case ref.From != nil && *ref.From == v1alpha1.SecretFromConsumer:
		return t.secrets[namespace+"/"+ref.Name] != nil
	}
	_, reason := t.keyReason(p)
	return reason == v1alpha1.ReasonResolved
}

// keyReason is what CredentialsResolved says of an accepted provider.
func (t *truth) keyReason(p *v1alpha1.VisionProvider) (version, reason string) {
	ref := p.Spec.Credentials.SecretRef
	switch {
	case ref == nil:
		return "", v1alpha1.ReasonNoCredentials
	case ref.From != nil && *ref.From == v1alpha1.SecretFromConsumer:
		return "", v1alpha1.ReasonConsumerSecret
	}
	secret := t.secrets[p.Namespace+"/"+ref.Name]
	if secret == nil {
		return "", v1alpha1.ReasonSecretNotFound
	}
	value, found := secret.Data[ref.Key]
	switch {
	case !found:
		reason = v1alpha1.ReasonSecretKeyNotFound
	case len(value) == 0:
		reason = v1alpha1.ReasonSecretKeyEmpty
	case strings.HasSuffix(string(value), "\n"):
		reason = v1alpha1.ReasonSecretKeyMalformed
	default:
		reason = v1alpha1.ReasonResolved
	}
	return secret.ResourceVersion, reason
}

// checkProvider holds a provider's status against the verdict on it and its key.
func (t *truth) checkProvider(p *v1alpha1.VisionProvider) error {
	v := t.outputs[p.Namespace].Providers[p.Namespace+"/"+p.Name].Accepted
	if !v.OK {
		return errors.Join(
			checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v.Reason, v.Message),
			checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionReady, metav1.ConditionFalse, v.Reason, ""))
	}
	version, reason := t.keyReason(p)
	resolved := reason == v1alpha1.ReasonResolved || reason == v1alpha1.ReasonNoCredentials || reason == v1alpha1.ReasonConsumerSecret
	err := errors.Join(
		checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v.Reason, v.Message),
		checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionCredentialsResolved, boolStatus(resolved), reason, ""))
	if p.Status.CredentialsResourceVersion != version {
		err = errors.Join(err, fmt.Errorf("the key's version is %q, want %q", p.Status.CredentialsResourceVersion, version))
	}
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); p.Spec.Probe == nil && (ready == nil || ready.Status != boolStatus(resolved)) {
		err = errors.Join(err, fmt.Errorf("want Ready %t, got %+v", resolved, ready))
	}
	return err
}

// checkBaseline holds a baseline's status against its verdicts over all the
// namespaces that it serves.
func (t *truth) checkBaseline(p *v1alpha1.VisionPolicy) error {
	home := t.outputs[p.Namespace].Policies[p.Name]
	if !home.Accepted.OK {
		return t.checkPolicy(p)
	}
	served, refused, route, first := 0, 0, "", compile.Verdict{}
	programmed, why := metav1.ConditionTrue, v1alpha1.ReasonProgrammed
	for _, ns := range t.namespaces { // by name
		v, serves := t.outputs[ns.Name].Baselines[p.Name]
		if !serves {
			continue
		}
		if served == 0 {
			route = v.DefaultRoute
		} else if route != v.DefaultRoute {
			route = ""
		}
		served++
		if t.foreign(ns.Name) {
			programmed, why = metav1.ConditionFalse, v1alpha1.ReasonConflict
		}
		if !v.ResolvedRefs.OK {
			if refused == 0 {
				first = v.ResolvedRefs
			}
			refused++
		}
	}
	refs, reason := home.ResolvedRefs.OK, home.ResolvedRefs.Reason
	if refs && served > 0 && refused == served && first.Reason != v1alpha1.ReasonNoProviders {
		refs, reason = false, first.Reason
	}
	message := carried(served)
	if programmed != metav1.ConditionTrue {
		message = "" // which names the first namespaces
	}
	err := errors.Join(
		checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionAccepted, metav1.ConditionTrue, home.Accepted.Reason, ""),
		checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionResolvedRefs, boolStatus(refs), reason, ""),
		checkCondition(p.Status.Conditions, p.Generation, v1alpha1.ConditionProgrammed, programmed, why, message),
		t.checkReady(p, ""),
		t.checkPods(p))
	if p.Status.DefaultRoute != route {
		err = errors.Join(err, fmt.Errorf("the default route is %q, want %q", p.Status.DefaultRoute, route))
	}
	return err
}

// carried is what a baseline's Programmed says.
func carried(namespaces int) string {
	switch namespaces {
	case 0:
		return "no namespace matches, so there is no router to carry it"
	case 1:
		return "the routers of 1 namespace carry this generation"
	}
	return fmt.Sprintf("the routers of %d namespaces carry this generation", namespaces)
}

// checkPods counts the pods of a policy's profile: outdated are those that a
// profile of another name would serve today.
func (t *truth) checkPods(p *v1alpha1.VisionPolicy) error {
	id, where := "policy/"+p.Name, p.Namespace
	if p.Spec.NamespaceSelector != nil {
		id, where = "baseline/"+p.Name, ""
	}
	want := v1alpha1.PodCounts{}
	for _, pod := range t.injected(where) {
		if p.Spec.NamespaceSelector != nil && p.Namespace != operatorNamespace {
			break // it is no baseline, and serves none
		}
		if profileOf(pod) != id || t.configMaps[pod.Namespace+"/"+router.ConfigMapName] == nil || t.foreign(pod.Namespace) {
			continue
		}
		want.Matched++
		if today, v := compile.Serving(compile.Servers(t.inputs[pod.Namespace]), pod.Labels, ""); v.OK && today != id {
			want.Outdated++
		}
	}
	if got := p.Status.Pods; got == nil && want.Matched > 0 || got != nil && *got != want {
		return fmt.Errorf("counts pods as %+v, want %+v", got, want)
	}
	return nil
}

// profileOf is the profile that injection noted on a pod.
func profileOf(pod *corev1.Pod) string {
	var noted struct {
		Profile string `json:"profile"`
	}
	if json.Unmarshal([]byte(pod.Annotations[v1alpha1.InjectionAnnotation]), &noted) != nil {
		return ""
	}
	return noted.Profile
}
