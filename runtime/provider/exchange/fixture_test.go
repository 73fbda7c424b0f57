// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is sent with every call, and picture as its image: neither may show up in a fault.
const (
	key     = "sk-very-secret-0123456789"
	picture = "the picture's own bytes, secret"
)

// pictureBase64 is picture as it travels.
const pictureBase64 = "dGhlIHBpY3R1cmUncyBvd24gYnl0ZXMsIHNlY3JldA=="

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

// What exchangetest has for tests of protocols.
var (
	serve    = exchangetest.Serve
	answer   = exchangetest.Says
	clientOf = exchangetest.Bearer.Client
)

// post sends the picture to a handler.
func post(t testing.TB, timeout string, h http.HandlerFunc) ([]byte, error) {
	t.Helper()
	url := serve(t, h)
	return exchange.Post{Client: clientOf(t, url, timeout), URL: url + "/v1/look", Body: bodyWith(t, picture)}.Do(context.Background())
}

// leaks reports whether a text repeats the key or the image.
func leaks(text string) bool {
	return strings.Contains(text, "secret") || strings.Contains(text, pictureBase64[:16])
}
