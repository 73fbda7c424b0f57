// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// Lifetimes. Both kinds of certificate are renewed after two thirds of theirs.
const (
	// authorityLifetime leaves four months in which leaves of the old CA are still trusted.
	authorityLifetime = 365 * 24 * time.Hour
	// leafLifetime is short, since leaves are only ever in memory.
	leafLifetime = 7 * 24 * time.Hour
	// backdate allows for clocks that differ between replicas and API servers.
	backdate = 5 * time.Minute
	// overlap is how long a replica keeps serving a leaf of the previous CA, so
	// that every API server has heard of the new one before it meets it.
	overlap = 5 * time.Minute
)

// authority is a CA with its private key, and the certificates to be trusted:
// its own first, then those of its predecessors that have not expired. It
// prints as redacted.
type authority struct {
	key     *ecdsa.PrivateKey
	trusted []*x509.Certificate
}

// String hides the key.
func (a *authority) String() string { return "authority(redacted)" }

// GoString hides the key.
func (a *authority) GoString() string { return a.String() }

// Format hides the key from every verb.
func (a *authority) Format(f fmt.State, _ rune) { fmt.Fprint(f, a.String()) }

// newAuthority makes a CA that succeeds previous, which is nil at first.
func newAuthority(now time.Time, previous *authority) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// The serial number keeps apart CAs that would share a name, so that
		// verifiers never try the wrong one of two keys.
		Subject:               pkix.Name{CommonName: "vision-operator-ca", SerialNumber: serial.Text(16)},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making a CA: %w", err)
	}
	made := &authority{key: key, trusted: []*x509.Certificate{cert}}
	if previous != nil {
		made.trusted = append(made.trusted, previous.unexpired(now)...)
	}
	return made, nil
}

func serialNumber() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// current is the certificate that signs.
func (a *authority) current() *x509.Certificate { return a.trusted[0] }

func (a *authority) unexpired(now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(a.trusted), func(c *x509.Certificate) bool { return !now.Before(c.NotAfter) })
}

// due reports whether a successor should be made.
func (a *authority) due(now time.Time) bool { return !now.Before(renewal(a.current())) }

// renewal is the moment after two thirds of a certificate's life.
func renewal(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

// bundle is PEM of what is to be trusted now: the caBundle.
func (a *authority) bundle(now time.Time) []byte { return encodeCertificates(a.unexpired(now)) }

func encodeCertificates(certs []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range certs {
		out.Write(encodePEM("CERTIFICATE", c.Raw))
	}
	return out.Bytes()
}

// encode is the CA as the Secret holds it.
func (a *authority) encode() (certificates, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the CA: %w", err)
	}
	return encodeCertificates(a.trusted), encodePEM("PRIVATE KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// parseAuthority reads a CA from the Secret's values. Errors never repeat them.
func parseAuthority(certificates, key []byte) (*authority, error) {
	a := &authority{}
	for rest := certificates; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("reading the CA: %s holds a PEM block that is not a certificate", certificateKey)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading the CA: %s: %w", certificateKey, err)
		}
		a.trusted = append(a.trusted, c)
	}
	if len(a.trusted) == 0 {
		return nil, fmt.Errorf("reading the CA: %s holds no certificate", certificateKey)
	}
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, fmt.Errorf("reading the CA: %s holds no PEM block", privateKeyKey)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the CA: %s does not parse as PKCS #8", privateKeyKey)
	}
	signer, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !signer.PublicKey.Equal(a.current().PublicKey) {
		return nil, fmt.Errorf("reading the CA: %s is not the ECDSA key of the first certificate of %s", privateKeyKey, certificateKey)
	}
	if !a.current().IsCA {
		return nil, fmt.Errorf("reading the CA: the first certificate of %s is not a CA", certificateKey)
	}
	a.key = signer
	return a, nil
}

// sign makes a serving certificate for hosts: DNS names and IP addresses.
func (a *authority) sign(now time.Time, hosts []string) (*tls.Certificate, error) {
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
		NotBefore:    now.Add(-backdate),
		NotAfter:     earlier(now.Add(leafLifetime), a.current().NotAfter),
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

// leafDue reports whether a replica should sign a new serving certificate.
func (a *authority) leafDue(now time.Time, leaf *tls.Certificate, hosts []string) bool {
	switch {
	case leaf == nil, !now.Before(renewal(leaf.Leaf)), !slices.Equal(hosts, hostsOf(leaf.Leaf)):
		return true
	case leaf.Leaf.CheckSignatureFrom(a.current()) == nil:
		return false
	}
	stillTrusted := slices.ContainsFunc(a.unexpired(now), func(c *x509.Certificate) bool { return leaf.Leaf.CheckSignatureFrom(c) == nil })
	return !stillTrusted || !now.Before(a.current().NotBefore.Add(backdate+overlap))
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

// errNoCertificate is a handshake before the first certificate was signed.
var errNoCertificate = errors.New("serving webhooks: no certificate yet")
