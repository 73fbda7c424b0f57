// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// use is a provider under the alias that a policy's routes give it.
type use struct {
	alias string
	*provider
}

// at names a field of a layer: of the object's own by the field alone.
func (m *merge) at(l *layer, field string) string {
	if l == m.layers[0] {
		return field
	}
	return "baseline " + l.from + ": " + field
}

// providers finds the providers that a policy may use, in its order of
// preference, and the layer that names them, nil where none does. A reference
// that does not resolve is left out and told; the others stay.
func (m *merge) providers(providers *providerSet) (named *layer, uses []use, problems []problem) {
	const field = "spec.providers"
	for _, l := range m.layers {
		if l.Providers != nil {
			named = l
			break
		}
	}
	if named == nil {
		uses, problems = providers.every()
		m.note(field, FromDefault, names(uses))
		return nil, uses, problems
	}
	asked := make([]string, len(named.Providers))
	for i, ref := range named.Providers {
		asked[i] = namespaceOf(ref, named) + "/" + ref.Name
		found, bad := providers.resolve(ref, named)
		if bad == nil && found.unshared {
			bad = notShared(asked[i])
		}
		if bad != nil {
			bad.message = fmt.Sprintf("%s[%d]: %s", m.at(named, field), i, bad.message)
			problems = append(problems, *bad)
		}
		if found != nil {
			uses = append(uses, use{alias: aliasOf(ref), provider: found})
		}
	}
	m.note(field, named.from, asked)
	return named, uses, problems
}

func names(uses []use) []string {
	var list []string
	for _, u := range uses {
		list = append(list, u.Name)
	}
	return list
}

// every is each provider of the namespace, by name.
func (s *providerSet) every() ([]use, []problem) {
	uses := make([]use, 0, len(s.own))
	for _, p := range s.own {
		uses = append(uses, use{alias: p.object, provider: p})
	}
	if len(uses) == 0 {
		return nil, []problem{{v1alpha1.ReasonNoProviders, fmt.Sprintf(
			"namespace %q has no accepted VisionProvider, and spec.providers names none", s.in.Namespace)}}
	}
	return uses, nil
}

// resolve finds the provider that a layer refers to. Of another namespace's,
// nothing is told that the provider does not permit, not even that it exists.
func (s *providerSet) resolve(ref v1alpha1.ProviderReference, l *layer) (*provider, *problem) {
	namespace := namespaceOf(ref, l)
	object := s.objects[namespace+"/"+ref.Name]
	foreign := namespace != s.in.Namespace
	shown := fmt.Sprintf("VisionProvider %q", ref.Name)
	if foreign {
		shown += fmt.Sprintf(" of namespace %q", namespace)
	}
	switch {
	case foreign && (object == nil || !permits(object, l, s.in)):
		return nil, &problem{v1alpha1.ReasonRefNotPermitted, fmt.Sprintf("%s does not exist, or does not permit namespace %q to refer to it", shown, s.in.Namespace)}
	case object == nil:
		return nil, &problem{v1alpha1.ReasonProviderNotFound, shown + " does not exist"}
	}
	if found := s.compile(object); found != nil {
		return found, nil
	}
	return nil, &problem{v1alpha1.ReasonProviderNotAccepted, shown + " is not accepted"}
}

// permits reports whether a provider may be used in a namespace that is not its
// own: its allowedNamespaces permit it, or a baseline beside it hands it out.
func permits(p *v1alpha1.VisionProvider, by *layer, in Input) bool {
	return by.baseline && by.namespace == p.Namespace || Permits(p, in.NamespaceLabels)
}

// Permits reports whether a provider's allowedNamespaces permit another namespace of
// the labels.
func Permits(p *v1alpha1.VisionProvider, namespaceLabels map[string]string) bool {
	allowed := or(p.Spec.AllowedNamespaces, v1alpha1.AllowedNamespaces{})
	switch or(allowed.From, v1alpha1.NamespacesFromSame) {
	case v1alpha1.NamespacesFromAll:
		return true
	case v1alpha1.NamespacesFromSelector:
		selector, err := metav1.LabelSelectorAsSelector(allowed.Selector)
		return err == nil && selector.Matches(labels.Set(namespaceLabels))
	}
	return false
}

// Shared reports whether a provider's allowedNamespaces may permit another namespace.
func Shared(p *v1alpha1.VisionProvider) bool {
	allowed := or(p.Spec.AllowedNamespaces, v1alpha1.AllowedNamespaces{})
	return or(allowed.From, v1alpha1.NamespacesFromSame) != v1alpha1.NamespacesFromSame
}

// notShared is a provider whose key a pod of the namespace cannot have.
func notShared(name string) *problem {
	return &problem{v1alpha1.ReasonCredentialNotShared, fmt.Sprintf(
		"VisionProvider %s may be used, but its key stays in its namespace, so its models can serve in no other: it needs credentials.none, or a secretRef with from: Consumer", name)}
}

func namespaceOf(ref v1alpha1.ProviderReference, l *layer) string {
	if ref.Namespace != "" {
		return ref.Namespace
	}
	return l.namespace
}

func aliasOf(ref v1alpha1.ProviderReference) string {
	if ref.Alias != "" {
		return ref.Alias
	}
	return ref.Name
}

// atHome is the verdict on what a baseline refers to in its own namespace. The
// rest depends on the namespaces that it matches, whose policies tell of it.
func (s *providerSet) atHome(b *v1alpha1.VisionPolicy) Verdict {
	l := newLayer(b)
	var problems []problem
	for i, ref := range b.Spec.Providers {
		if namespaceOf(ref, l) != s.in.Namespace {
			continue
		}
		found, bad := s.resolve(ref, l)
		if bad == nil && found.Credential != nil && s.keeps(ref.Name) {
			bad = notShared(found.Name)
		}
		if bad != nil {
			bad.message = fmt.Sprintf("spec.providers[%d]: %s", i, bad.message)
			problems = append(problems, *bad)
		}
	}
	return refsVerdict(problems, nil, Verdict{OK: true, Reason: v1alpha1.ReasonResolved,
		Message: "what the baseline refers to in its own namespace is resolved; the rest is resolved in each namespace that it matches"})
}

// keeps reports whether the key of a provider of the namespace stays there.
func (s *providerSet) keeps(name string) bool {
	ref := s.objects[s.in.Namespace+"/"+name].Spec.Credentials.SecretRef
	return ref != nil && or(ref.From, v1alpha1.SecretFromProvider) == v1alpha1.SecretFromProvider
}
