// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
)

// Failure is why a call brought no reply.
type Failure string

// The failures. Their texts are fixed; what the layers below said is never shown.
const (
	Timeout    Failure = "timed out"
	Canceled   Failure = "was cancelled by the caller"
	Refusal    Failure = "was refused: the address is link-local, a metadata service or otherwise not a provider's"
	Resolution Failure = "found no address for the host"
	Untrusted  Failure = "found a certificate that is not trusted"
	Handshake  Failure = "could not set up TLS"
	TooLarge   Failure = "brought a reply over the size limit"
	Connection Failure = "lost or found no connection"
)

// Error is a call without a usable reply. Its text holds the host and a fixed
// phrase only; the error below stays reachable through errors.As.
type Error struct {
	Host    string
	Failure Failure
	cause   error
}

// Error says what was called and what happened.
func (e *Error) Error() string { return "calling " + e.Host + ": call " + string(e.Failure) }

// Unwrap returns the error below, whose text may hold anything: never print it.
func (e *Error) Unwrap() error { return e.cause }

// Redact classifies err. An *Error stays as it is.
func Redact(host string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Host: host, Failure: classify(err), cause: err}
}

func classify(err error) Failure {
	if _, ok := errors.AsType[*AddressError](err); ok {
		return Refusal
	}
	if _, ok := errors.AsType[*TooLargeError](err); ok {
		return TooLarge
	}
	if errors.Is(err, context.Canceled) {
		return Canceled
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return Timeout
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && !dns.IsTimeout {
		return Resolution
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return Timeout
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return Untrusted
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return Untrusted
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return Handshake
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return Handshake
	}
	return Connection
}
