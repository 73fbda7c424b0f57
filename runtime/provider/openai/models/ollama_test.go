// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/models"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

// ollama is a server with models of these names; show answers for one of them.
// It keeps what was shown.
type ollama struct {
	names []string
	show  func(w http.ResponseWriter, model string)

	mu            sync.Mutex
	shown         []string
	now, together int
}

func (o *ollama) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /ai/v1/models":
		var list []string
		for _, name := range o.names {
			list = append(list, fmt.Sprintf(`{"id":%q,"object":"model","created":1,"owned_by":"library"}`, name))
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[`+strings.Join(list, ",")+`]}`)
	case "POST /ai/api/show":
		var body struct{ Model string }
		raw, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(raw, &body); err != nil || string(raw) != fmt.Sprintf(`{"model":%q}`, body.Model) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		o.mu.Lock()
		o.shown = append(o.shown, body.Model)
		o.now++
		o.together = max(o.together, o.now)
		o.mu.Unlock()
		o.show(w, body.Model)
		o.mu.Lock()
		o.now--
		o.mu.Unlock()
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

const (
	seeing = `{"license":"…","details":{"family":"gemma3"},"model_info":{"general.architecture":"gemma3","gemma3.context_length":131072,"gemma3.vision.image_size":896,"tokenizer.ggml.tokens":null},"capabilities":["completion","vision"]}`
	blind  = `{"model_info":{"llama.context_length":8192,"llama.embedding_length":4096},"capabilities":["completion","tools"]}`
)

func TestOllamaIsAskedWhatEachModelCanDo(t *testing.T) {
	o := &ollama{names: []string{"gemma3:4b", "llama3:8b", "old", "bare"}, show: func(w http.ResponseWriter, model string) {
		_, _ = io.WriteString(w, map[string]string{
			"gemma3:4b": seeing, "llama3:8b": blind, "old": `{"model_info":{"llama.context_length":2048}}`, "bare": `{"capabilities":[]}`,
		}[model])
	}}
	got, err := models.List(context.Background(), endpoint(t, "/ai/v1/", o.ServeHTTP))
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Listed{
		{Name: "gemma3:4b", ImageInput: provider.Yes, ContextWindowTokens: 131072},
		{Name: "llama3:8b", ImageInput: provider.No, ContextWindowTokens: 8192},
		{Name: "old"}, // a version without capabilities
		{Name: "bare", ImageInput: provider.No},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestH37_OneModelsFailingProbeIsSkipped(t *testing.T) {
	o := &ollama{names: []string{"a", "broken", "b"}, show: func(w http.ResponseWriter, model string) {
		if model == "broken" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, seeing)
	}}
	got, err := models.List(context.Background(), endpoint(t, "/ai/v1", o.ServeHTTP))
	want := []provider.Listed{
		{Name: "a", ImageInput: provider.Yes, ContextWindowTokens: 131072},
		{Name: "broken"},
		{Name: "b", ImageInput: provider.Yes, ContextWindowTokens: 131072},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestWhenEveryProbeFails(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		fails  bool
	}{
		"in a way that may pass, the list fails":                  {http.StatusServiceUnavailable, true},
		"in a way that will not, as behind a gateway, nothing is": {http.StatusNotFound, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &ollama{names: []string{"a", "b"}, show: func(w http.ResponseWriter, _ string) { w.WriteHeader(tc.status) }}
			got, err := models.List(context.Background(), endpoint(t, "/ai/v1", o.ServeHTTP))
			if tc.fails {
				if err == nil || !fault.As(err).Retryable {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if diff := cmp.Diff([]provider.Listed{{Name: "a"}, {Name: "b"}}, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// within makes an endpoint out of a server without a network, so that the time
// its calls take is a test's own.
func (o *ollama) within() exchange.Endpoint {
	return exchange.Endpoint{BaseURL: "http://ollama.example/ai/v1", Client: &http.Client{Transport: exchangetest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		o.ServeHTTP(w, r)
		if err := r.Context().Err(); err != nil {
			return nil, transport.Redact(r.URL.Host, err)
		}
		return w.Result(), nil
	})}}
}

func TestFewOfALongListAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &ollama{show: func(w http.ResponseWriter, _ string) {
			time.Sleep(time.Second) // so that those that are called at once are there together
			_, _ = io.WriteString(w, seeing)
		}}
		for i := range 50 {
			o.names = append(o.names, fmt.Sprintf("m%d", i))
		}
		got, err := models.List(t.Context(), o.within())
		if err != nil || len(got) != 50 || got[31].ImageInput != provider.Yes || got[32].ImageInput != provider.Unknown {
			t.Fatalf("%+v, %v", got, err)
		}
		if len(o.shown) != 32 || o.together != 4 {
			t.Errorf("%d were shown, %d at once", len(o.shown), o.together)
		}
	})
}

func TestAModelOfManyFactsTakesLittleMemory(t *testing.T) {
	var facts strings.Builder
	for i := range 1 << 18 {
		fmt.Fprintf(&facts, `"fact-%06d":1,`, i)
	}
	shown := `{"model_info":{"a.context_length":8192,` + facts.String() + `"b.context_length":9},"capabilities":["vision"]}`
	o := &ollama{names: []string{"m"}, show: func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, shown) }}
	at := endpoint(t, "/ai/v1", o.ServeHTTP)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := models.List(context.Background(), at)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != 1 || got[0].ImageInput != provider.Yes || got[0].ContextWindowTokens != 8192 {
		t.Errorf("%v, %v", got, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(12*len(shown)) {
		t.Errorf("%d bytes took %d bytes of memory", len(shown), took)
	}
}

func TestOthersAreNotAskedToShow(t *testing.T) {
	for name, tc := range map[string]struct{ path, owner string }{
		"a base URL that does not end in /v1": {"/ai/v1/models/..", "library"},
		"another owner":                       {"/ai/v1", "vllm"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			_, err := models.List(context.Background(), endpoint(t, tc.path, func(w http.ResponseWriter, _ *http.Request) {
				calls++
				_, _ = io.WriteString(w, `{"data":[{"id":"a","owned_by":"`+tc.owner+`"}]}`)
			}))
			if err != nil || calls != 1 {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	}
}

func TestACallerWhoLeavesGetsNoHalfList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := &ollama{names: []string{"a", "b", "c", "d", "e", "f"}, show: func(w http.ResponseWriter, model string) {
			if model != "a" {
				time.Sleep(time.Second) // until a was shown
				cancel()
			}
			_, _ = io.WriteString(w, seeing)
		}}
		got, err := models.List(ctx, o.within())
		if err == nil || fault.As(err).Reason != "Canceled" {
			t.Errorf("%v, %v", got, err)
		}
	})
}
