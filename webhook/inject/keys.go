// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// Key is a provider's key that the container mounts: where it is, and nothing of
// what it is.
type Key struct {
	// Provider is the provider's name in the router document, "namespace/name".
	Provider string
	// Namespace is the pod's own. Secret and Key name a Secret there and its key.
	Namespace, Secret, Key string
}

// credentialsOfProfile yields the profile's providers that have a key.
func (d *decision) credentialsOfProfile(yield func(*router.Provider) bool) {
	for i := range d.Compiled.Document.Providers {
		p := &d.Compiled.Document.Providers[i]
		used := slices.ContainsFunc(d.profile.Providers, func(u router.ProviderUse) bool { return u.Provider == p.Name })
		if p.Credential != nil && used && !yield(p) {
			return
		}
	}
}

// mountedKeys are the keys of the profile's providers. One in another namespace
// cannot be mounted: the author is told.
func (d *decision) mountedKeys() []Key {
	var keys []Key
	for p := range d.credentialsOfProfile {
		c := p.Credential
		if c.Namespace != d.Namespace {
			d.tell(ReasonCredentialNotMounted, "provider %s: its key is in namespace %s, which this pod cannot mount; its models are refused here", p.Name, c.Namespace)
			continue
		}
		keys = append(keys, Key{Provider: p.Name, Namespace: c.Namespace, Secret: c.Secret, Key: c.Key})
	}
	return keys
}

// projections are the sources of the volume that holds the keys. Each is optional:
// a key that comes later is mounted when it does.
func (d *decision) projections() []corev1.VolumeProjection {
	yes := true
	var sources []corev1.VolumeProjection
	for p := range d.credentialsOfProfile {
		c := p.Credential
		if c.Namespace != d.Namespace {
			continue
		}
		sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: c.Secret},
			Items:                []corev1.KeyToPath{{Key: c.Key, Path: c.File}},
			Optional:             &yes,
		}})
	}
	return sources
}
