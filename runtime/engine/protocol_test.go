// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/cache"
	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// vendor answers one protocol and keeps what it was asked.
type vendor struct {
	transport, base string
	keyHeader, key  string
	path            string
	reply           func(text string) string
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

var vendors = map[string]vendor{
	"chat completions": {
		router.TransportOpenAIChatCompletions, "/v1", "Authorization", "Bearer " + key, "/v1/chat/completions",
		func(text string) string {
			return `{"choices":[{"finish_reason":"stop","message":{"content":` + quoted(text) + `}}]}`
		},
	},
	"responses": {
		router.TransportOpenAIResponses, "/v1", "Authorization", "Bearer " + key, "/v1/responses",
		func(text string) string {
			return `{"status":"completed","output":[{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quoted(text) + `}]}]}`
		},
	},
	"messages": {
		router.TransportAnthropicMessages, "", "X-Api-Key", key, "/v1/messages",
		func(text string) string {
			return `{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":` + quoted(text) + `}]}`
		},
	},
	"generate content": {
		router.TransportGeminiGenerateContent, "/v1beta", "X-Goog-Api-Key", key, "/v1beta/models/see:generateContent",
		func(text string) string {
			return `{"candidates":[{"finishReason":"STOP","content":{"parts":[{"text":` + quoted(text) + `}]}}]}`
		},
	},
}

func TestEveryProtocolIsSpokenWithTheKeyInItsPlace(t *testing.T) {
	for name, v := range vendors {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var path string
			var head http.Header
			var body []byte
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				path, head = req.URL.Path, req.Header
				body, _ = io.ReadAll(req.Body)
				_, _ = io.WriteString(w, v.reply(seen))
			}))
			t.Cleanup(s.Close)
			r.use(func(d *router.Document) {
				d.Providers[0].Transport, d.Providers[0].Endpoints[0].URL = v.transport, s.URL+v.base
			})
			got := r.view(engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "what"})
			if path != v.path || head.Get(v.keyHeader) != v.key || got.Observation.Summary != "A grey square." {
				t.Errorf("asked %s with %q, saw %q", path, head.Get(v.keyHeader), got.Observation.Summary)
			}
			if keys := len(head["Authorization"]) + len(head["X-Api-Key"]) + len(head["X-Goog-Api-Key"]) + len(head["Api-Key"]); keys != 1 {
				t.Errorf("%d headers hold a key", keys)
			}
			for _, want := range []string{"iVBORw0KGgo", "visual_observation"} {
				if !strings.Contains(string(body), want) {
					t.Errorf("the request lacks %s", want)
				}
			}
			if n := strings.Count(string(body), "You are the eyes of a program"); n != 1 {
				t.Errorf("H49: the instructions stand in the request %d times", n)
			}
		})
	}
}

func TestAnEndpointsVersionAndHeadersGoWithEveryCall(t *testing.T) {
	r := newRig(t)
	var query, team string
	r.upstream.answerWith(func(w http.ResponseWriter, req *http.Request) {
		query, team = req.URL.RawQuery, req.Header.Get("X-Team")
		_, _ = io.WriteString(w, vendors["chat completions"].reply(seen))
	})
	r.use(func(d *router.Document) {
		d.Providers[0].Endpoints[0].APIVersion = "2024-10-21"
		d.Providers[0].Endpoints[0].Headers = []router.Header{{Name: "X-Team", Value: "search"}}
	})
	r.view(engine.Request{Path: r.file("a.png", square(t, 8, 1)), Prompt: "what"})
	if query != "api-version=2024-10-21" || team != "search" {
		t.Errorf("asked with the query %q for the team %q", query, team)
	}
}

func TestAReplyThatIsNoObservationSaysWhatIsWrongWithIt(t *testing.T) {
	r := newRig(t)
	r.use(nil)
	path := r.file("a.png", square(t, 8, 1))
	for reply, why := range map[string]observation.ParseReason{
		"I see a square.": observation.NoJSON,
		strings.Replace(seen, "visual_observation.v1", "visual_observation.v2", 1): observation.WrongSchema,
		seen[:len(seen)/2]: observation.IncompleteJSON,
	} {
		r.upstream.answer = reply
		f := r.refused(engine.Request{Path: path, Prompt: "what"}, fault.VisionObservationFailed, "InvalidResponse")
		if f.fault.Details["validation_error"] != string(why) || f.fault.Retryable {
			t.Errorf("%q: details are %v; want %s", reply, f.fault.Details, why)
		}
		for key, want := range map[string]string{
			"selected_mode": "vision_adapter", "selection_reason": "auto_discovered_vision_model_supports_image_input",
			"vision_provider": "models", "vision_model": "see", "vision_model_ref": "models@default/see",
		} {
			if got := fmt.Sprint(f.fault.Details[key]); got != want {
				t.Errorf("the detail %s is %s; want %s", key, got, want)
			}
		}
	}
	r.wantCalls(3) // each was asked for once: it would not be better
}

