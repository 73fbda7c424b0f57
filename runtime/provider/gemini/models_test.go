// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

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
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
)

func TestTheListOfModelsIsReadPageByPageAndKeepsThoseThatGenerate(t *testing.T) {
	var asked []string
	c := serve(t, "10s", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.Header.Get("X-Goog-Api-Key") != key {
			t.Errorf("asked with %v", r.Header)
		}
		if r.URL.Query().Get("pageToken") == "" {
			_, _ = io.WriteString(w, `{"models":[
				{"name":"models/gemini-3-pro","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["countTokens","generateContent"]},
				{"name":"models/embedding-001","inputTokenLimit":2048,"supportedGenerationMethods":["embedContent"]}
			],"nextPageToken":"a&b="}`)
			return
		}
		_, _ = io.WriteString(w, `{"models":[{"name":"tunedModels/mine","supportedGenerationMethods":["generateContent"]},{"name":"models/silent"},{"supportedGenerationMethods":["generateContent"]}]}`)
	})
	got, err := c.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := []provider.Listed{
		{Name: "gemini-3-pro", ContextWindowTokens: 1048576, MaxOutputTokens: 65536},
		{Name: "tunedModels/mine"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GET /v1beta/models?pageSize=1000", "GET /v1beta/models?pageSize=1000&pageToken=a%26b%3D"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestAListOfModelsThatNeverEndsIsCutOff(t *testing.T) {
	asked := 0
	c := serve(t, "10s", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = fmt.Fprintf(w, `{"models":[{"name":"models/m%d","supportedGenerationMethods":["generateContent"]}],"nextPageToken":"t%d"}`, asked, asked)
	})
	if got, err := c.List(context.Background()); err != nil || len(got) != 5 || asked != 5 {
		t.Errorf("%d models, %d pages, %v", len(got), asked, err)
	}
}

func TestAServerThatKnowsNoPagesIsAskedTwice(t *testing.T) {
	asked := 0
	c := serve(t, "10s", func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"models":[{"name":"m","supportedGenerationMethods":["generateContent"]}],"nextPageToken":"t"}`)
	})
	if got, err := c.List(context.Background()); err != nil || len(got) != 1 || asked != 2 {
		t.Errorf("%d models, %d pages, %v", len(got), asked, err)
	}
}

func TestAListOfModelsThatCannotBeRead(t *testing.T) {
	for reason, handler := range map[string]http.HandlerFunc{
		"Unauthorized":    status(403, vendorError(403, "PERMISSION_DENIED")),
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
	f.Add([]byte(`{"models":[{"name":"models/a","inputTokenLimit":1,"supportedGenerationMethods":["generateContent"]}],"nextPageToken":"x"}`))
	f.Add([]byte(`{"models":null}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := gemini.ParsePage(body); err != nil && fault.As(err).Reason != "InvalidResponse" {
			t.Errorf("the error is %v", err)
		}
	})
}
