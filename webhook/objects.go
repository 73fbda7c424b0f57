// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// objectValidator judges one kind. What is refused as invalid is refused for what
// the object itself says; on other objects rest warnings, and who may write it.
type objectValidator[T client.Object] struct {
	kind     string
	validate func(T) field.ErrorList
	// permit refuses the second, new object unless its author may write it; the
	// first is its predecessor, nil when there is none. An error says what could not
	// be asked. A nil permit asks nothing.
	permit func(ctx context.Context, old, object T) (*apierrors.StatusError, error)
	warn   func(context.Context, T) []string
	spec   func(T) any
}

func providerHandler(scheme *runtime.Scheme) admission.Handler {
	return admission.WithValidator(scheme, &objectValidator[*v1alpha1.VisionProvider]{
		kind:     "VisionProvider",
		validate: validation.Provider,
		warn:     func(_ context.Context, p *v1alpha1.VisionProvider) []string { return validation.ProviderWarnings(p) },
		spec:     func(p *v1alpha1.VisionProvider) any { return &p.Spec },
	}).Handler
}

func policyHandler(scheme *runtime.Scheme, refs *references, keys *access) admission.Handler {
	return admission.WithValidator(scheme, &objectValidator[*v1alpha1.VisionPolicy]{
		kind:     "VisionPolicy",
		validate: validation.Policy,
		permit:   keys.policy,
		warn: func(ctx context.Context, p *v1alpha1.VisionPolicy) []string {
			return slices.Concat(validation.PolicyWarnings(p), workspaceWarnings(p), refs.warnings(ctx, p))
		},
		spec: func(p *v1alpha1.VisionPolicy) any { return &p.Spec },
	}).Handler
}

// workspaceWarnings name the workspaces that no pod gets, since the runtime's own
// container needs their place.
func workspaceWarnings(p *v1alpha1.VisionPolicy) []string {
	if p.Spec.Runtime == nil {
		return nil
	}
	var w []string
	for i, dir := range p.Spec.Runtime.Workspaces {
		if inject.Reserved(dir) {
			w = append(w, fmt.Sprintf("spec.runtime.workspaces[%d]: the runtime's own container needs %s, or what is in it: no pod gets it as a workspace", i, strings.Map(printable, dir)))
		}
	}
	return w
}

// ValidateCreate refuses an object with mistakes, naming each field.
func (v *objectValidator[T]) ValidateCreate(ctx context.Context, obj T) (admission.Warnings, error) {
	var none T
	return v.judge(ctx, none, obj)
}

func (v *objectValidator[T]) judge(ctx context.Context, old, obj T) (admission.Warnings, error) {
	warnings := v.warn(ctx, obj)
	if errs := v.validate(obj); len(errs) > 0 {
		gk := v1alpha1.GroupVersion.WithKind(v.kind).GroupKind()
		return warnings, apierrors.NewInvalid(gk, obj.GetName(), errs)
	}
	if v.permit == nil {
		return warnings, nil
	}
	switch refused, err := v.permit(ctx, old, obj); {
	case err != nil:
		fail(ctx, err)
		return warnings, err
	case refused != nil:
		return warnings, refused
	}
	return warnings, nil
}

// ValidateUpdate judges only a spec that changes: an object that was stored
// under other rules can still get labels and lose finalizers.
func (v *objectValidator[T]) ValidateUpdate(ctx context.Context, oldObj, newObj T) (admission.Warnings, error) {
	if newObj.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(v.spec(oldObj), v.spec(newObj)) {
		return nil, nil
	}
	return v.judge(ctx, oldObj, newObj)
}

// ValidateDelete refuses nothing; config/webhook does not ask.
func (v *objectValidator[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) {
	return nil, nil
}
