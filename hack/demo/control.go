// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/runtime/router"
)

func (d *demo) showConditions(ctx context.Context) error {
	out, err := d.cluster.Kubectl(ctx, "", "-n", namespace, "get", "vision")
	if err != nil {
		return err
	}
	d.show("kubectl get vision", out)
	const each = `{range .status.conditions[*]}{.type}={.status} ({.reason}) {.message}{"\n"}{end}`
	for _, object := range []string{"visionprovider/ocr", "visionpolicy/default"} {
		out, err := d.cluster.Kubectl(ctx, "", "-n", namespace, "get", object, "-o", "jsonpath="+each)
		if err != nil {
			return err
		}
		d.show("conditions of "+object, out)
	}
	return nil
}

// showRouter prints the published document and checks that no secret is in it.
func (d *demo) showRouter(ctx context.Context) error {
	data, err := d.publishedRouter(ctx)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secretName}, secret); err != nil {
		return err
	}
	if strings.Contains(data, string(secret.Data[secretKey])) {
		return fmt.Errorf("the router holds the key's value")
	}
	if _, err := router.Parse([]byte(data)); err != nil {
		return err
	}
	d.show("ConfigMap "+namespace+"/"+router.ConfigMapName+", "+router.Digest([]byte(data)), data)
	return nil
}

func (d *demo) publishedRouter(ctx context.Context) (string, error) {
	cm := &corev1.ConfigMap{}
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: router.ConfigMapName}, cm); err != nil {
		return "", err
	}
	return cm.Data[router.Key], nil
}

// lowerLimit edits the policy under the running runtime and asks again for the
// screenshot, which is now too large.
func (d *demo) lowerLimit(ctx context.Context) error {
	size := d.seen.VisualReference.ByteCount
	limit := size - 1
	patch := fmt.Sprintf(`{"spec":{"limits":{"image":{"maxBytes":%d}}}}`, limit)
	started := time.Now()
	if _, err := d.cluster.Kubectl(ctx, "", "-n", namespace, "patch", "visionpolicy", "default", "--type=merge", "-p", patch); err != nil {
		return err
	}
	d.say("kubectl patch visionpolicy default -p '%s'", patch)
	var answer viewAnswer
	err := await(ctx, 20*time.Second, func(ctx context.Context) (err error) {
		answer, err = d.view(ctx, "screenshot.png", prompt)
		if err == nil && answer.Error == nil {
			return fmt.Errorf("the runtime still answers as before")
		}
		return err
	})
	if err != nil {
		return err
	}
	if answer.Error.Kind != "budget_exceeded" {
		return fmt.Errorf("the runtime refused with %q; want budget_exceeded: %s", answer.Error.Kind, answer.Error.Message)
	}
	text, err := json.MarshalIndent(answer.Error, "", "  ")
	if err != nil {
		return err
	}
	d.show(fmt.Sprintf("HTTP %d, %s after the edit", answer.status, time.Since(started).Round(10*time.Millisecond)), string(text))
	return nil
}
