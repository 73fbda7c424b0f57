// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
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
