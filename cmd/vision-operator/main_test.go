// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/visionoperator/vision-operator/test/envtest"
)

var cluster *envtest.Cluster

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(envtest.Run(m, envtest.Options{WithoutCRDs: true}, func(c *envtest.Cluster) { cluster = c }))
}

func TestACommandLineThatCannotWorkSaysWhy(t *testing.T) {
	good := []string{"--operator-namespace", "vision-system"}
	tests := map[string]struct {
		args []string
		says string
	}{
		"an unknown flag":                  {append(good, "--nope"), "--nope"},
		"an argument":                      {append(good, "run"), `"run"`},
		"no namespace outside a pod":       {nil, "--operator-namespace must be given"},
		"a namespace that is none":         {[]string{"--operator-namespace", "Vision"}, `"Vision"`},
		"an address without a port":        {append(good, "--health-listen", "localhost"), "--health-listen"},
		"a pull policy that is none":       {append(good, "--runtime-image-pull-policy", "Sometimes"), "Sometimes"},
		"a quantity that is none":          {append(good, "--runtime-requests", "cpu=some"), `"some" is no quantity of cpu`},
		"a resource of another kind":       {append(good, "--runtime-limits", "pods=3"), `"pods"`},
		"requests above limits":            {append(good, "--runtime-requests", "memory=2Gi", "--runtime-limits", "memory=1Gi"), "--runtime-limits allows 1Gi"},
		"a watched namespace that is none": {append(good, "--watch-namespaces", "team,Team"), `"Team"`},
		"a component that is none":         {append(good, "--components", "controllers,router"), `"router"`},
		"no component at all":              {append(good, "--components", ""), "--components names nothing to run"},
		"webhooks that do not listen":      {append(good, "--components", "webhooks", "--webhook-listen", "0"), "--webhook-listen=0 runs nothing"},
		"a secret access that is none":     {append(good, "--secret-access", "All"), `"All"`},
		"a certificate over plain HTTP":    {append(good, "--metrics-insecure", "--metrics-cert-dir", "."), "--metrics-cert-dir"},
		"no stamps at all":                 {append(good, "--stamps-per-second", "0"), "--stamps-per-second 0 is not within 1 and 200"},
		"more stamps than are sent":        {append(good, "--stamps-per-second", "201"), "--stamps-per-second 201"},
		"looks without a pause":            {append(good, "--watchdog-interval", "20ms"), "--watchdog-interval 20ms"},
		"evictions without looks":          {append(good, "--watchdog-interval", "0", "--watchdog-evict"), "--watchdog-evict"},
		"a CA for ever":                    {append(good, "--webhook-ca-lifetime", "0"), "--webhook-ca-lifetime"},
		"a leaf that outlives its CA":      {append(good, "--webhook-ca-lifetime", "24h", "--webhook-cert-lifetime", "48h"), "48h0m0s must end before"},
		"a CA too short to be renewed":     {append(good, "--webhook-ca-lifetime", "15m", "--webhook-cert-lifetime", "10m"), "last third, 5m0s"},
		"a log level that is none":         {append(good, "--log-level", "loud"), "loud"},
		"a log format that is neither":     {append(good, "--log-format", "xml"), "xml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), test.args, io.Discard, io.Discard)
			if exitCode(err) != exitUsage || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got exit code %d and %v, want %d and %q", exitCode(err), err, exitUsage, test.says)
			}
		})
	}
}

func TestHelpAndVersionGoToStdout(t *testing.T) {
	for arg, want := range map[string]string{"--help": "--webhook-cert-dir", "--version": "vision-operator "} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{arg}, &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %q (%v), want %q in it", arg, out.String(), err, want)
		}
	}
}

func TestResourcesOfTheRuntimeComeFromTheFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want *corev1.ResourceRequirements
	}{
		"none leave it to injection": {nil, nil},
		"requests and limits": {[]string{"--runtime-requests", "cpu=20m,memory=64Mi", "--runtime-limits", "memory=512Mi"}, &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := parse(append([]string{"--operator-namespace", "vision-system"}, test.args...), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if got := webhookOptions(cfg).Runtime.Resources; !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("Resources = %v, want %v", got, test.want)
			}
		})
	}
}

func TestTheDefaultRuntimeImageIsAlwaysAnImage(t *testing.T) {
	old := version
	defer func() { version = old }()
	for linked, want := range map[string]string{"v0.1.0": "v0.1.0", "v0.1.0+dirty": "dev", "(devel)": "dev"} {
		version = linked
		if got := defaultRuntimeImage(); got != "ghcr.io/visionoperator/vision-runtime:"+want {
			t.Errorf("for version %s got %s", linked, got)
		}
	}
}

func TestAnAPIServerThatIsTooOldIsRefused(t *testing.T) {
	for reported, ok := range map[string]bool{"v1.29.15": false, "v1.30.0": true, "v1.30.4-gke.1348000": true, "v1.37.2": true, "v2.0.0": true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := json.NewEncoder(w).Encode(map[string]string{"gitVersion": reported}); err != nil {
				t.Error(err)
			}
		}))
		err := checkServer(t.Context(), &rest.Config{Host: server.URL})
		server.Close()
		if _, old := errors.AsType[*oldServerError](err); old == ok || ok && err != nil {
			t.Errorf("%s: got %v", reported, err)
		}
		if !ok && !strings.Contains(err.Error(), "1.30 or later") {
			t.Errorf("%s: the error does not name the minimum: %v", reported, err)
		}
	}
}

func TestAnOperatorThatIsToldToEndDoesNotWaitForAnAPIServerThatIsSilent(t *testing.T) {
	asked, done := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-done }))
	t.Cleanup(func() { close(done); server.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if err := checkServer(ctx, &rest.Config{Host: server.URL}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAnAPIServerThatCannotBeFoundIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	err := run(t.Context(), []string{"--operator-namespace", "vision-system", "--kubeconfig", missing}, io.Discard, io.Discard)
	if exitCode(err) != exitFailed || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v", err)
	}
}
