// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// over are the layers that hold over every policy of the namespace: the accepted
// baselines, and after them what the others restrict.
func over(in Input, accepted []*v1alpha1.VisionPolicy) []*layer {
	var held []*v1alpha1.VisionPolicy
	for i := range in.Policies {
		p := &in.Policies[i]
		if !Matches(p, in) || acceptPolicy(in.OperatorNamespace, p).OK {
			continue
		}
		if r := restraint(in.OperatorNamespace, p); r != nil {
			held = append(held, r)
		}
	}
	slices.SortFunc(held, moreSpecificFirst)
	layers := make([]*layer, 0, len(accepted)+len(held))
	for _, b := range accepted {
		layers = append(layers, newLayer(b))
	}
	for _, r := range held {
		l := newLayer(r)
		l.restraint = true
		layers = append(layers, l)
	}
	return layers
}

// restraint is what holds of a baseline that is not accepted: its allow-list, its
// limits and its denials, each unless it is wrong by itself; nil when there is none
// of them. A mistake in what it grants or sets up must not set free what it bounds.
func restraint(operatorNamespace string, b *v1alpha1.VisionPolicy) *v1alpha1.VisionPolicy {
	bare := func() *v1alpha1.VisionPolicy {
		p := &v1alpha1.VisionPolicy{ObjectMeta: *b.ObjectMeta.DeepCopy()}
		p.Spec.NamespaceSelector = b.Spec.NamespaceSelector
		return p
	}
	var held *v1alpha1.VisionPolicy
	for _, keep := range restrictions(newLayer(b)) {
		alone := bare()
		if keep(&alone.Spec); !acceptPolicy(operatorNamespace, alone).OK {
			continue
		}
		if held == nil {
			held = bare()
		}
		keep(&held.Spec)
	}
	return held
}

// restrictions are what a layer restricts, field by field. Each puts its field into
// the spec of another policy.
func restrictions(l *layer) []func(*v1alpha1.VisionPolicySpec) {
	var list []func(*v1alpha1.VisionPolicySpec)
	add := func(says bool, keep func(*v1alpha1.VisionPolicySpec)) {
		if says {
			list = append(list, keep)
		}
	}
	add(l.AllowedModels != nil, func(s *v1alpha1.VisionPolicySpec) { s.AllowedModels = l.AllowedModels })
	add(is(l.PerCallModel, v1alpha1.PerCallModelDenied), func(s *v1alpha1.VisionPolicySpec) { s.PerCallModel = l.PerCallModel })

	add(l.image.MaxBytes != nil, func(s *v1alpha1.VisionPolicySpec) { imageOf(s).MaxBytes = l.image.MaxBytes })
	add(l.image.MaxPixels != nil, func(s *v1alpha1.VisionPolicySpec) { imageOf(s).MaxPixels = l.image.MaxPixels })
	add(l.image.MediaTypes != nil, func(s *v1alpha1.VisionPolicySpec) { imageOf(s).MediaTypes = l.image.MediaTypes })
	add(is(l.image.OnOversize, v1alpha1.OnOversizeRefuse), func(s *v1alpha1.VisionPolicySpec) { imageOf(s).OnOversize = l.image.OnOversize })

	add(l.request.MaxDistinctImages != nil, func(s *v1alpha1.VisionPolicySpec) { requestOf(s).MaxDistinctImages = l.request.MaxDistinctImages })
	add(l.request.MaxTotalImageBytes != nil, func(s *v1alpha1.VisionPolicySpec) { requestOf(s).MaxTotalImageBytes = l.request.MaxTotalImageBytes })
	add(l.request.MaxProbedPaths != nil, func(s *v1alpha1.VisionPolicySpec) { requestOf(s).MaxProbedPaths = l.request.MaxProbedPaths })
	add(l.request.MaxImageTokens != nil, func(s *v1alpha1.VisionPolicySpec) { requestOf(s).MaxImageTokens = l.request.MaxImageTokens })
	add(l.request.MaxBodyBytes != nil, func(s *v1alpha1.VisionPolicySpec) { requestOf(s).MaxBodyBytes = l.request.MaxBodyBytes })

	add(is(l.proxy.Enabled, false), func(s *v1alpha1.VisionPolicySpec) { proxyOf(s).Enabled = l.proxy.Enabled })
	add(is(l.proxy.SetBaseURLs, false), func(s *v1alpha1.VisionPolicySpec) { proxyOf(s).SetBaseURLs = l.proxy.SetBaseURLs })
	add(is(l.runtime.MCP, false), func(s *v1alpha1.VisionPolicySpec) { made(&s.Runtime).MCP = l.runtime.MCP })
	return list
}

// is reports whether a field is set, and to this.
func is[T comparable](p *T, value T) bool { return p != nil && *p == value }

// made is what p points to, made where there is nothing.
func made[T any](p **T) *T {
	if *p == nil {
		*p = new(T)
	}
	return *p
}

func imageOf(s *v1alpha1.VisionPolicySpec) *v1alpha1.ImageLimits {
	return made(&made(&s.Limits).Image)
}

func requestOf(s *v1alpha1.VisionPolicySpec) *v1alpha1.RequestLimits {
	return made(&made(&s.Limits).Request)
}

func proxyOf(s *v1alpha1.VisionPolicySpec) *v1alpha1.Proxy { return made(&made(&s.Runtime).Proxy) }
