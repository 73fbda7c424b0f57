// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/controllers/secretkey"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

const (
	// goodFor is how long a key that was found good is not looked at again: a
	// rollout of many pods asks once, and a key that goes is noticed soon.
	goodFor = 30 * time.Second
	// mostKept is how many good keys are remembered; beyond, all are forgotten.
	mostKept = 10_000
)

// Keys looks at the keys that pods mount, each by one read of its Secret from the
// API server itself. It remembers which were good, and nothing else of them.
type Keys struct {
	live client.Reader // not cached
	now  func() time.Time

	mu   sync.Mutex
	good map[inject.Key]time.Time
}

// NewKeys returns Keys that read Secrets from a reader without a cache.
func NewKeys(live client.Reader) *Keys {
	return &Keys{live: live, now: time.Now, good: map[inject.Key]time.Time{}}
}

// missing says what is wrong with keys. One whose Secret may not be read is not
// spoken of: nothing is known of it. An error is an API server that does not answer.
func (k *Keys) missing(ctx context.Context, keys []inject.Key) (map[inject.Key]inject.Note, error) {
	var wrong map[inject.Key]inject.Note
	for _, key := range keys {
		if k.remembered(key) {
			continue
		}
		verdict, err := k.look(ctx, key)
		if err != nil {
			return nil, err
		}
		if verdict.OK {
			k.remember(key)
			continue
		}
		if wrong == nil {
			wrong = map[inject.Key]inject.Note{}
		}
		wrong[key] = inject.Note{Reason: inject.Reason(verdict.Reason), Message: verdict.Message}
	}
	return wrong, nil
}

func (k *Keys) look(ctx context.Context, key inject.Key) (secretkey.Verdict, error) {
	var secret corev1.Secret
	err := k.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Secret}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return secretkey.NotFound(key.Namespace, key.Secret), nil
	case apierrors.IsForbidden(err):
		return secretkey.Verdict{OK: true}, nil
	case err != nil:
		return secretkey.Verdict{}, fmt.Errorf("reading Secret %s/%s: %w", key.Namespace, key.Secret, err)
	}
	return secretkey.Judge(&secret, key.Key), nil
}

func (k *Keys) remembered(key inject.Key) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, ok := k.good[key]
	return ok && k.now().Sub(at) < goodFor
}

func (k *Keys) remember(key inject.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.good) >= mostKept {
		clear(k.good)
	}
	k.good[key] = k.now()
}
