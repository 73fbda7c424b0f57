// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/x509"
	"slices"
	"time"
)

// succession is what decides which CA the Secret should hold.
type succession struct {
	now time.Time
	// lifetime is that of a new CA.
	lifetime time.Duration
	// remembered is what the Secret held when this replica last looked; nil at first.
	remembered *authority
	// inUse is the CA of the leaf that this replica serves; nil at first.
	inUse *authority
	// bundled are the certificates in the caBundles.
	bundled []*x509.Certificate
}

// next is what the Secret should hold, where it holds found now: found itself
// when that may stay. Nothing of use is nil.
//
// A Secret that was deleted, spoilt or put back to a CA that is due for renewal
// gets what this replica remembers. A
// replica that remembers nothing makes a CA beside which those of our making in
// the caBundle stay trusted, for another replica may serve one's leaf. And a
// Secret that somebody replaced by another CA's is told of the CA of this
// replica's leaf. So nobody who serves loses trust.
func (s *succession) next(found *authority) (*authority, error) {
	kept, rest := found, []*x509.Certificate(nil)
	if r := s.remembered; r != nil && (found == nil || found.due(s.now, s.lifetime) && !r.due(s.now, s.lifetime)) {
		kept = r
	}
	if found != nil {
		rest = lasting(found.trusted, s.now)
	}
	if kept == nil {
		ours := slices.DeleteFunc(lasting(s.bundled, s.now), func(c *x509.Certificate) bool { return !isOurs(c) })
		return newAuthority(s.now, s.lifetime, ours)
	}
	trusted := distinct(kept.trusted[:1], s.mine(), rest, lasting(kept.trusted[1:], s.now))
	if kept.due(s.now, s.lifetime) {
		return newAuthority(s.now, s.lifetime, lasting(trusted, s.now))
	}
	if kept == found && sameCertificates(trusted, found.trusted) {
		return found, nil
	}
	return &authority{key: kept.key, trusted: trusted}, nil
}

// mine are the CAs that this replica knows and that must stay trusted.
func (s *succession) mine() []*x509.Certificate {
	var out []*x509.Certificate
	for _, a := range []*authority{s.inUse, s.remembered} {
		if a != nil && s.now.Before(a.current().NotAfter) {
			out = append(out, a.current())
		}
	}
	return out
}

// sameCertificates compares without regard to order.
func sameCertificates(a, b []*x509.Certificate) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c *x509.Certificate) bool { return !slices.ContainsFunc(b, c.Equal) })
}
