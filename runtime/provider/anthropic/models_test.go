// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
)

func TestTheListOfModelsIsReadPageByPage(t *testing.T) {
	var asked []string
	c := serve(t, "10s", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("asked with %v", r.Header)
		}
		if r.URL.Query().Get("after_id") == "" {
			_, _ = io.WriteString(w, `{"data":[
				{"type":"model","id":"claude-opus-5","max_input_tokens":1000000,"max_tokens":128000,"capabilities":{"batch":{"supported":true},"image_input":{"supported":true}}},
				{"type":"model","id":"claude-blind","max_input_tokens":null,"max_tokens":null,"capabilities":{"image_input":{"supported":false}}}
			],"has_more":true,"first_id":"claude-opus-5","last_id":"a&b"}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"imitation"},{"id":"other","capabilities":null},{"id":""}],"has_more":false,"last_id":"other"}`)
	})
	got, err := c.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Listed{
		{Name: "claude-opus-5", ImageInput: provider.Yes, ContextWindowTokens: 1000000, MaxOutputTokens: 128000},
		{Name: "claude-blind", ImageInput: provider.No},
		{Name: "imitation"},
		{Name: "other"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GET /v1/models?limit=1000", "GET /v1/models?limit=1000&after_id=a%26b"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAListOfModelsThatNeverEndsIsCutOff(t *testing.T) {
	asked := 0
	c := serve(t, "10s", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = fmt.Fprintf(w, `{"data":[{"id":"m%d"}],"has_more":true,"last_id":"m%d"}`, asked, asked)
	})
	if got, err := c.List(context.Background()); err != nil || len(got) != 5 || asked != 5 {
		t.Errorf("%d models, %d pages, %v", len(got), asked, err)
	}
}

func TestAServerThatKnowsNoPagesIsAskedTwice(t *testing.T) {
	asked := 0
	c := serve(t, "10s", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}],"has_more":true,"last_id":"m"}`)
	})
	if got, err := c.List(context.Background()); err != nil || len(got) != 1 || asked != 2 {
		t.Errorf("%d models, %d pages, %v", len(got), asked, err)
	}
}

func TestAListOfModelsThatCannotBeRead(t *testing.T) {
	for reason, handler := range map[string]http.HandlerFunc{
		"Unauthorized":    status(401, vendorError("authentication_error")),
		"UpstreamStatus":  status(404, "404 page not found "+key),
		"RateLimited":     status(429, ""),
		"InvalidResponse": status(200, "<html>"+key),
	} {
		got, err := serve(t, "10s", handler).List(context.Background())
		if f := fault.As(err); err == nil || got != nil || f.Reason != reason || strings.Contains(fmt.Sprint(f, f.Details, f.Cause), "secret") {
			t.Errorf("%s: %v and %v", reason, got, err)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"a","max_tokens":1,"capabilities":{"image_input":{"supported":true}}}],"has_more":true,"last_id":"a"}`))
	f.Add([]byte(`{"data":null}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := anthropic.ParsePage(body); err != nil && fault.As(err).Reason != "InvalidResponse" {
			t.Errorf("the error is %v", err)
		}
	})
}
