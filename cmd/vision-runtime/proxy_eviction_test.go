// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/loop"
	strict "github.com/visionoperator/vision-operator/test/upstream"
)

// mostShown is how many images a request may hold in these tests, and longLoop how
// many are viewed.
const mostShown, longLoop = 5, 14

// budgets are the limits by which images go.
var budgets = map[string]func(*router.Document){
	"the policy's": func(doc *router.Document) { doc.Profiles[0].Limits.Request.MaxDistinctImages = mostShown },
	"the model's": func(doc *router.Document) {
		eachModel(doc, func(m *router.Model) { m.Limits = &router.ModelLimits{MaxImages: mostShown} })
	},
}

// withHeaders has an agent tell of each reply's header.
func withHeaders(c loop.Client, seen func(http.Header)) loop.Client {
	told := func(r *http.Response) { seen(r.Header) }
	switch c := c.(type) {
	case *loop.Chat:
		c.Seen = told
	case *loop.Responses:
		c.Seen = told
	case *loop.Anthropic:
		c.Seen = told
	case *loop.Gemini:
		c.Seen = told
	}
	return c
}

// TestLongConversationsLoseTheirOldestImagesForGood plays conversations with more images
// than a limit allows: none is refused, the oldest images go, and none comes back.
// Where the vendor signs reasoning they go four at a time, so that what was signed is
// changed seldom.
func TestLongConversationsLoseTheirOldestImagesForGood(t *testing.T) {
	for name, budget := range budgets {
		m := withModels(t, strict.Options{}, budget)
		eachWay(t, []string{"chat", "responses", "anthropic", "gemini 3", "gemini 2"}, func(t *testing.T, agent string, stream bool) {
			t.Run(name, func(t *testing.T) {
				m.strict.Reset()
				var headers []string
				client := withHeaders(m.agent(agent, stream), func(h http.Header) { headers = append(headers, h.Get("X-Vision-Injection")) })
				report := m.play(t, client, loop.Long(longLoop))
				step := 4
				if agent == "chat" {
					step = 1
				}
				heard := accepted(m.strict.Of(report.Conversation))
				if len(heard) != longLoop+1 || len(headers) != longLoop+1 {
					t.Fatalf("%d requests were taken of %d, with %d headers", len(heard), longLoop+1, len(headers))
				}
				for n, r := range heard {
					gone := evicted(n, step)
					wantViews(t, r, report.Views[gone:n])
					if want := fmt.Sprintf("degraded=%d", gone); (gone > 0) != strings.Contains(headers[n], "degraded=") || gone > 0 && !strings.Contains(headers[n], want) {
						t.Errorf("the header of request %d says %q, want %s", n, headers[n], want)
					}
				}
				retriedOnce(t, m, report.Conversation, agent, headers)
			})
		})
		metrics := m.metrics(t)
		for _, line := range []string{
			"vision_proxy_signature_retries_total 8", // of four dialects, streamed and not
			`vision_proxy_images_total{outcome="degraded"} ` + strconv.Itoa(2*degradedIn(1)+8*degradedIn(4)),
		} {
			if !strings.Contains(metrics, line+"\n") {
				t.Errorf("no metric %s in\n%s", line, metrics)
			}
		}
	}
}

// degradedIn is how many images are left out in all requests of a long conversation.
func degradedIn(step int) (n int) {
	for views := range longLoop + 1 {
		n += evicted(views, step)
	}
	return n
}

// TestConversationsWithoutSignaturesLoseImagesOneByOne plays vendors' dialects without
// reasoning: nothing is changed that need not be.
func TestConversationsWithoutSignaturesLoseImagesOneByOne(t *testing.T) {
	unsigned := func(opening string) []strict.Answer {
		answers := loop.Script(opening)
		for i := range answers {
			answers[i].Unsigned = true
		}
		return answers
	}
	m := withModels(t, strict.Options{Script: unsigned}, budgets["the model's"])
	eachWay(t, []string{"responses", "anthropic", "gemini 2"}, func(t *testing.T, agent string, stream bool) {
		m.strict.Reset()
		report := m.play(t, m.agent(agent, stream), loop.Long(longLoop))
		for n, r := range m.strict.Of(report.Conversation) {
			wantViews(t, r, report.Views[evicted(n, 1):n])
		}
		complain(t, "refusals", m.strict.Refusals())
	})
}

