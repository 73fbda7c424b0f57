// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// truth is every object that matters, as the API server lists it.
type truth struct {
	namespaces []corev1.Namespace
	policies   []v1alpha1.VisionPolicy
	providers  []v1alpha1.VisionProvider
	pods       []corev1.Pod
	configMaps map[string]*corev1.ConfigMap // by "namespace/name"
	secrets    map[string]*corev1.Secret    // by "namespace/name"

	outputs map[string]compile.Output // by namespace
	inputs  map[string]compile.Input
}

// readTruth lists all and compiles every namespace.
func readTruth(ctx context.Context) (*truth, error) {
	var namespaces corev1.NamespaceList
	var policies v1alpha1.VisionPolicyList
	var providers v1alpha1.VisionProviderList
	var pods corev1.PodList
	var configMaps corev1.ConfigMapList
	var secrets corev1.SecretList
	for _, list := range []client.ObjectList{&namespaces, &policies, &providers, &pods, &configMaps, &secrets} {
		if err := admin.List(ctx, list); err != nil {
			return nil, err
		}
	}
	t := &truth{namespaces: namespaces.Items, policies: policies.Items, providers: providers.Items, pods: pods.Items,
		configMaps: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{},
		outputs: map[string]compile.Output{}, inputs: map[string]compile.Input{}}
	for i := range configMaps.Items {
		t.configMaps[client.ObjectKeyFromObject(&configMaps.Items[i]).String()] = &configMaps.Items[i]
	}
	for i := range secrets.Items {
		t.secrets[client.ObjectKeyFromObject(&secrets.Items[i]).String()] = &secrets.Items[i]
	}
	for _, ns := range t.namespaces {
		in := compile.Input{Namespace: ns.Name, NamespaceLabels: ns.Labels, OperatorNamespace: operatorNamespace, Providers: t.providers}
		for _, p := range t.policies { // all of the operator's: compile itself leaves out what does not match
			if p.Namespace == ns.Name || p.Namespace == operatorNamespace {
				in.Policies = append(in.Policies, p)
			}
		}
		t.inputs[ns.Name], t.outputs[ns.Name] = in, compile.Compile(in)
	}
	return t, nil
}

