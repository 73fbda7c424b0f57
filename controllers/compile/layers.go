// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Served reports whether a namespace has a router: it has a policy of its own,
// accepted or not, or a baseline serves there by itself.
func Served(in Input) bool {
	return len(Servers(in)) > 0
}

// Servers are the policies that may serve pods of the namespace, as Serving
// takes them: the namespace's own, and the baselines that serve there by
// themselves.
func Servers(in Input) []v1alpha1.VisionPolicy {
	servers := slices.DeleteFunc(slices.Clone(in.Policies), func(p v1alpha1.VisionPolicy) bool {
		return p.Namespace != in.Namespace || isBaseline(&p)
	})
	if !ServedByBaselines(in) {
		return servers
	}
	for _, b := range baselines(in) {
		servers = append(servers, *b)
	}
	return servers
}

// ServedByBaselines reports whether a baseline that matches a namespace may
// serve its pods by itself. Those of the cluster's own namespaces and of the
// operator's run what the platform consists of: only a policy in there reaches
// them.
func ServedByBaselines(in Input) bool {
	switch in.Namespace {
	case in.OperatorNamespace, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease:
		return false
	}
	return true
}

// baselines are the accepted baselines that match the namespace, the most
// specific first: one whose namespaceSelector says something before one whose
// selector is empty, then the older one, then by name.
func baselines(in Input) []*v1alpha1.VisionPolicy {
	var matching []*v1alpha1.VisionPolicy
	for i := range in.Policies {
		if p := &in.Policies[i]; Matches(p, in) && acceptPolicy(in.OperatorNamespace, p).OK {
			matching = append(matching, p)
		}
	}
	slices.SortFunc(matching, moreSpecificFirst)
	return matching
}

func moreSpecificFirst(a, b *v1alpha1.VisionPolicy) int {
	return cmp.Or(emptyLast(a.Spec.NamespaceSelector, b.Spec.NamespaceSelector), olderFirst(a, b))
}

// Matches reports whether a policy is a baseline of the operator's namespace
// that matches the namespace's labels; in.Policies do not count. A selector that
// does not parse matches nothing.
func Matches(p *v1alpha1.VisionPolicy, in Input) bool {
	if !isBaseline(p) || p.Namespace != in.OperatorNamespace {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.NamespaceSelector)
	return err == nil && selector.Matches(labels.Set(in.NamespaceLabels))
}

// isBaseline reports whether a policy is meant for other namespaces.
func isBaseline(p *v1alpha1.VisionPolicy) bool { return p.Spec.NamespaceSelector != nil }

// layer is one policy's part of an effective policy. Groups of fields that it
// leaves out are there, and empty.
type layer struct {
	*v1alpha1.VisionPolicySpec
	// from is the object, "namespace/name", and namespace the one in which its
	// references are at home.
	from, namespace string
	baseline        bool
	// restraint says that this is what is left of a baseline that is not accepted.
	restraint bool

	image     v1alpha1.ImageLimits
	request   v1alpha1.RequestLimits
	injection v1alpha1.Injection
	template  v1alpha1.InjectionTemplate
	cache     v1alpha1.Cache
	runtime   v1alpha1.Runtime
	proxy     v1alpha1.Proxy
	admission v1alpha1.Admission
}

func newLayer(p *v1alpha1.VisionPolicy) *layer {
	l := &layer{
		VisionPolicySpec: &p.Spec, from: p.Namespace + "/" + p.Name, namespace: p.Namespace, baseline: isBaseline(p),
		injection: or(p.Spec.Injection, v1alpha1.Injection{}),
		cache:     or(p.Spec.Cache, v1alpha1.Cache{}),
		runtime:   or(p.Spec.Runtime, v1alpha1.Runtime{}),
		admission: or(p.Spec.Admission, v1alpha1.Admission{}),
	}
	limits := or(p.Spec.Limits, v1alpha1.Limits{})
	l.image, l.request = or(limits.Image, v1alpha1.ImageLimits{}), or(limits.Request, v1alpha1.RequestLimits{})
	l.template, l.proxy = or(l.injection.Template, v1alpha1.InjectionTemplate{}), or(l.runtime.Proxy, v1alpha1.Proxy{})
	return l
}

// layersOf is an effective policy of one object under baselines: the object
// first, then the others of them.
func layersOf(object *v1alpha1.VisionPolicy, over []*layer) []*layer {
	layers := []*layer{newLayer(object)}
	for _, l := range over {
		if l.VisionPolicySpec != &object.Spec {
			layers = append(layers, l)
		}
	}
	return layers
}
