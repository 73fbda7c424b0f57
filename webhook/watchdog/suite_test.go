// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

const (
	operatorNamespace = "vision-system"
	runtimeImage      = "registry.example/vision-runtime:v1"
	configuration     = "vision-operator"
)

// The suite's API server, and the operator's webhooks, which it calls. The
// operator has the rights of config/rbac, that to evict included, and no more.
var (
	cluster  *envtest.Cluster
	operator *rest.Config
	admin    client.Client
	address  string // of the webhooks
	scheme   = envtest.Scheme()
)

// suite starts everything for the first test that needs it. The ServiceAccount plugin
// is on, as in every real cluster: it adds to pods what a pod in their place must not have.
var suite = envtest.Lazy{Options: envtest.Options{APIServerArgs: map[string][]string{"disable-admission-plugins": nil}}, Prepare: prepare}

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	os.Exit(suite.Run(m))
}

// prepare installs what a cluster has before the operator starts, and starts its webhooks.
func prepare(c *envtest.Cluster) (stop func() error, err error) {
	cluster = c
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandler = rest.NoWarnings{}
	if admin, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if _, err := envtest.CreateNamespace(ctx, admin, operatorNamespace); err != nil {
		return nil, err
	}
	for _, what := range [][]string{{"-k", "../../config/rbac"}, {"-f", "../../config/rbac/eviction_role.yaml"}, {"-f", "../../config/local/webhook_role.yaml"}} {
		if _, err := cluster.Kubectl(ctx, "", append([]string{"apply", "-n", operatorNamespace}, what...)...); err != nil {
			return nil, err
		}
	}
	operator, err = cluster.ServiceAccount(operatorNamespace, "vision-operator")
	if err != nil {
		return nil, err
	}
	operator.WarningHandler = rest.NoWarnings{}
	if address, err = envtest.FreeAddress(); err != nil {
		return nil, err
	}
	if err := installConfiguration(ctx); err != nil {
		return nil, err
	}
	if _, err := envtest.CreateNamespace(ctx, admin, prober); err != nil {
		return nil, err
	}
	for _, o := range serving() {
		o.SetNamespace(prober)
		if err := admin.Create(ctx, o); err != nil {
			return nil, err
		}
	}
	return startWebhooks()
}

// startWebhooks starts the webhooks, which every test shares.
func startWebhooks() (stop func() error, err error) {
	mgr, err := ctrl.NewManager(operator, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, err
	}
	err = webhook.Setup(mgr, webhook.Options{OperatorNamespace: operatorNamespace, Listen: address, Runtime: inject.Settings{Image: runtimeImage}})
	if err != nil {
		return nil, err
	}
	stop = runManager(mgr)
	// The certificates are written into the configuration now, which tests edit later.
	if err := envtest.WaitFor(func() error { return reachable(context.Background(), true) }); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the webhooks: %w", err), stop())
	}
	return stop, nil
}

// prober is a namespace in which pods are injected, if the webhooks are reached.
const prober = "prober"

// reachable has a complaint when the API server does, or does not, reach the webhooks.
func reachable(ctx context.Context, want bool) error {
	pod := agent("probe")
	pod.Namespace = prober
	if err := admin.Create(ctx, pod, client.DryRunAll); err != nil {
		return err
	}
	if has := hasRuntime(pod); has != want {
		return fmt.Errorf("a pod has the runtime: %t", has)
	}
	return nil
}

// runManager runs a manager until the function that it returns is called.
func runManager(mgr ctrl.Manager) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return sync.OnceValue(func() error { cancel(); return <-done })
}

// installConfiguration creates the pod webhooks of config/webhook, and what the
// certificates look for beside them.
func installConfiguration(ctx context.Context) error {
	data, err := os.ReadFile("../../config/webhook/mutating.yaml")
	if err != nil {
		return err
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(data, mutating); err != nil {
		return err
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new(urlAt(address))}
	}
	return admin.Create(ctx, mutating)
}

func urlAt(host string) string {
	return (&url.URL{Scheme: "https", Host: host, Path: webhook.PodPath}).String()
}

// eventually waits until check has no complaint.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := envtest.WaitFor(check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
