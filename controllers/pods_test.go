// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func podOf(uid, version, stamp string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: uid, UID: types.UID(uid), ResourceVersion: version,
		Annotations: map[string]string{v1alpha1.RouterDigestAnnotation: stamp}}}
}

func TestWhichPodsAreStamped(t *testing.T) {
	now := time.Unix(1000, 0)
	tests := map[string]struct {
		pod    *metav1.PartialObjectMetadata
		sent   string // with the pod at version 1
		refuse bool
		want   bool
		wait   time.Duration
	}{
		"one that never had a stamp":                           {podOf("a", "1", ""), "", false, true, 0},
		"one that has it, sent by an operator before":          {podOf("a", "1", "new"), "", false, false, 0},
		"one that the cache shows as it was":                   {podOf("a", "1", ""), "new", false, false, 0},
		"one that the cache shows with it":                     {podOf("a", "2", "new"), "new", false, false, 0},
		"one that lost it again":                               {podOf("a", "3", ""), "new", false, true, 0},
		"one that has the older stamp":                         {podOf("a", "2", "old"), "old", false, true, 0},
		"one that has it, with another on its way":             {podOf("a", "1", "new"), "old", false, true, 0},
		"one that refused it":                                  {podOf("a", "2", ""), "new", true, false, time.Minute},
		"one that refused another":                             {podOf("a", "1", ""), "old", true, true, 0},
		"one that has it although the answer was a refusal":    {podOf("a", "2", "new"), "new", true, false, 0},
		"one that has it, and refused another in the meantime": {podOf("a", "1", "new"), "old", true, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSentStamps()
			if test.sent != "" {
				s.note(podOf("a", "1", ""), test.sent)
			}
			if test.refuse {
				s.refuse(podOf("a", "1", ""), test.sent, now)
			}
			if got, wait := s.wants(test.pod, "new", time.Minute, now); got != test.want || wait != test.wait {
				t.Errorf("got %t in %v, want %t in %v", got, wait, test.want, test.wait)
			}
		})
	}
	s := newSentStamps()
	s.note(podOf("a", "1", ""), "new")
	s.refuse(podOf("a", "1", ""), "new", now)
	if again, _ := s.wants(podOf("a", "9", ""), "new", time.Minute, now.Add(time.Minute)); !again {
		t.Error("a refused stamp is never tried again")
	}
	s.keep("team", []metav1.PartialObjectMetadata{*podOf("b", "1", "")})
	if len(s.in) != 0 {
		t.Errorf("pods that are gone are kept: %v", s.in)
	}
}

