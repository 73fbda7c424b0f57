// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// The budget of a Prober, and the bounds of one probe.
const (
	// AtOnce is how many probes run at once.
	AtOnce = 16
	// PerSecond is how many probes begin per second.
	PerSecond = 20
	// timeout of one probe, from resolving to the answer's last header.
	timeout = 5 * time.Second
	// maxAddresses is how many of a host's addresses are judged and tried.
	maxAddresses = 16
	// maxAnswer is the most that is read of an answer, in bytes.
	maxAnswer = 16 << 10
	userAgent = "vision-operator"
)

// Resolver finds the addresses and the canonical name of an absolute name.
// *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupCNAME(ctx context.Context, host string) (string, error)
}

// Options stand in for the network. The zero value is the real one. There is no
// way around the judgement of addresses.
type Options struct {
	Resolver Resolver
	// Dial connects to an address that was found and judged.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout of one probe; 5 s when zero.
	Timeout time.Duration
}

// Prober probes endpoints within one budget.
type Prober struct {
	Options
	slots chan struct{}
	pace  *pace
}

// New makes a Prober.
func New(o Options) *Prober {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.Timeout == 0 {
		o.Timeout = timeout
	}
	return &Prober{Options: o, slots: make(chan struct{}, AtOnce), pace: &pace{gap: time.Second / PerSecond}}
}

// Probe probes a provider's endpoints, one after the other, each when the budget
// allows it. The error is that of a context that ended; there are no results then.
func (p *Prober) Probe(ctx context.Context, namespace string, targets []Target) ([]Result, error) {
	results := make([]Result, 0, len(targets))
	for _, t := range targets {
		reason, err := p.withinBudget(ctx, namespace, t)
		if err != nil {
			return nil, err
		}
		results = append(results, Result{Endpoint: t.Endpoint, Reason: reason})
	}
	return results, nil
}

func (p *Prober) withinBudget(ctx context.Context, namespace string, t Target) (string, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if err := p.pace.wait(ctx); err != nil {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	reason := p.probe(bounded, namespace, t)
	return reason, ctx.Err()
}

// probe passes the steps of one probe.
func (p *Prober) probe(ctx context.Context, namespace string, t Target) string {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return v1alpha1.ReasonAddressNotAllowed // the rules on URLs let none through
	}
	addrs, reason := p.resolve(ctx, u.Hostname(), namespace)
	if reason != "" {
		return reason
	}
	raw, err := p.dial(ctx, addrs, port(u))
	if err != nil {
		return late(ctx, err, v1alpha1.ReasonConnectionFailed)
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })() // what waits for the server ends when the time is up
	conn := raw
	if u.Scheme == "https" {
		if conn, err = encrypt(ctx, raw, u.Hostname(), t.CABundle); err != nil {
			return late(ctx, err, v1alpha1.ReasonTLSFailed)
		}
	}
	return ask(ctx, conn, u)
}

// resolve finds the addresses of a host, all of them judged; or the reason why there are none.
func (p *Prober) resolve(ctx context.Context, host, namespace string) ([]netip.Addr, string) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if !public(addr) {
			return nil, v1alpha1.ReasonAddressNotAllowed
		}
		return []netip.Addr{addr.Unmap()}, ""
	}
	at, name := locate(host, namespace)
	if at == refused {
		return nil, v1alpha1.ReasonAddressNotAllowed
	}
	addrs, err := p.Resolver.LookupNetIP(ctx, "ip", name)
	if err != nil || len(addrs) == 0 {
		return nil, v1alpha1.ReasonDNSFailed
	}
	if at == ownService && !p.isItself(ctx, name) {
		at = elsewhere
	}
	addrs = addrs[:min(len(addrs), maxAddresses)]
	if slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !reachable(a, at) }) {
		return nil, v1alpha1.ReasonAddressNotAllowed
	}
	return addrs, ""
}

// isItself reports that a Service's name is no alias: that of a Service of type
// ExternalName is one for any name at all, Services of other namespaces among them.
func (p *Prober) isItself(ctx context.Context, name string) bool {
	canonical, err := p.Resolver.LookupCNAME(ctx, name)
	return err == nil && strings.EqualFold(strings.TrimSuffix(canonical, "."), strings.TrimSuffix(name, "."))
}

// dial connects to the first address that takes a connection. Each but the last
// may use half of the time that is left.
func (p *Prober) dial(ctx context.Context, addrs []netip.Addr, port string) (net.Conn, error) {
	var last error
	for i, addr := range addrs {
		conn, err := p.dialOne(ctx, net.JoinHostPort(addr.Unmap().String(), port), i == len(addrs)-1)
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, last
}

func (p *Prober) dialOne(ctx context.Context, address string, isLast bool) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && !isLast {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	return p.Dial(ctx, "tcp", address)
}

// encrypt makes a connection a TLS one that the host's certificate vouches for.
func encrypt(ctx context.Context, conn net.Conn, host, caBundle string) (net.Conn, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, NextProtos: []string{"http/1.1"}}
	if caBundle != "" {
		conf.RootCAs = x509.NewCertPool()
		conf.RootCAs.AppendCertsFromPEM([]byte(caBundle)) // one without certificates trusts none
	}
	secure := tls.Client(conn, conf)
	return secure, secure.HandshakeContext(ctx)
}

// ask sends a GET without a body, and reads the head of the answer. GET, because
// some servers answer 501 to HEAD.
func ask(ctx context.Context, conn net.Conn, u *url.URL) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return v1alpha1.ReasonConnectionFailed
	}
	req.Close = true
	req.Header.Set("User-Agent", userAgent)
	if err := req.Write(conn); err != nil {
		return late(ctx, err, v1alpha1.ReasonConnectionFailed)
	}
	answer, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxAnswer)), req)
	if err != nil {
		return late(ctx, err, v1alpha1.ReasonConnectionFailed)
	}
	conn.Close() // to close the body alone is to read it to its end
	answer.Body.Close()
	if answer.StatusCode >= http.StatusInternalServerError {
		return v1alpha1.ReasonServerError
	}
	return v1alpha1.ReasonReachable
}

// late is Timeout when the time is up, or the error says so, and else the reason given.
func late(ctx context.Context, err error, reason string) string {
	timed, ok := errors.AsType[net.Error](err)
	if ctx.Err() != nil || ok && timed.Timeout() {
		return v1alpha1.ReasonTimeout
	}
	return reason
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}
