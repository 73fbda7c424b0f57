// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// history puts images into the past: the newest human message has none.
func history(images ...preflight.Image) preflight.Input {
	return request(human(images...), assistant(), human())
}

func TestBudgets(t *testing.T) {
	twice := append(pictures("p", 8), picture("p3", kib))
	for name, tc := range map[string]struct {
		in   preflight.Input
		left string
	}{
		"H60: 9 optional distinct images give 8 admitted and one note": {history(pictures("p", 9)...), "0.0"},
		"H61: the same bytes at two paths count once":                  {history(twice...), ""},
		"H63: the cap on bytes acts before the cap on images": {
			history(picture("a", 8*mib), picture("b", 8*mib), picture("c", 8*mib)), "0.0",
		},
		"20 MiB are reached by the third of five, newest first: the older two are left out": {
			history(picture("a", 1), picture("b", 1), picture("c", 4*mib), picture("d", 8*mib), picture("e", 8*mib)), "0.0 0.1",
		},
		"20 MiB are passed by the third of five, newest first: it is left out, and what is older": {
			history(picture("a", 1), picture("b", 1), picture("c", 4*mib+1), picture("d", 8*mib), picture("e", 8*mib)), "0.0 0.1 0.2",
		},
		"required images are reserved first, though they are older": {
			request(human(pictures("old", 7)...), assistant(), results(pictures("r", 3)...), assistant(), results(picture("new", kib))), "2.0 2.1 2.2",
		},
		"a content that is required anywhere counts as required, and its duplicate stays where it stands": {
			request(human(picture("x", kib), picture("y", kib)), assistant(), human(append(pictures("p", 7), picture("x", kib))...)), "0.1",
		},
		"a size that only a later occurrence tells counts from then on": {
			request(human(picture("x", 0)), assistant(), results(picture("x", 12*mib)), assistant(), human(picture("y", 12*mib))), "0.0 2.0",
		},
		"one image that is larger than the whole budget takes no other with it": {
			history(picture("a", 1), picture("huge", 20*mib+1), picture("b", 1)), "0.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := preflight.Review(tc.in)
			if !v.Allowed || left(v) != tc.left {
				t.Errorf("allowed %t, left out %q; want %q\n%s", v.Allowed, left(v), tc.left, outcomes(v))
			}
			for _, d := range v.Decisions {
				if d.Outcome == preflight.Degraded && (d.Note() == "" || d.Reason == "" || d.Message == "") {
					t.Errorf("left out without a word: %+v", d)
				}
			}
		})
	}
}

func TestRequiredImagesOverABudgetRefuseTheRequestWithNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		in     preflight.Input
		reason string
		says   []string
	}{
		"9 distinct images, all required": {
			request(human(pictures("p", 9)...)), preflight.ReasonImages,
			[]string{"9 required distinct images", "the policy", "limits.request.maxDistinctImages 8"},
		},
		"20 MiB and one byte together": {
			request(human(picture("a", 10*mib), picture("b", 10*mib+1))), preflight.ReasonTotalBytes,
			[]string{"20.0 MiB (20971521 bytes)", "limits.request.maxTotalImageBytes 20 MiB (20971520 bytes)", "required ones alone"},
		},
		"20 MiB and one byte, of which one size is told by a later occurrence": {
			request(human(picture("a", 0), picture("b", 10*mib+1), picture("a", 10*mib))), preflight.ReasonTotalBytes, []string{"20971521 bytes"},
		},
		"20 MiB and one byte, of a content whose occurrences are told with different sizes": {
			request(human(picture("a", 5), picture("b", 10*mib+1), picture("a", 10*mib))), preflight.ReasonTotalBytes, []string{"20971521 bytes"},
		},
		"one image of 20 971 521 bytes": {
			request(human(picture("a", 20_971_521))), preflight.ReasonBytes,
			[]string{"the image 0.0", "20.0 MiB (20971521 bytes)", "limits.image.maxBytes 20 MiB (20971520 bytes)"},
		},
		"exactly 50 000 000 pixels and one more": {
			request(human(sized("a", 50_000_001, 1))), preflight.ReasonPixels,
			[]string{"50000001 x 1 = 50000001 pixels", "limits.image.maxPixels 50000000"},
		},
		"a product of sides beyond 2^32": {
			request(human(sized("a", 65_537, 65_537))), preflight.ReasonPixels, []string{"65537 x 65537 = 4295098369 pixels"},
		},
		"a product of sides that is small in 32 bits": {
			request(human(sized("a", 1<<31, 1<<31))), preflight.ReasonPixels, []string{"= 4611686018427387904 pixels"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := preflight.Review(tc.in)
			if v.Allowed || v.Refusal == nil {
				t.Fatalf("allowed: %s", outcomes(v))
			}
			if v.Refusal.Kind != fault.BudgetExceeded || v.Refusal.Reason != tc.reason || v.Refusal.RecoveryHint == "" {
				t.Errorf("refused with %+v", v.Refusal)
			}
			contains(t, v.Refusal.Message, tc.says...)
			if count(v, preflight.Refused) != len(tc.in.Images) {
				t.Errorf("decisions: %s", outcomes(v))
			}
		})
	}
}

