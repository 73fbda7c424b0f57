// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/models"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = exchangetest.Bearer.Value

// endpoint serves a handler until the test ends; path comes after the server's address.
func endpoint(t *testing.T, path string, h http.HandlerFunc) exchange.Endpoint {
	t.Helper()
	url := exchangetest.Serve(t, h)
	return exchange.Endpoint{BaseURL: url + path, Client: exchangetest.Bearer.Client(t, url, "10s")}
}

func TestWhatServersTellOfTheirModels(t *testing.T) {
	for name, tc := range map[string]struct {
		body string
		want []provider.Listed
	}{
		"OpenAI tells names": {
			`{"object":"list","data":[{"id":"gpt-5.4","object":"model","created":1,"owned_by":"system"},{"id":"gpt-4o","object":"model"}]}`,
			[]provider.Listed{{Name: "gpt-5.4"}, {Name: "gpt-4o"}},
		},
		"OpenRouter tells modalities and limits": {
			`{"data":[{"id":"a/sees","architecture":{"modality":"text+image->text","input_modalities":["text","image"]},"context_length":200000,"top_provider":{"context_length":200000,"max_completion_tokens":64000}},
			{"id":"a/blind:free","architecture":{"input_modalities":["text"]},"context_length":8192.0,"top_provider":{"max_completion_tokens":null}}]}`,
			[]provider.Listed{
				{Name: "a/sees", ImageInput: provider.Yes, ContextWindowTokens: 200000, MaxOutputTokens: 64000},
				{Name: "a/blind:free", ImageInput: provider.No, ContextWindowTokens: 8192},
			},
		},
		"Mistral tells capabilities": {
			`{"object":"list","data":[{"id":"mistral-large","capabilities":{"completion_chat":true,"vision":true},"max_context_length":131072},{"id":"codestral","capabilities":{"vision":false},"max_context_length":32768}]}`,
			[]provider.Listed{
				{Name: "mistral-large", ImageInput: provider.Yes, ContextWindowTokens: 131072},
				{Name: "codestral", ImageInput: provider.No, ContextWindowTokens: 32768},
			},
		},
		"vLLM tells its window": {
			`{"object":"list","data":[{"id":"Qwen/Qwen3-VL-8B","object":"model","owned_by":"vllm","root":"/models/x","max_model_len":32768}]}`,
			[]provider.Listed{{Name: "Qwen/Qwen3-VL-8B", ContextWindowTokens: 32768}},
		},
		"Azure's capabilities tell nothing of images": {
			`{"data":[{"id":"gpt-4o-2024-08-06","capabilities":{"inference":true,"chat_completion":true},"lifecycle_status":"generally-available"}]}`,
			[]provider.Listed{{Name: "gpt-4o-2024-08-06"}},
		},
		"LM Studio tells names":         {`{"data":[{"id":"qwen2.5-vl-7b","object":"model","owned_by":"organization_owner"}],"object":"list"}`, []provider.Listed{{Name: "qwen2.5-vl-7b"}}},
		"Gemini's names have a prefix":  {`{"object":"list","data":[{"id":"models/gemini-3-flash","object":"model","owned_by":"google"}]}`, []provider.Listed{{Name: "models/gemini-3-flash"}}},
		"Together's list has no frame":  {` [{"id":"meta-llama/Llama-4","type":"chat","context_length":1048576}]`, []provider.Listed{{Name: "meta-llama/Llama-4", ContextWindowTokens: 1048576}}},
		"a server without models":       {`{"object":"list","data":[]}`, []provider.Listed{}},
		"an Ollama server without any":  {`{"object":"list","data":null}`, []provider.Listed{}},
		"capabilities of another shape": {`{"data":[{"id":"a","capabilities":["vision"]},{"id":"b","capabilities":null},{"id":"c","capabilities":{"vision":"yes"}}]}`, []provider.Listed{{Name: "a"}, {Name: "b"}, {Name: "c"}}},
		"limits that are none":          {`{"data":[{"id":"a","context_length":-1},{"id":"b","context_length":"8k"},{"id":"c","context_length":1e300},{"id":"d","max_model_len":{}}]}`, []provider.Listed{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}},
		"one broken entry hides no other": {`{"data":[7,null,{"id":7},{"id":""},{"id":"a b"},{"id":"a\nb"},{"id":"` + strings.Repeat("x", 254) + `"},{"architecture":[]},{"id":"a"},{"id":"a","max_model_len":9}]}`,
			[]provider.Listed{{Name: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			got, err := models.List(context.Background(), endpoint(t, "/v1/", func(w http.ResponseWriter, r *http.Request) {
				asked = r.Method + " " + r.URL.String() + " " + r.Header.Get("Authorization")
				_, _ = io.WriteString(w, tc.body)
			}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if want := "GET /v1/models Bearer " + key; asked != want {
				t.Errorf("asked %s, want %s", asked, want)
			}
		})
	}
}

func TestTheVersionGoesWithTheList(t *testing.T) {
	var asked string
	at := endpoint(t, "/openai", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		_, _ = io.WriteString(w, `{"data":[]}`)
	})
	at.APIVersion = "2026-01-01"
	if _, err := models.List(context.Background(), at); err != nil || asked != "/openai/models?api-version=2026-01-01" {
		t.Errorf("asked %s, %v", asked, err)
	}
}

func TestALongListIsReadUpToABound(t *testing.T) {
	var body strings.Builder
	body.WriteString(`{"data":[`)
	for i := range 3000 {
		fmt.Fprintf(&body, `{"id":"m%d"},`, i)
	}
	body.WriteString(`{"id":"last"}]}`)
	got, err := models.List(context.Background(), endpoint(t, "/v1", exchangetest.Says(200, body.String())))
	if err != nil || len(got) != 1000 || got[999].Name != "m999" {
		t.Errorf("%d models, %v", len(got), err)
	}
}

func TestWhatAListTellsTooMuchOfTakesLittleMemory(t *testing.T) {
	const n = 1 << 20
	for name, body := range map[string]string{
		"modalities": `{"data":[{"id":"m","architecture":{"input_modalities":["image",` + strings.Repeat(`"",`, n) + `""]}}]}`,
		"members":    `{"data":[{"id":"m","architecture":{"input_modalities":["image"]},` + strings.Repeat(`"a":1,`, n) + `"b":0}]}`,
	} {
		at := endpoint(t, "/v1", exchangetest.Says(200, body))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := models.List(context.Background(), at)
		runtime.ReadMemStats(&after)
		if err != nil || len(got) != 1 || got[0].ImageInput != provider.Yes {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(12*len(body)) {
			t.Errorf("%s: %d bytes took %d bytes of memory", name, len(body), took)
		}
	}
}

func TestListsThatFail(t *testing.T) {
	says := exchangetest.Says
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
	}{
		"a server without a list":  {says(404, "not found"), "UpstreamStatus", false},
		"a refused key":            {says(401, `{"error":{"message":"`+key+`"}}`), "Unauthorized", false},
		"a busy server":            {says(503, ""), "UpstreamStatus", true},
		"a page for people":        {says(200, "<html>"+key), "InvalidResponse", false},
		"an empty reply":           {says(200, ""), "Empty", true},
		"JSON of another shape":    {says(200, `{"models":[]}`), "InvalidResponse", false},
		"a list of another shape":  {says(200, `{"data":{"id":"`+key+`"}}`), "InvalidResponse", false},
		"an error with status 200": {says(200, `{"error":{"code":"server_error"}}`), "UpstreamStatus", true},
		"a list over the limit":    {says(200, `{"data":[`+strings.Repeat(" ", transport.MaxResponseBytes)+`]}`), "InvalidResponse", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := models.List(context.Background(), endpoint(t, "/v1", tc.handler))
			if f := exchangetest.Fault(t, err); got != nil || f.Reason != tc.reason || f.Retryable != tc.retryable {
				t.Errorf("%v, fault = %+v", got, f)
			}
		})
	}
}

func FuzzList(f *testing.F) {
	for _, seed := range []string{
		`{"data":[{"id":"a","architecture":{"input_modalities":["image"]},"context_length":1,"capabilities":{"vision":true}}]}`,
		`[{"id":"a"}]`, `{"data":null}`, `{"data":[null,7,{"id":"a"},{"id":"a"}]}`, `{"error":{"code":500}}`, `{"data":[{"id":"x","owned_by":"library"}]}`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		client := exchangetest.Offline(string(body), exchangetest.Drain)
		got, err := models.List(context.Background(), exchange.Endpoint{BaseURL: "http://x.example", Client: client})
		if err != nil && fault.As(err).Reason == "Internal" {
			t.Errorf("the error is %v", err)
		}
		seen := map[string]bool{}
		for _, l := range got {
			if _, err := router.ParseRoute("p@e/" + l.Name); err != nil || seen[l.Name] {
				t.Errorf("%q is listed again, or is no name: %v", l.Name, err)
			}
			if seen[l.Name] = true; l.ContextWindowTokens < 0 || l.MaxOutputTokens < 0 {
				t.Errorf("limits of %+v", l)
			}
		}
	})
}
