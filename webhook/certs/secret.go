// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Keys of the CA's Secret.
const (
	// certificateKey is PEM: the CA's own certificate, then its predecessors'.
	certificateKey = "ca.crt"
	// privateKeyKey is PEM, PKCS #8, ECDSA.
	privateKeyKey = "ca.key"
)

// attempts bounds how often a replica starts over because another was faster.
const attempts = 5

// ForeignSecretError is a Secret of our name that holds something else and is not ours to replace.
type ForeignSecretError struct {
	Name client.ObjectKey
	Err  error
}

// Error says what to do.
func (e *ForeignSecretError) Error() string {
	return fmt.Sprintf("adopting Secret %s as the webhook's CA: %v; it lacks the label %s=%s, so it is not replaced: delete it or choose another name",
		e.Name, e.Err, v1alpha1.ManagedByLabel, v1alpha1.ManagedBy)
}

// Unwrap is what is wrong with it.
func (e *ForeignSecretError) Unwrap() error { return e.Err }

// ensureAuthority returns the CA that all replicas share, from a Secret that
// the first of them creates or, when it stands there empty, fills; and writes
// the Secret where succession wants it otherwise.
func ensureAuthority(ctx context.Context, c client.Client, name client.ObjectKey, s *succession) (*authority, error) {
	var err error
	for range attempts {
		var a *authority
		if a, err = tryAuthority(ctx, c, name, s); err == nil {
			return a, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return nil, fmt.Errorf("ensuring the webhook's CA: %w", err)
}

func tryAuthority(ctx context.Context, c client.Client, name client.ObjectKey, s *succession) (*authority, error) {
	secret := &corev1.Secret{}
	err := c.Get(ctx, name, secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	found, err := readAuthority(secret)
	if err != nil {
		return nil, err
	}
	next, err := s.next(found)
	if err != nil || next == found {
		return next, err
	}
	if err := store(secret, next); err != nil {
		return nil, err
	}
	if missing {
		secret.Name, secret.Namespace, secret.Type = name.Name, name.Namespace, corev1.SecretTypeOpaque
		if err := c.Create(ctx, secret); err != nil {
			return nil, fmt.Errorf("creating Secret %s: %w", name, err)
		}
		return next, nil
	}
	// The resourceVersion that was read makes the slower of two replicas fail and
	// read again; so does the UID, where the Secret was deleted meanwhile.
	if err := c.Update(ctx, secret); err != nil {
		return nil, fmt.Errorf("writing Secret %s: %w", name, err)
	}
	return next, nil
}

// readAuthority is nil where a CA may be put into the Secret.
func readAuthority(secret *corev1.Secret) (*authority, error) {
	if len(secret.Data[certificateKey]) == 0 && len(secret.Data[privateKeyKey]) == 0 {
		return nil, nil
	}
	a, err := parseAuthority(secret.Data[certificateKey], secret.Data[privateKeyKey])
	if err == nil {
		return a, nil
	}
	if secret.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
		return nil, nil
	}
	return nil, &ForeignSecretError{Name: client.ObjectKeyFromObject(secret), Err: err}
}

// store puts a CA into a Secret, leaving the Secret's other keys alone.
func store(secret *corev1.Secret, a *authority) error {
	certificates, key, err := a.encode()
	if err != nil {
		return err
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[certificateKey], secret.Data[privateKeyKey] = certificates, key
	if secret.Labels == nil {
		secret.Labels = map[string]string{}
	}
	secret.Labels[v1alpha1.ManagedByLabel] = v1alpha1.ManagedBy
	return nil
}
