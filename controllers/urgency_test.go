// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestTheNamespaceOfAnEditComesBeforeThoseThatItConcernsElsewhere(t *testing.T) {
	in := func(namespace string) *v1alpha1.VisionPolicy {
		return &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", ResourceVersion: namespace}}
	}
	// A policy of the namespace home concerns two others; any other policy its own alone.
	handler := ownFirst(func(_ context.Context, o client.Object) []reconcile.Request {
		names := []string{o.GetNamespace()}
		if o.GetNamespace() == "home" {
			names = []string{"away", "busy", "home"}
		}
		var found []reconcile.Request
		for _, name := range names {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return found
	})
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	handler.Create(t.Context(), event.CreateEvent{Object: in("start"), IsInInitialList: true}, q)
	old, edited := in("home"), in("home")
	edited.ResourceVersion = "newer"
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: edited}, q)
	handler.Delete(t.Context(), event.DeleteEvent{Object: in("later")}, q)
	handler.Create(t.Context(), event.CreateEvent{Object: in("busy")}, q)

	var order []string
	for range 5 {
		req, _ := q.Get()
		q.Done(req)
		order = append(order, req.Name)
	}

	// Those of one priority come in any order.
	slices.Sort(order[:3])
	want := []string{"busy", "home", "later", "away", "start"}
	if !slices.Equal(order, want) {
		t.Errorf("the namespaces come as %v, want %v", order, want)
	}
}

func TestWhatComesBackAsWeWroteItWakesLastAndWhatOthersWroteAtOnce(t *testing.T) {
	find := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
	}
	of := func(namespace, version string) *v1alpha1.VisionPolicy {
		return &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", ResourceVersion: version}}
	}
	handler := echo(find, func(o client.Object) priorityqueue.AddOpts {
		if o.GetNamespace() == "ours" {
			return ofStatus(o)
		}
		return ofPublished(o)
	})
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	for _, version := range []string{"2", "3"} { // one reconcile wrote twice
		handler.Update(t.Context(), event.UpdateEvent{ObjectOld: of("ours", "1"), ObjectNew: of("ours", version)}, q)
	}
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: of("theirs", "1"), ObjectNew: of("theirs", "2")}, q)

	var order []string
	for range 2 {
		req, _ := q.Get()
		q.Done(req)
		order = append(order, req.Name)
	}
	if want := []string{"theirs", "ours"}; !slices.Equal(order, want) || q.Len() != 0 {
		t.Errorf("the namespaces come as %v and %d more, want %v", order, q.Len(), want)
	}
}
