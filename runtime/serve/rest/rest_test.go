// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/serve"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
	"github.com/visionoperator/vision-operator/runtime/serve/rest"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

var partial = &observation.Result{
	VisualReference: observation.NewReference("/w/a.png", strings.Repeat("ab", 32), "image/png", 70, 2, 3),
	VisionSelection: &observation.Selection{SelectedMode: observation.ModeUnavailable, Candidates: []observation.Candidate{}},
}

// call sends one body to POST /v1/view-image of an API over a view.
func call(t *testing.T, view tool.View, body string) (*httptest.ResponseRecorder, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8970/v1/view-image", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	serve.Handler(rest.Routes(rest.Options{View: view}), serve.Options{Guard: guard.Options{Port: 8970}}).ServeHTTP(w, r)
	var decoded map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &decoded); err != nil {
		t.Fatalf("status %d, body %q: %v", w.Code, w.Body, err)
	}
	return w, decoded
}

func fails(result *observation.Result, err error) tool.View {
	return func(context.Context, tool.Call) (*observation.Result, error) { return result, err }
}

func TestEachKindHasItsStatus(t *testing.T) {
	for kind, status := range map[fault.Kind]int{
		fault.InvalidToolInput: 400, fault.PolicyDenied: 403, fault.BudgetExceeded: 400, fault.ImageReadFailed: 422,
		fault.VisionAdapterUnavailable: 424, fault.QuotaExceeded: 429, fault.VisionObservationFailed: 502, fault.RouterUnavailable: 503,
	} {
		w, body := call(t, fails(partial, fault.New(kind, "Why", "what").With("n", 7).Hint("then")), `{"path":"a","prompt":"b"}`)
		if w.Code != status {
			t.Errorf("%s: status %d; want %d", kind, w.Code, status)
		}
		want := map[string]any{"kind": string(kind), "reason": "Why", "message": "what", "retryable": false, "recoveryHint": "then", "details": map[string]any{"n": 7.0}}
		if !reflect.DeepEqual(body["error"], want) {
			t.Errorf("error is %v; want %v", body["error"], want)
		}
		if body["visual_reference"] == nil || body["vision_selection"] == nil {
			t.Errorf("%s: the reference or the selection is lost: %v", kind, body)
		}
	}
}

func TestEveryStatusOfAKindIsDescribedWhereImagesAreJudged(t *testing.T) {
	data, err := rest.Document("v1")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/view-image", "/v1/images"} {
		responses := doc["paths"].(map[string]any)[path].(map[string]any)["post"].(map[string]any)["responses"].(map[string]any)
		for _, kind := range []fault.Kind{
			fault.InvalidToolInput, fault.PolicyDenied, fault.BudgetExceeded, fault.ImageReadFailed, fault.VisionAdapterUnavailable,
			fault.QuotaExceeded, fault.VisionObservationFailed, fault.RouterUnavailable,
		} {
			if status := strconv.Itoa(fault.New(kind, "", "").Status()); responses[status] == nil {
				t.Errorf("POST %s: %s of %s is not described", path, status, kind)
			}
		}
	}
}

func TestAFailureWithoutAnImageHasNoReferenceAtAll(t *testing.T) {
	_, body := call(t, fails(nil, fault.New(fault.PolicyDenied, "", "no")), `{"path":"a","prompt":"b"}`)
	if len(body) != 1 {
		t.Errorf("body is %v; want the error alone", body)
	}
}

func TestRetriesAreToldInHeaders(t *testing.T) {
	f := fault.New(fault.QuotaExceeded, "", "later")
	f.Retryable, f.RetryAfter = true, 1500*time.Millisecond
	w, _ := call(t, fails(nil, f), `{"path":"a","prompt":"b"}`)
	if w.Header().Get("x-should-retry") != "true" || w.Header().Get("Retry-After") != "2" {
		t.Errorf("headers are %v", w.Header())
	}
	w, _ = call(t, fails(nil, fault.New(fault.PolicyDenied, "", "never")), `{"path":"a","prompt":"b"}`)
	if w.Header().Get("x-should-retry") != "false" || w.Header().Get("Retry-After") != "" {
		t.Errorf("headers are %v", w.Header())
	}
}

func TestAForeignErrorIsNotShown(t *testing.T) {
	w, body := call(t, fails(nil, errors.New("dial 10.1.2.3: key sk-1")), `{"path":"a","prompt":"b"}`)
	if w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "sk-1") {
		t.Errorf("status %d, body %v", w.Code, body)
	}
}

func TestArgumentsReachTheViewAsTheyAre(t *testing.T) {
	var got tool.Args
	w, _ := call(t, func(_ context.Context, call tool.Call) (*observation.Result, error) {
		got = call.Args
		return partial, nil
	}, `{"path":"/w/a.png","prompt":"42","model":"p@e/m"}`)
	if want := (tool.Args{Path: "/w/a.png", Prompt: "42", Model: "p@e/m"}); w.Code != 200 || got != want {
		t.Errorf("status %d, got %+v", w.Code, got)
	}
}

func TestBadArgumentsDoNotReachTheView(t *testing.T) {
	for _, body := range []string{``, `[]`, `{"path":"a"}`, `{"path":"a","prompt":42}`, `{"path":"a","prompt":"b","x":1}`, `{"path":"a","prompt":"b"} {}`} {
		w, decoded := call(t, func(context.Context, tool.Call) (*observation.Result, error) {
			t.Errorf("%q reached the view", body)
			return partial, nil
		}, body)
		if kind := decoded["error"].(map[string]any)["kind"]; w.Code != 400 || kind != "invalid_tool_input" {
			t.Errorf("%q: status %d, kind %v", body, w.Code, kind)
		}
	}
}