func TestOurOwnStampsAreNoNews(t *testing.T) {
	s := newSentStamps()
	s.note(podOf("a", "1", ""), "new")
	news := podNews(s.ours)
	policy := podOf("a", "2", "")
	policy.Annotations[v1alpha1.PolicyAnnotation] = "other"
	foreign := podOf("a", "2", "")
	foreign.Annotations["example.com/touched"] = "1"
	for name, test := range map[string]struct {
		after *metav1.PartialObjectMetadata
		want  bool
	}{
		"the stamp that was sent": {podOf("a", "2", "new"), false},
		"another's stamp":         {podOf("a", "2", "theirs"), true},
		"another policy":          {policy, true},
		"a foreign annotation":    {foreign, false},
		"nothing":                 {podOf("a", "2", ""), false},
	} {
		if got := news.Update(event.UpdateEvent{ObjectOld: podOf("a", "1", ""), ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestWhatIsOutdatedOfAPod(t *testing.T) {
	pinned := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p"}}
	now := today{policies: []v1alpha1.VisionPolicy{pinned}, keys: map[string][]string{"policy/p": {"team/a=s/k"}}, image: "v2",
		stamped: func(pod *metav1.PartialObjectMetadata) bool {
			return pod.Annotations[v1alpha1.RouterDigestAnnotation] == "new"
		}}
	for name, test := range map[string]struct {
		noted, stamp string
		want         bool
	}{
		"all is as it would be today":        {`{"profile":"policy/p","image":"v2","keys":["team/a=s/k"]}`, "new", false},
		"it mounts a key more":               {`{"profile":"policy/p","image":"v2","keys":["team/a=s/k","team/b=s/k"]}`, "new", false},
		"it was not told of the router":      {`{"profile":"policy/p","image":"v2","keys":["team/a=s/k"]}`, "old", true},
		"another policy would serve it":      {`{"profile":"policy/q","image":"v2"}`, "new", true},
		"it lacks a key":                     {`{"profile":"policy/p","image":"v2"}`, "new", true},
		"its image is older":                 {`{"profile":"policy/p","image":"v1","keys":["team/a=s/k"]}`, "new", true},
		"it was injected by an older build":  {`{"profile":"policy/p","hash":"sha256:00"}`, "new", false},
		"somebody spoiled what is noted":     {`{`, "new", true},
		"what is noted is of another format": {`[]`, "new", true},
	} {
		pod := podOf("a", "1", test.stamp)
		pod.Annotations[v1alpha1.InjectionAnnotation] = test.noted
		counts := countPods([]metav1.PartialObjectMetadata{*pod}, now)
		c := counts[injectionOf(pod).Profile]
		if c.Matched != 1 || c.Outdated == 1 != test.want {
			t.Errorf("%s: got %+v", name, counts)
		}
	}
}

func TestCountsAreToldAtMostOnceInAnInterval(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 0) }
	counts := func(n int32) map[string]v1alpha1.PodCounts { return map[string]v1alpha1.PodCounts{"p": {Matched: n}} }
	tally := newTally(10 * time.Second)
	told := func(seconds int64, want map[string]v1alpha1.PodCounts, wait int64) {
		t.Helper()
		got, left := tally.of("team", at(seconds))
		if diff := cmp.Diff(want, got); diff != "" || left != time.Duration(wait)*time.Second {
			t.Errorf("after %d s (-want +got), wait %v:\n%s", seconds, left, diff)
		}
	}
	told(0, nil, 0)
	tally.set("team", counts(1), at(0))
	told(4, nil, 6)
	tally.set("team", counts(2), at(5))
	told(10, counts(2), 0)
	tally.set("team", counts(3), at(20))
	told(20, counts(2), 10)
	tally.set("team", counts(4), at(29))
	told(30, counts(4), 0)
	if tally.set("team", counts(4), at(31)) {
		t.Error("equal counts are said to differ")
	}
	tally.set("team", counts(5), at(40))
	tally.set("team", counts(4), at(41)) // back before it was told
	told(60, counts(4), 0)

	tally.set("other", counts(1), at(60))
	if _, known, wait := tally.total("p", at(61)); known || wait != 9*time.Second {
		t.Errorf("a total with an unknown part is known (%t), wait %v", known, wait)
	}
	if sum, known, _ := tally.total("p", at(70)); !known || sum.Matched != 5 {
		t.Errorf("got %+v, known %t", sum, known)
	}
	tally.forget("other")
	if sum, _, _ := tally.total("p", at(70)); sum.Matched != 4 {
		t.Errorf("got %+v after one was forgotten", sum)
	}
}

func TestAStampTellsOfEverySecret(t *testing.T) {
	doc := &router.Document{Providers: []router.Provider{
		{Credential: &router.Credential{Namespace: "team", Secret: "z"}}, {},
		{Credential: &router.Credential{Namespace: "team", Secret: "a"}}, {Credential: &router.Credential{Namespace: "team", Secret: "z"}},
	}}
	keys := usedSecrets(doc)
	want := []client.ObjectKey{{Namespace: "team", Name: "a"}, {Namespace: "team", Name: "z"}}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	seen := map[string]string{}
	for name, versions := range map[string][]secretVersion{
		"both": {{resourceVersion: "1"}, {resourceVersion: "2"}}, "swapped": {{resourceVersion: "2"}, {resourceVersion: "1"}},
		"one missing": {{}, {resourceVersion: "2"}}, "one not to be read": {{resourceVersion: "?"}, {resourceVersion: "2"}},
	} {
		stamp := routerStamp("sha256:d", keys, versions)
		if other, taken := seen[stamp]; taken || len(stamp) != len("sha256:d/")+16 {
			t.Errorf("%s has the stamp %q, as has %q", name, stamp, other)
		}
		seen[stamp] = name
	}
}
