// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

func TestOnlyWhatMayBeReachedIsDialled(t *testing.T) {
	n := serving(t, func(http.ResponseWriter, *http.Request) {})
	listener := n.hosts["93.184.215.14"]
	for _, a := range []string{"10.96.0.10", "10.96.0.11", "127.0.0.1", "169.254.169.254", "2606:4700::1", "::1"} {
		n.hosts[a] = listener // they would answer
	}
	n.names = map[string][]string{
		"public.example.":                {"93.184.215.14"},
		"six.example.":                   {"2606:4700::1"},
		"private.example.":               {"10.96.0.10"},
		"loopback.example.":              {"127.0.0.1"},
		"mapped.example.":                {"::ffff:127.0.0.1"},
		"both.example.":                  {"93.184.215.14", "10.96.0.10"},
		"htob.example.":                  {"10.96.0.10", "93.184.215.14"},
		"vllm.team.svc.cluster.local.":   {"10.96.0.10"},
		"alias.team.svc.cluster.local.":  {"10.96.0.11"},
		"public.team.svc.cluster.local.": {"93.184.215.14"},
		"evil.team.svc.cluster.local.":   {"169.254.169.254"},
		"local.team.svc.cluster.local.":  {"127.0.0.1"},
		"vllm.other.svc.cluster.local.":  {"10.96.0.11"},
	}
	n.aliases = map[string]string{
		"alias.team.svc.cluster.local.":  "vllm.other.svc.cluster.local.",
		"public.team.svc.cluster.local.": "public.example.",
	}
	const reachable, notAllowed = v1alpha1.ReasonReachable, v1alpha1.ReasonAddressNotAllowed
	for name, tc := range map[string]struct{ url, want string }{
		"a public host":                       {"http://public.example/", reachable},
		"a public IPv6 host":                  {"http://six.example/", reachable},
		"a public address":                    {"http://93.184.215.14/", reachable},
		"a public IPv6 address":               {"http://[2606:4700::1]/", reachable},
		"a Service of the namespace":          {"http://vllm.team.svc/", reachable},
		"one in full":                         {"http://vllm.team.svc.cluster.local:8000/v1", reachable},
		"a Service that is a public host":     {"http://public.team.svc/", reachable},
		"a Service that is an alias":          {"http://alias.team.svc/", notAllowed},
		"a Service at a metadata address":     {"http://evil.team.svc/", notAllowed},
		"a Service at loopback":               {"http://local.team.svc/", notAllowed},
		"another namespace's Service":         {"http://vllm.other.svc/", notAllowed},
		"a name of a private address":         {"http://private.example/", notAllowed},
		"a name of loopback":                  {"http://loopback.example/", notAllowed},
		"a name of mapped loopback":           {"http://mapped.example/", notAllowed},
		"the second address is private":       {"http://both.example/", notAllowed},
		"the first address is private":        {"http://htob.example/", notAllowed},
		"loopback":                            {"http://127.0.0.1:8973/v1", notAllowed},
		"IPv6 loopback":                       {"http://[::1]/", notAllowed},
		"localhost":                           {"http://localhost:8973/v1", notAllowed},
		"a Service's address in place of it":  {"http://10.96.0.10/", notAllowed},
		"the metadata address":                {"http://169.254.169.254/", notAllowed},
		"another scheme":                      {"ftp://public.example/", notAllowed},
		"what is no URL":                      {"http://[", notAllowed},
		"a name that does not exist":          {"http://nowhere.example/", v1alpha1.ReasonDNSFailed},
		"an own Service that does not exist":  {"http://gone.team.svc/", v1alpha1.ReasonDNSFailed},
		"a short name of another's namespace": {"http://vllm.other/", v1alpha1.ReasonDNSFailed},
	} {
		t.Run(name, func(t *testing.T) {
			before := n.dials.Load()
			if got := n.reason(t, tc.url, ""); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if dialled := n.dials.Load() != before; dialled != (tc.want == reachable) {
				t.Errorf("a connection was made: %t", dialled)
			}
		})
	}
}

func TestAnAddressThatFailsIsFollowedByTheNext(t *testing.T) {
	n := serving(t, func(http.ResponseWriter, *http.Request) {})
	n.names["example.com."] = []string{"2606:4700::1", "104.18.6.192", "93.184.215.14"}
	n.hang = "104.18.6.192" // the first refuses, the second hangs
	if got := n.reason(t, "http://example.com/", ""); got != v1alpha1.ReasonReachable || n.dials.Load() != 3 {
		t.Errorf("got %s after %d dials", got, n.dials.Load())
	}
}

func TestTheEndOfTheOperatorIsNoResult(t *testing.T) {
	n := leadingTo("")
	n.hang = "93.184.215.14"
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	results, err := New(Options{Resolver: n, Dial: n.dial, Timeout: time.Hour}).Probe(ctx, "team", []Target{{URL: "http://example.com/"}})
	if !errors.Is(err, context.Canceled) || results != nil {
		t.Errorf("got %v, %v", results, err)
	}
}

// With more providers than the budget allows, the rest wait.
func TestNoMoreThanTheBudgetRunAtOnce(t *testing.T) {
	var now, most atomic.Int64
	release := make(chan struct{})
	n := leadingTo("")
	dial := func(context.Context, string, string) (net.Conn, error) {
		if at := now.Add(1); at > most.Load() {
			most.Store(at)
		}
		<-release
		now.Add(-1)
		return nil, errors.New("connection refused")
	}
	p := New(Options{Resolver: n, Dial: dial})
	p.pace.gap = 0
	done := make(chan error)
	const callers = AtOnce + 8
	for range callers {
		go func() {
			_, err := p.Probe(t.Context(), "team", []Target{{URL: "http://example.com/"}})
			done <- err
		}()
	}
	for deadline := time.Now().Add(10 * time.Second); now.Load() < AtOnce && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond) // for one too many
	close(release)
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() != AtOnce {
		t.Errorf("%d at once, want %d", most.Load(), AtOnce)
	}
}
