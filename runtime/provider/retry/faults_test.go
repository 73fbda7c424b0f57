// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/retry"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// row is a way to misbehave and what a call must make of it.
type row struct {
	server misbehave
	// timeout is the endpoint's; 0 is patient.
	timeout time.Duration
	// image is the size of the image in bytes; 0 is a small one.
	image int

	attempts int
	// unseen is a server that no attempt reaches.
	unseen bool
	// wait is how long the call is made to wait between attempts; waiting for
	// attempts that time out comes on top.
	wait span
	// The fault; an answer when reason is "".
	kind       fault.Kind // VisionObservationFailed when ""
	reason     string
	retryable  bool
	retryAfter time.Duration
}

// span is a least and a most.
type span struct{ least, most time.Duration }

// The waits, as the jitter allows.
var (
	oneBackoff  = span{retry.Backoff / 2, retry.Backoff * 3 / 2}
	twoBackoffs = span{3 * retry.Backoff / 2, 9 * retry.Backoff / 2}
)

const (
	patient = 40 * time.Second
	// impatient leaves a slow machine the time to bring a request to its server.
	impatient = 2 * time.Second
	// slack is what a slow machine, with the race detector, may take beyond the
	// waits. It is well below what it would take to be patient once, or to wait as
	// long as a row's server asks for.
	slack = 15 * time.Second
	// together is how many rows are tried at the same time: most of it is waiting.
	together = 32
)

