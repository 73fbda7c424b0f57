// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// errNoCertificate is a handshake before the first certificate was signed.
var errNoCertificate = errors.New("serving webhooks: no certificate yet")

// placement is since when a CA has been in every caBundle, as this replica saw it.
type placement struct {
	ca    *x509.Certificate
	since time.Time
}

// seen notes that the caBundles were looked at, and held ca or did not.
func (p placement) seen(ca *x509.Certificate, inPlace bool, now time.Time) placement {
	switch {
	case !inPlace:
		return placement{}
	case p.ca != nil && p.ca.Equal(ca):
		return p
	}
	return placement{ca: ca, since: now}
}

// signer chooses the CA of this replica's leaf: the one in use until current has
// been in the caBundles for so long that every API server has heard of it, unless
// the one in use is not trusted any more.
func signer(inUse, current *authority, placed placement, overlap time.Duration, now time.Time) *authority {
	switch {
	case inUse == nil, inUse.current().Equal(current.current()):
		return current
	case !current.trusts(inUse.current()), !now.Before(inUse.current().NotAfter):
		return current
	case placed.ca != nil && placed.ca.Equal(current.current()) && !now.Before(placed.since.Add(overlap)):
		return current
	}
	return inUse
}

// leafDue reports whether a replica should sign a new serving certificate.
func (a *authority) leafDue(now time.Time, leaf *tls.Certificate, hosts []string) bool {
	return leaf == nil ||
		!now.Before(renewal(leaf.Leaf, leaf.Leaf.NotAfter.Sub(leaf.Leaf.NotBefore))) ||
		!slices.Equal(hosts, hostsOf(leaf.Leaf)) ||
		leaf.Leaf.CheckSignatureFrom(a.current()) != nil
}

// sign makes a serving certificate for hosts: DNS names and IP addresses. It does
// not outlive the CA.
func (a *authority) sign(now time.Time, lifetime time.Duration, hosts []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("signing a serving certificate: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, fmt.Errorf("signing a serving certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "vision-operator-webhook"},
		NotBefore:    now.Add(-backdate(lifetime)),
		NotAfter:     earlier(now.Add(lifetime), a.current().NotAfter),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.current(), key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a serving certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("signing a serving certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// hostsOf are the names that a certificate serves, sorted.
func hostsOf(c *x509.Certificate) []string {
	hosts := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	slices.Sort(hosts)
	return hosts
}
