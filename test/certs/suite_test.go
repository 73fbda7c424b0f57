// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs holds the webhooks' certificates against a real API server: two
// replicas behind one address, certificates that live for seconds, and pods that
// are created all the time, each over a handshake of its own. Whatever becomes of
// certificates, Secret and caBundle, every pod is created and has the runtime.
package certs

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/test/envtest"
)

const operatorNamespace = "vision-system"

var (
	cluster *envtest.Cluster
	scheme  = envtest.Scheme()
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	os.Exit(envtest.Run(m, envtest.Options{}, func(c *envtest.Cluster) { cluster = c }))
}

// install makes the operator's namespace, its roles, and its webhook configurations
// with an address in place of the Service. It returns the administrator's client
// and how the operator reaches the API server: with those roles and no more.
func install(t *testing.T, address string) (client.WithWatch, *rest.Config) {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	admin, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	create(t, admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}})
	if _, err := cluster.Kubectl(t.Context(), "", "apply", "-n", operatorNamespace, "-k", "../../config/rbac"); err != nil {
		t.Fatal(err)
	}
	operator, err := cluster.ServiceAccount(operatorNamespace, "vision-operator-webhook")
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string {
		return (&url.URL{Scheme: "https", Host: address, Path: oncePath + path}).String()
	}
	if err := envtest.InstallWebhooks(t.Context(), admin, at); err != nil {
		t.Fatal(err)
	}
	return admin, operator
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// served is a namespace with a policy and its provider.
func served(t *testing.T, admin client.Client, name string, labels map[string]string) {
	t.Helper()
	create(t, admin,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
		&v1alpha1.VisionProvider{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "local"},
			Spec: v1alpha1.VisionProviderSpec{
				Transport:   v1alpha1.TransportOpenAIChatCompletions,
				Endpoints:   []v1alpha1.Endpoint{{Name: "default", URL: "https://vision.example/v1"}},
				Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
				Models:      []v1alpha1.Model{{Name: "seer", ImageInput: new(true)}},
			},
		},
		&v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}},
	)
}

// eventually waits until check has no complaint.
func eventually(t *testing.T, what string, patience time.Duration, check func(context.Context) error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = check(t.Context()); err == nil {
			return
		}
	}
	t.Fatal(fmt.Errorf("%s: %w", what, err))
}
