// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hears holds what Scan says of calls, results, texts and signatures against the
// listener, and against what the doc comments promise of their order and turns.
func hears(t *testing.T, d Dialect, r *Request, body []byte, root map[string]any) {
	t.Helper()
	got, want := heardBy(r, body), listen(d, root)
	order := func(a, b heard) int {
		return strings.Compare(a.What+" "+a.At+" "+a.Value, b.What+" "+b.At+" "+b.Value)
	}
	slices.SortStableFunc(got, order)
	slices.SortStableFunc(want, order)
	if diff := cmp.Diff(want, got); diff != "" && len(got)+len(want) > 0 {
		t.Fatalf("%s (-listener +Scan)\n%s\n%s", d, diff, body)
	}
	within := func(what string, turn int, spans ...Span) {
		t.Helper()
		for _, s := range spans {
			if s.Len() > 0 && (s.Start < r.Turns[turn].Span.Start || s.End > r.Turns[turn].Span.End) {
				t.Fatalf("%s: a %s at %v is not in its turn %v\n%s", d, what, s, r.Turns[turn].Span, body)
			}
		}
	}
	last := Span{}
	next := func(what string, s Span) {
		t.Helper()
		if s.Start < last.End || s.Len() <= 0 {
			t.Fatalf("%s: a %s at %v after %v\n%s", d, what, s, last, body)
		}
		last = s
	}
	for _, c := range r.Calls {
		next("call", c.Span)
		within("call", c.Turn, c.Span, c.Arguments)
	}
	last = Span{}
	for _, a := range r.Results {
		next("result", a.Object)
		within("result", a.Turn, a.Object, a.Content, a.Null, a.Part, a.Parts)
		if a.Call >= 0 && (r.Calls[a.Call].Turn >= a.Turn || body[a.Object.End-1] != '}') {
			t.Fatalf("%s: the result at %v answers what comes after it\n%s", d, a.Object, body)
		}
	}
	last = Span{}
	for _, x := range r.Texts {
		next("text", x.Part)
		within("text", x.Turn, x.Part, x.Value)
	}
	last = Span{}
	signed := map[int]bool{}
	for _, s := range r.Signatures {
		next("signature", s.Span)
		within("signature", s.Turn, s.Span)
		signed[s.Turn] = true
	}
	for n, turn := range r.Turns {
		if turn.Signed != signed[n] {
			t.Fatalf("%s: turn %d is signed: %v\n%s", d, n, turn.Signed, body)
		}
	}
	for n, i := range r.Images {
		for k, a := range r.Results {
			if is := a.Object.Start < i.Part.Start && i.Part.End < a.Object.End; is != (i.Result == k) || is && (!i.InToolResult || i.CallID != a.CallID || i.InError != a.IsError) {
				t.Fatalf("%s: image %d is in result %d, by its bytes in %d: %v\n%s", d, n, i.Result, k, is, body)
			}
		}
	}
}
