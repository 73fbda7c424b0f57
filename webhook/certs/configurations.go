// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// configuration is a webhook configuration of ours, of either kind.
type configuration struct {
	object client.Object
	// entries are its webhooks, in order.
	entries []entry
}

type entry struct {
	name   string
	config *admissionv1.WebhookClientConfig
}

// host is the name by which the API server verifies the webhook server.
func (e entry) host() string {
	if e.config.URL != nil {
		u, err := url.Parse(*e.config.URL)
		if err != nil {
			return ""
		}
		return u.Hostname()
	}
	if e.config.Service == nil {
		return ""
	}
	return e.config.Service.Name + "." + e.config.Service.Namespace + ".svc"
}

// readConfigurations gets both configurations, those that can be read; each
// other one is an error.
func readConfigurations(ctx context.Context, c client.Client, mutating, validating string) ([]configuration, []error) {
	var out []configuration
	var errs []error
	m := &admissionv1.MutatingWebhookConfiguration{}
	if err := c.Get(ctx, client.ObjectKey{Name: mutating}, m); err != nil {
		errs = append(errs, fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", mutating, err))
	} else {
		conf := configuration{object: m}
		for i := range m.Webhooks {
			conf.entries = append(conf.entries, entry{m.Webhooks[i].Name, &m.Webhooks[i].ClientConfig})
		}
		out = append(out, conf)
	}
	v := &admissionv1.ValidatingWebhookConfiguration{}
	if err := c.Get(ctx, client.ObjectKey{Name: validating}, v); err != nil {
		errs = append(errs, fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", validating, err))
	} else {
		conf := configuration{object: v}
		for i := range v.Webhooks {
			conf.entries = append(conf.entries, entry{v.Webhooks[i].Name, &v.Webhooks[i].ClientConfig})
		}
		out = append(out, conf)
	}
	return out, errs
}

// urlHosts are the hosts of the configurations' clientConfig.url, where the API
// server reaches the webhooks without a Service.
func urlHosts(configurations []configuration) []string {
	var hosts []string
	for _, c := range configurations {
		for _, e := range c.entries {
			if host := e.host(); e.config.URL != nil && host != "" {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// patchOperation is one step of a JSON patch (RFC 6902).
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// bundlePatch is what puts into every entry the caBundle that want makes of its
// present one; nil when all are so. It applies only to the very version that was
// read: another replica may have put in a newer CA meanwhile.
func (c *configuration) bundlePatch(want func(present []byte) []byte) []patchOperation {
	patch := []patchOperation{{"replace", "/metadata/resourceVersion", c.object.GetResourceVersion()}}
	for i, e := range c.entries {
		if bundle := want(e.config.CABundle); !bytes.Equal(e.config.CABundle, bundle) {
			patch = append(patch, patchOperation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), bundle})
		}
	}
	if len(patch) == 1 {
		return nil
	}
	return patch
}

// ensureBundle patches a configuration whose entries differ, and writes nothing otherwise.
func ensureBundle(ctx context.Context, c client.Client, conf configuration, want func(present []byte) []byte, owner string) (patched bool, err error) {
	patch := conf.bundlePatch(want)
	if patch == nil {
		return false, nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("encoding the caBundle of %s: %w", conf.object.GetName(), err)
	}
	if err := c.Patch(ctx, conf.object, client.RawPatch(types.JSONPatchType, data), client.FieldOwner(owner)); err != nil {
		return false, fmt.Errorf("patching the caBundle of %T %s: %w", conf.object, conf.object.GetName(), err)
	}
	return true, nil
}

// bundled are the certificates in all caBundles.
func bundled(configurations []configuration) []*x509.Certificate {
	var out []*x509.Certificate
	for _, c := range configurations {
		for _, e := range c.entries {
			out = append(out, parseBundle(e.config.CABundle)...)
		}
	}
	return out
}

// serviceHosts are the names by which the API server verifies a Service.
func serviceHosts(service, namespace string) []string {
	return []string{
		service + "." + namespace + ".svc",
		service + "." + namespace,
		service + "." + namespace + ".svc.cluster.local",
	}
}

// sortedHosts is one list without repetitions.
func sortedHosts(lists ...[]string) []string {
	hosts := slices.Concat(lists...)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
