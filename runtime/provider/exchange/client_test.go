// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

// The rest of a Client is tested with the protocols, by exchangetest.

func TestALargeReplyToAClientWaitsForItsTurn(t *testing.T) {
	full := exchange.Failed("Canceled", true, "no turn")
	client := exchange.NewClient(exchange.Endpoint{
		BaseURL: "http://x.example", Client: exchangetest.Offline(string(make([]byte, provider.SmallReply)), exchangetest.Drain),
	}, exchange.Protocol{
		Path:   func(string) string { return "/look" },
		Encode: func(provider.Request) (*exchange.Body, error) { return exchange.Plain("look") },
		Format: func(provider.Request) string { return "format" },
	})
	_, err := client.Observe(context.Background(), provider.Request{BeforeLarge: func(context.Context) error { return full }})
	if f := asFault(t, err); f != full {
		t.Errorf("%v", err)
	}
}

func TestPagesGoToTheEndpointWithItsVersionAndTheHeader(t *testing.T) {
	var asked []string
	at := exchange.Endpoint{BaseURL: "http://x.example/v1/", APIVersion: "preview", Client: exchangetest.Offline(`{"Next":"a&b"}`, func(r *http.Request) error {
		asked = append(asked, r.URL.RequestURI()+" "+r.Header.Get("X-Of"))
		return nil
	})}
	type page struct{ Next string }
	got, err := exchange.Pages(context.Background(), at, http.Header{"X-Of": {"7"}}, "/models?n=9", "after", func(p page) ([]provider.Listed, string) {
		return []provider.Listed{{Name: "m"}}, p.Next
	})
	want := []string{"/v1/models?n=9&api-version=preview 7", "/v1/models?n=9&after=a%26b&api-version=preview 7"}
	if diff := cmp.Diff(want, asked); diff != "" || err != nil || len(got) != 1 {
		t.Errorf("%v, %v (-want +got):\n%s", got, err, diff)
	}
}

func TestASchemaIsLoweredAnewOnlyWhenItOrTheDialectChanges(t *testing.T) {
	var kept exchange.Lowered
	first, second := []byte(`{"type":"object","description":"a"}`), []byte(`{"type":"object","description":"b"}`)
	lowered := func(schema []byte, to lower.Dialect) []byte {
		t.Helper()
		got, err := kept.Lower(schema, to)
		want, wantErr := lower.Lower(schema, to)
		if err != nil || wantErr != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s, %v; want %s, %v", got, err, want, wantErr)
		}
		return got
	}
	same := func(a, b []byte) bool { return &a[0] == &b[0] }
	old := lowered(first, lower.Anthropic)
	if !same(old, lowered(bytes.Clone(first), lower.Anthropic)) {
		t.Error("an equal schema is lowered again")
	}
	_ = lowered(first, lower.GeminiSchema)
	if !same(old, lowered(first, lower.Anthropic)) {
		t.Error("another dialect takes the place of the first")
	}
	if bytes.Equal(old, lowered(second, lower.Anthropic)) {
		t.Error("both schemas are lowered alike, which shows nothing")
	}
	copy(second, first) // a caller may write over what it gave
	_ = lowered(second, lower.Anthropic)
	if _, err := kept.Lower([]byte(`{"type":`), lower.Anthropic); err == nil {
		t.Error("what is no JSON is lowered")
	}
	_ = lowered(first, lower.Anthropic)
}

func TestManyLowerAtOnce(t *testing.T) {
	var kept exchange.Lowered
	schemas := [][]byte{[]byte(`{"type":"object","description":"a"}`), []byte(`{"type":"object","description":"b"}`)}
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			schema := schemas[i%2]
			got, err := kept.Lower(schema, lower.GeminiJSONSchema)
			if want, _ := lower.Lower(schema, lower.GeminiJSONSchema); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, %v; want %s", got, err, want)
			}
		})
	}
	all.Wait()
}
