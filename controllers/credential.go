// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
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
		return unresolved(v1alpha1.ReasonSecretNotFound, "Secret %q does not exist in namespace %q", ref.Name, p.Namespace), nil
	case apierrors.IsForbidden(err):
		c := unresolved(v1alpha1.ReasonSecretAccessDenied, "the operator may not read Secret %q in namespace %q", ref.Name, p.Namespace)
		c.status = metav1.ConditionUnknown
		return c, nil
	case err != nil:
		return credential{}, fmt.Errorf("reading Secret %s/%s: %w", p.Namespace, ref.Name, err)
	}
	c := judgeKey(&secret, ref)
	c.resourceVersion = secret.ResourceVersion
	return c, nil
}

// judgeKey says whether a Secret's key can be a key. Messages tell the kind of
// mistake and nothing of the value, its length included.
func judgeKey(secret *corev1.Secret, ref *v1alpha1.SecretKeyReference) credential {
	value, found := secret.Data[ref.Key]
	switch {
	case !found:
		return unresolved(v1alpha1.ReasonSecretKeyNotFound, "Secret %q has no key %q", ref.Name, ref.Key)
	case len(bytes.TrimSpace(value)) == 0:
		return unresolved(v1alpha1.ReasonSecretKeyEmpty, "key %q of Secret %q is empty", ref.Key, ref.Name)
	case len(bytes.TrimSpace(value)) != len(value):
		return unresolved(v1alpha1.ReasonSecretKeyMalformed,
			"key %q of Secret %q has white space or a newline around its value; `echo -n` or --from-file without a final newline avoids it", ref.Key, ref.Name)
	case quoted(value):
		return unresolved(v1alpha1.ReasonSecretKeyMalformed, "key %q of Secret %q has quotes around its value", ref.Key, ref.Name)
	case bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }):
		return unresolved(v1alpha1.ReasonSecretKeyMalformed,
			"key %q of Secret %q has a line break, a control character or a character beyond ASCII in its value, which no header can carry", ref.Key, ref.Name)
	}
	return credential{status: metav1.ConditionTrue, reason: v1alpha1.ReasonResolved, read: true,
		message: fmt.Sprintf("key %q of Secret %q is there", ref.Key, ref.Name)}
}

// quoted reports whether a value begins and ends with the same quote.
func quoted(value []byte) bool {
	if len(value) < 2 || value[0] != value[len(value)-1] {
		return false
	}
	return value[0] == '"' || value[0] == '\'' || value[0] == '`'
}

func unresolved(reason, message string, args ...any) credential {
	return credential{status: metav1.ConditionFalse, reason: reason, message: fmt.Sprintf(message, args...), read: true}
}