func TestExactlyAtALimitPasses(t *testing.T) {
	for name, in := range map[string]preflight.Input{
		"a required image of exactly 20 971 520 bytes":      request(human(picture("a", 20_971_520))),
		"exactly 50 000 000 pixels":                         request(human(sized("a", 10_000, 5_000))),
		"8 distinct images":                                 request(human(pictures("p", 8)...)),
		"20 MiB together":                                   request(human(picture("a", 10*mib), picture("b", 10*mib))),
		"9 images, one a duplicate under another path":      request(human(append(pictures("p", 8), picture("p0", kib))...)),
		"20 MiB together, with each of them standing twice": request(human(picture("a", 10*mib), picture("b", 10*mib), picture("a", 10*mib), picture("b", 10*mib))),
	} {
		t.Run(name, func(t *testing.T) {
			if v := preflight.Review(in); !v.Allowed || count(v, preflight.Admitted) != len(in.Images) {
				t.Errorf("allowed %t: %s", v.Allowed, outcomes(v))
			}
		})
	}
}

func TestFallbackThatTakesTextOnly(t *testing.T) {
	t.Run("H66: a required image is refused before any call", func(t *testing.T) {
		in := request(human(picture("a", kib)))
		in.Candidate = blind("text-only")
		v := preflight.Review(in)
		if v.Allowed || v.Refusal.Kind != fault.VisionAdapterUnavailable || v.Refusal.Reason != preflight.ReasonBlind {
			t.Fatalf("allowed %t: %+v", v.Allowed, v.Refusal)
		}
		contains(t, v.Refusal.Message, "own@local/text-only", "does not take images")
	})
	t.Run("optional images alone become notes, and the request proceeds", func(t *testing.T) {
		in := history(pictures("p", 3)...)
		in.Candidate = blind("text-only")
		v := preflight.Review(in)
		if !v.Allowed || left(v) != "0.0 0.1 0.2" || v.Tokens.Images != 0 {
			t.Fatalf("allowed %t, %+v: %s", v.Allowed, v.Tokens, outcomes(v))
		}
		if note := v.Decisions[0].Note(); note != "[image left out: this model cannot look at images]" {
			t.Errorf("the note is %q", note)
		}
	})
	t.Run("each candidate is judged anew, and the first that may is chosen", func(t *testing.T) {
		plan := preflight.ReviewAll(request(human(picture("a", kib))), []preflight.Candidate{blind("one"), seeing(), blind("two")})
		if plan.Chosen != 1 || plan.Refusal != nil || plan.Verdicts[0].Allowed || !plan.Verdicts[1].Allowed || plan.Verdicts[2].Allowed {
			t.Errorf("chosen %d: %+v", plan.Chosen, plan.Refusal)
		}
	})
	t.Run("where none sees, the refusal names them all", func(t *testing.T) {
		plan := preflight.ReviewAll(request(human(picture("a", kib))), []preflight.Candidate{blind("one"), blind("two")})
		if plan.Chosen != -1 || plan.Refusal.Kind != fault.VisionAdapterUnavailable || fmt.Sprint(plan.Refusal.Details["candidates"]) != "[own@local/one own@local/two]" {
			t.Errorf("chosen %d: %+v", plan.Chosen, plan.Refusal)
		}
	})
	t.Run("where one that sees refuses, that is what is said", func(t *testing.T) {
		plan := preflight.ReviewAll(request(human(pictures("p", 9)...)), []preflight.Candidate{blind("one"), seeing()})
		if plan.Chosen != -1 || plan.Refusal.Reason != preflight.ReasonImages {
			t.Errorf("chosen %d: %+v", plan.Chosen, plan.Refusal)
		}
	})
	t.Run("without candidates nothing is allowed", func(t *testing.T) {
		if plan := preflight.ReviewAll(request(human()), nil); plan.Chosen != -1 || plan.Refusal == nil {
			t.Errorf("%+v", plan)
		}
	})
}

