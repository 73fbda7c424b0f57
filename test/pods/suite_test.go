// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pods tests what becomes of pods on a real API server that calls the
// operator's webhooks: whole pods against the golden ones of webhook/inject, what
// only an API server enforces (Pod Security, quotas, LimitRanges, service account
// tokens), other webhooks, a stopped operator, and random pods.
package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

const (
	operatorNamespace = "vision-system"
	runtimeImage      = "registry.example/vision-runtime:v1"
)

// The suite's API server, and the operator that it calls: with the service
// account's rights of config/rbac and no more, behind the configurations of
// config/webhook.
var (
	cluster  *envtest.Cluster
	admin    client.Client // of system:masters
	operator *rest.Config
	webhooks *process
	address  string // of the webhooks
	scheme   = envtest.Scheme()
	output   = make(journal, 2000)
)

func TestMain(m *testing.M) {
	log.SetLogger(funcr.New(func(prefix, args string) { output.write(prefix, args) }, funcr.Options{}))
	// The ServiceAccount plugin is on, as in every real cluster.
	options := envtest.Options{APIServerArgs: map[string][]string{"disable-admission-plugins": nil}}
	started, err := envtest.Start(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
	cluster = started
	code := 1
	if err := prepare(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: preparing the suite:", err)
	} else {
		code = m.Run()
	}
	// The operator first: the API server would wait for its watches.
	if err := errors.Join(webhooks.end(), cluster.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = max(code, 1)
	}
	if code != 0 {
		output.show(os.Stderr)
	}
	os.Exit(code)
}

// prepare installs what a cluster has before the operator starts, and starts its webhooks.
func prepare(ctx context.Context) (err error) {
	quiet := rest.CopyConfig(cluster.Config)
	quiet.WarningHandler = rest.NoWarnings{}
	if admin, err = client.New(quiet, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, name := range []string{operatorNamespace, prober} {
		if _, err := envtest.CreateNamespace(ctx, admin, name); err != nil {
			return err
		}
	}
	if err := cluster.Install(ctx, operatorNamespace, "../../config/rbac"); err != nil {
		return err
	}
	// Webhooks and watchdog run in one process here.
	if _, err := cluster.Kubectl(ctx, "", "apply", "-f", "../../config/local/webhook_role.yaml"); err != nil {
		return err
	}
	operator, err = cluster.ServiceAccount(operatorNamespace, "vision-operator")
	if err != nil {
		return err
	}
	operator.WarningHandler = rest.NoWarnings{}
	if address, err = envtest.FreeAddress(); err != nil {
		return err
	}
	if err := envtest.InstallWebhooks(ctx, admin, func(path string) string { return "https://" + address + path }); err != nil {
		return err
	}
	for _, o := range serving() {
		o.SetNamespace(prober)
		if err := admin.Create(ctx, o); err != nil {
			return err
		}
	}
	return startWebhooks(inject.Settings{Image: runtimeImage})
}

// startWebhooks starts the operator's webhooks and waits until the API server reaches them.
func startWebhooks(settings inject.Settings) error {
	mgr, err := ctrl.NewManager(operator, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return err
	}
	if err := webhook.Setup(mgr, webhook.Options{OperatorNamespace: operatorNamespace, Listen: address, Runtime: settings}); err != nil {
		return err
	}
	webhooks = start(mgr)
	if err := envtest.WaitFor(func() error { return reachable(true) }); err != nil {
		return fmt.Errorf("waiting for the webhooks: %w", err)
	}
	return nil
}

// stopWebhooks stops them, as a process ends, until the test does.
func stopWebhooks(t *testing.T) {
	t.Helper()
	if err := webhooks.end(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "waiting for the end of the webhooks", func() error { return reachable(false) })
}

// process is a manager that runs.
type process struct {
	cancel context.CancelFunc
	done   chan error
}

func start(mgr manager.Manager) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cancel: cancel, done: make(chan error, 1)}
	go func() { p.done <- mgr.Start(ctx) }()
	return p
}

// end ends it; ending it again, or what never started, is no error.
func (p *process) end() error {
	if p == nil || p.cancel == nil {
		return nil
	}
	p.cancel()
	p.cancel = nil
	return <-p.done
}

// prober is a namespace in which pods are injected, if the webhooks are reached.
const prober = "prober"

// reachable has a complaint when the API server does, or does not, reach the webhooks.
func reachable(want bool) error {
	pod := agent()
	pod.Namespace = prober
	if err := admin.Create(context.Background(), pod, client.DryRunAll); err != nil {
		return err
	}
	if has := runtimeOf(pod) != nil; has != want {
		return fmt.Errorf("a pod has the runtime: %t", has)
	}
	return nil
}

// eventually waits until check has no complaint.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := envtest.WaitFor(check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// journal keeps the first lines that the operator logs, for a suite that fails.
type journal chan string

func (j journal) write(prefix, args string) {
	select {
	case j <- strings.TrimSpace(prefix + " " + args):
	default:
	}
}

func (j journal) show(w io.Writer) {
	for len(j) > 0 {
		fmt.Fprintln(w, <-j)
	}
}
