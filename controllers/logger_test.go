// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestARequestsLogLinesNameItsNamespaceOnce(t *testing.T) {
	var lines []string
	base := funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	loggers := namespaceLogger(base, "router")
	loggers(nil).Info("Starting")
	loggers(&reconcile.Request{NamespacedName: types.NamespacedName{Name: "team-a"}}).Info("Published", "configMap", "vision-router")
	want := []string{
		`{"logger":"","level":0,"msg":"Starting","controller":"router"}`,
		`{"logger":"","level":0,"msg":"Published","controller":"router","namespace":"team-a","configMap":"vision-router"}`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the lines differ (-want +got):\n%s", diff)
	}
}
