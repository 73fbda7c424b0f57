// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// trail follows a plan to its end: each line is what was chosen, or "-", how it
// was told, and the candidates then.
func trail(plan *selection.Plan, failures int) [][]string {
	var out [][]string
	for i := 0; ; i++ {
		head := "-"
		if plan.Choice != nil {
			head = plan.Choice.Route.String()
		}
		s := plan.Selection
		out = append(out, append([]string{fmt.Sprintf("%s %s %s %s", head, s.SelectedMode, s.SelectionReason, s.VisionModelRef)}, lines(s)...))
		if i == failures {
			return out
		}
		plan = plan.FallBack()
	}
}

const (
	failed  = observation.ReasonObservationFailed
	chosenA = "a@default/see-1 vision_adapter explicit_vision_model_supports_image_input a@default/see-1"
	aSees   = "a@default/see-1 model_advertises_image_input"
	aFailed = "a@default/see-1 observation_failed"
	blindB  = "b@default/text-1 model_lacks_image_input"
)

// over says that the image is over the limits of some models.
func over(routes ...string) func(*selection.Input) {
	return func(in *selection.Input) {
		in.Check = func(choice *selection.Choice) (observation.Reason, *fault.Fault) {
			if slices.Contains(routes, choice.Route.String()) {
				return observation.ReasonOverLimit, fault.New(fault.BudgetExceeded, "TooManyBytes", "over the limits of %s", choice.Route).Hint("Use a smaller image.")
			}
			return "", nil
		}
	}
}

func TestAnImageOverTheLimitsOfOneModelGoesToTheNextOne(t *testing.T) {
	in := policy(chat("a", "see-1"), chat("c", "see-2"))
	over("a@default/see-1")(&in)
	plan, err := selection.Select(in)
	if err != nil || plan.Choice.Route.String() != "c@default/see-2" {
		t.Fatalf("chose %v, %v", plan.Choice, err)
	}
	if diff := cmp.Diff([]string{"a@default/see-1 image_over_model_limits", "c@default/see-2 " + sees}, lines(plan.Selection)); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
}

func TestAnImageOverEveryLimitIsRefusedWithTheFirstOne(t *testing.T) {
	for _, model := range []string{"", "a/see-1"} {
		in := policy(chat("a", "see-1"), chat("c", "see-2"))
		over("a@default/see-1", "c@default/see-2")(&in)
		in.Model = model
		plan, err := selection.Select(in)
		if f := fault.As(err); plan.Choice != nil || f.Kind != fault.BudgetExceeded || f.Message != "over the limits of a@default/see-1" {
			t.Errorf("with the model %q: %v, %v", model, plan.Choice, err)
		}
	}
}

