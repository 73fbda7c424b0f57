// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/reach"
)

// found are the results of the endpoints a, b, ...
func found(reasons ...string) []reach.Result {
	var results []reach.Result
	for i, r := range reasons {
		results = append(results, reach.Result{Endpoint: string(rune('a' + i)), Reason: r})
	}
	return results
}

func TestWhatIsBelievedOfSeveralProbes(t *testing.T) {
	const up, down, late, barred = v1alpha1.ReasonReachable, v1alpha1.ReasonConnectionFailed, v1alpha1.ReasonTimeout, v1alpha1.ReasonAddressNotAllowed
	for name, tc := range map[string]struct {
		probes  []string
		believe []string
	}{
		"the first is believed":               {[]string{down}, []string{down}},
		"one failure is not":                  {[]string{up, down}, []string{up, up}},
		"two failures are":                    {[]string{up, down, down}, []string{up, up, down}},
		"two of different kinds are":          {[]string{up, down, late}, []string{up, up, late}},
		"a failure that passed is forgotten":  {[]string{up, down, up, down, down}, []string{up, up, up, up, down}},
		"one success is believed":             {[]string{down, up}, []string{down, up}},
		"another failure is believed":         {[]string{down, late}, []string{down, late}},
		"one that is barred is doubted first": {[]string{up, barred, barred}, []string{up, up, barred}},
	} {
		t.Run(name, func(t *testing.T) {
			targets := []reach.Target{{Endpoint: "a"}}
			var s sighting
			for i, reason := range tc.probes {
				before := s.of(targets)
				var changed bool
				s, changed = s.next(targets, found(reason), 0, time.Unix(int64(i), 0))
				if got := s.of(targets); !slices.Equal(got, found(tc.believe[i])) || changed == slices.Equal(before, got) {
					t.Errorf("after probe %d: %v, changed %t; want %s", i, got, changed, tc.believe[i])
				}
			}
		})
	}
}

func TestResultsHoldForTheEndpointsThatWereProbedOnly(t *testing.T) {
	probed := []reach.Target{{Endpoint: "a", URL: "https://a.example"}}
	s, _ := sighting{}.next(probed, found(v1alpha1.ReasonReachable), 0, time.Unix(0, 0))
	if s.of(slices.Clone(probed)) == nil {
		t.Error("the results are lost")
	}
	for name, edited := range map[string][]reach.Target{
		"another URL":       {{Endpoint: "a", URL: "https://b.example"}},
		"another bundle":    {{Endpoint: "a", URL: "https://a.example", CABundle: "x"}},
		"one endpoint more": {probed[0], {Endpoint: "b"}},
		"none":              nil,
	} {
		if got := s.of(edited); got != nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
	// What came of other endpoints is no reason to doubt.
	other := []reach.Target{{Endpoint: "b"}}
	if n, changed := s.next(other, found(v1alpha1.ReasonTimeout), 0, time.Unix(1, 0)); !changed || n.doubted {
		t.Errorf("got %+v", n)
	}
}

func TestWhenTheNextProbeIsDue(t *testing.T) {
	start := time.Unix(1000, 0)
	probed := []reach.Target{{Endpoint: "a"}}
	seen := sighting{targets: probed, at: start, jitter: 0.1}
	for name, tc := range map[string]struct {
		seen     sighting
		targets  []reach.Target
		interval time.Duration
		after    time.Duration
		want     time.Duration
	}{
		"at once, when there was none":             {sighting{}, probed, time.Minute, 0, 0},
		"after the interval and its jitter":        {seen, probed, time.Minute, 0, 66 * time.Second},
		"what is left of it":                       {seen, probed, time.Minute, 50 * time.Second, 16 * time.Second},
		"now, when it is over":                     {seen, probed, time.Minute, time.Hour, 0},
		"an interval that was made shorter counts": {seen, probed, 20 * time.Second, 20 * time.Second, 2 * time.Second},
		"edited endpoints wait for the least":      {seen, []reach.Target{{Endpoint: "b"}}, time.Hour, time.Second, 10 * time.Second},
		"news that are doubted do": {sighting{targets: probed, at: start, doubted: true}, probed, time.Hour, 0,
			10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.seen.wait(tc.targets, tc.interval, start.Add(tc.after)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestReachableCondition(t *testing.T) {
	accepted := compile.Verdict{OK: true, Reason: v1alpha1.ReasonAccepted}
	old := func(generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTimeout, ObservedGeneration: generation}}
	}
	for name, tc := range map[string]struct {
		probe    bool
		accepted compile.Verdict
		old      []metav1.Condition
		known    []reach.Result
		want     string
	}{
		"without spec.probe there is none":            {false, accepted, old(2), found(v1alpha1.ReasonTimeout), ""},
		"what is known is told":                       {true, accepted, old(2), found(v1alpha1.ReasonReachable), v1alpha1.ReasonReachable},
		"nothing is known yet":                        {true, accepted, nil, nil, v1alpha1.ReasonNotProbed},
		"after a start what was told holds":           {true, accepted, old(2), nil, v1alpha1.ReasonTimeout},
		"but not when the provider was edited":        {true, accepted, old(1), nil, v1alpha1.ReasonNotProbed},
		"one that is not accepted is not looked at":   {true, compile.Verdict{}, old(2), nil, v1alpha1.ReasonNotAccepted},
		"nor is what was known of it before its edit": {true, compile.Verdict{}, old(1), found(v1alpha1.ReasonReachable), v1alpha1.ReasonNotAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.VisionProviderStatus{Conditions: tc.old}}
			if tc.probe {
				p.Spec.Probe = &v1alpha1.EndpointProbe{}
			}
			got := ""
			for _, c := range reachableCondition(p, tc.accepted, tc.known) {
				got += c.Reason
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTransitionsAreToldAndFirstSuccessIsNot(t *testing.T) {
	const yes, no, open = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, tc := range map[string]struct {
		before, after metav1.ConditionStatus
		told          bool
	}{
		"True at first":     {"", yes, false},
		"Unknown at first":  {"", open, false},
		"False at first":    {"", no, true},
		"True as before":    {yes, yes, false},
		"False as before":   {no, no, false},
		"no more True":      {yes, no, true},
		"True again":        {no, yes, true},
		"True, once known":  {open, yes, false},
		"False, once known": {open, no, true},
		"no more known":     {yes, open, false},
	} {
		t.Run(name, func(t *testing.T) {
			var old []metav1.Condition
			if tc.before != "" {
				old = []metav1.Condition{{Type: "A", Status: tc.before}}
			}
			if got := transitions(old, []metav1.Condition{{Type: "A", Status: tc.after}}); (len(got) == 1) != tc.told {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestANamespaceHasItsPlacesAndNoMore(t *testing.T) {
	r := &probeReconciler{under: map[string]int{}}
	for range probesPerNamespace {
		if !r.enter("team") {
			t.Fatal("a place is missing")
		}
	}
	if r.enter("team") {
		t.Error("there is a place too many")
	}
	if !r.enter("other") {
		t.Error("another namespace has no place")
	}
	r.leave("team")
	if !r.enter("team") {
		t.Error("a place is not given back")
	}
	r.leave("other")
	if _, kept := r.under["other"]; kept {
		t.Error("a namespace without probes is remembered")
	}
}
