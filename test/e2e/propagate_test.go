// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Two limits of an image's bytes: one that lets the screenshot pass and one that does not.
const generous, tight = 20 << 20, 1024

// obeyed edits the policy's limit and returns how long it took until the runtime
// beside the agent acted on it, from the moment at which the API server was asked.
func (w *world) obeyed(t *testing.T, pod *corev1.Pod, maxBytes, status int) time.Duration {
	t.Helper()
	policy := &v1alpha1.VisionPolicy{}
	policy.Namespace, policy.Name = team, "default"
	patch := fmt.Sprintf(`{"spec":{"limits":{"image":{"maxBytes":%d}}}}`, maxBytes)
	start := time.Now()
	if err := w.Patch(t.Context(), policy, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	code, answer, err := w.call(t.Context(), pod, "/until", map[string]string{"path": given, "status": fmt.Sprint(status)})
	if err != nil || code != http.StatusOK {
		t.Fatalf("HTTP %d %s %v", code, answer, err)
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(answer))
	if err != nil {
		t.Fatal(err)
	}
	return at.Sub(start)
}

func (w *world) aPolicyEditReachesTheRunningPod(t *testing.T) {
	const edits = 100
	pod := w.agent(t, team)
	var took []time.Duration
	// Edits come at any moment, and not each right after the one before was obeyed:
	// the kubelet looks once a second.
	random := rand.New(rand.NewPCG(1, 1))
	for i := range edits {
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		if i%2 == 0 {
			took = append(took, w.obeyed(t, pod, tight, http.StatusBadRequest))
		} else {
			took = append(took, w.obeyed(t, pod, generous, http.StatusOK))
		}
	}
	slices.Sort(took)
	w.figure(t, "a policy edit is obeyed by a running pod, %d edits: p50 %s, p99 %s, slowest %s",
		edits, took[edits/2].Round(time.Millisecond), took[edits*99/100-1].Round(time.Millisecond), took[edits-1].Round(time.Millisecond))
	after := w.agent(t, team)
	if after.UID != pod.UID || after.Status.InitContainerStatuses[1].RestartCount != 0 {
		t.Error("the pod was made again, or its runtime restarted")
	}
}

// withoutTheStamp takes the operator's right to annotate pods through their
// status away, and measures what the kubelet's own pace is.
func (w *world) withoutTheStamp(t *testing.T) {
	role := &rbacv1.ClusterRole{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "vision-operator-namespaces"}, role); err != nil {
		t.Fatal(err)
	}
	before := role.DeepCopy()
	role.Rules = slices.DeleteFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "pods/status") })
	if len(role.Rules) == len(before.Rules) {
		t.Fatal("the role has no rule for pods/status")
	}
	if err := w.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	pod := w.agent(t, team)
	took := []time.Duration{w.obeyed(t, pod, tight, http.StatusBadRequest), w.obeyed(t, pod, generous, http.StatusOK)}
	w.figure(t, "the same without the stamp on pods, 2 edits: %s, %s", took[0].Round(time.Millisecond), took[1].Round(time.Millisecond))
	role.Rules = before.Rules
	if err := w.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
}

// aRotatedSecretReachesTheRunningPod changes a provider's key and waits until the
// runtime sends the new one.
func (w *world) aRotatedSecretReachesTheRunningPod(t *testing.T) {
	pod := w.agent(t, team)
	policy := &v1alpha1.VisionPolicy{}
	policy.Namespace, policy.Name = team, "default"
	route := func(model string) {
		t.Helper()
		if err := w.Patch(t.Context(), policy, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"defaultModel":"`+model+`"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	route("keyed/keyed")
	sends := func(key string) func() error {
		return func() error {
			// Another prompt each time, so that no cached observation answers.
			status, answer, err := w.call(t.Context(), pod, "/view", map[string]string{"path": given, "prompt": fmt.Sprint("Which key, at ", time.Now().UnixNano())})
			if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:12]; err != nil || status != http.StatusOK || !strings.Contains(answer, sum) {
				return fmt.Errorf("want the digest %s of the key, got %s", sum, said(status, answer, err))
			}
			return nil
		}
	}
	eventually(t, 30*time.Second, sends("first-key-of-the-test"))
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = team, "keyed"
	start := time.Now()
	if err := w.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"api-key":"second-key-of-the-test"}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, 12*time.Minute, sends("second-key-of-the-test"))
	w.figure(t, "a rotated Secret is used by a running pod after %s, without a restart", time.Since(start).Round(time.Millisecond))
	if after := w.agent(t, team); after.UID != pod.UID {
		t.Error("the pod was made again")
	}
	route("ocr/tesseract")
}
