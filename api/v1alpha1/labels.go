// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels and annotations. The first group is written by users, the second by
// Vision Operator.
const (
	// InjectLabel on a pod or a namespace opts in (InjectEnabled) or out
	// (InjectDisabled). A pod's label wins over its namespace's.
	InjectLabel = "visionoperator.dev/inject"
	// InjectEnabled is the value of InjectLabel that asks for the runtime.
	InjectEnabled = "enabled"
	// InjectDisabled is the value of InjectLabel that refuses it.
	InjectDisabled = "disabled"
	// EnforceLabel on a namespace, with the value "true", makes the API server
	// refuse opted-in pods while the webhook cannot be reached.
	EnforceLabel = "visionoperator.dev/enforce"
	// PolicyAnnotation on a pod names the VisionPolicy of its namespace that serves it.
	PolicyAnnotation = "visionoperator.dev/policy"
	// WorkspacesAnnotation on a pod is a comma-separated list of absolute
	// directories that narrows the policy's workspaces.
	WorkspacesAnnotation = "visionoperator.dev/workspaces"

	// InjectedLabel, with the value "true", is on every pod that has the runtime.
	InjectedLabel = "visionoperator.dev/injected"
	// InjectionAnnotation on an injected pod is JSON: the profile and the hash of
	// the whole desired container.
	InjectionAnnotation = "visionoperator.dev/injection"
	// RouterDigestAnnotation on an injected pod is the digest of the router
	// document that its namespace last published.
	RouterDigestAnnotation = "visionoperator.dev/router-digest"

	// ManagedByLabel, with the value ManagedBy, is on every object that Vision
	// Operator publishes; it adopts none that lacks it.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of ManagedByLabel, and the field owner of server-side apply.
	ManagedBy = "vision-operator"
)
