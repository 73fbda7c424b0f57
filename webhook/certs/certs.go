// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs gives the webhook server its certificate and the API server
// its trust in it, without a kubelet, a mounted file or a further component.
//
// All replicas share one CA in a Secret that the first of them creates. Each
// signs a short-lived serving certificate for itself, in memory only, and puts
// the CA into the caBundle of our webhook configurations where it is missing. A
// CA in the last third of its life gets a successor; the caBundle carries both
// until the old one expires, and replicas move to the new one only after it has
// been in the caBundle for a while, so that there is no moment without trust.
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

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Defaults of Options, which are the names in config/webhook.
const (
	DefaultSecret        = "vision-operator-ca"
	DefaultService       = "vision-operator-webhook"
	DefaultConfiguration = "vision-operator"
	defaultInterval      = time.Minute
)

// Pauses of Start's loop: between attempts that fail, doubled each time, and
// before looking again after a change, in case somebody else keeps changing it back.
const (
	firstRetry   = time.Second
	slowestRetry = 30 * time.Second
	settle       = 200 * time.Millisecond
)

// Options say where things are. Only Namespace must be set, and neither it nor
// anything else with Directory.
type Options struct {
	// Directory holds tls.crt and tls.key of the administrator's own, or of
	// cert-manager's; they are reloaded when they change. Empty means our own CA.
	Directory string
	// Namespace is the operator's.
	Namespace string
	// Secret holds the CA. Default DefaultSecret.
	Secret string
	// Service is the Service in front of the webhook server. Default DefaultService.
	Service string
	// MutatingConfiguration and ValidatingConfiguration are ours. Default DefaultConfiguration.
	MutatingConfiguration, ValidatingConfiguration string
	// Hosts are further DNS names and IP addresses in the serving certificate;
	// those of a clientConfig.url in our configurations are found by themselves.
	Hosts []string
	// Interval is how often everything is checked when no change is heard of. Default 1 minute.
	Interval time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o *Options) setDefaults() {
	for field, value := range map[*string]string{
		&o.Secret: DefaultSecret, &o.Service: DefaultService,
		&o.MutatingConfiguration: DefaultConfiguration, &o.ValidatingConfiguration: DefaultConfiguration,
	} {
		if *field == "" {
			*field = value
		}
	}
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Certificates is the certificate of one replica. Start keeps it good.
type Certificates struct {
	options Options
	client  client.WithWatch
	log     logr.Logger
	watcher *certwatcher.CertWatcher // nil unless Directory is set

	mu   sync.RWMutex
	leaf *tls.Certificate
	err  error // why no Sync has succeeded yet; errNotSynced before the first
}

var errNotSynced = errors.New("preparing the webhook's certificate: not done yet")

// New prepares the certificates. The client must read without a cache, and is
// not used with Options.Directory, whose files must be there.
func New(c client.WithWatch, log logr.Logger, options Options) (*Certificates, error) {
	options.setDefaults()
	made := &Certificates{options: options, client: c, log: log, err: errNotSynced}
	if options.Directory == "" {
		if options.Namespace == "" {
			return nil, errors.New("preparing the webhook's certificate: the operator's namespace is not known")
		}
		return made, nil
	}
	var err error
	made.watcher, err = certwatcher.New(filepath.Join(options.Directory, "tls.crt"), filepath.Join(options.Directory, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the webhook's certificate from %s: %w", options.Directory, err)
	}
	made.err = nil
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

// Ready is a readiness check: it passes once the certificate and our CA in every
// caBundle were in place together, and as long as the certificate is good. What
// fails later is logged and tried again: a configuration that somebody deleted
// must not take the replicas away from those that the other still calls.
func (c *Certificates) Ready(*http.Request) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.err != nil {
		return c.err
	}
	if c.leaf != nil && !c.options.Now().Before(c.leaf.Leaf.NotAfter) {
		return fmt.Errorf("serving webhooks: the certificate expired at %s", c.leaf.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// NeedLeaderElection is false: every replica serves.
func (c *Certificates) NeedLeaderElection() bool { return false }

// Start keeps the certificate and the caBundles good until ctx ends. What
// fails is logged and tried again; Ready shows it until all was well once.
func (c *Certificates) Start(ctx context.Context) error {
	if c.watcher != nil {
		return c.watcher.Start(ctx)
	}
	changed := make(chan struct{}, 1)
	var watches sync.WaitGroup
	defer watches.Wait()
	watches.Go(func() {
		c.watch(ctx, c.options.MutatingConfiguration, &admissionv1.MutatingWebhookConfigurationList{}, changed)
	})
	watches.Go(func() {
		c.watch(ctx, c.options.ValidatingConfiguration, &admissionv1.ValidatingWebhookConfigurationList{}, changed)
	})
	retry := firstRetry
	for {
		wait := c.options.Interval
		if err := c.Sync(ctx); err == nil {
			retry = firstRetry
		} else if ctx.Err() == nil {
			c.log.Error(err, "The webhook's certificate or caBundle is not in place; trying again", "after", retry)
			wait, retry = retry, min(2*retry, slowestRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			time.Sleep(settle)
		case <-time.After(wait):
		}
	}
}

// Sync looks at everything once and mends what it finds: the CA, then this
// replica's certificate, then the caBundles, in the order in which they are needed.
func (c *Certificates) Sync(ctx context.Context) error {
	err := c.sync(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		c.err = err
	}
	return err
}

func (c *Certificates) sync(ctx context.Context) error {
	o, now := &c.options, c.options.Now()
	ca, err := ensureAuthority(ctx, c.client, client.ObjectKey{Namespace: o.Namespace, Name: o.Secret}, now)
	if err != nil {
		return err
	}
	configurations, missing := readConfigurations(ctx, c.client, o.MutatingConfiguration, o.ValidatingConfiguration)
	hosts := sortedHosts(serviceHosts(o.Service, o.Namespace), o.Hosts, urlHosts(configurations))
	if err := c.renewLeaf(ca, now, hosts); err != nil {
		return err
	}
	errs := []error{missing}
	for _, conf := range configurations {
		patched, err := ensureBundle(ctx, c.client, conf, ca.bundle(now), v1alpha1.ManagedBy)
		if patched {
			c.log.Info("Put the CA into the caBundle", "configuration", conf.object.GetName(), "kind", fmt.Sprintf("%T", conf.object))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c *Certificates) renewLeaf(ca *authority, now time.Time, hosts []string) error {
	c.mu.RLock()
	leaf := c.leaf
	c.mu.RUnlock()
	if !ca.leafDue(now, leaf, hosts) {
		return nil
	}
	leaf, err := ca.sign(now, hosts)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.leaf = leaf
	c.mu.Unlock()
	c.log.Info("Signed a serving certificate", "hosts", hosts, "until", leaf.Leaf.NotAfter)
	return nil
}
