// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func TestAClusterKeepsItsObjectsAndUsersThroughFaultsAndNotesTheWritesOfOneUser(t *testing.T) {
	cluster, err := Start(Options{WithoutCRDs: true, AuditWritesOf: "clerk"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin := kubernetes.NewForConfigOrDie(cluster.Config)
	config, err := cluster.User("clerk", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	clerk := kubernetes.NewForConfigOrDie(config)
	put := func(c kubernetes.Interface, name string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}

	if err := errors.Join(put(clerk, "first"), put(admin, "others")); err != nil {
		t.Fatal(err)
	}
	if err := cluster.StopEtcd(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	if _, err := admin.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "first", metav1.GetOptions{}); err == nil {
		t.Error("the API server answers without etcd")
	}
	cancel()
	if err := cluster.StartEtcd(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.RestartAPIServer(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "others"} {
		if _, err := clerk.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("after both were started again: %v", err)
		}
	}
	if err := put(clerk, "second"); err != nil {
		t.Error(err)
	}

	write := Write{Verb: "create", Resource: "configmaps", Namespace: metav1.NamespaceDefault, Code: 201}
	want := []Write{write, write}
	want[0].Name, want[1].Name = "first", "second"
	deadline := time.Now().Add(time.Minute) // an answer is noted just after it is read
	for got := []Write(nil); !slices.Equal(got, want); time.Sleep(10 * time.Millisecond) {
		if got, err = cluster.Writes(); err != nil || time.Now().After(deadline) {
			t.Fatalf("got the writes %v (%v), want %v", got, err, want)
		}
	}
}
