// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"
)

const (
	// skew is how far the clocks of replicas and API servers may be apart.
	skew = 5 * time.Minute
	// maxTrusted bounds the CAs that are trusted at a time; two are in the course
	// of things, and more where Secrets were lost or replaced.
	maxTrusted = 8
	// authorityName is the common name of the CAs that the operator makes.
	authorityName = "vision-operator-ca"
)

// backdate is how long before its making a certificate of some lifetime begins
// to hold: for clocks that are behind. It is little of a short life.
func backdate(lifetime time.Duration) time.Duration { return min(skew, lifetime/12) }

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

// newAuthority makes a CA beside which its predecessors stay trusted.
func newAuthority(now time.Time, lifetime time.Duration, predecessors []*x509.Certificate) (*authority, error) {
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
		Subject:               pkix.Name{CommonName: authorityName, SerialNumber: serial.Text(16)},
		NotBefore:             now.Add(-backdate(lifetime)),
		NotAfter:              now.Add(lifetime),
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
	return &authority{key: key, trusted: distinct([]*x509.Certificate{cert}, predecessors)}, nil
}

func serialNumber() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// current is the certificate that signs.
func (a *authority) current() *x509.Certificate { return a.trusted[0] }

// trusts reports whether a certificate is among the trusted.
func (a *authority) trusts(c *x509.Certificate) bool { return slices.ContainsFunc(a.trusted, c.Equal) }

// due reports whether a successor should be made. A CA that begins to hold only
// later comes from a clock that was ahead. The lifetime is what the operator is
// asked for now: a CA of its own making that was to live longer is due sooner.
func (a *authority) due(now time.Time, lifetime time.Duration) bool {
	c := a.current()
	asked := c.NotAfter.Sub(c.NotBefore)
	if isOurs(c) {
		asked = lifetime + backdate(lifetime)
	}
	return !now.Before(renewal(c, asked)) || now.Add(skew).Before(c.NotBefore)
}

// renewal is the moment after two thirds of a certificate's life, or of the life
// that is asked for where that is shorter.
func renewal(c *x509.Certificate, asked time.Duration) time.Time {
	return c.NotBefore.Add(min(c.NotAfter.Sub(c.NotBefore), asked) / 3 * 2)
}

// isOurs reports whether a certificate is a CA that the operator made.
func isOurs(c *x509.Certificate) bool { return c.IsCA && c.Subject.CommonName == authorityName }

// lasting are the certificates that have not expired by any clock.
func lasting(certs []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(certs), func(c *x509.Certificate) bool { return !now.Before(c.NotAfter.Add(skew)) })
}

// distinct is one list without repetitions, of at most maxTrusted.
func distinct(lists ...[]*x509.Certificate) []*x509.Certificate {
	var out []*x509.Certificate
	for _, c := range slices.Concat(lists...) {
		if c != nil && len(out) < maxTrusted && !slices.ContainsFunc(out, c.Equal) {
			out = append(out, c)
		}
	}
	return out
}

// bundle is PEM of what is to be trusted: the caBundle. It is the same for every
// replica, whatever its clock says.
func (a *authority) bundle() []byte { return encodeCertificates(a.trusted) }

// parseBundle reads the certificates of a caBundle and passes over all else.
func parseBundle(data []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			out = append(out, c)
		}
	}
	return out
}

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
