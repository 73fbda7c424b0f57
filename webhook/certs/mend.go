// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// mend brings everything into place once, and starts over where another replica
// was faster. It tells whether a caBundle was patched.
func (c *Certificates) mend(ctx context.Context) (patched bool, err error) {
	for range attempts {
		var again, once bool
		once, again, err = c.mendOnce(ctx)
		patched = patched || once
		if !again {
			break
		}
	}
	return patched, err
}

// mendOnce goes in the order in which things are needed: the CA, the API server's
// trust in it, and only then a certificate that it signed.
//
// The configurations are read before the Secret. A patch of what was read then is
// refused if another replica has put a newer CA into it since; and if that replica
// has written the newer CA into the Secret only, it is what is read here, or the
// other's own patch is still to come.
func (c *Certificates) mendOnce(ctx context.Context) (patched, again bool, err error) {
	o, now := &c.options, c.options.Now()
	configurations, errs := readConfigurations(ctx, c.client, o.MutatingConfiguration, o.ValidatingConfiguration)
	unread := slices.ContainsFunc(errs, func(err error) bool { return !apierrors.IsNotFound(err) })
	order := &succession{now: now, lifetime: o.CALifetime, remembered: c.known, inUse: c.inUse, bundled: bundled(configurations)}
	ca, err := ensureAuthority(ctx, c.client, client.ObjectKey{Namespace: o.Namespace, Name: o.Secret}, order)
	var want func([]byte) []byte
	switch {
	case err == nil:
		c.known, want = ca, ca.wanted
	case c.known == nil:
		return false, false, errors.Join(append(errs, err)...)
	default: // what is remembered must do, and the Secret may hold a newer CA
		errs = append(errs, err)
		ca, want = c.known, c.known.added
	}
	inPlace := len(configurations) > 0
	for _, conf := range configurations {
		put, err := ensureBundle(ctx, c.client, conf, want, v1alpha1.ManagedBy)
		if put {
			patched = true
			c.log.Info("Put the CA into the caBundle", "configuration", conf.object.GetName(), "kind", fmt.Sprintf("%T", conf.object))
		}
		if err != nil {
			inPlace, again = false, again || apierrors.IsConflict(err)
			errs = append(errs, err)
		}
	}
	if !unread {
		c.placed = c.placed.seen(ca.current(), inPlace, now)
	}
	hosts := sortedHosts(serviceHosts(o.Service, o.Namespace), o.Hosts, urlHosts(configurations))
	if unread && c.leaf != nil {
		hosts = hostsOf(c.leaf.Leaf)
	}
	errs = append(errs, c.renewLeaf(ca, now, hosts))
	return patched, again, errors.Join(errs...)
}

// wanted is the caBundle, whatever is there.
func (a *authority) wanted([]byte) []byte { return a.bundle() }

// added is the caBundle as it is there, with this CA's in it.
func (a *authority) added(present []byte) []byte {
	certs := parseBundle(present)
	if slices.ContainsFunc(certs, a.current().Equal) {
		return present
	}
	return encodeCertificates(distinct(a.trusted, certs))
}

func (c *Certificates) renewLeaf(ca *authority, now time.Time, hosts []string) error {
	by := signer(c.inUse, ca, c.placed, c.options.Overlap, now)
	c.inUse = by
	if !by.leafDue(now, c.leaf, hosts) {
		return nil
	}
	leaf, err := by.sign(now, c.options.LeafLifetime, hosts)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.leaf = leaf
	c.mu.Unlock()
	c.log.Info("Signed a serving certificate", "hosts", hosts, "until", leaf.Leaf.NotAfter, "ca", by.current().SerialNumber.Text(16))
	return nil
}
