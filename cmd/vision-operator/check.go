// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// How long --check-install tries, and how often: what an install has just made
// may take a moment.
const (
	checkPatience = time.Minute
	checkPause    = time.Second
)

// brokenBundle is a CA bundle that the CRD accepts and only our webhook refuses.
const brokenBundle = "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"

// notRefusedError is an API server that stores what our webhook refuses: it does
// not reach the webhook, and the webhook's failurePolicy lets the object pass.
type notRefusedError struct{}

// Error says where to look.
func (*notRefusedError) Error() string {
	return "the API server accepted a VisionProvider whose caBundle does not parse: it does not reach the webhook. See `kubectl describe validatingwebhookconfiguration vision-operator`, the Service vision-operator-webhook and whatever stands between control plane and nodes"
}

// checkInstall asks the API server, by a dry run, for what only a webhook that
// works refuses: its kinds are there, and it reaches and trusts the webhook.
func checkInstall(ctx context.Context, cfg configuration, stdout io.Writer) error {
	config, err := restConfig(cfg.kubeconfig)
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("checking the install: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	for {
		if err = refusesABrokenProvider(ctx, c, cfg.operatorNamespace); err == nil {
			_, err = fmt.Fprintln(stdout, "the kinds are there, and the API server reaches the webhook and trusts it")
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("checking the install: %w", err)
		case <-time.After(checkPause):
		}
	}
}

func refusesABrokenProvider(ctx context.Context, c client.Client, namespace string) error {
	broken := &v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "check-", Namespace: namespace},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "check", URL: "https://check.invalid/v1", CABundle: brokenBundle}},
			Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
			Models:      []v1alpha1.Model{{Name: "check", ImageInput: new(true)}},
		},
	}
	err := c.Create(ctx, broken, client.DryRunAll)
	if err == nil {
		return &notRefusedError{}
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && apierrors.IsInvalid(err) && namesCABundle(status) {
		return nil
	}
	return err
}

// namesCABundle reports whether a refusal is about the broken bundle.
func namesCABundle(status *apierrors.StatusError) bool {
	if status.ErrStatus.Details == nil {
		return false
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if strings.HasSuffix(cause.Field, "caBundle") {
			return true
		}
	}
	return false
}
