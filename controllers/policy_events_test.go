// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestATransitionWithALongMessageIsToldByItsBeginning(t *testing.T) {
	w := newWorld(t, Intervals{})
	p := goodPolicy("default")
	for i := range 8 {
		p.Spec.Providers = append(p.Spec.Providers, v1alpha1.ProviderReference{
			Name: fmt.Sprintf("p%d-%s", i, strings.Repeat("x", 60)), Namespace: "n" + strings.Repeat("y", 60)})
	}
	p.Spec.DefaultModel = nil
	w.create(p)
	message := ""
	for _, c := range w.policyCondition("default", v1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, v1alpha1.ReasonRefNotPermitted).Status.Conditions {
		if c.Type == v1alpha1.ConditionResolvedRefs {
			message = c.Message
		}
	}
	if len(message) <= maxNote {
		t.Fatalf("the message has %d bytes, and should have more than an Event takes", len(message))
	}
	w.eventually("an Event tells it", func() error {
		var events eventsv1.EventList
		if err := admin.List(t.Context(), &events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == v1alpha1.ReasonRefNotPermitted && strings.HasPrefix(message, strings.TrimSuffix(e.Note, "…")) {
				return nil
			}
		}
		return fmt.Errorf("none of %d events", len(events.Items))
	})
}

func TestANoteIsCutBetweenCharacters(t *testing.T) {
	for _, pad := range []string{"", "a", "ab"} {
		got := note(pad + strings.Repeat("€", maxNote))
		if len(got) > maxNote || len(got) < maxNote-6 || !utf8.ValidString(got) || !strings.HasSuffix(got, "€…") {
			t.Errorf("got %d bytes that end with %q", len(got), got[len(got)-8:])
		}
	}
	if whole := strings.Repeat("a", maxNote); note(whole) != whole {
		t.Error("a note that fits was cut")
	}
}
