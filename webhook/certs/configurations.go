// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// readConfigurations gets both configurations. One that is not installed is an error.
func readConfigurations(ctx context.Context, c client.Client, mutating, validating string) ([]configuration, error) {
	m := &admissionv1.MutatingWebhookConfiguration{}
	errM := c.Get(ctx, client.ObjectKey{Name: mutating}, m)
	if errM != nil {
		errM = fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", mutating, errM)
	}
	v := &admissionv1.ValidatingWebhookConfiguration{}
	errV := c.Get(ctx, client.ObjectKey{Name: validating}, v)
	if errV != nil {
		errV = fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", validating, errV)
	}
	var out []configuration
	if errM == nil {
		conf := configuration{object: m}
		for i := range m.Webhooks {
			conf.entries = append(conf.entries, entry{m.Webhooks[i].Name, &m.Webhooks[i].ClientConfig})
		}
		out = append(out, conf)
	}
	if errV == nil {
		conf := configuration{object: v}
		for i := range v.Webhooks {
			conf.entries = append(conf.entries, entry{v.Webhooks[i].Name, &v.Webhooks[i].ClientConfig})
		}
		out = append(out, conf)
	}
	return out, errors.Join(errM, errV)
}

// urlHosts are the hosts of the configurations' clientConfig.url, where the API
// server reaches the webhooks without a Service.
func urlHosts(configurations []configuration) []string {
	var hosts []string
	for _, c := range configurations {
		for _, e := range c.entries {
			if e.config.URL == nil {
				continue
			}
			if u, err := url.Parse(*e.config.URL); err == nil && u.Hostname() != "" {
				hosts = append(hosts, u.Hostname())
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

// bundlePatch is what puts bundle into every entry that lacks it; nil when none
// does. Each step first makes sure that the entry is still the same.
func (c *configuration) bundlePatch(bundle []byte) []patchOperation {
	var patch []patchOperation
	for i, e := range c.entries {
		if bytes.Equal(e.config.CABundle, bundle) {
			continue
		}
		at := fmt.Sprintf("/webhooks/%d", i)
		patch = append(patch,
			patchOperation{"test", at + "/name", e.name},
			patchOperation{"add", at + "/clientConfig/caBundle", bundle})
	}
	return patch
}

// ensureBundle patches a configuration whose entries differ, and writes nothing otherwise.
func ensureBundle(ctx context.Context, c client.Client, conf configuration, bundle []byte, owner string) (patched bool, err error) {
	patch := conf.bundlePatch(bundle)
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
