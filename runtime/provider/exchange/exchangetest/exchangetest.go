// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchangetest is what the tests of all wire protocols have in common:
// a request, servers to send it to, and the contract that each of them keeps. A
// protocol's tests describe it as a Protocol, call its suites, and add the cases
// that no other protocol has. Tests alone import it.
package exchangetest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Protocol describes a wire protocol to the suites.
type Protocol struct {
	// New is the protocol's.
	New func(exchange.Endpoint) *exchange.Client
	// Base is what a base URL has after the server's address, such as "/v1/".
	Base string
	// Path is where a request goes; "{model}" in it stands for the model's name.
	Path string
	// Key goes with every call, and Header does.
	Key    Key
	Header http.Header

	// Model and Schema are the request's, and Slot a text in its prompt that looks
	// like the place of the image. Format is what a body has in it when it asks for
	// structured output, and no other has.
	Model, Slot, Schema, Format string

	// Answer is a reply that says "ok", and Reply what replies are called in errors.
	Answer, Reply string
}

// Key is a credential and how it travels. Its value holds the word "secret",
// which a fault must therefore not.
type Key struct{ Header, Scheme, Value string }

// Bearer is the key of those who imitate OpenAI.
var Bearer = Key{Header: "Authorization", Scheme: "Bearer ", Value: "sk-very-secret-0123456789"}

// Client is the HTTP client that the engine would make for a URL, whose calls
// carry the key.
func (k Key) Client(t testing.TB, url, timeout string) *http.Client {
	t.Helper()
	c, err := transport.New(transport.Options{
		Endpoint: router.Endpoint{Name: "default", URL: url, Timeout: timeout}, Version: "test",
		Auth: &transport.Auth{Header: k.Header, Scheme: k.Scheme, Source: func() (transport.Secret, error) { return transport.NewSecret(k.Value), nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// Look is a request with texts that JSON must escape.
func (p Protocol) Look() provider.Request { return p.LookWith(p.Model) }

// LookWith is Look for another model.
func (p Protocol) LookWith(model string) provider.Request {
	return provider.Request{
		Model:        model,
		Instructions: "Answer with one JSON object.\n\"No\" <Markdown>.",
		Prompt:       "What is " + p.Slot + "? 漢字 \u2028",
		Image:        provider.Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n and so on")},
		Schema:       &provider.OutputSchema{Name: "visual_observation_v1", JSON: []byte(p.Schema)},
	}
}

// Plain is a request with no more than it must have.
func Plain(model string) provider.Request {
	return provider.Request{Model: model, Prompt: "Look.", Image: provider.Image{MediaType: "image/jpeg", Data: []byte("\xff\xd8")}}
}

// Limited is a request whose output is limited.
func Limited(req provider.Request) provider.Request {
	req.MaxOutputTokens = 4096
	return req
}

// Serve runs a handler until the test ends and returns its URL.
func Serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// Says is a handler that says the same to everyone; headers are names and values in turn.
func Says(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Client is a client of a handler.
func (p Protocol) Client(t testing.TB, h http.HandlerFunc) *exchange.Client {
	t.Helper()
	return p.at(t, Serve(t, h), "10s")
}

// at is a client of the server with a URL.
func (p Protocol) at(t testing.TB, url, timeout string) *exchange.Client {
	t.Helper()
	return p.New(exchange.Endpoint{BaseURL: url + p.Base, Client: p.Key.Client(t, url, timeout)})
}

// RoundTrip is an http.RoundTripper.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Offline is an HTTP client without a network: see gets the requests, whose
// bodies it must read, and each is answered alike.
func Offline(answer string, see func(*http.Request) error) *http.Client {
	return &http.Client{Transport: RoundTrip(func(r *http.Request) (*http.Response, error) {
		err := see(r)
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}, err
	})}
}

// Drain reads a request's body, if it has one, and keeps nothing of it.
func Drain(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	_, err := io.Copy(io.Discard, r.Body)
	return err
}

// reading is a client, without a network, of a server that answers so.
func (p Protocol) reading(answer string) *exchange.Client {
	return p.New(exchange.Endpoint{BaseURL: "http://x.example", Client: Offline(answer, Drain)})
}

// Read is what is made of a reply to a request.
func (p Protocol) Read(req provider.Request, reply string) (provider.Reply, error) {
	return p.reading(reply).Observe(context.Background(), req)
}

// Reads compares what is made of a reply to a request.
func (p Protocol) Reads(t *testing.T, req provider.Request, reply string, want provider.Reply) {
	t.Helper()
	if got, err := p.Read(req, reply); err != nil || got != want {
		t.Errorf("reply = %+v, %v; want %+v", got, err, want)
	}
}

// Sent is what a client of an endpoint, whose Client is not used, sends, and where to.
func (p Protocol) Sent(t testing.TB, at exchange.Endpoint, req provider.Request) (*url.URL, []byte) {
	t.Helper()
	var to *url.URL
	var body []byte
	at.Client = Offline(p.Answer, func(r *http.Request) (err error) {
		to = r.URL
		body, err = io.ReadAll(r.Body)
		if size := p.New(at).RequestBytes(req); r.ContentLength != int64(len(body)) || size != r.ContentLength {
			t.Errorf("%d bytes were sent, Content-Length %d, RequestBytes %d", len(body), r.ContentLength, size)
		}
		return err
	})
	if _, err := p.New(at).Observe(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	return to, body
}

// Body is what is sent for a request.
func (p Protocol) Body(t testing.TB, req provider.Request) []byte {
	t.Helper()
	_, body := p.Sent(t, exchange.Endpoint{BaseURL: "http://x.example"}, req)
	return body
}
