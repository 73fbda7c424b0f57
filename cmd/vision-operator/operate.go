// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/certs"
	"github.com/visionoperator/vision-operator/webhook/inject"
	"github.com/visionoperator/vision-operator/webhook/watchdog"
)

// minimumKubernetes is the oldest API server that has all that the operator
// relies on: native sidecars and CEL admission policies, both on by default.
var minimumKubernetes = utilversion.MustParseGeneric("1.30")

// shutdown is how long requests and reconciles under way may still take.
const shutdown = 20 * time.Second

// Requests to the API server per second, and in a burst, for each resource. A
// change of a namespace's router writes the status of each of its policies: a
// provider that 200 namespaces with six policies use is 1,200 of them, half a
// minute at 50 in a second. The API server's own priority and fairness keeps
// what it serves fair; this keeps the operator from being a storm. See test/scale.
const (
	requestRate  = 200
	requestBurst = 400
)

// operate runs the operator until ctx ends.
func operate(ctx context.Context, cfg configuration, log logr.Logger) error {
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	slog.SetDefault(slog.New(logr.ToSlogHandler(log))) // and with it what net/http logs
	log.Info("Starting", "version", buildVersion(), "components", cfg.components, "operatorNamespace", cfg.operatorNamespace, "runtimeImage", cfg.runtimeImage)
	config, err := restConfig(cfg.kubeconfig)
	if err != nil {
		return err
	}
	if err := checkServer(ctx, config); err != nil {
		return err
	}
	if err := checkKinds(ctx, config, log); err != nil {
		return err
	}
	mgr, err := newManager(ctx, config, cfg, log)
	if err != nil {
		return err
	}
	if err := runUntilEnd(ctx, mgr, log); err != nil {
		return fmt.Errorf("running the operator: %w", err)
	}
	return nil
}

// runUntilEnd runs a manager until ctx ends, and does not wait for it for ever: a
// manager that is told to end before it has read what it caches, which the API
// server may never let it, goes on waiting for that and takes a whole processor
// (controller-runtime's runnableGroup.Start). Nothing is under way then.
func runUntilEnd(ctx context.Context, mgr ctrl.Manager, log logr.Logger) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- mgr.Start(running)
		cancel()
	}()
	patience := time.Second
	if mgr.GetCache().WaitForCacheSync(running) {
		<-running.Done()
		patience = shutdown + 5*time.Second
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		log.Info("Ending without waiting any longer for what is under way")
		return nil
	}
}

// newManager puts together all that runs.
func newManager(ctx context.Context, config *rest.Config, cfg configuration, log logr.Logger) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	metrics, watcher, err := metricsOptions(cfg)
	if err != nil {
		return nil, err
	}
	options := managerOptions(cfg, scheme, log)
	options.Metrics = metrics
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("preparing the operator: %w", err)
	}
	if watcher != nil {
		if err := mgr.Add(watcher); err != nil {
			return nil, fmt.Errorf("watching the metrics' certificate: %w", err)
		}
	}
	if cfg.runs(componentControllers) {
		if err := addControllers(mgr, cfg); err != nil {
			return nil, err
		}
	}
	if cfg.runs(componentWebhooks) && cfg.webhookListen != off {
		if err := webhook.Setup(mgr, webhookOptions(cfg)); err != nil {
			return nil, err
		}
	}
	if err := addChecks(ctx, mgr); err != nil {
		return nil, err
	}
	return mgr, nil
}

// addControllers adds what one replica, elected, does: the controllers, and the
// watchdog that tells them which pods lack the runtime.
func addControllers(mgr ctrl.Manager, cfg configuration) error {
	missing := &controllers.Missing{}
	if err := controllers.Setup(mgr, controllerOptions(cfg, missing)); err != nil {
		return err
	}
	if cfg.watchdogInterval == 0 {
		return nil
	}
	return watchdog.Setup(mgr, watchdogOptions(mgr, cfg, missing))
}

// addChecks says when a replica lives and when it is ready: once it has read
// both kinds, which its webhooks answer from, whether or not it leads. The
// webhooks add that they have a certificate and are served.
func addChecks(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding the liveness check: %w", err)
	}
	for name, kind := range map[string]client.Object{"visionproviders": &v1alpha1.VisionProvider{}, "visionpolicies": &v1alpha1.VisionPolicy{}} {
		informer, err := mgr.GetCache().GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("caching %s: %w", name, err)
		}
		check := func(*http.Request) error {
			if !informer.HasSynced() {
				return &notReadError{kind: name}
			}
			return nil
		}
		if err := mgr.AddReadyzCheck(name, check); err != nil {
			return fmt.Errorf("adding the readiness check: %w", err)
		}
	}
	return nil
}

// notReadError is a kind whose objects have not all been read yet.
type notReadError struct{ kind string }

// Error names the kind.
func (e *notReadError) Error() string { return "reading all " + e.kind + ": not done yet" }

