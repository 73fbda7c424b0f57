// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"bytes"
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/review"
)

func TestEveryMemberOfAnEnvelopeIsRead(t *testing.T) {
	got, err := review.ReadEnvelope([]byte(` {"kind" : "VisionReview","apiVersion":"visionoperator.dev/v1alpha1", "request" :{ "uid":"u\u00e9","dialect":"openai-chat","method":"POST",
		"path":"/x","model":"m","profile":"policy/p","operation":"Preflight","dryRun":true,"patchTypes":["ByteRanges","JSONPatch"],"body" : { "a":"}\"" } , "extra":[1,{"a":"]"}]}, "more":null} `))
	if err != nil {
		t.Fatal(err)
	}
	want := &review.Request{
		UID: "ué", Dialect: message.OpenAIChat, Method: "POST", Path: "/x", Model: "m", Profile: "policy/p", Operation: review.Preflight,
		DryRun: true, PatchTypes: []review.PatchType{review.ByteRanges, review.JSONPatch}, Body: []byte(`{ "a":"}\"" }`),
		Warnings: []string{`the review's "more" is not known and was ignored`, `the review's "request.extra" is not known and was ignored`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
}

func TestABodyInAStringIsItsText(t *testing.T) {
	for text, want := range map[string]string{
		`"{\"a\":\"\\u00e9\\n\"}"`:                `{"a":"\u00e9\n"}`,
		`"{\u0022é\u00e9\ud83d\ude00\/\t\b\f\r}"`: "{\"éé😀/\t\b\f\r}",
		`"\ud83d"`:                          "\uFFFD",
		`"\ud83dx\ude00\ud83d\ud83d\ude00"`: "\uFFFDx\uFFFD\uFFFD😀",
		`""`:                                "",
		`"plain"`:                           "plain",
	} {
		got, err := review.ReadEnvelope([]byte(`{"request":{"body":` + text + `,"uid":"after"}}`))
		if err != nil || string(got.Body) != want || got.UID != "after" {
			t.Errorf("%s is %q, %v; want %q", text, got.Body, err, want)
		}
	}
}

func TestAnEnvelopeThatIsNoneIsAFault(t *testing.T) {
	long := strings.Repeat("x", 9000)
	for name, tc := range map[string]struct{ text, reason string }{
		"nothing":                     {``, "NotAnObject"},
		"no JSON":                     {`{"request":`, "NotAnObject"},
		"a list":                      {`[]`, "NotAnObject"},
		"something after it":          {`{"request":{"body":{}}} x`, "NotAnObject"},
		"no request":                  {`{"kind":"VisionReview"}`, "Missing"},
		"the request alone":           {`{"uid":"1","body":{}}`, "Missing"},
		"a request that is text":      {`{"request":"x"}`, "NotAnObject"},
		"a request that is cut":       {`{"request":{"body":{}`, "NotAnObject"},
		"two requests":                {`{"request":{"body":{}},"request":{"body":{}}}`, "NotAnObject"},
		"two bodies":                  {`{"request":{"body":{},"b\u006fdy":{}}}`, "NotAnObject"},
		"another kind":                {`{"kind":"AdmissionReview","request":{"body":{}}}`, "WrongType"},
		"another version":             {`{"apiVersion":"v2","request":{"body":{}}}`, "WrongType"},
		"no body":                     {`{"request":{"uid":"1"}}`, "Missing"},
		"a body that is null":         {`{"request":{"body":null}}`, "Missing"},
		"a body that begins as null":  {`{"request":{"body":nul}}`, "NotAnObject"},
		"a body that is a list":       {`{"request":{"body":[1]}}`, "WrongType"},
		"an escape that JSON has not": {`{"request":{"body":"\x"}}`, "NotJSON"},
		"an escape that is cut":       {`{"request":{"body":"\u00g0"}}`, "NotJSON"},
		"a number as uid":             {`{"request":{"uid":5,"body":{}}}`, "WrongType"},
		"no list of patch types":      {`{"request":{"patchTypes":"JSONPatch","body":{}}}`, "WrongType"},
		"a long uid":                  {`{"request":{"uid":"` + long[:257] + `","body":{}}}`, "TooLong"},
		"a long path":                 {`{"request":{"path":"` + long + `","body":{}}}`, "TooLong"},
		"a broken unknown member":     {`{"request":{"x":[},"body":{}}}`, "NotAnObject"},
		"very many members":           {`{` + strings.Repeat(`"a":1,`, 70) + `"b":1}`, "NotAnObject"},
		"no comma":                    {`{"request":{"uid":"1" "body":{}}}`, "NotAnObject"},
	} {
		req, err := review.ReadEnvelope([]byte(tc.text))
		if reason, status := reasonOf(err); reason != tc.reason || status != 400 {
			t.Errorf("%s: %+v, %q, %d; want %q", name, req, reason, status, tc.reason)
		}
	}
}

func TestAQuerySaysWhatSurroundsABody(t *testing.T) {
	query, _ := url.ParseQuery("uid=u&dialect=openai-chat&method=POST&path=/v1/x&model=a%2Fb&profile=policy/p&operation=Preflight&dryRun=true&patchTypes=ByteRanges,JSONPatch&patchTypes=X")
	got, err := review.ReadQuery(query, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	want := &review.Request{
		UID: "u", Dialect: message.OpenAIChat, Method: "POST", Path: "/v1/x", Model: "a/b", Profile: "policy/p", Operation: review.Preflight,
		DryRun: true, PatchTypes: []review.PatchType{review.ByteRanges, review.JSONPatch, "X"}, Body: []byte("x"),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
	for text, reason := range map[string]string{
		"dailect=openai-chat": "Unknown", "path=a&path=b": "DuplicateMember", "dryRun=1": "WrongType", "uid=" + strings.Repeat("x", 257): "TooLong", "body={}": "Unknown",
	} {
		query, _ := url.ParseQuery(text)
		_, err := review.ReadQuery(query, nil)
		if got, status := reasonOf(err); got != reason || status != 400 {
			t.Errorf("%s: %q, %d; want %q", text, got, status, reason)
		}
	}
}

// FuzzReadEnvelope holds the reading of an envelope against encoding/json, and
// judges what it gives.
func FuzzReadEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"request":{"uid":"1","path":"/v1/chat/completions","body":{"model":"eye-1","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + onePNG + `"}}]}]}}}`,
		`{"kind":"VisionReview","apiVersion":"visionoperator.dev/v1alpha1","request":{"dialect":"anthropic-messages","body":"{\"messages\":[]}"}}`,
		`{"request":{"body":{"a":"\\\"}"},"patchTypes":["ByteRanges"],"x":[{"b":"]"}]}}`,
		`{"request":{"path":"/v1beta/models/m:generateContent","body":{"contents":[{"parts":[{"inline_data":{"data":"@png:9x9@"}}]}]}}}`,
		`{"request":{"body":"\ud83d\ude00\u0022"}}`, `{"request":{"b\u006fdy":{}}}`, `{"":{},"request":{"body":{} , "uid" : "x"} }`,
	} {
		f.Add(filled([]byte(seed)))
	}
	granted := grants(document())
	f.Fuzz(func(t *testing.T, data []byte) {
		sent := bytes.Clone(data)
		req, err := review.ReadEnvelope(data)
		if err != nil {
			if reason, status := reasonOf(err); reason == "" || status != 400 {
				t.Fatalf("%q, %d", reason, status)
			}
			return
		}
		if json.Valid(sent) && utf8.Valid(sent) {
			sameAsTheLibrary(t, req, sent)
		}
		body := bytes.Clone(req.Body)
		response, err := review.Review(t.Context(), req, granted)
		if err != nil {
			if reason, _ := reasonOf(err); reason == "" || reason == "Internal" {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(body, req.Body) {
			t.Fatal("the body was changed")
		}
		if text := written(t, response); !json.Valid(text) || response.Allowed != (response.Status == nil) {
			t.Fatalf("%s", text)
		}
		if response.Allowed && response.PatchType == review.ByteRanges {
			var edits []review.Edit
			if err := json.Unmarshal(response.Patch, &edits); err != nil {
				t.Fatal(err)
			}
			for _, e := range edits {
				body = slices.Replace(body, e.Offset, e.Offset+e.Length, []byte(e.Text)...)
			}
			if !json.Valid(body) {
				t.Fatalf("edited to %q", body)
			}
		}
	})
}

// sameAsTheLibrary compares what was read with what encoding/json reads of
// members by their exact names.
func sameAsTheLibrary(t *testing.T, req *review.Request, sent []byte) {
	t.Helper()
	var outer, inner map[string]json.RawMessage
	if err := json.Unmarshal(sent, &outer); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(outer["request"], &inner); err != nil {
		t.Fatal(err)
	}
	var uid, text string
	if inner["uid"] != nil {
		if err := json.Unmarshal(inner["uid"], &uid); err != nil || uid != req.UID {
			t.Fatalf("uid %q; want %q, %v", req.UID, uid, err)
		}
	}
	switch body := bytes.TrimSpace(inner["body"]); {
	case bytes.HasPrefix(body, []byte("{")):
		if !bytes.Equal(body, req.Body) {
			t.Fatalf("body %q; want %q", req.Body, body)
		}
	case bytes.HasPrefix(body, []byte(`"`)):
		if err := json.Unmarshal(body, &text); err != nil || text != string(req.Body) {
			t.Fatalf("body %q; want %q, %v", req.Body, text, err)
		}
	}
}
