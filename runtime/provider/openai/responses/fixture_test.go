// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package responses_test

import (
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/responses"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

const key = "sk-very-secret-0123456789"

// look is a request with texts that JSON must escape.
func look() provider.Request {
	return provider.Request{
		Model:        "org/see-2",
		Instructions: "Answer with one JSON object.\n\"No\" <Markdown>.",
		Prompt:       `What is "data:image/png;base64," & {"url":"data:image/png;base64,"}? 漢字 ` + "\u2028",
		Image:        provider.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n and so on")},
		Schema:       &provider.OutputSchema{Name: "visual_observation_v1", JSON: []byte(`{"type": "object", "additionalProperties": false}`)},
	}
}

// client serves a handler until the test ends and returns a client of it.
func client(t *testing.T, h http.HandlerFunc) *responses.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := transport.New(transport.Options{
		Endpoint: router.Endpoint{Name: "default", URL: s.URL, Timeout: "10s"}, Version: "test",
		Auth: &transport.Auth{Header: "Authorization", Scheme: "Bearer ", Source: func() (transport.Secret, error) { return transport.NewSecret(key), nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return responses.New(exchange.Endpoint{BaseURL: s.URL + "/v1/", Client: c})
}

// call serves one request with a handler and returns what Observe makes of it.
func call(t *testing.T, req provider.Request, h http.HandlerFunc) (provider.Reply, error) {
	t.Helper()
	return client(t, h).Observe(context.Background(), req)
}

// says is a handler that answers everything alike.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// reply is a response with the content of its message, which is JSON.
func reply(content string) string {
	return `{"id":"resp_1","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"see-2-2026","output":[` +
		`{"type":"reasoning","id":"rs_1","summary":[],"content":null},` + message(content) +
		`],"usage":{"input_tokens":1024,"output_tokens":33,"output_tokens_details":{"reasoning_tokens":20}}}`
}

// message is an item with a content, which is JSON.
func message(content string) string {
	return `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":` + content + `}`
}

// text is a content with one text, as JSON.
func text(t string) string { return `[{"type":"output_text","annotations":[],"text":` + t + `}]` }

// roundTrip is an http.RoundTripper; answering makes one that reads requests to
// their end and answers "ok".
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answering(sink func(r *http.Request, body io.Reader) error) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		err := sink(r, r.Body)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(reply(text(`"ok"`))))}, err
	})}
}
