// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestTheDialectIsReadFromThePath(t *testing.T) {
	for path, want := range map[string]struct {
		dialect message.Dialect
		model   string
	}{
		"/v1/chat/completions":                                             {message.OpenAIChat, ""},
		"v1/chat/completions/":                                             {message.OpenAIChat, ""},
		"/gateway/openai/v1/chat/completions?x=/v1/messages":               {message.OpenAIChat, ""},
		"/openai/deployments/gpt-5%2E1/chat/completions?api-version=1":     {message.OpenAIChat, "gpt-5.1"},
		"/openai/deployments/a/b/chat/completions":                         {message.OpenAIChat, ""},
		"/v1/responses":                                                    {message.OpenAIResponses, ""},
		"/team-a/v1/responses":                                             {message.OpenAIResponses, ""},
		"/v1/messages":                                                     {message.AnthropicMessages, ""},
		"/anthropic/v1/messages?beta=true":                                 {message.AnthropicMessages, ""},
		"/v1/messages/count_tokens":                                        {message.AnthropicMessages, ""},
		"/v1beta/models/gemini-3-pro:generateContent":                      {message.GeminiContents, "gemini-3-pro"},
		"/gemini/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse": {message.GeminiContents, "gemini-3-pro"},
		"/v1/projects/p/locations/l/publishers/google/models/gemini-3-pro%3AgenerateContent": {message.GeminiContents, "gemini-3-pro"},
		"/v1beta/models/:generateContent":         {},
		"/v1beta/models/gemini-3-pro:countTokens": {},
		"/v1/threads/thread_1/messages":           {},
		"/v1/messages/batches":                    {},
		"/v1/responses/resp_1":                    {},
		"/v1/embeddings":                          {},
		"/":                                       {},
		"":                                        {},
	} {
		if dialect, model := review.FromPath(path); dialect != want.dialect || model != want.model {
			t.Errorf("%s is of %q and names %q; want %q, %q", path, dialect, model, want.dialect, want.model)
		}
	}
}