// settled says what is not yet as the objects say; nil when all is. ever tells
// whether a router of a namespace has been seen.
func settled(ctx context.Context, ever func(namespace string) bool) error {
	t, err := readTruth(ctx)
	if err != nil {
		return err
	}
	for _, ns := range t.namespaces {
		if err := t.checkRouter(ns.Name, ever(ns.Name)); err != nil {
			return fmt.Errorf("namespace %s: %w", ns.Name, err)
		}
	}
	for i := range t.policies {
		p := &t.policies[i]
		check := t.checkPolicy
		if p.Spec.NamespaceSelector != nil {
			check = t.checkBaseline
		}
		if err := check(p); err != nil {
			return fmt.Errorf("policy %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	for i := range t.providers {
		p := &t.providers[i]
		if err := t.checkProvider(p); err != nil {
			return fmt.Errorf("provider %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	for i := range t.pods {
		if err := t.checkStamp(&t.pods[i]); err != nil {
			return fmt.Errorf("pod %s/%s: %w", t.pods[i].Namespace, t.pods[i].Name, err)
		}
	}
	return nil
}

// served is design.md's word: it has a policy of its own, or a baseline serves there.
func (t *truth) served(namespace string) bool {
	return len(t.outputs[namespace].Baselines) > 0 || slices.ContainsFunc(t.policies, func(p v1alpha1.VisionPolicy) bool {
		return p.Namespace == namespace && p.Spec.NamespaceSelector == nil
	})
}

// foreign reports whether our place in a namespace is taken: by somebody else's
// ConfigMap, or by one of ours of which nothing tells so any more. An operator that
// ran meanwhile remembers and mends that one; one that was started later cannot tell
// it from the other, and adopts nothing (controllers/router_test.go has both).
func (t *truth) foreign(namespace string) bool {
	c := t.configMaps[namespace+"/"+router.ConfigMapName]
	return c != nil && (c.Labels["owner"] == "somebody-else" || stripped(c))
}

// stripped reports whether a ConfigMap has neither our label nor a field of ours.
func stripped(c *corev1.ConfigMap) bool {
	return c.Labels[v1alpha1.ManagedByLabel] == "" && !slices.ContainsFunc(c.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == v1alpha1.ManagedBy && e.Operation == metav1.ManagedFieldsOperationApply
	})
}

// checkRouter holds both ConfigMaps of a namespace against one compile.
func (t *truth) checkRouter(namespace string, ever bool) error {
	held, env := t.configMaps[namespace+"/"+router.ConfigMapName], t.configMaps[namespace+"/"+compile.EnvConfigMapName]
	urls := t.configMaps[namespace+"/"+compile.BaseURLsConfigMapName]
	if t.foreign(namespace) {
		return nil
	}
	if !t.served(namespace) {
		kept := ever && len(t.injected(namespace)) > 0 // nothing is granted to them any more
		if !kept && (held != nil || env != nil || urls != nil) {
			return fmt.Errorf("is not served, and has ConfigMaps: %t, %t, %t", held != nil, env != nil, urls != nil)
		}
		if !kept {
			return nil
		}
	}
	want, err := router.Marshal(t.outputs[namespace].Document)
	switch {
	case err != nil:
		return err
	case held == nil || env == nil || urls == nil:
		return fmt.Errorf("lacks a ConfigMap: %t, %t, %t", held != nil, env != nil, urls != nil)
	case held.Data[router.Key] != string(want):
		return fmt.Errorf("the router is\n%s\nwant\n%s", held.Data[router.Key], want)
	case !maps.Equal(env.Data, compile.Env()) || !maps.Equal(urls.Data, compile.BaseURLs()):
		return fmt.Errorf("the variables are %v", env.Data)
	case held.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy || env.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy:
		return fmt.Errorf("a ConfigMap has lost its label")
	}
	return nil
}

// digest is that of the bytes that a namespace's ConfigMap holds.
func (t *truth) digest(namespace string) string {
	c := t.configMaps[namespace+"/"+router.ConfigMapName]
	if c == nil {
		return ""
	}
	return router.Digest([]byte(c.Data[router.Key]))
}

// injected are the injected pods of a namespace; of all when it is empty.
func (t *truth) injected(namespace string) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range t.pods {
		if p := &t.pods[i]; (namespace == "" || p.Namespace == namespace) && p.Labels[v1alpha1.InjectedLabel] == "true" {
			pods = append(pods, p)
		}
	}
	return pods
}

// checkStamp holds a pod's annotation against the digest and the Secrets of its
// namespace's router.
func (t *truth) checkStamp(pod *corev1.Pod) error {
	c := t.configMaps[pod.Namespace+"/"+router.ConfigMapName]
	if pod.Labels[v1alpha1.InjectedLabel] != "true" || c == nil || t.foreign(pod.Namespace) {
		return nil
	}
	doc, err := router.Parse([]byte(c.Data[router.Key]))
	if err != nil {
		return err
	}
	lines := map[string]bool{}
	for i := range doc.Providers {
		if ref := doc.Providers[i].Credential; ref != nil {
			key, version := ref.Namespace+"/"+ref.Secret, ""
			if s := t.secrets[key]; s != nil {
				version = s.ResourceVersion
			}
			lines[key+"="+version+"\n"] = true
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(slices.Sorted(maps.Keys(lines)), "")))
	want := t.digest(pod.Namespace) + "/" + hex.EncodeToString(sum[:])[:16]
	if got := pod.Annotations[v1alpha1.RouterDigestAnnotation]; got != want {
		return fmt.Errorf("the stamp is %q, want %q", got, want)
	}
	return nil
}

// checkCondition holds one condition against what it should be.
func checkCondition(conditions []metav1.Condition, generation int64, kind string, status metav1.ConditionStatus, reason, message string) error {
	for _, c := range conditions {
		if c.Type != kind {
			continue
		}
		if c.Status != status || c.Reason != reason || c.ObservedGeneration != generation || message != "" && c.Message != message {
			return fmt.Errorf("want %s=%s %s (%q) of generation %d, got %+v", kind, status, reason, message, generation, c)
		}
		return nil
	}
	return fmt.Errorf("want %s=%s %s (%q), got none", kind, status, reason, message)
}

func boolStatus(ok bool) metav1.ConditionStatus {
	if ok {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
