// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install installs, upgrades and removes the charts with Helm on a real
// API server, and shows it every object that they make, whatever their values: as
// a dry run, with unknown and doubled fields refused, in namespaces that hold pods
// to Pod Security's restricted level.
package install

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/test/envtest"
)

const root = "../.."

// namespaces are those that the cases name; the first is the release's.
var namespaces = []string{"vision-system", "team-a", "team-b"}

// server is asked with fieldValidation=Strict.
var server client.Client

// kubeconfig is the administrator's.
var kubeconfig string

func TestMain(m *testing.M) {
	// Without the CRDs, since the chart's are created too.
	os.Exit(envtest.Run(m, envtest.Options{WithoutCRDs: true}, func(c *envtest.Cluster) {
		kubeconfig = c.Kubeconfig()
		plain, err := client.New(c.Config, client.Options{})
		if err != nil {
			panic(fmt.Errorf("making a client: %w", err))
		}
		server = client.WithFieldValidation(plain, metav1.FieldValidationStrict)
		for _, name := range namespaces {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			}}
			if err := server.Create(context.Background(), namespace); err != nil {
				panic(fmt.Errorf("creating namespace %s: %w", name, err))
			}
		}
	}))
}
