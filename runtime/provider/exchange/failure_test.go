// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

func TestWhatIsSent(t *testing.T) {
	var got *http.Request
	var body string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		got, body = r, string(data)
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	header := http.Header{"x-version": {"2023-06-01"}}
	reply, err := exchange.Post{Client: clientOf(t, url, "10s"), URL: url + "/v1/look?a=b", Header: header, Body: bodyWith(t, picture)}.Do(context.Background())
	if err != nil || string(reply) != `{"ok":true}` {
		t.Fatalf("%s, %v", reply, err)
	}
	if want := `{"image":{"url":"data:image/png;base64,` + pictureBase64 + `"},"model":"see"}`; body != want || got.ContentLength != int64(len(want)) {
		t.Errorf("sent %s, Content-Length %d", body, got.ContentLength)
	}
	if got.Method != http.MethodPost || got.URL.String() != "/v1/look?a=b" || got.Header.Get("Content-Type") != "application/json" ||
		got.Header.Get("Accept") != "application/json" || got.Header.Get("X-Version") != "2023-06-01" || got.Header.Get("Authorization") != "Bearer "+key {
		t.Errorf("sent %s %s with %v", got.Method, got.URL, got.Header)
	}
	if _, err := exchange.Get(context.Background(), clientOf(t, url, "10s"), url+"/v1/models", header); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodGet || body != "" || got.Header.Get("X-Version") != "2023-06-01" || got.Header.Get("Content-Type") != "" {
		t.Errorf("sent %s %q with %v", got.Method, body, got.Header)
	}
}

func TestCallsThatBringNoReply(t *testing.T) {
	for name, tc := range map[string]struct {
		handler   http.HandlerFunc
		reason    string
		retryable bool
		says      string
	}{
		"a connection that is cut": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.Close()
		}, "Connection", true, "reached"},
		"a reply that is no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			_, _ = io.WriteString(conn, key+"\r\n\r\n")
			_ = conn.Close()
		}, "Connection", true, "reached"},
		"a body that ends early": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, key)
		}, "Connection", true, "reached"},
		"no answer in time": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "Timeout", true, "in time"},
		"a body that stalls": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, `{"a":`)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "Timeout", true, "in time"},
		"a reply over the limit": {answer(200, strings.Repeat(" ", transport.MaxResponseBytes+1)), "InvalidResponse", false, "8388608"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := "10s"
			if tc.reason == "Timeout" {
				timeout = "100ms"
			}
			_, err := post(t, timeout, tc.handler)
			f := asFault(t, err)
			if f.Reason != tc.reason || f.Retryable != tc.retryable || f.RetryAfter != 0 || !strings.Contains(f.Message, tc.says) {
				t.Errorf("fault = %+v, want %s retryable=%v %q", f, tc.reason, tc.retryable, tc.says)
			}
		})
	}
}

func TestARedirectWithinTheHostCarriesTheBodyAgain(t *testing.T) {
	var bodies []string
	_, err := post(t, "10s", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if len(bodies) == 1 {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	if err != nil || len(bodies) != 2 || bodies[0] != bodies[1] || bodies[0] == "" {
		t.Errorf("%d requests and %v", len(bodies), err)
	}
}

func TestProvidersThatCannotBeCalled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	untrusted := httptest.NewUnstartedServer(answer(200, "{}"))
	untrusted.Config.ErrorLog = nil
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := serve(t, answer(200, "{}"))
	for name, tc := range map[string]struct {
		url       string
		kind      fault.Kind
		reason    string
		retryable bool
	}{
		"nobody listens":                    {"http://" + l.Addr().String(), fault.VisionObservationFailed, "Connection", true},
		"a metadata service":                {"http://169.254.169.254", fault.VisionAdapterUnavailable, "AddressRefused", false},
		"a certificate that is not trusted": {untrusted.URL, fault.VisionObservationFailed, "Connection", false},
		"TLS where none is spoken":          {strings.Replace(plain, "http:", "https:", 1), fault.VisionObservationFailed, "Connection", false},
		"a URL that is none":                {"http://a b", fault.VisionAdapterUnavailable, "EndpointInvalid", false},
		"a scheme that is not spoken":       {"ftp://127.0.0.1", fault.VisionObservationFailed, "Connection", true},
	} {
		t.Run(name, func(t *testing.T) {
			client := clientOf(t, "http://127.0.0.1", "10s")
			_, posting := exchange.Post{Client: client, URL: tc.url, Body: bodyWith(t, picture)}.Do(context.Background())
			_, getting := exchange.Get(context.Background(), client, tc.url, nil)
			for what, err := range map[string]error{"post": posting, "get": getting} {
				f := fault.As(err)
				if f.Kind != tc.kind || f.Reason != tc.reason || f.Retryable != tc.retryable || leaks(f.Error()) {
					t.Errorf("%s: fault = %+v", what, f)
				}
			}
		})
	}
}

func TestAKeyThatIsNotMountedStaysWhatItIs(t *testing.T) {
	missing := fault.New(fault.VisionAdapterUnavailable, "CredentialNotMounted", "no key")
	client := &http.Client{Transport: exchangetest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		return nil, missing
	})}
	_, err := exchange.Post{Client: client, URL: "http://x.example", Body: bodyWith(t, picture)}.Do(context.Background())
	if f, ok := errors.AsType[*fault.Fault](err); !ok || f != missing {
		t.Errorf("%v", err)
	}
}

func TestACallerWhoLeaves(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	_, err := exchange.Post{Client: clientOf(t, url, "10s"), URL: url, Body: bodyWith(t, picture)}.Do(ctx)
	if f := asFault(t, err); f.Reason != "Canceled" || !f.Retryable {
		t.Errorf("fault = %+v", f)
	}
}

func TestALargeReplyWaitsForItsTurn(t *testing.T) {
	small, large := strings.Repeat("s", provider.SmallReply-1), strings.Repeat("l", provider.SmallReply+1)
	full := fault.New(fault.VisionObservationFailed, "Canceled", "no turn")
	for name, tc := range map[string]struct {
		reply string
		turn  error
		asked int
	}{
		"a small one does not ask":         {small, nil, 0},
		"a large one asks once":            {large, nil, 1},
		"a large one that gets none fails": {large, full, 1},
	} {
		t.Run(name, func(t *testing.T) {
			url, asked := serve(t, answer(200, tc.reply)), 0
			got, err := exchange.Post{Client: clientOf(t, url, "10s"), URL: url, Body: bodyWith(t, picture), BeforeLarge: func(context.Context) error {
				asked++
				return tc.turn
			}}.Do(context.Background())
			if asked != tc.asked || !errors.Is(err, tc.turn) || err == nil && string(got) != tc.reply {
				t.Errorf("asked %d times, %d bytes, %v", asked, len(got), err)
			}
		})
	}
}
