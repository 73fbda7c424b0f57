// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package roots writes the certificate authorities that images trust: Mozilla's,
// from the Go module that carries them, so that go.sum pins them.
package roots

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"slices"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

// Path is where Go, OpenSSL and Debian look for the bundle.
const Path = "etc/ssl/certs/ca-certificates.crt"

// Module is the Go module that the certificates come from.
const Module = "golang.org/x/crypto/x509roots/fallback"

// File returns the bundle: PEM blocks in the order of their digests. Authorities
// that Mozilla trusts only in part (up to a date, say) are left out, since a bundle cannot say which part.
func File() (rootfs.File, error) {
	var certificates [][]byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			certificates = append(certificates, root.Certificate)
		}
	}
	slices.SortFunc(certificates, func(a, b []byte) int {
		x, y := sha256.Sum256(a), sha256.Sum256(b)
		return bytes.Compare(x[:], y[:])
	})
	var out bytes.Buffer
	for _, der := range certificates {
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return rootfs.File{}, fmt.Errorf("writing the certificate bundle: %w", err)
		}
	}
	return rootfs.File{Path: Path, Mode: 0o644, Data: out.Bytes()}, nil
}
