// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// network is a network of our own: names, and listeners behind public addresses.
type network struct {
	names   map[string][]string // absolute name to addresses
	aliases map[string]string
	hosts   map[string]string // address without port, to the listener that answers for it
	lookups atomic.Int64
	dials   atomic.Int64
	hang    string // an address that never answers
}

func (n *network) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.lookups.Add(1)
	var addrs []netip.Addr
	for _, a := range n.names[host] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	if addrs == nil {
		return nil, &net.DNSError{Err: "server text", Name: host, IsNotFound: true}
	}
	return addrs, nil
}

func (n *network) LookupCNAME(_ context.Context, host string) (string, error) {
	if alias, ok := n.aliases[host]; ok {
		return alias, nil
	}
	return host, nil
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.dials.Add(1)
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == n.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	to, ok := n.hosts[host]
	if !ok {
		return nil, errors.New("connection refused")
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to)
}

func (n *network) prober() *Prober {
	return New(Options{Resolver: n, Dial: n.dial, Timeout: 300 * time.Millisecond})
}

// reason probes one URL of a provider of the namespace team.
func (n *network) reason(t *testing.T, url, caBundle string) string {
	t.Helper()
	results, err := n.prober().Probe(t.Context(), "team", []Target{{Endpoint: "main", URL: url, CABundle: caBundle}})
	if err != nil || len(results) != 1 || results[0].Endpoint != "main" {
		t.Fatalf("got %v, %v", results, err)
	}
	return results[0].Reason
}

// serving is a network in which the name example.com leads to a handler.
func serving(t *testing.T, h http.HandlerFunc) *network {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return leadingTo(s.Listener.Addr().String())
}

func leadingTo(listener string) *network {
	return &network{names: map[string][]string{"example.com.": {"93.184.215.14"}}, hosts: map[string]string{"93.184.215.14": listener}}
}

// speaking is a network in which example.com leads to what handles bare connections.
func speaking(t *testing.T, handle func(net.Conn)) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go handle(conn)
		}
	}()
	return leadingTo(l.Addr().String())
}

func TestEveryAnswerBelow500IsReachable(t *testing.T) {
	for status, want := range map[int]string{
		200: v1alpha1.ReasonReachable, 204: v1alpha1.ReasonReachable, 307: v1alpha1.ReasonReachable, 400: v1alpha1.ReasonReachable,
		401: v1alpha1.ReasonReachable, 403: v1alpha1.ReasonReachable, 404: v1alpha1.ReasonReachable, 429: v1alpha1.ReasonReachable,
		499: v1alpha1.ReasonReachable, 500: v1alpha1.ReasonServerError, 503: v1alpha1.ReasonServerError, 599: v1alpha1.ReasonServerError,
	} {
		n := serving(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		if got := n.reason(t, "http://example.com/v1", ""); got != want {
			t.Errorf("%d gives %s, want %s", status, got, want)
		}
	}
}

func TestTheRequestCarriesNothingButItsAddress(t *testing.T) {
	requests := make(chan *http.Request, 1)
	n := serving(t, func(_ http.ResponseWriter, r *http.Request) { requests <- r })
	n.reason(t, "http://example.com:8080/openai/v1", "")
	r := <-requests
	if r.Method != http.MethodGet || r.Host != "example.com:8080" || r.RequestURI != "/openai/v1" || r.ContentLength != 0 || !r.Close {
		t.Errorf("got %s %s %s with %d bytes, the last of its connection: %t", r.Method, r.Host, r.RequestURI, r.ContentLength, r.Close)
	}
	for name, values := range r.Header {
		if name == "Connection" || name == "User-Agent" && values[0] == userAgent {
			continue
		}
		t.Errorf("there is a header %s: %q", name, values)
	}
}

func TestARedirectIsFollowedNowhere(t *testing.T) {
	var others atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	defer other.Close()
	n := serving(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://other.example/", http.StatusFound)
	})
	n.names["other.example."], n.hosts["104.18.6.192"] = []string{"104.18.6.192"}, other.Listener.Addr().String()
	if got := n.reason(t, "http://example.com/", ""); got != v1alpha1.ReasonReachable {
		t.Errorf("got %s", got)
	}
	if others.Load() != 0 || n.lookups.Load() != 1 || n.dials.Load() != 1 {
		t.Errorf("%d requests elsewhere, %d lookups, %d dials", others.Load(), n.lookups.Load(), n.dials.Load())
	}
	if got := n.reason(t, "http://other.example/", ""); got != v1alpha1.ReasonReachable || others.Load() != 1 {
		t.Errorf("the other host cannot be reached at all: %s", got)
	}
}

