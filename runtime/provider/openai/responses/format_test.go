// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
)

// fussy refuses text.format with a status and a body, and counts what it is sent.
type fussy struct {
	status        int
	body          string
	with, without int
}

func (s *fussy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if strings.Contains(string(body), `"text":{`) {
		s.with++
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, s.body)
		return
	}
	s.without++
	_, _ = io.WriteString(w, reply(text(`"ok"`)))
}

func TestAServerThatRefusesTextFormatIsAskedOnceMoreWithout(t *testing.T) {
	for name, tc := range map[string]fussy{
		"OpenAI, for an old model":      {status: 400, body: `{"error":{"message":"Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model.","type":"invalid_request_error","param":"text.format","code":null}}`},
		"a schema that it cannot take":  {status: 400, body: `{"error":{"message":"Invalid schema","param":"text.format.schema","code":"invalid_json_schema"}}`},
		"a server that knows no text":   {status: 400, body: `{"error":{"message":"Unknown parameter: 'text'.","param":"text","code":"unknown_parameter"}}`},
		"vLLM":                          {status: 400, body: `{"error":{"message":"guided decoding","type":"BadRequestError","param":null,"code":400}}`},
		"a server that checks its JSON": {status: 422, body: `{"detail":[{"type":"extra_forbidden","loc":["body","text"],"input":{}}]}`},
		"a server that says nothing":    {status: 501},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tc
			c := client(t, s.ServeHTTP)
			req := look()
			before := c.RequestBytes(req)
			for range 2 {
				if got, err := c.Observe(context.Background(), req); err != nil || got.Text != "ok" {
					t.Fatalf("%+v, %v", got, err)
				}
			}
			if s.with != 1 || s.without != 2 {
				t.Errorf("asked %d times with it and %d without", s.with, s.without)
			}
			bare := req
			bare.Schema = nil
			if after := c.RequestBytes(req); after >= before || after != c.RequestBytes(bare) {
				t.Errorf("the request is %d bytes, and was %d", after, before)
			}
			req.Model = "another"
			if _, err := c.Observe(context.Background(), req); err != nil || s.with != 2 {
				t.Errorf("another model was not asked with it: %v", err)
			}
		})
	}
}

func TestWhatIsNotAboutTextFormatIsNotAskedAgain(t *testing.T) {
	for name, tc := range map[string]fussy{
		"another member":     {status: 400, body: `{"error":{"param":"input[0].content[1].image_url","code":"invalid_value"}}`},
		"the image":          {status: 400, body: `{"error":{"message":"You uploaded an unsupported image."}}`},
		"the prompt's size":  {status: 400, body: `{"error":{"code":"context_length_exceeded"}}`},
		"the content filter": {status: 400, body: `{"error":{"code":"content_filter"}}`},
		"the key":            {status: 401},
		"the rate":           {status: 429},
		"the server":         {status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tc
			if _, err := call(t, look(), s.ServeHTTP); err == nil || s.with != 1 || s.without != 0 {
				t.Errorf("asked %d times with it and %d without: %v", s.with, s.without, err)
			}
		})
	}
}

func TestTheSecondFailureIsTheOneReturned(t *testing.T) {
	calls := 0
	_, err := call(t, look(), func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	if f := fault.As(err); calls != 2 || f.Details["upstream_status"] != http.StatusNotFound {
		t.Errorf("%d calls, %+v", calls, f)
	}
}

func TestListIsWhatTheServerLists(t *testing.T) {
	var asked string
	got, err := client(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		_, _ = io.WriteString(w, `{"data":[{"id":"a/sees","architecture":{"input_modalities":["image"]},"context_length":9}]}`)
	}).List(context.Background())
	if diff := cmp.Diff([]provider.Listed{{Name: "a/sees", ImageInput: provider.Yes, ContextWindowTokens: 9}}, got); diff != "" || err != nil || asked != "GET /v1/models" {
		t.Errorf("asked %s, %v (-want +got):\n%s", asked, err, diff)
	}
}