// rows are those of the table that are the same for all protocols but for the
// reply that is an answer.
func (p protocol) rows() map[string]row {
	answer := replies(http.StatusOK, p.answer)
	const html = "<!doctype html><title>Sign in</title>"
	return map[string]row{
		"an answer":                  {server: answering(answer), attempts: 1},
		"a refused connection":       {server: deaf, attempts: 3, unseen: true, wait: twoBackoffs, reason: "Connection", retryable: true},
		"a connection that is reset": {server: accepting("http", reset), attempts: 3, wait: twoBackoffs, reason: "Connection", retryable: true},
		"a reply that is not HTTP":   {server: accepting("http", says("220 mail ready\r\n")), attempts: 3, wait: twoBackoffs, reason: "Connection", retryable: true},
		"TLS with a wrong CA":        {server: impostor, attempts: 1, reason: "Connection"},
		"TLS where there is none":    {server: accepting("https", says("HTTP/1.0 400 Bad Request\r\n\r\n")), attempts: 1, reason: "Connection"},

		"the metadata service": {server: metadata, attempts: 1, unseen: true, kind: fault.VisionAdapterUnavailable, reason: "AddressRefused"},

		"slow headers":   {server: answering(hangs("")), timeout: impatient, attempts: 3, wait: twoBackoffs, reason: "Timeout", retryable: true},
		"a stalled body": {server: answering(hangs(p.answer[:9])), timeout: impatient, attempts: 3, wait: twoBackoffs, reason: "Timeout", retryable: true},
		"half a body of an announced length": {server: answering(breaksOff(p.answer, true)), attempts: 3, wait: twoBackoffs,
			reason: "Connection", retryable: true},
		"half a body in chunks":              {server: answering(breaksOff(p.answer, false)), attempts: 3, wait: twoBackoffs, reason: "Connection", retryable: true},
		"half a body, then an answer":        {server: answering(breaksOff(p.answer, false), answer), attempts: 2, wait: oneBackoff},
		"200 without a body":                 {server: answering(replies(http.StatusOK, ``)), attempts: 3, wait: twoBackoffs, reason: "Empty", retryable: true},
		"200 with white space":               {server: answering(replies(http.StatusOK, " \r\n\t")), attempts: 3, wait: twoBackoffs, reason: "Empty", retryable: true},
		"200 without a body, then an answer": {server: answering(replies(http.StatusOK, ``), answer), attempts: 2, wait: oneBackoff},
		"200 with HTML":                      {server: answering(replies(http.StatusOK, html, "Content-Type", "text/html")), attempts: 1, reason: "InvalidResponse"},
		"200 with half of the JSON":          {server: answering(replies(http.StatusOK, p.answer[:len(p.answer)/2])), attempts: 1, reason: "InvalidResponse"},
		"200 with JSON of another shape":     {server: answering(replies(http.StatusOK, `["seen"]`)), attempts: 1, reason: "InvalidResponse"},
		"10 MB of JSON":                      {server: answering(replies(http.StatusOK, large)), attempts: 1, reason: "InvalidResponse"},
		"10 MB of JSON after a server error": {server: answering(replies(http.StatusInternalServerError, large), answer), attempts: 2, wait: oneBackoff},

		"429 without Retry-After": {server: answering(replies(http.StatusTooManyRequests, `{}`)), attempts: 3, wait: twoBackoffs, reason: "RateLimited", retryable: true},
		"429 with a short Retry-After, then an answer": {server: answering(replies(http.StatusTooManyRequests, `{}`, "Retry-After", "1"), answer),
			attempts: 2, wait: span{time.Second, time.Second}},
		"429 with retry-after-ms, then an answer": {server: answering(replies(http.StatusTooManyRequests, `{}`, "retry-after-ms", "700"), answer),
			attempts: 2, wait: span{700 * time.Millisecond, 700 * time.Millisecond}},
		"429 with a long Retry-After": {server: answering(replies(http.StatusTooManyRequests, `{}`, "Retry-After", "60"), answer),
			attempts: 1, reason: "RateLimited", retryable: true, retryAfter: time.Minute},
		"500, then an answer": {server: answering(replies(http.StatusInternalServerError, `{}`), answer), attempts: 2, wait: oneBackoff},
		"500 for good":        {server: answering(replies(http.StatusInternalServerError, html)), attempts: 3, wait: twoBackoffs, reason: "UpstreamStatus", retryable: true},
		"503 that asks to wait for a minute": {server: answering(replies(http.StatusServiceUnavailable, ``, "Retry-After", "60"), answer),
			attempts: 1, reason: "UpstreamStatus", retryable: true, retryAfter: time.Minute},
		"529":                       {server: answering(replies(529, `{"error":{"type":"overloaded_error"}}`)), attempts: 3, wait: twoBackoffs, reason: "UpstreamStatus", retryable: true},
		"504 of a gateway":          {server: answering(replies(http.StatusGatewayTimeout, html), answer), attempts: 2, wait: oneBackoff},
		"400":                       {server: answering(replies(http.StatusBadRequest, `{}`)), attempts: 1, reason: "UpstreamStatus"},
		"401":                       {server: answering(replies(http.StatusUnauthorized, `{}`)), attempts: 1, reason: "Unauthorized"},
		"403":                       {server: answering(replies(http.StatusForbidden, html)), attempts: 1, reason: "Unauthorized"},
		"404":                       {server: answering(replies(http.StatusNotFound, html)), attempts: 1, reason: "UpstreamStatus"},
		"413":                       {server: answering(replies(http.StatusRequestEntityTooLarge, html)), attempts: 1, reason: "RequestTooLarge"},
		"413 before the image came": {server: refusingUnread(http.StatusRequestEntityTooLarge), image: 4 << 20, attempts: 1, reason: "RequestTooLarge"},
		"415":                       {server: answering(replies(http.StatusUnsupportedMediaType, `{}`)), attempts: 1, reason: "ImageRefused"},
		"a redirect to another host": {server: answering(replies(http.StatusTemporaryRedirect, ``, "Location", "http://192.0.2.1/")),
			attempts: 1, reason: "UpstreamStatus"},
	}
}

// result is what a call came to.
type result struct {
	reply    provider.Reply
	err      error
	took     time.Duration
	attempts int
}

// run makes one call of a row's server, with transport, protocol and retry as
// they are put together elsewhere.
func (r row) run(t *testing.T, p protocol, s *server) result {
	timeout := patient
	if r.timeout > 0 {
		timeout = r.timeout
	}
	client, err := transport.New(transport.Options{
		Endpoint: router.Endpoint{Name: "default", URL: s.url, Timeout: timeout.String(), CABundle: s.ca}, Version: "test",
	})
	if err != nil {
		return result{err: err}
	}
	defer client.CloseIdleConnections()
	o := retry.New(p.observer(exchange.Endpoint{BaseURL: s.url, Client: client}), retry.Options{Endpoint: "team/x@default"})
	start := time.Now()
	reply, err := o.Observe(t.Context(), provider.Request{
		Model: "see-2", Prompt: "Look.", MaxOutputTokens: 1000,
		Image: provider.Image{MediaType: "image/png", Data: make([]byte, max(r.image, 100))},
	})
	return result{reply, err, time.Since(start), int(s.attempts.Load())}
}