// TestAKeptHistoryIsNotCounted plays conversations that the vendor keeps: nothing goes,
// since nobody knows what is there, and each reply says so.
func TestAKeptHistoryIsNotCounted(t *testing.T) {
	m := withModels(t, strict.Options{}, budgets["the model's"])
	eachWay(t, []string{"responses, previous", "responses, conversation"}, func(t *testing.T, agent string, stream bool) {
		m.strict.Reset()
		n := 0
		client := withHeaders(m.agent(agent, stream), func(h http.Header) {
			kept := n > 0 || agent == "responses, conversation" // the first of those by ids has no other before it
			if got := h.Get("X-Vision-Injection"); strings.Contains(got, "history=not_visible") != kept || strings.Contains(got, "degraded") {
				t.Errorf("the header of request %d says %q", n, got)
			}
			n++
		})
		report := m.play(t, client, loop.Long(longLoop))
		complain(t, "views", report.Check(m.strict, true))
		m.flawless(t)
	})
}

// TestTheWayWithoutSignaturesIsFoundAgainAfterARestart ends the runtime in the middle of a
// conversation whose reasoning was refused: it is refused once more, and no request fails.
func TestTheWayWithoutSignaturesIsFoundAgainAfterARestart(t *testing.T) {
	m := withModels(t, strict.Options{}, budgets["the model's"])
	eachWay(t, []string{"responses", "anthropic", "gemini 3"}, func(t *testing.T, agent string, stream bool) {
		m.strict.Reset()
		report := m.play(t, &before{Client: m.agent(agent, stream), send: map[int]func(){9: m.restart}}, loop.Long(longLoop))
		if got := len(m.strict.Refusals()); got != 2 {
			t.Errorf("refused %d times: %q", got, m.strict.Refusals())
		}
		for n, r := range accepted(m.strict.Of(report.Conversation)) {
			wantViews(t, r, report.Views[evicted(n, 4):n])
		}
	})
}

// evicted is how many of so many images have gone.
func evicted(views, step int) int {
	over := max(0, views-mostShown)
	return (over + step - 1) / step * step
}

// accepted are the requests that were not refused.
func accepted(requests []*strict.Request) []*strict.Request {
	return slices.DeleteFunc(requests, func(r *strict.Request) bool { return r.Refusal != "" })
}

// wantViews compares the images of a request with what was viewed.
func wantViews(t *testing.T, r *strict.Request, want []loop.View) {
	t.Helper()
	var shown, viewed []string
	for _, image := range r.Images {
		shown = append(shown, image.SHA256)
	}
	for _, v := range want {
		viewed = append(viewed, v.SHA256)
	}
	if !slices.Equal(shown, viewed) {
		t.Errorf("turn %d holds the images %.8s, want %.8s", r.Turn, shown, viewed)
	}
}

// retriedOnce looks at the refusals of signed reasoning: the first edit before it is
// refused once and tried again once; the way that was taken then is kept for the
// conversation, and told with each reply. Nobody refuses where nothing is signed.
func retriedOnce(t *testing.T, m *models, conversation, agent string, headers []string) {
	t.Helper()
	var refused []int
	for _, r := range m.strict.Of(conversation) {
		if r.Refusal != "" {
			refused = append(refused, r.Turn)
		}
	}
	signed := agent != "chat"
	for n, header := range headers {
		if got, want := strings.Contains(header, "signatures=dropped"), signed && n > mostShown; got != want {
			t.Errorf("the header of request %d says %q; signatures are dropped: want %v", n, header, want)
		}
	}
	if signed != slices.Equal(refused, []int{mostShown + 1}) || !signed && len(refused) > 0 {
		t.Errorf("refused at turns %v: %q", refused, m.strict.Refusals())
	}
}
