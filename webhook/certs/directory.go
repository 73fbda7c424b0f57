// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Files of Options.Directory, named as in a Secret of type kubernetes.io/tls.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	// authorityFile is there where the certificate's issuer has a CA of its own,
	// as cert-manager's do; empty or absent stands for a public one.
	authorityFile = "ca.crt"
)

// UntrustedError is a webhook whose caBundle, which is not ours to fill, does not
// make the API server trust the certificate that we were given.
type UntrustedError struct {
	// Webhook is the name of the configuration's entry, Host that by which the API server verifies.
	Webhook, Host string
	Err           error
}

// Error says which webhook, and why.
func (e *UntrustedError) Error() string {
	return fmt.Sprintf("checking the caBundle of %s: the API server would not trust the certificate of --webhook-cert-dir for %s: %v", e.Webhook, e.Host, e.Err)
}

// Unwrap is why.
func (e *UntrustedError) Unwrap() error { return e.Err }

// errNoBundle is a caBundle that nobody has filled in yet.
var errNoBundle = errors.New("the caBundle is empty, and the directory's " + authorityFile + " is not")

// checkDirectory looks whether every caBundle trusts the certificate of the
// directory. An empty one stands for the API server's own roots, which cannot be
// seen from here; where the directory has a ca.crt it was forgotten instead.
func (c *Certificates) checkDirectory(ctx context.Context) error {
	served, err := c.watcher.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		return fmt.Errorf("checking the webhook's certificate: %w", err)
	}
	ownCA, err := os.ReadFile(filepath.Join(c.options.Directory, authorityFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("checking the webhook's certificate: %w", err)
	}
	configurations, errs := readConfigurations(ctx, c.client, c.options.MutatingConfiguration, c.options.ValidatingConfiguration)
	for _, conf := range configurations {
		for _, e := range conf.entries {
			if err := e.trusts(served, c.options.Now(), len(parseBundle(ownCA)) > 0); err != nil {
				errs = append(errs, &UntrustedError{Webhook: e.name, Host: e.host(), Err: err})
			}
		}
	}
	return errors.Join(errs...)
}

// trusts is what keeps the API server from calling an entry's webhook: nil if
// nothing that can be seen does.
func (e entry) trusts(served *tls.Certificate, now time.Time, privateCA bool) error {
	if len(e.config.CABundle) == 0 {
		if privateCA {
			return errNoBundle
		}
		return served.Leaf.VerifyHostname(e.host())
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range parseBundle(e.config.CABundle) {
		roots.AddCert(c)
	}
	for _, der := range served.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	_, err := served.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: e.host(), CurrentTime: now})
	return err
}