// TestTheFaultTable calls real servers that misbehave.
func TestTheFaultTable(t *testing.T) {
	type running struct {
		row
		result chan result
	}
	table := map[string]map[string]running{}
	turn := make(chan struct{}, together)
	for name, p := range protocols {
		rows := p.rows()
		maps.Copy(rows, p.vendorRows())
		table[name] = map[string]running{}
		for which, r := range rows {
			s, came := r.server(t), make(chan result, 1)
			table[name][which] = running{r, came}
			go func() {
				turn <- struct{}{}
				defer func() { <-turn }()
				came <- r.run(t, p, s)
			}()
		}
	}
	for name, rows := range table {
		t.Run(name, func(t *testing.T) {
			for which, r := range rows {
				t.Run(which, func(t *testing.T) { r.check(t, <-r.result) })
			}
		})
	}
}

func (r row) check(t *testing.T, got result) {
	t.Helper()
	least, most := r.wait.least, r.wait.most+slack
	if r.timeout > 0 {
		least += time.Duration(r.attempts) * r.timeout
		most += time.Duration(r.attempts) * r.timeout
	}
	if got.took < least || got.took > most {
		t.Errorf("the call took %v, want %v to %v", got.took, least, most)
	}
	if r.reason == "" {
		if got.err != nil || got.reply.Text != "seen" || got.attempts != r.attempts {
			t.Errorf("the call gave %+v and %v after %d attempts, want an answer after %d", got.reply, got.err, got.attempts, r.attempts)
		}
		return
	}
	f, ok := errors.AsType[*fault.Fault](got.err)
	if !ok {
		t.Fatalf("the call gave %+v and %v, want a fault", got.reply, got.err)
	}
	kind := r.kind
	if kind == "" {
		kind = fault.VisionObservationFailed
	}
	if f.Kind != kind || f.Reason != r.reason || f.Retryable != r.retryable || f.RetryAfter != r.retryAfter {
		t.Errorf("the fault is %s %s, retryable %v after %v; want %s %s, %v after %v",
			f.Kind, f.Reason, f.Retryable, f.RetryAfter, kind, r.reason, r.retryable, r.retryAfter)
	}
	if f.Details["attempts"] != r.attempts {
		t.Errorf("the fault speaks of %v attempts, want %d", f.Details["attempts"], r.attempts)
	}
	seen := r.attempts
	if r.unseen {
		seen = 0
	}
	if got.attempts != seen {
		t.Errorf("the server saw %d attempts, want %d", got.attempts, seen)
	}
}

func TestACancellationReachesTheServer(t *testing.T) {
	for name, p := range protocols {
		for when, handler := range map[string]http.HandlerFunc{"before the headers": hangs(""), "within the body": hangs(p.answer[:9])} {
			t.Run(name+", "+when, func(t *testing.T) {
				arrived := make(chan struct{})
				s := answering(func(w http.ResponseWriter, r *http.Request) { close(arrived); handler(w, r) })(t)
				client, err := transport.New(transport.Options{Endpoint: router.Endpoint{Name: "default", URL: s.url, Timeout: patient.String()}, Version: "test"})
				if err != nil {
					t.Fatal(err)
				}
				defer client.CloseIdleConnections()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { <-arrived; cancel() }()
				start := time.Now()
				_, err = retry.New(p.observer(exchange.Endpoint{BaseURL: s.url, Client: client}), retry.Options{}).
					Observe(ctx, provider.Request{Model: "see-2", Prompt: "Look.", Image: provider.Image{MediaType: "image/png", Data: []byte("x")}})
				if f := fault.As(err); f.Kind != fault.VisionObservationFailed || f.Reason != "Canceled" || f.Details["attempts"] != 1 {
					t.Errorf("the fault is %+v", f)
				}
				if took := time.Since(start); took > slack {
					t.Errorf("the call took %v", took)
				}
				select {
				case <-s.left:
				case <-time.After(slack):
					t.Error("the server did not hear of it")
				}
			})
		}
	}
}
