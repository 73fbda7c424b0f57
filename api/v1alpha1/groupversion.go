// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of Vision Operator: the kinds VisionProvider and
// VisionPolicy of the group visionoperator.dev, their conditions and labels.
//
// Defaults named in field comments are applied when the objects are compiled,
// never by the schema: a field that nobody set stays unset, so that it cannot
// beat another layer's value.
//
// +kubebuilder:object:generate=true
// +groupName=visionoperator.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of both kinds.
var GroupVersion = schema.GroupVersion{Group: "visionoperator.dev", Version: "v1alpha1"}

// AddToScheme adds both kinds to a scheme.
var AddToScheme = schemeBuilder.AddToScheme

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &VisionProvider{}, &VisionProviderList{}, &VisionPolicy{}, &VisionPolicyList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
})