func TestAReviewThatCannotBeJudgedIsAFault(t *testing.T) {
	body := chatWith("eye-1", onePNG)
	big := document()
	big.Profiles[0].Limits.Request.MaxBodyBytes = int64(len(body)) - 1
	for name, tc := range map[string]struct {
		req    review.Request
		reason string
		status int
	}{
		"neither dialect nor path":    {review.Request{Body: body}, "UnknownDialect", 400},
		"a path of no dialect":        {review.Request{Path: "/v1/embeddings", Body: body}, "UnknownDialect", 400},
		"a dialect that is not known": {review.Request{Dialect: "openai", Path: "/v1/responses", Body: body}, "UnknownDialect", 400},
		"Inject without a runtime":    {review.Request{Operation: review.Inject, Dialect: message.OpenAIChat, Body: body}, "OperationUnsupported", 400},
		"Inject by a JSON patch":      {review.Request{Operation: review.Inject, PatchTypes: []review.PatchType{review.JSONPatch}, Dialect: message.OpenAIChat, Body: body}, "PatchTypeUnsupported", 400},
		"Inject that is not sent":     {review.Request{Operation: review.Inject, DryRun: true, Dialect: message.OpenAIChat, Body: body}, "DryRunUnsupported", 400},
		"another operation":           {review.Request{Operation: "Eject", Dialect: message.OpenAIChat, Body: body}, "OperationUnknown", 400},
		"a method of no model":        {review.Request{Method: "PUT", Dialect: message.OpenAIChat, Body: body}, "MethodUnknown", 400},
		"no patch type that is known": {review.Request{PatchTypes: []review.PatchType{"MergePatch"}, Dialect: message.OpenAIChat, Body: body}, "PatchTypeUnknown", 400},
		"facts that are none":         {review.Request{Dialect: message.OpenAIChat, Body: []byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"sha256":"00","bytes":5}}]}]}`)}, "BadFacts", 400},
		"a body over the limit":       {review.Request{Dialect: message.OpenAIChat, Body: body}, "BodyTooLarge", 413},
	} {
		doc := document()
		if tc.status == http.StatusRequestEntityTooLarge {
			doc = big
		}
		response, err := review.Review(t.Context(), &tc.req, grants(doc))
		if reason, status := reasonOf(err); response != nil || reason != tc.reason || status != tc.status {
			t.Errorf("%s: %q, %d; want %q, %d", name, reason, status, tc.reason, tc.status)
		}
	}
}

func TestWithoutARouterThereIsNoVerdict(t *testing.T) {
	missing := fault.New(fault.RouterUnavailable, "NoRouter", "not yet")
	none := func(string) (review.Grant, error) { return review.Grant{}, missing }
	req := &review.Request{Dialect: message.OpenAIChat, Body: chatWith("eye-1", onePNG)}
	if response, err := review.Review(t.Context(), req, none); response != nil || fault.As(err) != missing {
		t.Errorf("%+v, %v", response, err)
	}
}

func TestAProfileThatIsNotThereIsAVerdictInTheDialectsShape(t *testing.T) {
	response := judged(t, &review.Request{UID: "u", Profile: "policy/gone", Dialect: message.AnthropicMessages, Body: []byte(`{}`)})
	if s := response.Status; response.Allowed || response.UID != "u" || s.Code != 403 || s.Reason != "ProfileNotFound" ||
		!strings.HasPrefix(string(s.Body), `{"type":"error","error":{"type":"permission_error"`) {
		t.Errorf("%+v, %s", response, s.Body)
	}
}

func TestARequestWithoutABodyIsAllowed(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "delete"} {
		response := judged(t, &review.Request{Method: method, Path: "/v1/chat/completions"})
		if !response.Allowed || len(response.Warnings) != 1 || response.Patch != nil {
			t.Errorf("%s: %+v", method, response)
		}
	}
}

func TestAReviewEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := review.Review(ctx, &review.Request{Dialect: message.OpenAIChat, Body: chatWith("eye-1", onePNG)}, grants(document()))
	if reason, _ := reasonOf(err); reason != "Canceled" {
		t.Errorf("%v", err)
	}
}

func TestTheModelIsFoundByItsNameOrRoute(t *testing.T) {
	ambiguous := "2 declared models have the name of the request's; it is judged as "
	for name, tc := range map[string]struct {
		explicit, body, path, profile string
		dialect                       message.Dialect
		window                        int64
		warns, refuses                string
	}{
		"a route in the body":                    {body: "lab@main/eye-1", window: 128_000},
		"a route without its endpoint":           {body: "far/eye-2", window: 200_000},
		"a name that one model has":              {body: "eye-1", window: 128_000},
		"the review's model goes before":         {explicit: "eye-1", body: "nobody", path: "/openai/deployments/text-1/chat/completions", window: 128_000},
		"the body's goes before the path's":      {body: "eye-1", path: "/openai/deployments/text-1/chat/completions", window: 128_000},
		"the path's is the last":                 {path: "/openai/deployments/eye-1/chat/completions", window: 128_000},
		"a name with a slash is no route":        {body: "org/eye-4", warns: "the context window of the model lab@main/org/eye-4 is not known"},
		"a name of two, in a chat":               {body: "eye-2", window: 100_000},
		"a name of two, in messages":             {body: "eye-2", dialect: message.AnthropicMessages, window: 200_000},
		"a name of two, in neither":              {explicit: "models/eye-2", dialect: message.GeminiContents, window: 100_000, warns: ambiguous + "lab@main/eye-2"},
		"nobody's name":                          {body: "gpt-5.1", warns: "the model gpt-5.1 is not declared by its provider"},
		"nobody's route":                         {body: "lab@main/eye-9", warns: "the model lab@main/eye-9 is not declared"},
		"no name":                                {warns: "the model is not declared"},
		"a model that the policy does not allow": {body: "eye-1", profile: "policy/narrow", refuses: "ModelNotAllowed"},
		"a name that no list of the policy has":  {body: "gpt-5.1", profile: "policy/narrow", refuses: "ModelNotAllowed"},
		"a route that no list of the policy has": {body: "lab@main/eye-9", profile: "policy/narrow", refuses: "ModelNotAllowed"},
		"no name, where the policy has lists":    {profile: "policy/narrow", refuses: "ModelNotAllowed"},
		"a name that may be found, and allowed":  {body: "eye-3", profile: "policy/found", warns: "the model eye-3 is not declared"},
		"a route that may be found, and allowed": {body: "any/eye-3", profile: "policy/found", warns: "the model any/eye-3 is not declared"},
		"a route that a list has, not declared":  {body: "lab/eye-3", profile: "policy/found", warns: "the model lab/eye-3 is not declared"},
		"a route that no list has, not declared": {body: "far/eye-3", profile: "policy/found", refuses: "ModelNotAllowed"},
		"a route of an endpoint that is not":     {body: "lab@none/eye-3", profile: "policy/found", refuses: "ModelNotAllowed"},
		"a name that may be found, not allowed":  {body: "ear-3", profile: "policy/found", refuses: "ModelNotAllowed"},
		"a route that the policy allows":         {body: "lab@spare/eye-2", profile: "policy/narrow", window: 100_000},
		"a model that takes text alone":          {body: "text-1", refuses: "ModelLacksImageInput"},
	} {
		req := &review.Request{Model: tc.explicit, Path: tc.path, Profile: tc.profile, Dialect: message.OpenAIChat, Body: chatWith(tc.body, onePNG)}
		switch tc.dialect {
		case message.AnthropicMessages:
			req.Dialect, req.Body = tc.dialect, filled(fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"@png:9x9@"}}]}]}`, tc.body))
		case message.GeminiContents:
			req.Dialect, req.Body = tc.dialect, filled([]byte(`{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"@png:9x9@"}}]}]}`))
		}
		response := judged(t, req)
		switch {
		case tc.refuses != "":
			if response.Allowed || response.Status.Reason != tc.refuses || response.Decisions[0].Outcome != preflight.Refused {
				t.Errorf("%s: %+v", name, response)
			}
			continue
		case !response.Allowed || response.Tokens.Window != tc.window:
			t.Errorf("%s: %+v, %+v", name, response, response.Tokens)
		}
		if warned := strings.Join(response.Warnings, "\n"); tc.warns == "" && warned != "" || !strings.Contains(warned, tc.warns) {
			t.Errorf("%s warns %q; want %q", name, warned, tc.warns)
		}
	}
}