func TestProbePaths(t *testing.T) {
	mentions := func(n int, turn int) []preflight.Path {
		list := make([]preflight.Path, n)
		for i := range list {
			list[i] = preflight.Path{Name: fmt.Sprintf("/w/%d/%d.png", turn, i), Turn: turn}
		}
		return list
	}
	past := []preflight.Turn{{Kind: preflight.Human}, {Kind: preflight.Assistant}, {Kind: preflight.Human}}
	for name, tc := range map[string]struct {
		paths   []preflight.Path
		closed  string
		refused bool
	}{
		"H64: of 17 paths the oldest is not probed":   {mentions(17, 0), "[0]", false},
		"16 paths are all probed":                     {mentions(16, 0), "[]", false},
		"a name that stands twice counts once":        {append(mentions(16, 0), mentions(1, 0)...), "[]", false},
		"required ones come first":                    {append(mentions(15, 0), mentions(2, 2)...), "[0]", false},
		"a name that is required anywhere is probed":  {append(mentions(16, 0), preflight.Path{Name: "/w/0/0.png", Turn: 2}, preflight.Path{Name: "/new", Turn: 2}), "[1]", false},
		"17 required paths are refused, none is open": {mentions(17, 2), "[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16]", true},
	} {
		t.Run(name, func(t *testing.T) {
			got := preflight.ProbePaths(past, tc.paths, 16)
			closed := []int{}
			for i, may := range got.May {
				if !may {
					closed = append(closed, i)
				}
			}
			if fmt.Sprint(closed) != tc.closed || (got.Refusal != nil) != tc.refused {
				t.Errorf("closed %v, refusal %v; want %s", closed, got.Refusal, tc.closed)
			}
			if len(closed) > 0 && !tc.refused && got.Why.Reason != preflight.ReasonPaths {
				t.Errorf("without a reason: %+v", got.Why)
			}
			if tc.refused {
				contains(t, got.Refusal.Message, "17 different required image files", "limits.request.maxProbedPaths 16")
			}
		})
	}
}

// The clamp itself is tested beside its formula; here is that a review says it,
// images included, and changes nothing.
func TestOutputClampIsAWarning(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, window, input int64
		says                 string
	}{
		"H68: an unknown window leaves the output limit alone":      {384_000, 0, 10_000, ""},
		"H69: a window that is nearly full leaves what is left":     {384_000, 1_048_576, 666_198, "leaves about 371893"},
		"H70: a window with room leaves the output limit alone":     {384_000, 1_048_576, 10_000, ""},
		"H71: a small window leaves little, its headroom kept free": {384_000, 100_000, 95_000, "leaves about 904"},
	} {
		t.Run(name, func(t *testing.T) {
			in := request(human())
			in.Candidate.Declared.ContextWindowTokens = tc.window
			in.MaxOutputTokens, in.TextBytes = tc.asked, tc.input*4
			v := preflight.Review(in)
			said := ""
			for _, w := range v.Warnings {
				said += w + "\n"
			}
			if !v.Allowed {
				t.Fatalf("refused: %v", v.Refusal)
			}
			if tc.says == "" && strings.Contains(said, "leaves about") {
				t.Errorf("warned without need: %s", said)
			}
			contains(t, said, tc.says)
		})
	}
	in := request(human(pictures("p", 4)...))
	in.Candidate.Declared.ContextWindowTokens, in.MaxOutputTokens, in.TextBytes = 100_000, 384_000, 4*80_000
	v := preflight.Review(in)
	want := tokens.ClampOutput(384_000, 100_000, 80_000+v.Tokens.Images)
	contains(t, fmt.Sprint(v.Warnings), fmt.Sprintf("leaves about %d", want))
	if v.Tokens.Images == 0 {
		t.Error("the images cost nothing")
	}
}
