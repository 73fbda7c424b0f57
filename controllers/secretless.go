// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretReader is what Secrets are read from: the API server itself, unless
// options say that none is to be read.
func secretReader(mgr ctrl.Manager, options Options) client.Reader {
	if options.WithoutSecrets {
		return secretless{mgr.GetAPIReader()}
	}
	return mgr.GetAPIReader()
}

var errSecretless = errors.New("the operator was told to read no Secret")

// secretless refuses what is asked of Secrets, as the API server does without
// leave, but does not ask it.
type secretless struct{ client.Reader }

// Get refuses Secrets, their metadata included.
func (s secretless) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if isSecret(object) {
		return apierrors.NewForbidden(corev1.Resource("secrets"), key.Name, errSecretless)
	}
	return s.Reader.Get(ctx, key, object, options...)
}

func isSecret(object client.Object) bool {
	if _, ok := object.(*corev1.Secret); ok {
		return true
	}
	return object.GetObjectKind().GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}