func TestWithoutImagesThePolicyOnModelsSaysNothing(t *testing.T) {
	if response := judged(t, &review.Request{Profile: "policy/narrow", Dialect: message.OpenAIChat, Body: chatWith("eye-1")}); !response.Allowed {
		t.Errorf("%+v", response)
	}
}

func TestImagesAreJudgedByTheirBytes(t *testing.T) {
	encoded := func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
	gif := "R0lGODlhAQABAAAAACw="
	bmp := encoded(append([]byte("BM\x00\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\x05\x00\x00\x00\x05\x00\x00\x00\x01\x00\x18\x00"), make([]byte, 100)...))
	late := append([]byte("\xff\xd8"), strings.Repeat("\xff\xe1\xff\xff"+strings.Repeat("x", 65533), 2)...)
	for name, tc := range map[string]struct{ url, reason, warns string }{
		"a PNG":                                      {url: onePNG},
		"a PNG with escapes":                         {url: `data:image\/png;base64,@png:64x48@`},
		"a PNG of no declared type":                  {url: "data:;base64,@png:64x48@"},
		"a GIF by its name":                          {url: "data:image/gif;base64," + gif},
		"a PNG that is said to be a JPEG":            {url: "data:image/jpeg;base64,@png:64x48@", reason: "MediaTypeMismatch"},
		"a BMP, which is not taken":                  {url: "data:image/x-ms-bmp;base64," + bmp, reason: "MediaTypeNotAccepted"},
		"text":                                       {url: "data:image/png;base64,aGVsbG8=", reason: "NotAnImage"},
		"half a header":                              {url: "data:image/png;base64," + encoded(pngOf(64, 48)[:20]), reason: "ImageMalformed"},
		"no width":                                   {url: "data:image/png;base64,@png:0x48@", reason: "ImageMalformed"},
		"too many pixels":                            {url: "data:image/png;base64,@png:10000x5001@", reason: "TooManyPixels"},
		"as many pixels as may be":                   {url: "data:image/png;base64,@png:10000x5000@"},
		"sides whose product needs 64 bits":          {url: "data:image/png;base64,@png:65536x65536@", reason: "TooManyPixels"},
		"no base64":                                  {url: "data:image/png;base64,iVBO*w==", reason: "BadBase64"},
		"no base64 behind the header":                {url: "data:image/png;base64," + encoded(append(pngOf(64, 48), make([]byte, 70_000-31)...))[:90_000] + "*", reason: "BadBase64"},
		"a JPEG with its size behind 64 KiB":         {url: "data:image/jpeg;base64," + encoded(late), warns: "1 of the images have no known width and height"},
		"an image elsewhere":                         {url: "https://example.com/a.png", warns: "1 of the images have no known size in bytes"},
		"an address that nobody knows":               {url: "s3://bucket/a.png", warns: "the first at messages[0].content[1] (its URL is none of data, http and https)"},
		"a PNG behind a space":                       {url: " data:image/png;base64,@png:64x48@"},
		"too many pixels behind a space":             {url: " data:image/png;base64,@png:10000x5001@", reason: "TooManyPixels"},
		"a data URL whose head does not end":         {url: "data:image/png;" + strings.Repeat("x", 300) + ";base64,@png:10000x5001@", reason: "DataNotRead"},
		"a data URL with base64 in its middle":       {url: "data:image/png;base64;x=y,@png:10000x5001@", reason: "DataNotRead"},
		"bare base64":                                {url: "@png:10000x5001@", reason: "DataNotRead"},
		"more bytes than a policy takes in an image": {url: "data:image/png;base64," + encoded(append(pngOf(64, 48), make([]byte, 20<<20)...)), reason: "TooManyBytes"},
	} {
		response := judged(t, &review.Request{Dialect: message.OpenAIChat, Body: chatWith("eye-1", tc.url)})
		if tc.reason != "" {
			if s := response.Status; response.Allowed || s.Reason != tc.reason || !strings.Contains(s.Message, "messages[0].content[1]") ||
				!strings.Contains(string(s.Body), `"param":"messages[0].content[1]"`) || response.Decisions[0].Outcome != preflight.Refused {
				t.Errorf("%s: %+v, %+v", name, response, response.Status)
			}
			continue
		}
		if warned := strings.Join(response.Warnings, "\n"); !response.Allowed || tc.warns == "" && warned != "" || !strings.Contains(warned, tc.warns) {
			t.Errorf("%s: %+v, %+v", name, response, response.Status)
		}
	}
}

