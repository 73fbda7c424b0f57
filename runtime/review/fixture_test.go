// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strconv"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// document has two profiles: policy/default takes two different images,
// policy/narrow may use eye-2 alone, and policy/found every eye of a provider
// that is asked for its models.
func document() *router.Document {
	limits := router.Limits{
		Image:   router.ImageLimits{MaxBytes: 20 << 20, MaxPixels: 50_000_000},
		Request: router.RequestLimits{MaxDistinctImages: 2, MaxTotalImageBytes: 20 << 20, MaxProbedPaths: 16, MaxBodyBytes: 64 << 20},
	}
	uses := []router.ProviderUse{{Alias: "lab", Provider: "team-a/lab"}, {Alias: "far", Provider: "team-a/far"}}
	endpoint := func(name, url string) router.Endpoint { return router.Endpoint{Name: name, URL: url, Timeout: "1m0s"} }
	return &router.Document{
		Version: router.Version, Namespace: "team-a",
		Profiles: []router.Profile{
			{ID: "policy/default", Providers: uses, Limits: limits},
			{ID: "policy/narrow", Providers: uses, Limits: limits, Allow: []router.AllowList{{From: "team-a/narrow", Globs: []string{"*/eye-2"}}}},
			{
				ID: "policy/found", Providers: append(uses[:2:2], router.ProviderUse{Alias: "any", Provider: "team-a/any"}), Limits: limits,
				Allow: []router.AllowList{{From: "team-a/found", Globs: []string{"any@*/eye-*", "lab@*"}}},
			},
		},
		Providers: []router.Provider{
			{
				Name: "team-a/lab", Transport: router.TransportOpenAIChatCompletions,
				Endpoints: []router.Endpoint{endpoint("main", "http://models.team-a.svc:8080/v1"), endpoint("spare", "http://spare.team-a.svc/v1")},
				Models: []router.Model{
					{Name: "eye-1", ImageInput: true, ContextWindowTokens: 128_000, Family: "gpt-4o"}, {Name: "text-1"},
					{Name: "eye-2", ImageInput: true, ContextWindowTokens: 100_000, Family: "gpt-4o"}, {Name: "org/eye-4", ImageInput: true},
				},
			},
			{
				Name: "team-a/far", Transport: router.TransportAnthropicMessages, Endpoints: []router.Endpoint{endpoint("api", "https://api.anthropic.com")},
				Models: []router.Model{{Name: "eye-2", ImageInput: true, ContextWindowTokens: 200_000, Family: "claude-high"}, {Name: "claude-opus-4-7", ImageInput: true, ContextWindowTokens: 200_000}},
			},
			{
				Name: "team-a/any", Transport: router.TransportOpenAIChatCompletions, Discovery: &router.Discovery{Interval: "10m0s"},
				Endpoints: []router.Endpoint{endpoint("main", "http://any.team-a.svc/v1")}, Models: []router.Model{},
			},
		},
	}
}

// grants grants what a document does; policy/default is the runtime's own.
func grants(doc *router.Document) review.Grants {
	return func(id string) (review.Grant, error) {
		if id == "" {
			id = "policy/default"
		}
		for i := range doc.Profiles {
			if p := &doc.Profiles[i]; p.ID == id {
				return review.Grant{Profile: p, Catalog: doc.Catalog(p)}, nil
			}
		}
		return review.Grant{}, fault.New(fault.PolicyDenied, "ProfileNotFound", "the router grants nothing to profile %q", id)
	}
}

// pngOf is the beginning of a PNG of that size, which is all that is looked at.
func pngOf(width, height int) []byte {
	header := binary.BigEndian.AppendUint32([]byte("IHDR"), uint32(width))
	header = append(binary.BigEndian.AppendUint32(header, uint32(height)), 8, 2, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(header))
	return append(b, "\x00\x00\x00\x00IDAT"...)
}

var placeholder = regexp.MustCompile(`@png:(\d+)x(\d+)@`)

// filled puts a PNG's base64 in the place of each @png:WIDTHxHEIGHT@.
func filled(text []byte) []byte {
	return placeholder.ReplaceAllFunc(text, func(mark []byte) []byte {
		size := placeholder.FindSubmatch(mark)
		width, _ := strconv.Atoi(string(size[1]))
		height, _ := strconv.Atoi(string(size[2]))
		return base64.StdEncoding.AppendEncode(nil, pngOf(width, height))
	})
}

// judged reviews under document's grants.
func judged(t testing.TB, req *review.Request) *review.Response {
	t.Helper()
	response, err := review.Review(context.Background(), req, grants(document()))
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// exact decodes JSON with its numbers as they are written.
func exact(t testing.TB, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

// chatWith is a chat's body whose question has images.
func chatWith(model string, images ...string) []byte {
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":[{"type":"text","text":"Look"}`, model)
	for _, image := range images {
		body += `,{"type":"image_url","image_url":{"url":"` + image + `"}}`
	}
	return filled([]byte(body + `]}]}`))
}

const onePNG = "data:image/png;base64,@png:64x48@"

// reasonOf is the reason of an error that is a fault, and its HTTP status.
func reasonOf(err error) (string, int) {
	if err == nil {
		return "", 0
	}
	f := fault.As(err)
	return f.Reason, f.Status()
}

// written is a response as it is sent.
func written(t *testing.T, r *review.Response) []byte {
	t.Helper()
	answer, err := review.Written(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Reader())
	if err != nil || int64(len(text)) != answer.Len() {
		t.Fatalf("%d bytes of %d, %v", len(text), answer.Len(), err)
	}
	return text
}
