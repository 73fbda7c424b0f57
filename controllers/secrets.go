// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// secretVersion is what is known of one Secret: nothing of what it holds.
type secretVersion struct {
	// resourceVersion is empty when there is no such Secret, and "?" when the
	// operator may not look.
	resourceVersion string
	at              time.Time
}

func (v secretVersion) missing() bool { return v.resourceVersion == "" }

// secretVersions reads the metadata of Secrets by name, from the API server
// itself, and keeps their resourceVersions for a while.
type secretVersions struct {
	live           client.Reader // not cached
	retry, refresh time.Duration

	mu    sync.Mutex
	known map[client.ObjectKey]secretVersion
}

func newSecretVersions(live client.Reader, intervals Intervals) *secretVersions {
	return &secretVersions{live: live, retry: intervals.CredentialRetry, refresh: intervals.CredentialRefresh,
		known: map[client.ObjectKey]secretVersion{}}
}

// of returns what is known of a Secret, and reads it when nothing is.
func (s *secretVersions) of(ctx context.Context, key client.ObjectKey) (secretVersion, error) {
	s.mu.Lock()
	v, known := s.known[key]
	s.mu.Unlock()
	if known {
		return v, nil
	}
	return s.read(ctx, key)
}

// fresh returns what is known of a Secret, and reads it when that is too old.
// changed says that the Secret has come or gone since, or was not known.
func (s *secretVersions) fresh(ctx context.Context, key client.ObjectKey) (v secretVersion, changed bool, err error) {
	s.mu.Lock()
	before, known := s.known[key]
	s.mu.Unlock()
	if known && time.Since(before.at) < s.lasts(before) {
		return before, false, nil
	}
	v, err = s.read(ctx, key)
	return v, err == nil && (!known || before.missing() != v.missing()), err
}

// lasts is how long a reading holds.
func (s *secretVersions) lasts(v secretVersion) time.Duration {
	if v.missing() {
		return s.retry
	}
	return s.refresh
}

func (s *secretVersions) read(ctx context.Context, key client.ObjectKey) (secretVersion, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	v := secretVersion{at: time.Now()}
	switch err := s.live.Get(ctx, key, secret); {
	case err == nil:
		v.resourceVersion = secret.ResourceVersion
	case apierrors.IsNotFound(err):
	case apierrors.IsForbidden(err):
		v.resourceVersion = "?"
	default:
		return secretVersion{}, fmt.Errorf("reading the metadata of Secret %s: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[key] = v
	return v, nil
}

// forgetOthers drops what is known of a namespace's Secrets that are used no more.
func (s *secretVersions) forgetOthers(namespace string, used []client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.known, func(key client.ObjectKey, _ secretVersion) bool {
		return key.Namespace == namespace && !slices.Contains(used, key)
	})
}

// usedSecrets are the Secrets that a document's providers name, in order.
func usedSecrets(doc *router.Document) []client.ObjectKey {
	var keys []client.ObjectKey
	for i := range doc.Providers {
		if c := doc.Providers[i].Credential; c != nil {
			keys = append(keys, client.ObjectKey{Namespace: c.Namespace, Name: c.Secret})
		}
	}
	slices.SortFunc(keys, func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(keys)
}

// routerStamp is the value of the annotation that tells a pod's node that there
// is something new to mount: "<digest>/<hash>", the document's digest and the
// first 16 hexadecimal digits of the SHA-256 of the Secrets' versions.
func routerStamp(digest string, keys []client.ObjectKey, versions []secretVersion) string {
	h := sha256.New()
	for i, key := range keys {
		fmt.Fprintf(h, "%s=%s\n", key, versions[i].resourceVersion)
	}
	return digest + "/" + hex.EncodeToString(h.Sum(nil))[:16]
}
