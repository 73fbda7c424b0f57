// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchangetest

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
)

// Page is a page of a list of models, and what it must be asked for with.
type Page struct{ URI, Body string }

// Lists serves pages, one after the other, and compares what they are taken for.
func (p Protocol) Lists(t *testing.T, want []provider.Listed, pages ...Page) {
	t.Helper()
	asked := 0
	got, err := p.Client(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked > len(pages) || r.Method != http.MethodGet || r.RequestURI != pages[asked-1].URI {
			t.Errorf("call %d is %s %s", asked, r.Method, r.RequestURI)
			return
		}
		p.checkHeader(t, r)
		_, _ = io.WriteString(w, pages[asked-1].Body)
	}).List(context.Background())
	if err != nil || asked != len(pages) {
		t.Errorf("%d pages were asked for, want %d: %v", asked, len(pages), err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
}

// Pages serves lists that do not end. Page is the page with a number, which has
// one model in it and says that another follows.
func (p Protocol) Pages(t *testing.T, page func(n int) string) {
	t.Helper()
	for name, tc := range map[string]struct {
		body   func(n int) string
		models int
		asked  int
	}{
		"a list that never ends is cut off":             {page, 5, 5},
		"a server that knows no pages is asked twice":   {func(int) string { return page(1) }, 1, 2},
		"a server that loses its place is not asked on": {func(n int) string { return page(min(n, 2)) }, 2, 3},
		"a page that says nothing more is the last one": {func(n int) string { return map[int]string{1: page(1), 2: "{}"}[n] }, 1, 2},
		"a list without models is asked for once":       {func(int) string { return "{}" }, 0, 1},
		"null is taken for a list without models":       {func(int) string { return "null" }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			got, err := p.Client(t, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				_, _ = io.WriteString(w, tc.body(asked))
			}).List(context.Background())
			if err != nil || len(got) != tc.models || asked != tc.asked {
				t.Errorf("%d models, %d pages, %v", len(got), asked, err)
			}
		})
	}
	t.Run("a second page that fails fails the list", func(t *testing.T) {
		asked := 0
		got, err := p.Client(t, func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > 1 {
				Says(503, "")(w, r)
				return
			}
			_, _ = io.WriteString(w, page(1))
		}).List(context.Background())
		if f := Fault(t, err); f.Reason != "UpstreamStatus" || got != nil {
			t.Errorf("%d models, %v", len(got), err)
		}
	})
}

// UnreadableLists calls servers that have no list of models to give.
func (p Protocol) UnreadableLists(t *testing.T) {
	t.Helper()
	key := p.Key.Value
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
	}{
		"a refused key":           {Says(401, `{"error":{"message":"`+key+`"}}`), "Unauthorized", false},
		"a server without a list": {Says(404, "404 page not found "+key), "UpstreamStatus", false},
		"a rate limit":            {Says(429, ""), "RateLimited", true},
		"an empty reply":          {Says(200, "\n"), "Empty", true},
		"a page of HTML":          {Says(200, "<html>"+key), "InvalidResponse", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.Client(t, tc.handler).List(context.Background())
			if f := Fault(t, err); got != nil || f.Reason != tc.reason || f.Retryable != tc.retryable {
				t.Errorf("%v and %v, want %s retryable=%v", got, err, tc.reason, tc.retryable)
			}
		})
	}
}

// FuzzList fuzzes a page of a list.
func (p Protocol) FuzzList(f *testing.F, seeds ...string) {
	for _, seed := range append(seeds, "[", "null", "") {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := p.reading(string(body)).List(context.Background())
		if reason := fault.As(err); err != nil && reason.Reason != "InvalidResponse" && reason.Reason != "Empty" {
			t.Errorf("the error is %v", err)
		}
		for _, l := range got {
			if l.Name == "" || l.ContextWindowTokens < 0 || l.MaxOutputTokens < 0 {
				t.Errorf("listed is %+v", l)
			}
		}
	})
}
