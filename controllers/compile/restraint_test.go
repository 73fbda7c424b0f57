// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// broken is a random baseline that is not accepted, for what it sets up.
func broken(r *rand.Rand, in Input) v1alpha1.VisionPolicy {
	b := v1alpha1.VisionPolicy{Spec: randomSpec(r)}
	b.Namespace, b.Name, b.CreationTimestamp = in.OperatorNamespace, "broken", metav1.Unix(int64(r.Intn(4)), 0)
	b.Spec.NamespaceSelector = []*metav1.LabelSelector{{}, {MatchLabels: in.NamespaceLabels}}[r.Intn(2)]
	made(&b.Spec.Runtime).Workspaces = []string{"/proc"}
	return b
}

// everyProfileOf compares the profiles of policies before and after.
func everyProfileOf(t *testing.T, seed int64, before, after Output, tightened map[string]int, set func(id string) map[string]bool) {
	t.Helper()
	if err := router.Validate(after.Document); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	for i := range before.Document.Profiles {
		old := &before.Document.Profiles[i]
		if !strings.HasPrefix(old.ID, policyKind) {
			continue
		}
		at := slices.IndexFunc(after.Document.Profiles, func(p router.Profile) bool { return p.ID == old.ID })
		if at < 0 {
			t.Errorf("seed %d: profile %s is gone", seed, old.ID)
			continue
		}
		c := comparison{t: t, at: fmt.Sprintf("seed %d, %s", seed, old.ID), tightened: tightened, set: set(old.ID),
			old: old, now: &after.Document.Profiles[at], oldDocument: before.Document, nowDocument: after.Document}
		c.compare()
	}
}

func TestABaselineThatIsNotAcceptedGrantsNothingNotEvenAHigherLimitThanTheDefault(t *testing.T) {
	tightened, every := map[string]int{}, map[string]bool{}
	for field := range limitsOf(&router.Limits{}) {
		every[field] = true
	}
	delete(every, "spec.limits.request.maxImageTokens") // 0 stands for none: below
	for _, field := range []string{"spec.perCallModel", "spec.runtime.mcp", "spec.runtime.proxy.enabled", "spec.limits.image.onOversize"} {
		every[field] = true
	}
	for seed := range int64(1000) {
		r := rand.New(rand.NewSource(seed))
		in := monotoneInput(r)
		before := Compile(in)
		b := broken(r, in)
		for _, limit := range []**int64{&imageOf(&b.Spec).MaxBytes, &requestOf(&b.Spec).MaxDistinctImages, &requestOf(&b.Spec).MaxBodyBytes} {
			if r.Intn(3) == 0 {
				*limit = new(int64(1000)) // or above the default
			}
			if r.Intn(3) == 0 {
				made(limit)
				**limit = 1 + DefaultMaxBodyBytes
			}
		}
		if n := requestOf(&b.Spec).MaxDistinctImages; n != nil {
			*n = min(*n, 1000)
		}
		in.Policies = append(in.Policies, b)
		after := Compile(in)
		everyProfileOf(t, seed, before, after, tightened, func(string) map[string]bool { return every })
		if slices.ContainsFunc(after.Document.Profiles, func(p router.Profile) bool { return p.ID == BaselineProfileID(b.Name) }) {
			t.Errorf("seed %d: the baseline serves pods", seed)
		}
	}
	for _, what := range []string{"limits", "media types", "routes", "denials"} {
		if tightened[what] < 50 {
			t.Errorf("baselines took away %s only %d times; the test needs more", what, tightened[what])
		}
	}
}

func TestAMistakeInABaselineSetsFreeNothingThatItBounded(t *testing.T) {
	held := 0
	for seed := range int64(1000) {
		r := rand.New(rand.NewSource(seed))
		in := monotoneInput(r)
		b := broken(r, in)
		good := *b.DeepCopy()
		good.Spec.Runtime.Workspaces = nil
		with := func(p v1alpha1.VisionPolicy) Output {
			world := in
			world.Policies = append(slices.Clone(in.Policies), p)
			return Compile(world)
		}
		before, after := with(good), with(b)
		if restraint(in.OperatorNamespace, &b) != nil {
			held++
		}
		everyProfileOf(t, seed, before, after, map[string]int{}, func(id string) map[string]bool { return said(before.Origins[id]) })
		for id, origins := range after.Origins {
			for _, o := range origins {
				if o.From == b.Namespace+"/"+b.Name && !restrictive[o.Field] {
					t.Errorf("seed %d: %s of %s comes from a baseline that is not accepted", seed, o.Field, id)
				}
			}
		}
	}
	if held < 500 {
		t.Errorf("only %d of the baselines restrict anything; the test needs more", held)
	}
}

// restrictive are the fields of which a baseline that is not accepted may decide.
var restrictive = map[string]bool{
	"spec.allowedModels": true, "spec.perCallModel": true,
	"spec.limits.image.maxBytes": true, "spec.limits.image.maxPixels": true, "spec.limits.image.mediaTypes": true, "spec.limits.image.onOversize": true,
	"spec.limits.request.maxDistinctImages": true, "spec.limits.request.maxTotalImageBytes": true, "spec.limits.request.maxProbedPaths": true,
	"spec.limits.request.maxImageTokens": true, "spec.limits.request.maxBodyBytes": true,
	"spec.runtime.proxy.enabled": true, "spec.runtime.proxy.setBaseURLs": true, "spec.runtime.mcp": true,
}

// Whoever adds a limit adds it here, too.
func TestEveryLimitOfABaselineThatIsNotAcceptedHolds(t *testing.T) {
	number := func() *int64 { return new(int64(3)) }
	b := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "vision-system", Name: "broken"}, Spec: v1alpha1.VisionPolicySpec{
		NamespaceSelector: &metav1.LabelSelector{},
		AllowedModels:     []string{"*"},
		PerCallModel:      new(v1alpha1.PerCallModelDenied),
		Limits: &v1alpha1.Limits{
			Image:   &v1alpha1.ImageLimits{MaxBytes: number(), MaxPixels: number(), MediaTypes: []string{"image/png"}, OnOversize: new(v1alpha1.OnOversizeRefuse)},
			Request: &v1alpha1.RequestLimits{MaxDistinctImages: number(), MaxTotalImageBytes: number(), MaxProbedPaths: number(), MaxImageTokens: number(), MaxBodyBytes: number()}},
		Runtime: &v1alpha1.Runtime{Workspaces: []string{"/proc"}, MCP: new(false), Proxy: &v1alpha1.Proxy{Enabled: new(false), SetBaseURLs: new(false)}},
	}}
	policy := v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "agents"}}
	out := Compile(Input{Namespace: "team", OperatorNamespace: "vision-system", Policies: []v1alpha1.VisionPolicy{policy, b}})
	from := map[string]string{}
	for _, o := range out.Origins["policy/agents"] {
		from[o.Field] = o.From
	}
	for field, origin := range from {
		decides := restrictive[field] || strings.HasPrefix(field, "spec.limits.")
		if got := origin == "vision-system/broken"; got != decides {
			t.Errorf("%s comes from %s", field, origin)
		}
	}
	if v := Compile(Input{Namespace: "vision-system", OperatorNamespace: "vision-system", Policies: []v1alpha1.VisionPolicy{b}}).Policies["broken"]; !v.Restrains || v.Accepted.OK {
		t.Errorf("the verdict does not tell that it restrains: %+v", v)
	}
}
