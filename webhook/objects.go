// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
)

// objectValidator judges one kind. Only warnings may rest on other objects: what
// is refused is refused for what the object itself says.
type objectValidator[T client.Object] struct {
	kind     string
	validate func(T) field.ErrorList
	warn     func(context.Context, T) []string
	spec     func(T) any
}

func providerHandler(scheme *runtime.Scheme) admission.Handler {
	return admission.WithValidator(scheme, &objectValidator[*v1alpha1.VisionProvider]{
		kind:     "VisionProvider",
		validate: validation.Provider,
		warn:     func(_ context.Context, p *v1alpha1.VisionProvider) []string { return validation.ProviderWarnings(p) },
		spec:     func(p *v1alpha1.VisionProvider) any { return &p.Spec },
	}).Handler
}

func policyHandler(scheme *runtime.Scheme, refs *references) admission.Handler {
	return admission.WithValidator(scheme, &objectValidator[*v1alpha1.VisionPolicy]{
		kind:     "VisionPolicy",
		validate: validation.Policy,
		warn: func(ctx context.Context, p *v1alpha1.VisionPolicy) []string {
			return slices.Concat(validation.PolicyWarnings(p), refs.warnings(ctx, p))
		},
		spec: func(p *v1alpha1.VisionPolicy) any { return &p.Spec },
	}).Handler
}

// ValidateCreate refuses an object with mistakes, naming each field.
func (v *objectValidator[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	if errs := v.validate(obj); len(errs) > 0 {
		gk := v1alpha1.GroupVersion.WithKind(v.kind).GroupKind()
		return v.warn(ctx, obj), apierrors.NewInvalid(gk, obj.GetName(), errs)
	}
	return v.warn(ctx, obj), nil
}

// ValidateUpdate judges only a spec that changes: an object that was stored
// under other rules can still get labels and lose finalizers.
func (v *objectValidator[T]) ValidateUpdate(ctx context.Context, oldObj, newObj T) (admission.Warnings, error) {
	if newObj.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(v.spec(oldObj), v.spec(newObj)) {
		return nil, nil
	}
	return v.ValidateCreate(ctx, newObj)
}

// ValidateDelete refuses nothing; config/webhook does not ask.
func (v *objectValidator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}
