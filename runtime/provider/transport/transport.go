// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transport makes the HTTP client of one endpoint out of small
// http.RoundTripper decorators, over a dialer that refuses link-local and
// metadata addresses after resolution. A request passes them in this order, and
// its reply in the opposite one:
//
//  1. record logs the call, from what all the others leave of it;
//  2. redact makes every error one with a fixed text;
//  3. deadline bounds all that follows, reading of the reply included;
//  4. guardHost refuses hosts that spell a refused address;
//  5. setHeaders adds the user agent and the endpoint's extra headers;
//  6. authorize adds the credential, after them so that none replaces it;
//  7. limitResponse bounds the reply, as it is after decompression.
//
// That is New. In the client that NewStream makes, pace stands in the place of
// deadline, and limitResponse is not there.
//
// It knows no wire protocol and retries nothing.
package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// Bounds of a connection.
const (
	// MaxResponseBytes is the most that is read of a reply, after decompression:
	// 8 MiB, far above any observation.
	MaxResponseBytes = 8 << 20
	maxHeaderBytes   = 64 << 10
	dialTimeout      = 10 * time.Second
	tlsTimeout       = 10 * time.Second
	idleTimeout      = 90 * time.Second
	maxIdle          = 4
	maxSameHostHops  = 3
	// writeBuffer is what is written at once: an image goes out in a sixteenth of
	// the system calls that the default of 4 KiB takes.
	writeBuffer = 64 << 10
	// maxUnread is what HTTP/2 holds of a reply that is not read yet.
	maxUnread = 256 << 10
)

// Options describe one endpoint's client.
type Options struct {
	Endpoint router.Endpoint
	// AnswerTimeout is how long the headers of a stream may take at least, where
	// that is more than the endpoint's timeout; 0 leaves it to that. New ignores it.
	AnswerTimeout time.Duration
	// Version becomes the user agent "vision-operator/<version>".
	Version string
	// Auth puts the credential on each request; nil for providers without one.
	Auth *Auth
	// Logger gets one line at debug for each HTTP call, without headers, bodies
	// and query; nil discards them.
	Logger *slog.Logger
}

// Auth says how a credential travels.
type Auth struct {
	// Header is "Authorization" or a vendor's own, such as "api-key" (Azure) or
	// "x-goog-api-key"; Scheme is put before the key, such as "Bearer ", and is
	// empty where the key stands alone.
	Header string
	Scheme string
	Source Source
}

// New returns the client of an endpoint. Proxies come from the environment
// (HTTPS_PROXY, HTTP_PROXY, NO_PROXY). A reply that redirects to another
// origin, or with another method, is returned as it is.
func New(o Options) (*http.Client, error) {
	timeout, err := time.ParseDuration(o.Endpoint.Timeout)
	if err != nil {
		return nil, fmt.Errorf("reading timeout of endpoint %s: %w", o.Endpoint.Name, err)
	}
	base, err := baseTransport(o.Endpoint)
	if err != nil {
		return nil, err
	}
	rt := identify(limitResponse(base, MaxResponseBytes), o, "vision-operator/"+o.Version)
	rt = deadline(rt, timeout)
	return &http.Client{Transport: report(rt, o), CheckRedirect: sameOrigin}, nil
}

// identify puts on a request what the endpoint is to get beside it, and refuses
// the hosts that no endpoint has.
func identify(rt http.RoundTripper, o Options, agent string) http.RoundTripper {
	if o.Auth != nil {
		rt = authorize(rt, *o.Auth)
	}
	return guardHost(setHeaders(rt, agent, o.Endpoint.Headers))
}

// report tells what came of a call: to the caller in fixed texts, and to the log.
func report(rt http.RoundTripper, o Options) http.RoundTripper {
	rt = redact(rt)
	if o.Logger != nil {
		rt = record(rt, o.Logger)
	}
	return rt
}

// baseTransport is the one place where bytes leave the process.
func baseTransport(ep router.Endpoint) (*http.Transport, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if ep.CABundle != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(ep.CABundle)) {
			return nil, fmt.Errorf("reading CA bundle of endpoint %s: %w", ep.Name, ErrNoCertificate)
		}
		conf.RootCAs = pool
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            Dialer().DialContext,
		TLSClientConfig:        conf,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    tlsTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		MaxResponseHeaderBytes: maxHeaderBytes,
		WriteBufferSize:        writeBuffer,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: maxUnread},
	}, nil
}

// ErrNoCertificate means that a CA bundle holds no certificate.
var ErrNoCertificate = errors.New("the PEM holds no certificate")

// sameOrigin lets a request follow a redirect within its own origin and
// method, and returns every other redirect as the reply: a key never travels
// to a host that the router does not name.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxSameHostHops || req.Method != first.Method || !originEqual(req.URL, first.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func originEqual(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Host == b.Host && a.User == nil
}
