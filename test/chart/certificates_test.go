// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestACertificateOfOnesOwnIsMountedServedAndTrusted(t *testing.T) {
	const pem = "-----BEGIN CERTIFICATE-----"
	for name, test := range map[string]struct {
		set                     []string
		args                    []string
		secret, injector, trust string
	}{
		"the operator's own": {},
		"of other lifetimes": {
			set:  []string{"--set", "webhook.caLifetime=720h,webhook.certLifetime=24h"},
			args: []string{"--webhook-ca-lifetime=720h", "--webhook-cert-lifetime=24h"},
		},
		"cert-manager's": {
			set:    []string{"--set", "webhook.secret=webhook-tls,webhook.injectCAFrom=vision-system/webhook"},
			args:   []string{"--webhook-cert-dir=/etc/vision-operator/webhook"},
			secret: "webhook-tls", injector: "vision-system/webhook",
		},
		"one's own": {
			set:    []string{"--set", "webhook.secret=webhook-tls", "--set-string", "webhook.caBundle=" + pem},
			args:   []string{"--webhook-cert-dir=/etc/vision-operator/webhook"},
			secret: "webhook-tls", trust: base64.StdEncoding.EncodeToString([]byte(pem)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := helm(t, "vision-system", test.set...)
			deployment := unstructured.Unstructured{Object: all["Deployment/vision-system/vision-operator-webhook"]}
			containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
			operator := containers[0].(map[string]any)
			args, _, _ := unstructured.NestedStringSlice(operator, "args")
			args = slices.DeleteFunc(args, func(a string) bool {
				return !strings.HasPrefix(a, "--webhook-") || strings.HasPrefix(a, "--webhook-listen")
			})
			if !slices.Equal(args, test.args) {
				t.Errorf("got the arguments %v, want %v", args, test.args)
			}
			volumes, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "volumes")
			if mounted := fmt.Sprint(volumes, operator["volumeMounts"]); strings.Contains(mounted, "secretName:"+test.secret) != (test.secret != "") ||
				strings.Contains(mounted, "mountPath:/etc/vision-operator/webhook") != (test.secret != "") {
				t.Errorf("got the volumes and mounts %s", mounted)
			}
			for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
				conf := unstructured.Unstructured{Object: all[kind+"//vision-operator"]}
				if got := conf.GetAnnotations()["cert-manager.io/inject-ca-from"]; got != test.injector {
					t.Errorf("%s: the injector takes the CA from %q, want %q", kind, got, test.injector)
				}
				hooks, _, _ := unstructured.NestedSlice(conf.Object, "webhooks")
				if len(hooks) == 0 {
					t.Errorf("%s has no webhooks", kind)
				}
				for _, hook := range hooks {
					if got, _, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "caBundle"); got != test.trust {
						t.Errorf("%s: a caBundle is %q, want %q", kind, got, test.trust)
					}
				}
			}
		})
	}
}
