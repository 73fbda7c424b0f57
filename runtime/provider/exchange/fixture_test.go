// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is sent with every call, and picture as its image: neither may show up in a fault.
const (
	key     = "sk-very-secret-0123456789"
	picture = "the picture's own bytes, secret"
)

// pictureBase64 is picture as it travels.
const pictureBase64 = "dGhlIHBpY3R1cmUncyBvd24gYnl0ZXMsIHNlY3JldA=="

// clientOf makes the HTTP client that the engine would make for a URL.
func clientOf(t testing.TB, url, timeout string) *http.Client {
	t.Helper()
	c, err := transport.New(transport.Options{
		Endpoint: router.Endpoint{Name: "default", URL: url, Timeout: timeout}, Version: "test",
		Auth: &transport.Auth{Header: "Authorization", Scheme: "Bearer ", Source: func() (transport.Secret, error) { return transport.NewSecret(key), nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// slot is where the test's requests have their image.
type slot struct {
	URL string `json:"url"`
}

// bodyWith is a small request with an image in it.
func bodyWith(t testing.TB, image string) *exchange.Body {
	t.Helper()
	at := slot{URL: "data:image/png;base64,"}
	body, err := exchange.Encode(map[string]any{"image": at, "model": "see"}, at, []byte(image))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// serve runs a handler until the test ends and returns its URL.
func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// post sends the picture to a handler.
func post(t testing.TB, timeout string, h http.HandlerFunc) ([]byte, error) {
	t.Helper()
	url := serve(t, h)
	return exchange.Post{Client: clientOf(t, url, timeout), URL: url + "/v1/look", Body: bodyWith(t, picture)}.Do(context.Background())
}

// answer is a handler that says the same to everyone; headers are names and values in turn.
func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// leaks reports whether a text repeats the key or the image.
func leaks(text string) bool {
	return strings.Contains(text, "secret") || strings.Contains(text, pictureBase64[:16])
}
