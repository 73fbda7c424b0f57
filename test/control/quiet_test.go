// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// quiet is how long the operator must leave the API server alone.
const quiet = 60 * time.Second

// The real operator with the intervals that it has in production. What it looks
// at from time to time is all there: a Secret that is missing, one that is there,
// endpoints to probe, somebody else's ConfigMap in our place, and injected pods of
// a namespace that is served no more.
func TestOnceAllIsSettledNothingIsWrittenForAMinute(t *testing.T) {
	vacate(t)
	seen := record(t, nil)
	process := startProcess(t, "--leader-elect")
	still(t, newWorld(77), seen)
	eventually(t, "waiting for all to be as the objects say", func() error { return settled(t.Context(), seen.ever) })
	before := idle(t)

	time.Sleep(quiet)
	if after := writes(t); len(after) > before {
		t.Errorf("nothing changed, and the operator wrote %v", after[before:])
	}
	if lease := readLease(t); time.Since(lease.Spec.RenewTime.Time) > quiet/2 {
		t.Errorf("the operator did not even keep its Lease: %+v", lease.Spec)
	}

	// Somebody annotates everything of ours again and again. That the operator has
	// seen it is shown by an edit after it, of an object of each kind.
	for round := range 10 {
		annotateAll(t, round)
	}
	edited := &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: teams[0], Name: "anchor"}}
	if err := edit(t.Context(), edited, func() {
		edited.Spec.Limits = &v1alpha1.Limits{Request: &v1alpha1.RequestLimits{MaxProbedPaths: new(int64(3))}}
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "waiting for the edit", func() error { return settled(t.Context(), seen.ever) })
	idle(t)
	for _, w := range writes(t)[before:] {
		if w.Namespace != teams[0] {
			t.Errorf("somebody annotated, and the operator wrote %v", w)
		}
	}
	own := 0
	for _, w := range writes(t)[before:] {
		if w.Resource == "configmaps" {
			own++
		}
	}
	if own != 1 {
		t.Errorf("an edit wrote %d ConfigMaps, want 1: %v", own, writes(t)[before:])
	}
	if t.Failed() {
		t.Logf("the operator's log ends with\n%s", process.log)
	}
	leave(t)
}

// idle waits until the operator has written nothing for some seconds, events
// included, and returns how many writes there have been.
func idle(t *testing.T) int {
	t.Helper()
	n, since := len(writes(t)), time.Now()
	eventually(t, "waiting for the last write", func() error {
		if now := len(writes(t)); now != n {
			n, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < 3*time.Second {
			return fmt.Errorf("the last of %d was %s ago", n, quiet)
		}
		return nil
	})
	return n
}

// still makes what the operator has to look at from time to time, and some more.
func still(t *testing.T, w world, seen *recorder) {
	t.Helper()
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: teams[4], Name: router.ConfigMapName, Labels: map[string]string{"owner": "somebody-else"}}})
	anchor(t, teams...)
	for _, s := range universe() {
		if err := w.put(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	probed := &v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Namespace: teams[0], Name: "probed"}, Spec: plainProvider()}
	probed.Spec.Endpoints[0].URL = "https://127.0.0.1/v1" // never spoken to
	probed.Spec.Probe = &v1alpha1.EndpointProbe{Interval: new(v1alpha1.Duration("10s"))}
	missing := &v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Namespace: teams[0], Name: "missing"}, Spec: plainProvider()}
	missing.Spec.Credentials = v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "no-such", Key: "api-key"}}
	create(t, probed, missing)

	former := &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "former"}}
	create(t, injectedPod(metav1.NamespaceDefault, "policy/former"), former)
	eventually(t, "waiting for a router", func() error {
		if !seen.ever(metav1.NamespaceDefault) {
			return errors.New("there is none")
		}
		return nil
	})
	if err := admin.Delete(t.Context(), former); err != nil {
		t.Fatal(err)
	}
}

// anchor gives namespaces a provider and a policy that stay as they are, and an
// injected pod.
func anchor(t *testing.T, namespaces ...string) {
	t.Helper()
	for _, namespace := range namespaces {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "anchor"}
		create(t, &v1alpha1.VisionProvider{ObjectMeta: meta, Spec: plainProvider()},
			&v1alpha1.VisionPolicy{ObjectMeta: *meta.DeepCopy(), Spec: v1alpha1.VisionPolicySpec{
				PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "anchor"}},
				Providers:   []v1alpha1.ProviderReference{{Name: "anchor"}}}},
			injectedPod(namespace, "policy/anchor"))
	}
}

// annotateAll changes an annotation of every object of ours and of every namespace.
func annotateAll(t *testing.T, round int) {
	t.Helper()
	ctx := t.Context()
	var policies v1alpha1.VisionPolicyList
	var providers v1alpha1.VisionProviderList
	var configMaps corev1.ConfigMapList
	var pods corev1.PodList
	var namespaces corev1.NamespaceList
	for _, list := range []client.ObjectList{&policies, &providers, &configMaps, &pods, &namespaces} {
		if err := admin.List(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	var all []client.Object
	for i := range policies.Items {
		all = append(all, &policies.Items[i])
	}
	for i := range providers.Items {
		all = append(all, &providers.Items[i])
	}
	for i := range configMaps.Items {
		if configMaps.Items[i].Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
			all = append(all, &configMaps.Items[i])
		}
	}
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
	}
	for i := range namespaces.Items {
		all = append(all, &namespaces.Items[i])
	}
	if len(all) < 60 {
		t.Fatalf("there are only %d objects to annotate", len(all))
	}
	for _, o := range all {
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["example.com/touched"] = fmt.Sprint(round)
		before, _ := o.DeepCopyObject().(client.Object)
		o.SetAnnotations(annotations)
		if err := admin.Patch(ctx, o, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}

// leave cleans up after a test whose operator is at work, somebody else's ConfigMap included.
func leave(t *testing.T) {
	t.Helper()
	w := newWorld(0)
	for _, s := range universe() {
		if s.kind == labels {
			if err := w.remove(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, team := range teams {
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: router.ConfigMapName}}
		if err := admin.Get(context.Background(), client.ObjectKeyFromObject(held), held); err != nil || held.Labels["owner"] == "" && !stripped(held) {
			continue
		}
		if err := admin.Delete(context.Background(), held); err != nil {
			t.Fatal(err)
		}
	}
	clean(t)
}
