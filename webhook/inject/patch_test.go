// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"path/filepath"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// checkPatch fails unless the patch makes of the given pod what Apply made.
func checkPatch(t *testing.T, in Input) {
	t.Helper()
	after, _ := inject(in)
	before := mustJSON(t, in.Pod)
	operations, err := jsonpatch.DecodePatch(mustJSON(t, Patch(in.Pod, after)))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := operations.Apply(before)
	if err != nil {
		t.Fatalf("the patch does not apply: %v", err)
	}
	if want := mustJSON(t, after); !jsonpatch.Equal(patched, want) {
		t.Errorf("the patched pod differs from the applied one:\n%s", cmp.Diff(string(want), string(patched)))
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestThePatchOfEveryGoldenPodMakesWhatApplyMakes(t *testing.T) {
	for _, name := range goldenNames(t) {
		t.Run(name, func(t *testing.T) { checkPatch(t, readGolden(t, filepath.Join(goldenFolder, name))) })
	}
}

func TestThePatchOfAnyRandomPodMakesWhatApplyMakes(t *testing.T) {
	base := baseInput(t)
	base.Settings.PullSecrets = []string{"registry"}
	for seed := range int64(400) {
		in := base
		in.Pod = randomPod(seed)
		checkPatch(t, in)
	}
}

func TestThePatchOfAPodThatIsInjectedAlreadyIsEmpty(t *testing.T) {
	in := baseInput(t)
	once, _ := inject(in)
	in.Pod = once
	twice, _ := inject(in)
	if p := Patch(once, twice); len(p) != 0 {
		t.Errorf("got %v, want nothing", p)
	}
}

func TestFieldsThatTheseTypesDoNotKnowSurviveThePatch(t *testing.T) {
	raw := []byte(`{"metadata":{"name":"agent","labels":{"visionoperator.dev/inject":"enabled"}},"spec":{"fromTheFuture":1,"containers":[
		{"name":"agent","image":"a","futureField":true,"env":[{"name":"A","value":"x","alsoNew":{"deep":1}}]}]}}`)
	in := baseInput(t)
	in.Pod = &corev1.Pod{}
	if err := json.Unmarshal(raw, in.Pod); err != nil {
		t.Fatal(err)
	}
	after, _ := inject(in)
	operations, err := jsonpatch.DecodePatch(mustJSON(t, Patch(in.Pod, after)))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := operations.Apply(raw)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Spec struct {
			FromTheFuture int
			Containers    []struct {
				FutureField bool
				Env         []struct {
					Name    string
					AlsoNew map[string]int
				}
			}
		}
	}
	if err := json.Unmarshal(patched, &got); err != nil {
		t.Fatal(err)
	}
	c := got.Spec.Containers[0]
	if got.Spec.FromTheFuture != 1 || !c.FutureField || len(c.Env) != 3 || c.Env[2].Name != "A" || c.Env[2].AlsoNew["deep"] != 1 {
		t.Errorf("got %+v: a field was lost", got)
	}
}