func TestTheCallersOwnModelComesByHeader(t *testing.T) {
	tests := []struct {
		name  string
		sent  []string
		want  string
		wrong string // reason
	}{
		{"none", nil, "", ""},
		{"a route", []string{"openai@eu/gpt-6"}, "openai@eu/gpt-6", ""},
		{"white space around", []string{"  openai/gpt-6 "}, "openai/gpt-6", ""},
		{"a blank says none", []string{""}, "", ""},
		{"no route", []string{"gpt-6"}, "", "PrimaryModelMalformed"},
		{"a list", []string{"a/b, c/d"}, "", "PrimaryModelMalformed"},
		{"too long", []string{"a/" + strings.Repeat("b", 400)}, "", "PrimaryModelMalformed"},
		{"not printable", []string{"a/b\u202e"}, "", "PrimaryModelMalformed"},
		{"twice", []string{"a/b", "a/b"}, "", "PrimaryModelTwice"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var seen []tool.Call
			opts := rest.Options{View: func(_ context.Context, call tool.Call) (*observation.Result, error) {
				seen = append(seen, call)
				return partial, nil
			}}
			r := httptest.NewRequest(http.MethodPost, "/v1/view-image", strings.NewReader(`{"path":"a","prompt":"b"}`))
			r.Header["Content-Type"], r.Header["X-Vision-Primary-Model"] = []string{"application/json"}, test.sent
			w, body := send(t, opts, r)
			if test.wrong == "" {
				if w.Code != http.StatusOK || len(seen) != 1 || seen[0].PrimaryModel != test.want || seen[0].Path != "a" {
					t.Errorf("status %d, the view saw %+v", w.Code, seen)
				}
				return
			}
			failed := body["error"].(map[string]any)
			if w.Code != http.StatusBadRequest || failed["kind"] != "invalid_tool_input" || failed["reason"] != test.wrong || len(seen) != 0 {
				t.Fatalf("status %d, %v", w.Code, failed)
			}
			for _, text := range []any{failed["message"], failed["recoveryHint"]} {
				if !strings.Contains(text.(string), "X-Vision-Primary-Model") {
					t.Errorf("%q does not name the header", text)
				}
			}
		})
	}
}

func TestTheDocumentResolvesAndItsSchemasMatchTheGoTypes(t *testing.T) {
	data, err := rest.Document("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if version := doc["info"].(map[string]any)["version"]; version != "v1.2.3" {
		t.Errorf("version is %v", version)
	}
	for _, ref := range references(doc) {
		if lookUp(doc, ref) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	}
	now := time.Unix(1700000000, 0).UTC()
	full := rest.RouterStatus{
		Loaded: true, Digest: "sha256:" + strings.Repeat("0", 64), LoadedAt: &now, Profile: "policy/a",
		ProfileFound: true, LastError: "reading", FailingSince: &now,
	}
	for name, value := range map[string]any{
		"RouterStatus": full, "ViewImageRequest": tool.Args{Path: "a", Prompt: "b", Model: "c"}, "KeptReference": kept,
	} {
		validate(t, lookUp(doc, "#/components/schemas/"+name), value)
	}
	validate(t, lookUp(doc, "#/components/schemas/RouterStatus"), rest.RouterStatus{Profile: "policy/a"})
	post := doc["paths"].(map[string]any)["/v1/view-image"].(map[string]any)["post"].(map[string]any)
	header := post["parameters"].([]any)[0].(map[string]any)
	schema := header["schema"].(map[string]any)
	if header["name"] != tool.PrimaryModelHeader || schema["maxLength"] != float64(tool.MaxPrimaryModel) {
		t.Errorf("the header is described as %v", header)
	}
	pattern := regexp.MustCompile(schema["pattern"].(string))
	for _, value := range []string{"openai@eu/gpt-6", "openai/gpt-6", "gpt-6", "a@b@c/d", "-a/b", "a/", "A/b", "a@/b", "lab/qwen/qwen3:8b"} {
		if _, err := tool.PrimaryModel("it", value); (err == nil) != pattern.MatchString(value) {
			t.Errorf("%q: described as a route: %t; %v", value, pattern.MatchString(value), err)
		}
	}
}

func validate(t *testing.T, described any, value any) {
	t.Helper()
	var schema jsonschema.Schema
	remarshal(t, described, &schema)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var plain map[string]any
	remarshal(t, value, &plain)
	if err := resolved.Validate(plain); err != nil {
		t.Error(err)
	}
	for name := range plain {
		if schema.Properties[name] == nil {
			t.Errorf("%s of %T is not described", name, value)
		}
	}
}

func remarshal(t *testing.T, from, into any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// references are all values of $ref below v.
func references(v any) []string {
	var found []string
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if ref, ok := value.(string); ok && key == "$ref" {
				found = append(found, ref)
			}
			found = append(found, references(value)...)
		}
	case []any:
		for _, value := range v {
			found = append(found, references(value)...)
		}
	}
	return found
}

func lookUp(doc map[string]any, ref string) any {
	var at any = doc
	for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		object, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = object[step]
	}
	return at
}
