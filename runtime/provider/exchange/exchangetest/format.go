// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchangetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider"
)

// FallsBack calls a server that refuses, with a status and a body, requests with
// format in them: it must be asked once more without structured output, and from
// then on without it, as far as that model goes.
func (p Protocol) FallsBack(t *testing.T, req provider.Request, format string, status int, body string) {
	t.Helper()
	var sent [][]byte
	c := p.Client(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		sent = append(sent, got)
		if bytes.Contains(got, []byte(format)) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		}
		_, _ = io.WriteString(w, p.Answer)
	})
	before := c.RequestBytes(req)
	for range 2 {
		if got, err := c.Observe(context.Background(), req); err != nil || got.Text != "ok" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	bare := req
	bare.Schema = nil
	want := [][]byte{p.Body(t, req), p.Body(t, bare), p.Body(t, bare)}
	if len(sent) != len(want) {
		t.Fatalf("%d requests were sent, want 2 and then 1", len(sent))
	}
	for i := range want {
		if !bytes.Equal(sent[i], want[i]) {
			t.Errorf("request %d is %s, want %s", i, sent[i], want[i])
		}
	}
	if after := c.RequestBytes(req); after >= before || after != int64(len(want[1])) {
		t.Errorf("the request is said to be of %d bytes, and was of %d", after, before)
	}
	other := p.LookWith("another")
	if _, err := c.Observe(context.Background(), other); err != nil || !bytes.Equal(sent[3], p.Body(t, other)) {
		t.Errorf("one model's refusal is held against another: %v", err)
	}
}

// Asked is how often a server is asked that refuses everything with a status and a body.
func (p Protocol) Asked(t *testing.T, req provider.Request, status int, body string) int {
	t.Helper()
	asked := 0
	_, err := p.Client(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		Says(status, body)(w, r)
	}).Observe(context.Background(), req)
	_ = Fault(t, err)
	return asked
}

// Fallback calls servers that refuse structured output, or something else, in
// ways that are the same for every protocol.
func (p Protocol) Fallback(t *testing.T) {
	t.Helper()
	for _, status := range []int{400, 422, 501} {
		t.Run(fmt.Sprintf("a server that says %d and no more is asked once more", status), func(t *testing.T) {
			p.FallsBack(t, p.Look(), p.Format, status, "")
		})
	}
	for name, tc := range map[string]struct {
		status int
		body   string
	}{
		"another member":           {400, `{"error":{"param":"messages.[1].content.[1].image_url","code":"invalid_value"}}`},
		"a member of theirs":       {400, `{"error":{"param":"max_tokens","code":"invalid_value"}}`},
		"the image":                {400, `{"error":{"message":"You uploaded an unsupported image."}}`},
		"the prompt's size":        {400, `{"error":{"code":"context_length_exceeded"}}`},
		"the content filter":       {400, `{"error":{"code":"content_filter"}}`},
		"the key":                  {401, ""},
		"what the key may do":      {403, ""},
		"the model":                {404, ""},
		"the request's size":       {413, ""},
		"the rate":                 {429, ""},
		"the server":               {500, ""},
		"a key that Google denies": {400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`},
	} {
		t.Run("a refusal for "+name+" is final", func(t *testing.T) {
			if n := p.Asked(t, p.Look(), tc.status, tc.body); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
	t.Run("a request without a schema is not sent again", func(t *testing.T) {
		if n := p.Asked(t, Plain(p.Model), 400, ""); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
	t.Run("the second failure is the one returned", func(t *testing.T) {
		calls := 0
		_, err := p.Client(t, func(w http.ResponseWriter, r *http.Request) {
			calls++
			Says(map[int]int{1: http.StatusBadRequest, 2: http.StatusNotFound}[calls], "")(w, r)
		}).Observe(context.Background(), p.Look())
		if f := Fault(t, err); calls != 2 || f.Details["upstream_status"] != http.StatusNotFound {
			t.Errorf("%d calls, %+v", calls, f)
		}
	})
}