func TestModelsThatAnEndpointListsServeBehindThoseDeclared(t *testing.T) {
	r := newRig(t)
	var lists, looks int
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if req.Method == http.MethodGet {
			lists++
			_, _ = io.WriteString(w, `{"data":[{"id":"org/found","architecture":{"input_modalities":["text","image"]}},{"id":"text","architecture":{"input_modalities":["text"]}}]}`)
			return
		}
		looks++
		_, _ = io.WriteString(w, vendors["chat completions"].reply(seen))
	}))
	t.Cleanup(s.Close)
	listing := func(models ...router.Model) func(*router.Document) {
		return func(d *router.Document) {
			d.Providers[0].Endpoints[0].URL = s.URL + "/v1"
			d.Providers[0].Models, d.Providers[0].Discovery = models, &router.Discovery{Interval: "10m0s"}
		}
	}
	path := r.file("a.png", square(t, 8, 1))
	r.use(listing(router.Model{Name: "see", ImageInput: true}))
	r.view(engine.Request{Path: path, Prompt: "what"})
	r.view(engine.Request{Path: path, Prompt: "what", Model: "models/see"})
	if lists != 0 {
		t.Errorf("H40: the models were listed %d times for declared ones", lists)
	}
	got := r.view(engine.Request{Path: path, Prompt: "what", Model: "models/org/found"})
	if got.Observation.GeneratedBy.Model != "org/found" || lists != 1 || looks != 2 {
		t.Errorf("generated by %+v after %d lists and %d looks", got.Observation.GeneratedBy, lists, looks)
	}
	r.use(listing(router.Model{Name: "text"}))
	if got := r.view(engine.Request{Path: path, Prompt: "what else"}); got.VisionSelection.VisionModel != "org/found" || lists != 1 {
		t.Errorf("chose %+v after %d lists", got.VisionSelection, lists)
	}
	r.refused(engine.Request{Path: path, Prompt: "what", Model: "models/none"}, fault.VisionAdapterUnavailable, "RouteNotInRouter")
	r.use(func(d *router.Document) {
		listing(router.Model{Name: "text"})(d)
		d.Profiles[0].Allow = []router.AllowList{{From: "team/p", Globs: []string{"models@*/text"}}}
	})
	r.refused(engine.Request{Path: path, Prompt: "what", Model: "models/org/found"}, fault.PolicyDenied, "ModelNotAllowed")
}

func TestAProviderThatMovesIsListedAnew(t *testing.T) {
	r := newRig(t)
	listing := func(model string) func(*router.Document) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodGet {
				_, _ = io.WriteString(w, `{"data":[{"id":"`+model+`","architecture":{"input_modalities":["image"]}}]}`)
				return
			}
			_, _ = io.WriteString(w, vendors["chat completions"].reply(seen))
		}))
		t.Cleanup(s.Close)
		return func(d *router.Document) {
			d.Providers[0].Endpoints[0].URL, d.Providers[0].Discovery = s.URL+"/v1", &router.Discovery{Interval: "10m0s"}
		}
	}
	path := r.file("a.png", square(t, 8, 1))
	r.use(listing("here"))
	r.view(engine.Request{Path: path, Prompt: "what", Model: "models/here"})
	r.use(listing("there"))
	r.refused(engine.Request{Path: path, Prompt: "what", Model: "models/here"}, fault.VisionAdapterUnavailable, "RouteNotInRouter")
	r.view(engine.Request{Path: path, Prompt: "what", Model: "models/there"})
}