func managerOptions(cfg configuration, scheme *runtime.Scheme, log logr.Logger) ctrl.Options {
	wait := shutdown
	return ctrl.Options{
		Scheme:                        scheme,
		Logger:                        log,
		Cache:                         cacheOptions(cfg),
		Client:                        controllers.ClientOptions(),
		HealthProbeBindAddress:        cfg.healthListen,
		LeaderElection:                cfg.leaderElect && cfg.runs(componentControllers),
		LeaderElectionID:              v1alpha1.ManagedBy,
		LeaderElectionNamespace:       cfg.operatorNamespace,
		LeaderElectionReleaseOnCancel: true, // run returns as soon as the manager ends
		GracefulShutdownTimeout:       &wait,
	}
}

func controllerOptions(cfg configuration, missing *controllers.Missing) controllers.Options {
	return controllers.Options{
		Missing:           missing,
		OperatorNamespace: cfg.operatorNamespace,
		Namespaces:        cfg.watchNamespaces,
		RuntimeImage:      cfg.runtimeImage,
		StampsPerSecond:   cfg.stampsPerSecond,
		WithoutSecrets:    cfg.secretAccess == secretAccessNone,
	}
}

// watchdogOptions have the watchdog decide as the webhooks do, and policies tell
// what it counts.
func watchdogOptions(mgr ctrl.Manager, cfg configuration, missing *controllers.Missing) watchdog.Options {
	scope := gather.Scope{OperatorNamespace: cfg.operatorNamespace, Namespaces: cfg.watchNamespaces}
	return watchdog.Options{
		Decider:  webhook.NewDecider(mgr, scope, webhookOptions(cfg)),
		Scope:    scope,
		Count:    missing.Count,
		Interval: cfg.watchdogInterval,
		Evict:    cfg.watchdogEvict,
	}
}

// cacheOptions limit the controllers' cache to the namespaces to be served.
func cacheOptions(cfg configuration) cache.Options {
	options := controllers.CacheOptions()
	if len(cfg.watchNamespaces) == 0 {
		return options
	}
	options.DefaultNamespaces = map[string]cache.Config{cfg.operatorNamespace: {}}
	for _, namespace := range cfg.watchNamespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// metricsOptions say how /metrics is served: over HTTPS, to who the API server
// says may get that path. With a directory of its own the certificate is
// watched, by the runnable that is returned.
func metricsOptions(cfg configuration) (metricsserver.Options, *certwatcher.CertWatcher, error) {
	options := metricsserver.Options{BindAddress: cfg.metricsListen}
	if cfg.metricsInsecure || cfg.metricsListen == off {
		return options, nil, nil
	}
	options.SecureServing = true
	options.FilterProvider = filters.WithAuthenticationAndAuthorization
	if cfg.metricsCertDir == "" {
		return options, nil, nil
	}
	watcher, err := certwatcher.New(filepath.Join(cfg.metricsCertDir, "tls.crt"), filepath.Join(cfg.metricsCertDir, "tls.key"))
	if err != nil {
		return options, nil, fmt.Errorf("reading the metrics' certificate from %s: %w", cfg.metricsCertDir, err)
	}
	options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = watcher.GetCertificate }}
	return options, watcher, nil
}

func webhookOptions(cfg configuration) webhook.Options {
	return webhook.Options{
		OperatorNamespace: cfg.operatorNamespace,
		Namespaces:        cfg.watchNamespaces,
		WithoutSecrets:    cfg.secretAccess == secretAccessNone,
		Listen:            cfg.webhookListen,
		Runtime:           runtimeSettings(cfg),
		Certificates:      certs.Options{Directory: cfg.webhookCertDir, Hosts: cfg.webhookHosts, CALifetime: cfg.webhookCALife, LeafLifetime: cfg.webhookCertLife},
	}
}

// runtimeSettings are what every injected container gets.
func runtimeSettings(cfg configuration) inject.Settings {
	resources, _ := cfg.runtimeResources() // checked when the command line was
	return inject.Settings{
		Image:       cfg.runtimeImage,
		PullPolicy:  corev1.PullPolicy(cfg.runtimePullPolicy),
		PullSecrets: cfg.runtimePullSecrets,
		HTTPProxy:   cfg.runtimeHTTPProxy,
		HTTPSProxy:  cfg.runtimeHTTPSProxy,
		NoProxy:     cfg.runtimeNoProxy,
		CAConfigMap: cfg.runtimeCAConfigMap,
		Resources:   resources,
	}
}

// newScheme knows the kinds that the operator reads and writes.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("preparing the operator: registering kinds: %w", err)
		}
	}
	return scheme, nil
}

// restConfig says how to reach the API server.
func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	config.QPS, config.Burst = requestRate, requestBurst
	config.UserAgent = "vision-operator/" + buildVersion()
	return config, nil
}

// checkServer refuses an API server that is too old. It does not outlast ctx, as
// discovery's own question would.
func checkServer(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	data, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	var info apiversion.Info
	if err := json.Unmarshal(data, &info); err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	found, err := utilversion.ParseGeneric(info.GitVersion)
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	if found.LessThan(minimumKubernetes) {
		return &oldServerError{found: info.GitVersion}
	}
	return nil
}

// oldServerError is an API server below minimumKubernetes.
type oldServerError struct{ found string }

// Error names both versions and why.
func (e *oldServerError) Error() string {
	return fmt.Sprintf("the API server is Kubernetes %s; Vision Operator needs %d.%d or later (native sidecars and CEL admission policies)",
		e.found, minimumKubernetes.Major(), minimumKubernetes.Minor())
}
