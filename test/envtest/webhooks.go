// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// FreeAddress returns a host:port of the loopback at which nothing listens.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free address: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// patience is how long WaitFor waits.
const patience = 30 * time.Second

// WaitFor waits until check has no complaint, 30 seconds at most, and returns the
// last one that it had.
func WaitFor(check func() error) (err error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = check(); err == nil {
			return nil
		}
	}
	return err
}

// ServiceAccount returns a configuration that reaches the API server as a service
// account, with what RBAC grants to it and no more.
func (c *Cluster) ServiceAccount(namespace, name string) (*rest.Config, error) {
	return c.User("system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// InstallWebhooks creates, with a client that knows their kinds, the configurations
// that config/webhook holds. They are reached by URL in place of the Service: at
// says which, for a path.
func InstallWebhooks(ctx context.Context, c client.Client, at func(path string) string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	for file, into := range map[string]client.Object{"mutating.yaml": mutating, "validating.yaml": validating} {
		data, err := os.ReadFile(filepath.Join(root, "config/webhook", file))
		if err != nil {
			return fmt.Errorf("installing webhooks: %w", err)
		}
		if err := yaml.UnmarshalStrict(data, into); err != nil {
			return fmt.Errorf("installing webhooks: reading %s: %w", file, err)
		}
	}
	for i := range mutating.Webhooks {
		byURL(&mutating.Webhooks[i].ClientConfig, at)
	}
	for i := range validating.Webhooks {
		byURL(&validating.Webhooks[i].ClientConfig, at)
	}
	for _, made := range []client.Object{mutating, validating} {
		if err := c.Create(ctx, made); err != nil {
			return fmt.Errorf("installing webhooks: %w", err)
		}
	}
	return nil
}

func byURL(c *admissionv1.WebhookClientConfig, at func(path string) string) {
	address := at(*c.Service.Path)
	*c = admissionv1.WebhookClientConfig{URL: &address}
}

// InstallAnother creates the configuration of a webhook that mutates the pods of one
// namespace, beside ours, which a server answers. The returned function deletes it.
// The API server calls mutating webhooks in the order of their configurations' names.
func InstallAnother(ctx context.Context, c client.Client, name, namespace string, server *httptest.Server) (remove func() error, err error) {
	conf := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name:                    "another.example.com",
			FailurePolicy:           new(admissionv1.Fail),
			SideEffects:             new(admissionv1.SideEffectClassNone),
			ReinvocationPolicy:      new(admissionv1.IfNeededReinvocationPolicy),
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ClientConfig: admissionv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	if err := c.Create(ctx, conf); err != nil {
		return nil, fmt.Errorf("installing another webhook: %w", err)
	}
	return func() error { return c.Delete(context.WithoutCancel(ctx), conf) }, nil
}
