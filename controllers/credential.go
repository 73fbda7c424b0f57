// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/secretkey"
)

// credential is what was found of a provider's key, in the terms of the
// condition CredentialsResolved. It holds nothing of the key itself.
type credential struct {
	status          metav1.ConditionStatus
	reason, message string
	// resourceVersion is the Secret's; empty when none was read.
	resourceVersion string
	// read says that the answer depends on a Secret, which may change.
	read bool
}

// notAccepted is what is said of the key of a provider that is not accepted.
var notAccepted = credential{status: metav1.ConditionUnknown, reason: v1alpha1.ReasonNotAccepted, message: "the provider is not accepted"}

// readKey finds what is to be said of an accepted provider's key: one read of the one
// Secret that it names, and nothing of it is kept.
func (r *providerReconciler) readKey(ctx context.Context, p *v1alpha1.VisionProvider) (credential, error) {
	ref := p.Spec.Credentials.SecretRef
	switch {
	case ref == nil:
		return credential{status: metav1.ConditionTrue, reason: v1alpha1.ReasonNoCredentials, message: "the provider needs no key"}, nil
	case ref.From != nil && *ref.From == v1alpha1.SecretFromConsumer:
		return credential{status: metav1.ConditionTrue, reason: v1alpha1.ReasonConsumerSecret, message: fmt.Sprintf(
			"key %q of Secret %q is read in the namespace of each consuming pod", ref.Key, ref.Name)}, nil
	}
	var secret corev1.Secret
	err := r.live.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return judged(secretkey.NotFound(p.Namespace, ref.Name)), nil
	case apierrors.IsForbidden(err):
		return credential{status: metav1.ConditionUnknown, reason: v1alpha1.ReasonSecretAccessDenied, read: true,
			message: fmt.Sprintf("the operator may not read Secret %q in namespace %q", ref.Name, p.Namespace)}, nil
	case err != nil:
		return credential{}, fmt.Errorf("reading Secret %s/%s: %w", p.Namespace, ref.Name, err)
	}
	c := judged(secretkey.Judge(&secret, ref.Key))
	c.resourceVersion = secret.ResourceVersion
	return c, nil
}

// judged is a verdict that rests on a Secret.
func judged(v secretkey.Verdict) credential {
	status := metav1.ConditionFalse
	if v.OK {
		status = metav1.ConditionTrue
	}
	return credential{status: status, reason: v.Reason, message: v.Message, read: true}
}
