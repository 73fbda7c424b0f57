// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/certs"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// minimumKubernetes is the oldest API server that has all that the operator
// relies on: native sidecars and CEL admission policies, both on by default.
var minimumKubernetes = utilversion.MustParseGeneric("1.30")

// shutdown is how long requests and reconciles under way may still take.
const shutdown = 20 * time.Second

// Requests to the API server per second, and in a burst. A change of a
// namespace's router writes the status of each of its policies.
const (
	requestRate  = 50
	requestBurst = 100
)

// operate runs the operator until ctx ends.
func operate(ctx context.Context, cfg configuration, log logr.Logger) error {
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	log.Info("Starting", "version", buildVersion(), "operatorNamespace", cfg.operatorNamespace, "runtimeImage", cfg.runtimeImage)
	config, err := restConfig(cfg.kubeconfig)
	if err != nil {
		return err
	}
	if err := checkServer(config); err != nil {
		return err
	}
	mgr, err := newManager(config, cfg, log)
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the operator: %w", err)
	}
	return nil
}

// newManager puts together all that runs.
func newManager(config *rest.Config, cfg configuration, log logr.Logger) (ctrl.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, managerOptions(cfg, scheme, log))
	if err != nil {
		return nil, fmt.Errorf("preparing the operator: %w", err)
	}
	if err := controllers.Setup(mgr, controllers.Options{OperatorNamespace: cfg.operatorNamespace}); err != nil {
		return nil, err
	}
	if cfg.webhookListen != off {
		if err := webhook.Setup(mgr, webhookOptions(cfg)); err != nil {
			return nil, err
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the liveness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness check: %w", err)
	}
	return mgr, nil
}

func managerOptions(cfg configuration, scheme *runtime.Scheme, log logr.Logger) ctrl.Options {
	wait := shutdown
	return ctrl.Options{
		Scheme:                        scheme,
		Logger:                        log,
		Cache:                         controllers.CacheOptions(),
		Client:                        controllers.ClientOptions(),
		Metrics:                       metricsserver.Options{BindAddress: cfg.metricsListen},
		HealthProbeBindAddress:        cfg.healthListen,
		LeaderElection:                cfg.leaderElect,
		LeaderElectionID:              v1alpha1.ManagedBy,
		LeaderElectionNamespace:       cfg.operatorNamespace,
		LeaderElectionReleaseOnCancel: true, // run returns as soon as the manager ends
		GracefulShutdownTimeout:       &wait,
	}
}

func webhookOptions(cfg configuration) webhook.Options {
	resources, _ := cfg.runtimeResources() // checked when the command line was
	return webhook.Options{
		OperatorNamespace: cfg.operatorNamespace,
		Listen:            cfg.webhookListen,
		Runtime: inject.Settings{
			Image:       cfg.runtimeImage,
			PullPolicy:  corev1.PullPolicy(cfg.runtimePullPolicy),
			PullSecrets: cfg.runtimePullSecrets,
			HTTPProxy:   cfg.runtimeHTTPProxy,
			HTTPSProxy:  cfg.runtimeHTTPSProxy,
			NoProxy:     cfg.runtimeNoProxy,
			CAConfigMap: cfg.runtimeCAConfigMap,
			Resources:   resources,
		},
		Certificates: certs.Options{Directory: cfg.webhookCertDir, Hosts: cfg.webhookHosts},
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

// checkServer refuses an API server that is too old.
func checkServer(config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
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
