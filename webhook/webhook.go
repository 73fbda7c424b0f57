// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook is the rim of admission: it puts the vision runtime beside
// pods that ask for it, and judges both kinds before they are stored. What it
// decides is in webhook/inject, controllers/compile and api/v1alpha1/validation,
// which are pure; what is here reads objects, answers requests and serves them.
//
// Its certificate, and the API server's trust in it, are in webhook/certs. The
// webhook configurations that make the API server call are in config/webhook.
package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"

	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook/certs"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// Paths at which the webhooks are served; config/webhook names them.
const (
	PodPath      = "/mutate-pods"
	ProviderPath = "/validate-visionproviders"
	PolicyPath   = "/validate-visionpolicies"
)

// DefaultListen is where the webhook server listens: every address, port 9443.
const DefaultListen = ":9443"

// Options are what the webhooks need beside a manager. OperatorNamespace and
// Runtime.Image must be set; everything else has a default.
type Options struct {
	// OperatorNamespace is where the operator runs, its CA's Secret is, and
	// baselines may live.
	OperatorNamespace string
	// Namespaces are those that the operator looks at besides its own; none
	// stands for all. A pod of another one is served by nothing.
	Namespaces []string
	// Listen is the webhook server's host:port. Default DefaultListen.
	Listen string
	// Runtime is what every injected container gets: image, pull policy and
	// secrets, proxies, CA, default resources.
	Runtime inject.Settings
	// WithoutSecrets leaves the keys that pods would mount unlooked at.
	WithoutSecrets bool
	// Certificates may be left zero; its Namespace is filled in.
	Certificates certs.Options
}

// Setup adds the webhook server, its certificates and its readiness checks to a
// manager whose scheme knows both kinds, core/v1 and admissionregistration/v1.
// Every replica serves; none of it waits for leadership.
//
// What the operator may do must include: get, list, watch of visionpolicies,
// visionproviders and namespaces; list, watch of limitranges; get of secrets, unless
// WithoutSecrets, where pods shall be told of keys that are missing; create of
// subjectaccessreviews; get, list, watch, patch of the mutating and
// validating webhook configurations named vision-operator (list and watch are
// by metadata.name); and in its own namespace create of secrets, with get and
// update of vision-operator-ca. With Certificates.Directory the last two are
// not needed.
func Setup(mgr ctrl.Manager, options Options) error {
	if err := options.complete(); err != nil {
		return fmt.Errorf("setting up the webhooks: %w", err)
	}
	// Configurations and the Secret are read from the API server itself: a cached
	// read would need leave to list all of them.
	direct, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("setting up the webhooks: making a client: %w", err)
	}
	certificates, err := certs.New(direct, mgr.GetLogger().WithName("certificates"), options.Certificates)
	if err != nil {
		return fmt.Errorf("setting up the webhooks: %w", err)
	}
	server, err := newServer(options.Listen, certificates)
	if err != nil {
		return fmt.Errorf("setting up the webhooks: %w", err)
	}
	scope := gather.Scope{OperatorNamespace: options.OperatorNamespace, Namespaces: options.Namespaces}
	decider := NewDecider(mgr, scope, options)
	for name, kind := range informers() {
		if _, err := mgr.GetCache().GetInformer(context.Background(), kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("setting up the webhooks: caching %s: %w", name, err)
		}
	}
	pods := &podHandler{scheme: mgr.GetScheme(), decider: decider}
	refs := &references{cached: mgr.GetClient(), live: mgr.GetAPIReader(), scope: scope}
	authorization, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("setting up the webhooks: making a client of authorization: %w", err)
	}
	keys := &access{live: mgr.GetAPIReader(), reviews: authorization.SubjectAccessReviews(), scope: scope}
	log := mgr.GetLogger().WithName("webhook")
	server.Register(PodPath, serve(pods, log))
	server.Register(ProviderPath, serve(providerHandler(mgr.GetScheme()), log))
	server.Register(PolicyPath, serve(policyHandler(mgr.GetScheme(), refs, keys), log))
	return errors.Join(
		mgr.Add(certificates),
		mgr.Add(server),
		mgr.AddReadyzCheck("webhook-certificate", certificates.Ready),
		mgr.AddReadyzCheck("webhook-server", server.StartedChecker()),
	)
}

// NewDecider is a Decider by a manager's cache and API server.
func NewDecider(mgr ctrl.Manager, scope gather.Scope, options Options) *Decider {
	d := &Decider{Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), Scope: scope, Settings: options.Runtime}
	if !options.WithoutSecrets {
		d.Keys = NewKeys(mgr.GetAPIReader())
	}
	return d
}

func (o *Options) complete() error {
	if o.OperatorNamespace == "" {
		return errors.New("the operator's namespace is not known")
	}
	if o.Runtime.Image == "" {
		return errors.New("no image of the vision runtime is given")
	}
	if o.Listen == "" {
		o.Listen = DefaultListen
	}
	o.Certificates.Namespace = o.OperatorNamespace
	return nil
}

func newServer(listen string, certificates *certs.Certificates) (ctrlwebhook.Server, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("reading the listen address: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return nil, fmt.Errorf("reading the listen address: %q has no port from 1 to 65535", listen)
	}
	return ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: host,
		Port: int(number),
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = tls.VersionTLS12
			c.GetCertificate = certificates.GetCertificate
		}},
	}), nil
}
