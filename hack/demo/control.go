// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/runtime/fault"
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

// lowerLimit edits the policy under the running runtime, asks again for the
// screenshot, which is now too large, and puts the old limit back.
func (d *demo) lowerLimit(ctx context.Context) error {
	const path = "jsonpath={.spec.limits.image.maxBytes}"
	before, err := d.cluster.Kubectl(ctx, "", "-n", namespace, "get", "visionpolicy", "default", "-o", path)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := d.setLimit(ctx, strconv.FormatInt(d.seen.VisualReference.ByteCount-1, 10)); err != nil {
		return err
	}
	answer, err := d.awaitAnswer(ctx, func(a *viewAnswer) bool { return a.Error != nil })
	if err != nil {
		return err
	}
	if answer.Error.Kind != fault.BudgetExceeded {
		return fmt.Errorf("the runtime refused with %q; want %s: %s", answer.Error.Kind, fault.BudgetExceeded, answer.Error.Message)
	}
	text, err := json.MarshalIndent(answer.Error, "", "  ")
	if err != nil {
		return err
	}
	d.show(fmt.Sprintf("HTTP %d, %s after the edit", answer.status, time.Since(started).Round(time.Millisecond)), string(text))
	if err := d.setLimit(ctx, before); err != nil {
		return err
	}
	_, err = d.awaitAnswer(ctx, func(a *viewAnswer) bool { return a.Error == nil })
	return err
}

func (d *demo) setLimit(ctx context.Context, limit string) error {
	patch := `{"spec":{"limits":{"image":{"maxBytes":` + limit + `}}}}`
	d.say("kubectl -n %s patch visionpolicy default --type=merge -p '%s'", namespace, patch)
	_, err := d.cluster.Kubectl(ctx, "", "-n", namespace, "patch", "visionpolicy", "default", "--type=merge", "-p", patch)
	return err
}

// awaitAnswer asks for the screenshot until the answer is as wanted.
func (d *demo) awaitAnswer(ctx context.Context, wanted func(*viewAnswer) bool) (answer viewAnswer, err error) {
	err = await(ctx, 20*time.Second, func(ctx context.Context) (err error) {
		if answer, err = d.view(ctx, "screenshot.png", prompt); err == nil && !wanted(&answer) {
			return fmt.Errorf("the runtime still answers as before the edit")
		}
		return err
	})
	return answer, err
}
