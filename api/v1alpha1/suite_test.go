// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"testing"

	"github.com/visionoperator/vision-operator/test/envtest"
)

// cluster is the API server that this package's tests ask, with the CRDs installed.
var cluster *envtest.Cluster

func TestMain(m *testing.M) {
	os.Exit(envtest.Run(m, envtest.Options{}, func(c *envtest.Cluster) { cluster = c }))
}
