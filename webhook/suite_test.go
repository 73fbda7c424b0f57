// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook/certs"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

const operatorNamespace = "vision-system"

// The suite's API server, and the operator that it calls: with the service
// account's rights of config/rbac and no more, behind the configurations of
// config/webhook, with a CA of its own making.
var (
	cluster  *envtest.Cluster
	operator *rest.Config
	admin    client.WithWatch
	listen   string
	scheme   = envtest.Scheme()
)

// suite starts everything for the first test that needs it: fuzzing and benchmarks
// do not. The ServiceAccount plugin is on, as in every real cluster, to see that the
// agent's token is not mounted into the runtime.
var suite = envtest.Lazy{Options: envtest.Options{APIServerArgs: map[string][]string{"disable-admission-plugins": nil}}, Prepare: prepare}

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	os.Exit(suite.Run(m))
}

// prepare installs what a cluster has before the operator starts, and starts it.
func prepare(c *envtest.Cluster) (stop func() error, err error) {
	cluster = c
	if admin, err = client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if _, err := envtest.CreateNamespace(ctx, admin, operatorNamespace); err != nil {
		return nil, err
	}
	if _, err := cluster.Kubectl(ctx, "", "apply", "-n", operatorNamespace, "-k", "../config/rbac"); err != nil {
		return nil, err
	}
	operator, err = cluster.ServiceAccount(operatorNamespace, "vision-operator-webhook")
	if err != nil {
		return nil, err
	}
	if listen, err = envtest.FreeAddress(); err != nil {
		return nil, err
	}
	if err := envtest.InstallWebhooks(ctx, admin, func(path string) string { return "https://" + listen + path }); err != nil {
		return nil, err
	}
	return startOperator()
}

// startOperator starts the webhooks and waits until they are ready.
func startOperator() (stop func() error, err error) {
	ready := &readyChecks{}
	mgr, err := ctrl.NewManager(operator, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, err
	}
	ready.Manager = mgr
	err = Setup(ready, Options{
		OperatorNamespace: operatorNamespace,
		Listen:            listen,
		Runtime:           inject.Settings{Image: "registry.example/vision-runtime:v1"},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	if err := eventually(ready.check); err != nil {
		return nil, fmt.Errorf("waiting for the webhooks: %w", err)
	}
	return stop, nil
}

// readyChecks keeps the readiness checks that Setup adds.
type readyChecks struct {
	manager.Manager
	checks []func() error
}

func (r *readyChecks) AddReadyzCheck(name string, check healthz.Checker) error {
	r.checks = append(r.checks, func() error {
		if err := check(nil); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return nil
}

func (r *readyChecks) check() error {
	for _, check := range r.checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// eventually waits until check has no complaint.
func eventually(check func() error) error {
	deadline := time.Now().Add(time.Minute)
	var err error
	for time.Now().Before(deadline) {
		if err = check(); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// user is somebody who works in a namespace of their own and sees warnings.
type user struct {
	*testing.T
	client.Client
	namespace string
	warned    *warned
}

// newUser makes a namespace with labels ("key=value") and a user in it.
func newUser(t *testing.T, labels ...string) *user {
	t.Helper()
	suite.Need(t)
	namespace, err := envtest.CreateNamespace(t.Context(), admin, "team-", labels...)
	if err != nil {
		t.Fatal(err)
	}
	u := &user{T: t, namespace: namespace, warned: &warned{}}
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandlerWithContext = u.warned
	if u.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	u.create(keySecret("sk-test"))
	return u
}

// keySecret is the Secret that provider names.
func keySecret(value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "openai-key"}, Data: map[string][]byte{"token": []byte(value)}}
}

// create makes objects in the user's namespace.
func (u *user) create(objects ...client.Object) {
	u.Helper()
	for _, o := range objects {
		o.SetNamespace(u.namespace)
		if err := u.Create(u.Context(), o); err != nil {
			u.Fatal(err)
		}
	}
}

// warned collects warnings.
type warned struct {
	mu    sync.Mutex
	texts []string
}

func (w *warned) HandleWarningHeaderWithContext(_ context.Context, code int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, fmt.Sprintf("%d %s", code, text))
}

func (w *warned) all() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.texts, "\n")
}

// certificatesOf makes another replica's certificates.
func certificatesOf(t *testing.T) *certs.Certificates {
	t.Helper()
	suite.Need(t)
	direct, err := client.NewWithWatch(operator, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c, err := certs.New(direct, logr.Discard(), certs.Options{Namespace: operatorNamespace, Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