func TestTheBodyOfAnAnswerIsNotRead(t *testing.T) {
	ended := make(chan struct{})
	n := serving(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.WriteHeader(http.StatusOK)
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	})
	if got := n.reason(t, "http://example.com/", ""); got != v1alpha1.ReasonReachable {
		t.Errorf("got %s", got)
	}
	<-ended // only when the prober has hung up
}

func TestABodyThatNeverComesIsNotWaitedFor(t *testing.T) {
	n := speaking(t, func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n") })
	p := New(Options{Resolver: n, Dial: n.dial, Timeout: time.Hour})
	results, err := p.Probe(t.Context(), "team", []Target{{URL: "http://example.com/"}})
	if err != nil || results[0].Reason != v1alpha1.ReasonReachable {
		t.Errorf("got %v, %v", results, err)
	}
}

func TestConnectionsThatBringNoAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		handle func(net.Conn)
		want   string
	}{
		"one that is closed at once":       {func(c net.Conn) { c.Close() }, v1alpha1.ReasonConnectionFailed},
		"one that speaks something else":   {func(c net.Conn) { fmt.Fprint(c, "220 mail.example.com ESMTP\r\n"); c.Close() }, v1alpha1.ReasonConnectionFailed},
		"headers without end":              {func(c net.Conn) { flood(c, "HTTP/1.1 200 OK\r\n", "X: "+strings.Repeat("a", 1000)+"\r\n") }, v1alpha1.ReasonConnectionFailed},
		"one that is silent":               {func(net.Conn) {}, v1alpha1.ReasonTimeout},
		"one that stops within its header": {func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nX: ") }, v1alpha1.ReasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			if got := speaking(t, tc.handle).reason(t, "http://example.com/", ""); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		n := leadingTo("")
		n.hosts = nil
		if got := n.reason(t, "http://example.com/", ""); got != v1alpha1.ReasonConnectionFailed {
			t.Errorf("got %s", got)
		}
	})
	t.Run("packets are dropped", func(t *testing.T) {
		n := leadingTo("")
		n.hang = "93.184.215.14"
		if got := n.reason(t, "https://example.com/", ""); got != v1alpha1.ReasonTimeout {
			t.Errorf("got %s", got)
		}
	})
}

// flood writes one text, then another until the connection is closed.
func flood(c net.Conn, first, again string) {
	_, err := io.WriteString(c, first)
	for err == nil {
		_, err = io.WriteString(c, again)
	}
}

func TestCertificates(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	n := leadingTo(s.Listener.Addr().String()) // its certificate is for example.com
	n.names["other.example."] = n.names["example.com."]
	trusted := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	plain := serving(t, func(http.ResponseWriter, *http.Request) {})
	silent := speaking(t, func(net.Conn) {})
	for name, tc := range map[string]struct {
		network       *network
		url, caBundle string
		want          string
	}{
		"one that the bundle vouches for":     {n, "https://example.com/", trusted, v1alpha1.ReasonReachable},
		"a host with a final dot":             {n, "https://example.com./", trusted, v1alpha1.ReasonReachable},
		"one that nobody vouches for":         {n, "https://example.com/", "", v1alpha1.ReasonTLSFailed},
		"a bundle without certificates":       {n, "https://example.com/", "nothing", v1alpha1.ReasonTLSFailed},
		"one for another host":                {n, "https://other.example/", trusted, v1alpha1.ReasonTLSFailed},
		"a server without TLS":                {plain, "https://example.com/", trusted, v1alpha1.ReasonTLSFailed},
		"a server that is silent":             {silent, "https://example.com/", trusted, v1alpha1.ReasonTimeout},
		"plain http to a server that has TLS": {n, "http://example.com/", "", v1alpha1.ReasonReachable}, // it answers 400
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.network.reason(t, tc.url, tc.caBundle); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
