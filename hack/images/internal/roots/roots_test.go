// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package roots_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/visionoperator/vision-operator/hack/images/internal/roots"
)

func TestTheBundleHoldsAuthoritiesOnceEach(t *testing.T) {
	f, err := roots.File()
	if err != nil {
		t.Fatal(err)
	}
	if f.Path != "etc/ssl/certs/ca-certificates.crt" || f.Mode != 0o644 {
		t.Errorf("%s has mode %v", f.Path, f.Mode)
	}
	seen, names := map[string]bool{}, map[string]bool{}
	for rest := f.Data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if len(rest) > 0 {
				t.Errorf("%d bytes are no PEM", len(rest))
			}
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !certificate.IsCA || seen[string(block.Bytes)] {
			t.Errorf("%v: no authority, or twice", err)
			continue
		}
		seen[string(block.Bytes)] = true
		names[certificate.Subject.CommonName] = true
	}
	// The authority of most vendors' certificates and of Let's Encrypt's; Mozilla trusts about 140.
	if len(seen) < 100 || !names["ISRG Root X1"] || !names["GTS Root R1"] {
		t.Errorf("%d authorities, ISRG %t, GTS %t", len(seen), names["ISRG Root X1"], names["GTS Root R1"])
	}
	for root := range bundle.Roots() {
		if trusted := root.Constraint == nil; seen[string(root.Certificate)] != trusted {
			t.Errorf("an authority that Mozilla trusts without condition (%t) is in the bundle: %t", trusted, !trusted)
		}
	}
	if again, err := roots.File(); err != nil || !bytes.Equal(again.Data, f.Data) {
		t.Errorf("a second bundle differs (%v)", err)
	}
}
