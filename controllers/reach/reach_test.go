// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestConditionNamesWhatDoesNotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		reasons []string // of the endpoints e0, e1, ...
		status  metav1.ConditionStatus
		reason  string
		words   []string
	}{
		"all answer":                                {[]string{v1alpha1.ReasonReachable, v1alpha1.ReasonReachable}, metav1.ConditionTrue, v1alpha1.ReasonReachable, []string{"every endpoint answers"}},
		"one does not":                              {[]string{v1alpha1.ReasonReachable, v1alpha1.ReasonTimeout}, metav1.ConditionFalse, v1alpha1.ReasonTimeout, []string{`"e1" did not answer`}},
		"the first of two reasons counts":           {[]string{v1alpha1.ReasonTLSFailed, v1alpha1.ReasonServerError}, metav1.ConditionFalse, v1alpha1.ReasonTLSFailed, []string{`"e0"`, `"e1"`, "certificate", "500"}},
		"one is not tried":                          {[]string{v1alpha1.ReasonAddressNotAllowed, v1alpha1.ReasonReachable}, metav1.ConditionUnknown, v1alpha1.ReasonAddressNotAllowed, []string{`"e0" is not probed`}},
		"what does not answer counts before others": {[]string{v1alpha1.ReasonAddressNotAllowed, v1alpha1.ReasonDNSFailed}, metav1.ConditionFalse, v1alpha1.ReasonDNSFailed, []string{`"e0"`, `"e1"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var results []Result
			for i, r := range tc.reasons {
				results = append(results, Result{Endpoint: "e" + string(rune('0'+i)), Reason: r})
			}
			got := Condition(results)
			if got.Type != v1alpha1.ConditionReachable || got.Status != tc.status || got.Reason != tc.reason {
				t.Errorf("got %+v", got)
			}
			for _, word := range tc.words {
				if !strings.Contains(got.Message, word) {
					t.Errorf("the message lacks %q: %s", word, got.Message)
				}
			}
		})
	}
}

func TestEveryReasonHasItsWords(t *testing.T) {
	for _, reason := range []string{v1alpha1.ReasonAddressNotAllowed, v1alpha1.ReasonDNSFailed, v1alpha1.ReasonConnectionFailed,
		v1alpha1.ReasonTLSFailed, v1alpha1.ReasonTimeout, v1alpha1.ReasonServerError} {
		if explanations[reason] == "" {
			t.Errorf("%s is not explained", reason)
		}
	}
}

func TestTheIntervalIsKeptWithinItsBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		probe *v1alpha1.EndpointProbe
		want  time.Duration
	}{
		"no probe":              {nil, 5 * time.Minute},
		"no interval":           {&v1alpha1.EndpointProbe{}, 5 * time.Minute},
		"an interval":           {&v1alpha1.EndpointProbe{Interval: new(v1alpha1.Duration("1m30s"))}, 90 * time.Second},
		"less than the least":   {&v1alpha1.EndpointProbe{Interval: new(v1alpha1.Duration("1ms"))}, 10 * time.Second},
		"more than the most":    {&v1alpha1.EndpointProbe{Interval: new(v1alpha1.Duration("99999h"))}, 24 * time.Hour},
		"what is no duration":   {&v1alpha1.EndpointProbe{Interval: new(v1alpha1.Duration("often"))}, 5 * time.Minute},
		"a duration below zero": {&v1alpha1.EndpointProbe{Interval: new(v1alpha1.Duration("-1h"))}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Interval(&v1alpha1.VisionProvider{Spec: v1alpha1.VisionProviderSpec{Probe: tc.probe}}); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestThePaceLetsOnePassPerGap(t *testing.T) {
	p, start := &pace{gap: 50 * time.Millisecond}, time.Now()
	for i, tc := range []struct{ now, want time.Duration }{
		{0, 0}, {0, 50}, {10, 100}, {500, 500}, {500, 550}, {560, 600},
	} {
		if got := p.reserve(start.Add(tc.now * time.Millisecond)).Sub(start); got != tc.want*time.Millisecond {
			t.Errorf("caller %d passes at %s, want %dms", i, got, tc.want)
		}
	}
}