func TestFallingBack(t *testing.T) {
	fallbackTo := func(route string) string {
		return route + " vision_adapter fallback_vision_model_supports_image_input " + route
	}
	for name, tc := range map[string]struct {
		edit func(*selection.Input)
		to   []string
		fail int
		want [][]string
	}{
		"H32b: of a blind and an able fallback, the able one is used and both are reported": {
			to: []string{"b@default/text-1", "c@default/see-2"}, fail: 1,
			want: [][]string{{chosenA, aSees}, {fallbackTo("c@default/see-2"), aFailed, blindB, "c@default/see-2 " + sees}},
		},
		"H32b: of an able and a blind fallback, the able one is used and the blind one is not examined": {
			to: []string{"c@default/see-2", "b@default/text-1"}, fail: 1,
			want: [][]string{{chosenA, aSees}, {fallbackTo("c@default/see-2"), aFailed, "c@default/see-2 " + sees}},
		},
		"H66: a text-only fallback is never asked about an image": {
			to: []string{"b@default/text-1"}, fail: 1,
			want: [][]string{{chosenA, aSees}, {"-" + chosenA[len("a@default/see-1"):], aFailed, blindB}},
		},
		"H32: a fallback that the caller is on itself is told as its own": {
			edit: primary("c/see-2"), to: []string{"c@default/see-2"}, fail: 1,
			want: [][]string{{chosenA, aSees}, {
				"c@default/see-2 native_image_with_observation fallback_vision_model_supports_image_input c@default/see-2",
				aFailed, "c@default/see-2 " + sees,
			}},
		},
		"each that failed is told, up to the last": {
			to: []string{"c@default/see-2", "c@default/see-3"}, fail: 3,
			want: [][]string{
				{chosenA, aSees},
				{fallbackTo("c@default/see-2"), aFailed, "c@default/see-2 " + sees},
				{fallbackTo("c@default/see-3"), aFailed, "c@default/see-2 observation_failed", "c@default/see-3 " + sees},
				{"-" + fallbackTo("c@default/see-3")[len("c@default/see-3"):], aFailed, "c@default/see-2 observation_failed", "c@default/see-3 observation_failed"},
			},
		},
		"one whose limits the image is over is passed by": {
			edit: over("c@default/see-2"), to: []string{"c@default/see-2", "c@default/see-3"}, fail: 1,
			want: [][]string{
				{chosenA, aSees},
				{fallbackTo("c@default/see-3"), aFailed, "c@default/see-2 image_over_model_limits", "c@default/see-3 " + sees},
			},
		},
		"when the last one is passed by, what failed last is told": {
			edit: over("c@default/see-2"), to: []string{"c@default/see-2"}, fail: 2,
			want: [][]string{
				{chosenA, aSees},
				{"-" + chosenA[len("a@default/see-1"):], aFailed, "c@default/see-2 image_over_model_limits"},
				{"-" + chosenA[len("a@default/see-1"):], aFailed, "c@default/see-2 image_over_model_limits"},
			},
		},
		"the default itself, one listed twice and the short form of either are dropped": {
			to: []string{"a/see-1", "c/see-2", "a@default/see-1", "c@default/see-2", "b/text-1"}, fail: 2,
			want: [][]string{
				{chosenA, aSees},
				{fallbackTo("c@default/see-2"), aFailed, "c@default/see-2 " + sees},
				{"-" + fallbackTo("c@default/see-2")[len("c@default/see-2"):], aFailed, "c@default/see-2 observation_failed", blindB},
			},
		},
		"one that is not there, not allowed or without its key is passed by with its reason": {
			edit: func(in *selection.Input) {
				in.Unmounted = map[string]bool{"team/d": true}
				in.Profile.Allow = []router.AllowList{{Globs: []string{"a@*", "b@*", "c@*/see-3", "d@*"}}}
			},
			to: []string{"b/see-9", "nobody/x", "c/see-2", "d/see-4", "c/see-3"}, fail: 1,
			want: [][]string{{chosenA, aSees}, {
				fallbackTo("c@default/see-3"), aFailed, "b@default/see-9 route_not_in_router", "nobody/x route_not_in_router",
				"c@default/see-2 model_not_allowed_by_policy", "d@default/see-4 credential_not_mounted", "c@default/see-3 " + sees,
			}},
		},
		"one that was discovered serves": {
			edit: finds(router.Model{Name: "found", ImageInput: true}), to: []string{"d/found"}, fail: 1,
			want: [][]string{{chosenA, aSees}, {fallbackTo("d@default/found"), aFailed, "d@default/found " + sees}},
		},
		"H28: fallbacks of an automatic choice count too, and one that was examined is not examined again": {
			edit: func(in *selection.Input) { in.Profile.DefaultModel = router.Auto },
			to:   []string{"b/text-1", "d/see-4"}, fail: 1,
			want: [][]string{
				{"c@default/see-2 vision_adapter auto_discovered_vision_model_supports_image_input c@default/see-2", blindB, "c@default/see-2 " + sees},
				{fallbackTo("d@default/see-4"), blindB, "c@default/see-2 observation_failed", "d@default/see-4 " + sees},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := policy(chat("b", "text-1"), chat("c", "see-2", "see-3"), chat("a", "see-1"), listing(chat("d", "see-4")))
			in.Profile.DefaultModel, in.Profile.FallbackModels = "a@default/see-1", tc.to
			if tc.edit != nil {
				tc.edit(&in)
			}
			plan, err := selection.Select(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, trail(plan, tc.fail)); diff != "" {
				t.Errorf("trail (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want[0], trail(plan, 0)[0]); diff != "" {
				t.Errorf("falling back changed the plan before (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACallThatNamesAModelHasNoFallbacks(t *testing.T) {
	for _, model := range []string{"a@default/see-1", "auto", "AUTO"} {
		in := with(policy(chat("a", "see-1"), chat("c", "see-2")), calls(model))
		in.Profile.FallbackModels = []string{"c@default/see-2"}
		plan, err := selection.Select(in)
		if err != nil || len(plan.Fallbacks) != 0 || plan.FallBack().Choice != nil {
			t.Errorf("with the model %s: %v, %v", model, plan.Fallbacks, err)
		}
	}
}

func TestADefaultThatCannotServeHasNoFallbacks(t *testing.T) {
	in := policy(chat("b", "text-1"), chat("c", "see-2"))
	in.Profile.DefaultModel, in.Profile.FallbackModels = "b@default/text-1", []string{"c@default/see-2"}
	plan, err := selection.Select(in)
	if err == nil || len(plan.Fallbacks) != 0 || plan.FallBack() != plan {
		t.Errorf("plan %+v, %v", plan, err)
	}
}

func TestCandidatesStayBoundedWhenFallingBack(t *testing.T) {
	for _, fallbacks := range []int{2, 8, 100} {
		blind, spare := chat("blind"), chat("spare")
		for i := range 100 {
			blind.Models = append(blind.Models, router.Model{Name: fmt.Sprintf("text-%d", i)})
		}
		for i := range fallbacks { // the last and the one in the middle see
			spare.Models = append(spare.Models, router.Model{Name: fmt.Sprintf("m-%d", i), ImageInput: i == fallbacks-1 || i == fallbacks/2-1})
		}
		in := policy(blind, chat("first", "see-1"), spare)
		for _, m := range spare.Models {
			in.Profile.FallbackModels = append(in.Profile.FallbackModels, "spare@default/"+m.Name)
		}
		plan, err := selection.Select(in)
		if err != nil {
			t.Fatal(err)
		}
		plan = plan.FallBack().FallBack()
		list := plan.Selection.Candidates
		if n := len(list); n != selection.MaxCandidates || plan.Choice == nil || list[n-1].ModelRef != plan.Choice.Route.String() {
			t.Fatalf("%d candidates, the last %s", n, list[n-1].ModelRef)
		}
		tried := min(fallbacks+1, len(list)) // the first choice and all fallbacks, as far as there is room
		for i := range len(list) - tried {
			if want := fmt.Sprintf("blind@default/text-%d", i); list[i].ModelRef != want {
				t.Fatalf("candidate %d is %s; want the first ones, here %s", i, list[i].ModelRef, want)
			}
		}
		if at := list[len(list)-tried]; fallbacks < len(list) && (at.ModelRef != "first@default/see-1" || at.Reason != failed) {
			t.Errorf("before %d fallbacks is %+v; want the one that failed", fallbacks, at)
		}
		if last := plan.FallBack(); last.Choice != nil || len(last.Selection.Candidates) != selection.MaxCandidates {
			t.Errorf("%d candidates at the end", len(last.Selection.Candidates))
		}
	}
}

func TestFallbacksThatNoProviderDeclaresAreJudgedAnewOnceTheirEndpointsAreListed(t *testing.T) {
	found := router.Model{Name: "found", ImageInput: true}
	in := policy(chat("a", "see-1"), listing(chat("d", "see-4")), chat("plain", "see-5"))
	in.Profile.DefaultModel = "a@default/see-1"
	in.Profile.FallbackModels = []string{"plain/found", "d/found", "d/see-4"}
	plan, err := selection.Select(in)
	if err != nil || len(plan.Unlisted) != 1 || plan.Unlisted[0].Provider.Name != "team/d" || plan.Unlisted[0].Endpoint.Name != "default" {
		t.Fatalf("to be listed: %+v, %v", plan.Unlisted, err)
	}
	in.Discovered = lists(found)
	again := plan.Relist(in)
	if again.Choice != plan.Choice || again.Selection != plan.Selection || len(again.Unlisted) != 0 {
		t.Errorf("the plan is %+v", again)
	}
	next := again.FallBack()
	want := []string{aFailed, "plain@default/found route_not_in_router", "d@default/found " + sees}
	if diff := cmp.Diff(want, lines(next.Selection)); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(want[:2:2], "d@default/found observation_failed", "d@default/see-4 "+sees), lines(next.FallBack().Selection)); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}

	for name, edit := range map[string]func(*selection.Input){
		"a call that names a model has none":     calls("a/see-1"),
		"one whose key is not here is not asked": func(in *selection.Input) { in.Unmounted = map[string]bool{"team/d": true} },
		"one that the policy does not allow":     func(in *selection.Input) { in.Profile.Allow = []router.AllowList{{Globs: []string{"*/see-*"}}} },
		"one that is listed already":             finds(found),
	} {
		in := policy(chat("a", "see-1"), listing(chat("d", "see-4")))
		in.Profile.DefaultModel, in.Profile.FallbackModels = "a@default/see-1", []string{"d/found"}
		edit(&in)
		if plan, err := selection.Select(in); err != nil || len(plan.Unlisted) != 0 {
			t.Errorf("%s: to be listed: %+v, %v", name, plan.Unlisted, err)
		}
	}
}
