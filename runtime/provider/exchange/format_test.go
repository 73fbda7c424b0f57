// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
)

// refused is a server's error of a status, as Do returns it.
func refused(status int, body string) error {
	return exchange.Failed("UpstreamStatus", false, "refused").Because(exchange.ReadStatus(status, []byte(body)))
}

func TestWhenAServerMayHaveRefusedStructuredOutput(t *testing.T) {
	param := func(p string) string {
		return `{"error":{"type":"invalid_request_error","param":"` + p + `","message":"no"}}`
	}
	for name, tc := range map[string]struct {
		err    error
		member string
		want   bool
	}{
		"a status alone":                       {refused(400, ``), "response_format", true},
		"a request that does not hold":         {refused(422, `{"detail":[]}`), "response_format", true},
		"a request that is not built":          {refused(501, ``), "response_format", true},
		"vLLM, without a param":                {refused(400, `{"object":"error","message":"Grammar error","type":"BadRequestError","param":null,"code":400}`), "response_format", true},
		"the member by name":                   {refused(400, param("response_format")), "response_format", true},
		"a member below":                       {refused(400, param("response_format.json_schema.schema")), "response_format", true},
		"text.format of text":                  {refused(400, param("text.format")), "text", true},
		"text of text":                         {refused(400, param("text")), "text", true},
		"text.format.schema of text":           {refused(400, param("text.format.schema")), "text", true},
		"the member, with words on images":     {refused(400, `{"error":{"param":"response_format","message":"Invalid schema: image format"}}`), "response_format", true},
		"a member with capitals":               {refused(400, param("generationConfig.responseSchema")), "generationConfig", true},
		"another member":                       {refused(400, param("max_tokens")), "response_format", false},
		"a member that only begins the same":   {refused(400, param("text_format")), "text", false},
		"a member with an index":               {refused(400, param("messages.[1].content.[1].image_url")), "response_format", false},
		"an image by its code":                 {refused(400, `{"error":{"code":"invalid_image_format"}}`), "response_format", false},
		"an image by its words":                {refused(400, `{"error":{"message":"image exceeds 10 MB maximum"}}`), "response_format", false},
		"too long a prompt":                    {refused(400, `{"error":{"code":"context_length_exceeded"}}`), "response_format", false},
		"a content filter":                     {refused(400, `{"error":{"code":"content_filter"}}`), "response_format", false},
		"a model that is not there":            {refused(400, `{"error":{"code":"model_not_found"}}`), "response_format", false},
		"a refused key":                        {refused(401, param("response_format")), "response_format", false},
		"a key that Google refuses":            {refused(400, `{"error":{"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`), "generationConfig", false},
		"a rate limit":                         {refused(429, ``), "response_format", false},
		"a broken server":                      {refused(500, ``), "response_format", false},
		"a wrapped error":                      {fmt.Errorf("asking: %w", refused(400, ``)), "response_format", true},
		"no status at all":                     {errors.New("status 400"), "response_format", false},
		"nothing":                              {nil, "response_format", false},
		"a gateway's error 400 of status 200":  {exchange.ErrorIn([]byte(`{"code":400,"message":"response_format is not supported"}`)), "response_format", true},
		"an error of status 200 without a cue": {exchange.ErrorIn([]byte(`{"message":"response_format is not supported"}`)), "response_format", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exchange.RefusesFormat(tc.err, tc.member); got != tc.want {
				t.Errorf("RefusesFormat(%v, %s) = %v", tc.err, tc.member, got)
			}
		})
	}
}

func asking(model string) provider.Request {
	return provider.Request{Model: model, Schema: &provider.OutputSchema{Name: "n", JSON: []byte("{}")}}
}

// fussy counts what it is sent, and refuses schemas; without one it answers, or fails with otherwise.
type fussy struct {
	with, without atomic.Int32
	otherwise     error
}

func (s *fussy) send(_ context.Context, req provider.Request) (provider.Reply, error) {
	if req.Schema != nil {
		s.with.Add(1)
		return provider.Reply{}, refused(400, "")
	}
	s.without.Add(1)
	return provider.Reply{Text: "seen"}, s.otherwise
}

func (s *fussy) sent() string {
	return fmt.Sprintf("%d with, %d without", s.with.Load(), s.without.Load())
}

func TestARefusedSchemaIsAskedForInVainOnce(t *testing.T) {
	var m exchange.Memory
	s := &fussy{}
	for range 3 {
		if reply, err := m.Ask(context.Background(), asking("a"), "response_format", s.send); err != nil || reply.Text != "seen" {
			t.Fatalf("%+v, %v", reply, err)
		}
	}
	if got := s.sent(); got != "1 with, 3 without" {
		t.Errorf("sent %s", got)
	}
	if m.Shape(asking("a")).Schema != nil || m.Shape(asking("b")).Schema == nil {
		t.Error("what is known of one model is not known of it, or of another")
	}
	if _, err := m.Ask(context.Background(), asking("b"), "response_format", s.send); err != nil || s.sent() != "2 with, 4 without" {
		t.Errorf("another model: sent %s, %v", s.sent(), err)
	}
}

func TestARequestThatFailsWithoutItsSchemaTooIsNotRemembered(t *testing.T) {
	var m exchange.Memory
	second := refused(404, "")
	s := &fussy{otherwise: second}
	for range 2 {
		if _, err := m.Ask(context.Background(), asking("a"), "response_format", s.send); !errors.Is(err, second) {
			t.Fatalf("%v is not the second failure", err)
		}
	}
	if got := s.sent(); got != "2 with, 2 without" {
		t.Errorf("sent %s", got)
	}
}

func TestOtherFailuresAreNotAskedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		req provider.Request
		err error
	}{
		"a rate limit":                   {asking("a"), refused(429, "")},
		"a refusal without any schema":   {provider.Request{Model: "a"}, refused(400, "")},
		"a refusal of the image":         {asking("a"), refused(400, `{"error":{"code":"invalid_image"}}`)},
		"a reply that does not come":     {asking("a"), exchange.Failed("Connection", true, "gone")},
		"a reply that is no observation": {asking("a"), exchange.Truncated()},
	} {
		var m exchange.Memory
		calls := 0
		_, err := m.Ask(context.Background(), tc.req, "response_format", func(context.Context, provider.Request) (provider.Reply, error) {
			calls++
			return provider.Reply{}, tc.err
		})
		if calls != 1 || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
}

func TestTheCallersRequestKeepsItsSchema(t *testing.T) {
	var m exchange.Memory
	req := asking("a")
	if _, err := m.Ask(context.Background(), req, "response_format", (&fussy{}).send); err != nil || req.Schema == nil {
		t.Errorf("schema %v, %v", req.Schema, err)
	}
}

func TestManyAskAtOnce(t *testing.T) {
	var m exchange.Memory
	s := &fussy{}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			model := fmt.Sprintf("m%d", i%4)
			if reply, err := m.Ask(context.Background(), asking(model), "response_format", s.send); err != nil || reply.Text != "seen" {
				t.Errorf("%+v, %v", reply, err)
			}
			_ = m.Shape(asking(model))
		})
	}
	wg.Wait()
	if s.without.Load() != 64 || s.with.Load() < 4 {
		t.Errorf("sent %s", s.sent())
	}
}