func TestAFallbackThatNoProviderDeclaresIsLookedForWhenItIsNeeded(t *testing.T) {
	for name, tc := range map[string]struct {
		fallback string
		reason   observation.Reason // of the fallback as a candidate
	}{
		"one that is listed as taking images": {"spare@default/found", observation.ReasonAdvertises},
		"one that is listed as taking none":   {"spare@default/blind", observation.ReasonLacksImageInput},
		"one that is not listed":              {"spare@default/none", observation.ReasonUnknownRoute},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var lists atomic.Int64
			spare := newUpstream(t, seen)
			spare.answerWith(func(w http.ResponseWriter, req *http.Request) {
				if req.Method == http.MethodGet {
					lists.Add(1)
					_, _ = io.WriteString(w, `{"data":[{"id":"found","architecture":{"input_modalities":["image"]}},{"id":"blind","architecture":{"input_modalities":["text"]}}]}`)
					return
				}
				_, _ = io.WriteString(w, vendors["chat completions"].reply(seen))
			})
			r.use(withSpare(spare, func(d *router.Document) {
				d.Profiles[0].FallbackModels = []string{tc.fallback}
				d.Providers[1].Discovery = &router.Discovery{Interval: "10m0s"}
			}))
			path := r.file("a.png", square(t, 8, 1))
			r.view(engine.Request{Path: path, Prompt: "what"})
			if lists.Load() != 0 {
				t.Errorf("a default that serves made the fallback's models be listed")
			}
			r.upstream.answerWith(status(http.StatusServiceUnavailable))
			got, err := r.engine.View(background, engine.Request{Path: path, Prompt: "what else"})
			want := []string{"models@default/see observation_failed", tc.fallback + " " + string(tc.reason)}
			if !slices.Equal(candidates(got.VisionSelection), want) || lists.Load() != 1 {
				t.Errorf("candidates are %q after %d lists; want %q", candidates(got.VisionSelection), lists.Load(), want)
			}
			if served := tc.reason == observation.ReasonAdvertises; served != (err == nil) || served && got.Observation.GeneratedBy.Model != "found" {
				t.Errorf("the call gave %+v, %v", got.Observation, err)
			}
		})
	}
}

func TestObservationsOutliveTheProcessWhereThePolicySaysSo(t *testing.T) {
	persist := func(d *router.Document) { d.Profiles[0].Cache.Persist = true }
	files := func(r *rig) int {
		list, err := os.ReadDir(filepath.Join(r.cache, "observations"))
		must(t, err)
		return len(list)
	}
	r := newRig(t)
	r.use(persist)
	path := r.file("a.png", square(t, 8, 1))
	r.view(engine.Request{Path: path, Prompt: "what"})
	if files(r) != 1 {
		t.Fatalf("%d files are kept", files(r))
	}
	next := r.again()
	next.use(persist)
	if got := next.view(engine.Request{Path: path, Prompt: "what"}); !got.Cached || got.VisionSelection.SelectionReason != observation.ReasonAuto {
		t.Errorf("the next process answered %+v", got)
	}
	r.wantCalls(1)
	next.use(nil)
	if files(next) != 0 {
		t.Errorf("%d files are kept though the policy does not ask for it any more", files(next))
	}
	if got := next.view(engine.Request{Path: path, Prompt: "what"}); !got.Cached {
		t.Error("what is in memory was forgotten with the files")
	}
}

func TestH19_TheKeyOfAnAnswerHoldsSchemaAndWayOfAskingAndTheWholeDigest(t *testing.T) {
	choice := &selection.Choice{
		Route:    router.Route{Provider: "alias", Endpoint: "main", Model: "see"},
		Provider: &router.Provider{Name: "team/models"}, Endpoint: &router.Endpoint{Name: "main"}, Model: &router.Model{Name: "see"},
	}
	image := strings.Repeat("ab", 32)
	want := cache.Fields{
		ImageSHA256: image, Prompt: "what", Provider: "team/models", Endpoint: "main", EndpointDigest: "d", Model: "see",
		Schema: "visual_observation.v1", Policy: engine.GenerationPolicy,
	}
	if got := engine.KeyOf(choice, "d", image, "what"); got != want.Key() || engine.GenerationPolicy == "" {
		t.Error("the key is not that of all that an answer depends on")
	}
	if twin := image[:60] + "0000"; observation.ReferenceID(twin) != observation.ReferenceID(image) || engine.KeyOf(choice, "d", twin, "what") == want.Key() {
		t.Error("two images whose digests begin alike have one key")
	}
}

func TestThePolicyBoundsTheCache(t *testing.T) {
	r := newRig(t)
	path := r.file("a.png", square(t, 8, 1))
	ask := func(prompt string) bool { return r.view(engine.Request{Path: path, Prompt: prompt}).Cached }
	for name, bounds := range map[string]func(*router.Cache){
		"by age":     func(c *router.Cache) { c.TTL = "1ms" },
		"by entries": func(c *router.Cache) { c.MaxEntries = 1 },
		"by bytes":   func(c *router.Cache) { c.MaxBytes = 900 }, // one of theirs, and not two
	} {
		r.use(nil)
		ask(name + " one")
		if !ask(name + " one") {
			t.Errorf("%s: the answer is not kept at all", name)
		}
		r.use(func(d *router.Document) { bounds(&d.Profiles[0].Cache) })
		ask(name + " two")
		time.Sleep(5 * time.Millisecond)
		if ask(name + " one") {
			t.Errorf("%s: the answer is kept", name)
		}
	}
}
