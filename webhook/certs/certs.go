// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs gives the webhook server its certificate and the API server
// its trust in it, without a kubelet, a mounted file or a further component.
//
// All replicas share one CA in a Secret that the first of them creates. Each puts
// the CA into the caBundle of our webhook configurations where it is missing, and
// signs a short-lived serving certificate for itself, in memory only. A CA in the
// last third of its life gets a successor; the caBundle carries both until the
// old one expires, and a replica moves to the new one only after it has been in
// the caBundle for a while. A running replica also remembers the CA, so that a
// Secret that was deleted or spoilt comes back as it was: there is no moment
// without trust but the one between a caBundle's being wiped and put back.
//
// With a directory of one's own (tls.crt and tls.key, reloaded when they
// change) none of that happens, and the caBundle is its owner's business.
package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pauses of Start's loop: between attempts that fail, doubled each time, and the
// least between two looks, in case somebody else keeps changing things back.
const (
	firstRetry   = time.Second
	slowestRetry = 30 * time.Second
	settle       = 200 * time.Millisecond
)

// propagation is how long a replica that had to put its CA into a caBundle waits
// before it is ready, so that the API server has heard of it.
const propagation = 2 * time.Second

// Certificates is the certificate of one replica. Start keeps it good.
type Certificates struct {
	options Options
	client  client.WithWatch
	log     logr.Logger
	watcher *certwatcher.CertWatcher // nil unless Directory is set

	// looking is held by who syncs, and guards what only that reads and writes.
	looking sync.Mutex
	known   *authority // what the Secret held last
	inUse   *authority // the signer of leaf
	placed  placement

	mu      sync.RWMutex
	leaf    *tls.Certificate
	err     error     // why no Sync has succeeded yet; errNotSynced before the first
	readyAt time.Time // not before that, once err is nil
}

var errNotSynced = errors.New("preparing the webhook's certificate: not done yet")

// New prepares the certificates. The client must read without a cache. With
// Options.Directory the files must be there, and nothing is written.
func New(c client.WithWatch, log logr.Logger, options Options) (*Certificates, error) {
	options.setDefaults()
	if err := options.Check(); err != nil {
		return nil, fmt.Errorf("preparing the webhook's certificate: %w", err)
	}
	made := &Certificates{options: options, client: c, log: log, err: errNotSynced}
	if options.Directory == "" {
		if options.Namespace == "" {
			return nil, errors.New("preparing the webhook's certificate: the operator's namespace is not known")
		}
		return made, nil
	}
	var err error
	made.watcher, err = certwatcher.New(filepath.Join(options.Directory, certificateFile), filepath.Join(options.Directory, keyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's certificate from %s: %w", options.Directory, err)
	}
	return made, nil
}

// GetCertificate is for tls.Config. It fails until the first certificate is signed.
func (c *Certificates) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c.watcher != nil {
		return c.watcher.GetCertificate(hello)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.leaf == nil {
		return nil, errNoCertificate
	}
	return c.leaf, nil
}

// Ready is a readiness check: it passes once the certificate was good and trusted
// by every caBundle, and as long as the certificate is good. What fails later is
// logged and tried again: a configuration that somebody deleted must not take the
// replicas away from those that the other still calls.
func (c *Certificates) Ready(*http.Request) error {
	c.mu.RLock()
	err, readyAt := c.err, c.readyAt
	c.mu.RUnlock()
	if err != nil {
		return err
	}
	now := c.options.Now()
	if now.Before(readyAt) {
		return fmt.Errorf("serving webhooks: giving the API server until %s to hear of the CA", readyAt.UTC().Format(time.RFC3339))
	}
	leaf, err := c.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		return err
	}
	if !now.Before(leaf.Leaf.NotAfter) {
		return fmt.Errorf("serving webhooks: the certificate expired at %s", leaf.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// NeedLeaderElection is false: every replica serves.
func (c *Certificates) NeedLeaderElection() bool { return false }

// Start keeps the certificate and the caBundles good until ctx ends. What
// fails is logged and tried again; Ready shows it until all was well once.
func (c *Certificates) Start(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() {
		c.watch(ctx, c.options.MutatingConfiguration, &admissionv1.MutatingWebhookConfigurationList{}, changed)
	})
	others.Go(func() {
		c.watch(ctx, c.options.ValidatingConfiguration, &admissionv1.ValidatingWebhookConfigurationList{}, changed)
	})
	if c.watcher == nil {
		c.keep(ctx, changed)
		return nil
	}
	others.Go(func() { c.keep(ctx, changed) })
	return c.watcher.Start(ctx)
}

// keep syncs whenever something changed, and from time to time.
func (c *Certificates) keep(ctx context.Context, changed <-chan struct{}) {
	retry := firstRetry
	for ctx.Err() == nil {
		began, wait := time.Now(), c.options.Interval
		if err := c.Sync(ctx); err == nil {
			retry = firstRetry
		} else if ctx.Err() == nil {
			c.log.Error(err, "The webhook's certificate or caBundle is not in place; trying again", "after", min(retry, wait))
			wait, retry = min(retry, wait), min(2*retry, slowestRetry)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-changed:
			pause(ctx, settle-time.Since(began))
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Sync looks at everything once and mends what it finds; with Options.Directory
// it mends nothing.
func (c *Certificates) Sync(ctx context.Context) error {
	c.looking.Lock()
	defer c.looking.Unlock()
	patched, err := false, error(nil)
	if c.watcher != nil {
		err = c.checkDirectory(ctx)
	} else {
		patched, err = c.mend(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		c.err = err
		if patched {
			c.readyAt = c.options.Now().Add(propagation)
		}
	}
	return err
}