// A required image of just as many bytes as the policy takes is admitted, and
// one of one byte more is not.
func TestTheLimitOfBytesIsMetToTheByte(t *testing.T) {
	for extra, allowed := range map[int]bool{0: true, 1: false} {
		image := append(pngOf(64, 48), make([]byte, 20<<20+extra-len(pngOf(64, 48)))...)
		response := judged(t, &review.Request{Dialect: message.OpenAIChat, Body: chatWith("eye-1", "data:image/png;base64,"+base64.StdEncoding.EncodeToString(image))})
		if response.Allowed != allowed || !allowed && !strings.Contains(response.Status.Message, "20 MiB (20971520 bytes)") {
			t.Errorf("%d bytes: %+v", len(image), response.Status)
		}
	}
}

func TestFactsWeighAsTheDataWould(t *testing.T) {
	facts := func(bytes int64, more string) string {
		return fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":{"sha256":%q,"bytes":%d%s}}}]}]}`, strings.Repeat("ab", 32), bytes, more)
	}
	head := `,"head":"` + base64.StdEncoding.EncodeToString(pngOf(64, 48)) + `"`
	for name, tc := range map[string]struct{ body, reason string }{
		"within every limit":                  {facts(20<<20, head), ""},
		"too many bytes":                      {facts(20<<20+1, head), "TooManyBytes"},
		"no head":                             {facts(99, `,"mediaType":"image/JPG"`), ""},
		"a type that is not taken":            {facts(99, `,"mediaType":"image/x-tiff"`), "MediaTypeNotAccepted"},
		"a type that the head is not of":      {facts(99, `,"mediaType":"image/jpeg"`+head), "MediaTypeMismatch"},
		"more than any number of bytes holds": {facts(1<<62, head), "TooManyBytes"},
	} {
		response := judged(t, &review.Request{Model: "eye-1", Dialect: message.OpenAIChat, Body: []byte(tc.body)})
		got := ""
		if response.Status != nil {
			got = response.Status.Reason
		}
		if got != tc.reason || response.Decisions[0].SHA256 != strings.Repeat("ab", 32) {
			t.Errorf("%s: %+v, %+v", name, response, response.Status)
		}
	}
}

