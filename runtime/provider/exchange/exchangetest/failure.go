// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchangetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

// Fault is err as the fault that it must be, without a key, Look's image, a page
// of HTML or what else is private in any of its texts.
func Fault(t testing.TB, err error, private ...string) *fault.Fault {
	t.Helper()
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		t.Fatalf("%v is no fault", err)
	}
	if f.Kind != fault.VisionObservationFailed {
		t.Errorf("the fault is %s", f.Kind)
	}
	rendered, err := json.Marshal(f)
	if err != nil {
		t.Error(err)
	}
	all := fmt.Sprintf("%v %+v %v %v %s %s", f, f.Details, f.Cause, f.RecoveryHint, rendered, f.Reason)
	for _, text := range append(private, "secret", "<html", "iVBORw0K") {
		if strings.Contains(all, text) {
			t.Errorf("the fault repeats %q: %s", text, all)
		}
	}
	return f
}

// checkFault compares a fault; its message contains says.
func checkFault(t *testing.T, f *fault.Fault, reason string, retryable bool, after time.Duration, says string) {
	t.Helper()
	if f.Reason != reason || f.Retryable != retryable || f.RetryAfter != after {
		t.Errorf("fault = %s retryable=%v after=%v; want %s retryable=%v after=%v", f.Reason, f.Retryable, f.RetryAfter, reason, retryable, after)
	}
	if !strings.Contains(f.Message, says) {
		t.Errorf("message %q does not say %q", f.Message, says)
	}
}

// Fails calls a handler, which must come to a fault.
func (p Protocol) Fails(t *testing.T, h http.HandlerFunc, reason string, retryable bool, after time.Duration, says string) {
	t.Helper()
	timeout := "10s"
	if reason == "Timeout" {
		timeout = "50ms"
	}
	_, err := p.at(t, Serve(t, h), timeout).Observe(context.Background(), p.Look())
	checkFault(t, Fault(t, err), reason, retryable, after, says)
}

// FailsToRead reads a reply to Look of status 200, which must come to a fault
// that tells what the reply cost.
func (p Protocol) FailsToRead(t *testing.T, reply, reason string, retryable bool, says string, cost provider.Usage) {
	t.Helper()
	_, err := p.Read(p.Look(), reply)
	f := Fault(t, err)
	checkFault(t, f, reason, retryable, 0, says)
	var told provider.Usage
	told.InputTokens, _ = f.Details["input_tokens"].(int64)
	told.OutputTokens, _ = f.Details["output_tokens"].(int64)
	if told != cost {
		t.Errorf("details are %v, want those of %+v", f.Details, cost)
	}
}

// Failures calls servers that fail every protocol alike.
func (p Protocol) Failures(t *testing.T) {
	t.Helper()
	key, what := p.Key.Value, "not "+p.Reply
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
		after     time.Duration
		says      string
	}{
		"a refused key that the reply repeats": {Says(401, `{"error":{"message":"`+key+`","code":"`+key+`"}}`), "Unauthorized", false, 0, "401"},
		"a forbidden model":                    {Says(403, "<html>"+key), "Unauthorized", false, 0, "403"},
		"a missing model":                      {Says(404, "<html>"+key), "UpstreamStatus", false, 0, "404"},
		"a request that is too large":          {Says(413, "<html>"), "RequestTooLarge", false, 0, "413"},
		"a rate limit":                         {Says(429, "", "Retry-After", "7"), "RateLimited", true, 7 * time.Second, "rate"},
		"a broken provider":                    {Says(500, "<html>"+key), "UpstreamStatus", true, 0, "500"},
		"an overloaded provider":               {Says(503, "", "Retry-After", "3"), "UpstreamStatus", true, 3 * time.Second, "503"},
		"a gateway that timed out":             {Says(504, "<html>"), "Timeout", true, 0, "504"},
		"a redirect to another host":           {Says(307, "", "Location", "https://elsewhere.example/"), "UpstreamStatus", false, 0, "307"},
		"a status of success without a reply":  {Says(204, ""), "UpstreamStatus", false, 0, "204"},
		"an empty reply":                       {Says(200, ""), "Empty", true, 0, "empty"},
		"a reply of white space":               {Says(200, " \r\n\t"), "Empty", true, 0, "empty"},
		"no JSON":                              {Says(200, "hello "+key), "InvalidResponse", false, 0, what},
		"a page of HTML":                       {Says(200, "<html>"+key), "InvalidResponse", false, 0, what},
		"half of the JSON":                     {Says(200, p.Answer[:len(p.Answer)/2]), "InvalidResponse", false, 0, what},
		"a list":                               {Says(200, `[]`), "InvalidResponse", false, 0, what},
		"a reply over the limit":               {Says(200, strings.Repeat(" ", transport.MaxResponseBytes+1)), "InvalidResponse", false, 0, "8388608"},
		"a body that ends early":               {Says(200, key, "Content-Length", "100"), "Connection", true, 0, "reached"},
		"a connection that is cut": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		}, "Connection", true, 0, "reached"},
		"no answer in time": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "Timeout", true, 0, "in time"},
	} {
		t.Run(name, func(t *testing.T) { p.Fails(t, tc.handler, tc.reason, tc.retryable, tc.after, tc.says) })
	}
	t.Run("a provider that is not there", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		_, err = p.at(t, "http://"+l.Addr().String(), "10s").Observe(context.Background(), p.Look())
		checkFault(t, Fault(t, err), "Connection", true, 0, "reached")
	})
	t.Run("a schema that is no JSON is not sent", func(t *testing.T) {
		req := p.Look()
		req.Schema.JSON = []byte(`{"a":`)
		sent := 0
		c := p.Client(t, func(http.ResponseWriter, *http.Request) { sent++ })
		_, err := c.Observe(context.Background(), req)
		checkFault(t, Fault(t, err), "Internal", false, 0, "written")
		if sent != 0 || c.RequestBytes(req) != 0 {
			t.Errorf("%d requests of %d bytes were sent", sent, c.RequestBytes(req))
		}
	})
}

// FuzzReply fuzzes a reply to each of some requests.
func (p Protocol) FuzzReply(f *testing.F, requests []provider.Request, seeds ...string) {
	for _, seed := range append(seeds, p.Answer, p.Answer[:len(p.Answer)/2], "null", "", " ", "\xff") {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, req := range requests {
			got, err := p.Read(req, string(body))
			if err != nil {
				if f := fault.As(err); f.Kind != fault.VisionObservationFailed || f.Reason == "Internal" {
					t.Errorf("the error is %v", err)
				}
			} else if strings.TrimSpace(got.Text) == "" {
				t.Error("a reply without text and without an error")
			}
		}
	})
}