// A body of facts is held against a limit on bodies as the one that is sent: with
// the data of its images, and without the heads.
func TestABodyOfFactsWeighsWhatIsSent(t *testing.T) {
	head := append(pngOf(64, 48), make([]byte, 60_000)...)
	body := fmt.Appendf(nil, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":{"sha256":%q,"bytes":90000,"head":%q}}}]}]}`,
		strings.Repeat("ab", 32), base64.StdEncoding.EncodeToString(head))
	for most, allowed := range map[int64]bool{120_400: true, 120_100: false} {
		doc := document()
		doc.Providers[0].Models[0].Limits = &router.ModelLimits{MaxRequestBytes: most}
		response, err := review.Review(t.Context(), &review.Request{Model: "eye-1", Dialect: message.OpenAIChat, Body: body}, grants(doc))
		if err != nil || response.Allowed != allowed || !allowed && response.Status.Reason != preflight.ReasonBody {
			t.Errorf("at most %d bytes: %+v, %+v, %v", most, response, response.Status, err)
		}
	}
}

func TestTheSameContentIsOneImageHoweverItIsWritten(t *testing.T) {
	response := judged(t, &review.Request{Dialect: message.OpenAIChat, Body: chatWith("eye-1", onePNG, `data:image\/png;base64,@png:64x48@`, onePNG)})
	if !response.Allowed || response.Decisions[0].SHA256 != response.Decisions[1].SHA256 {
		t.Errorf("%+v, %+v", response, response.Status)
	}
}

func TestTwoReviewsOfOneRequestAreTheSame(t *testing.T) {
	body := chatWith("eye-1", onePNG, "data:image/png;base64,@png:9x9@")
	first := judged(t, &review.Request{Dialect: message.OpenAIChat, Body: body})
	second := judged(t, &review.Request{Dialect: message.OpenAIChat, Body: body})
	if fmt.Sprintf("%+v", first.Decisions) != fmt.Sprintf("%+v", second.Decisions) {
		t.Errorf("%+v; %+v", first.Decisions, second.Decisions)
	}
}

// What a review allocates does not grow with its images.
func TestAllocationsDoNotGrowWithTheImages(t *testing.T) {
	allocated := func(size int) float64 {
		image := append(pngOf(64, 48), make([]byte, size)...)
		body := chatWith("eye-1", "data:image/png;base64,"+base64.StdEncoding.EncodeToString(image))
		return testing.AllocsPerRun(20, func() { judged(t, &review.Request{Dialect: message.OpenAIChat, Body: body}) })
	}
	small, large := allocated(1<<10), allocated(8<<20)
	if large > small+3 {
		t.Errorf("%v allocations with an image of 1 KiB, %v with one of 8 MiB", small, large)
	}
}
