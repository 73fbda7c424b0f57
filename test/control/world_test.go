// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// slot is one of the objects that are made, edited, deleted and made again.
type slot struct {
	kind, namespace, name string
}

// Kinds of slots.
const (
	labels   = "labels" // of a namespace
	secret   = "secret"
	provider = "provider"
	policy   = "policy"
	baseline = "baseline"
)

// universe are 40 objects: labels of 5 namespaces, 6 Secrets, 12 providers, 13
// policies, 4 baselines.
func universe() []slot {
	var slots []slot
	for _, team := range teams {
		slots = append(slots, slot{labels, "", team}, slot{secret, team, "key"},
			slot{provider, team, "own"}, slot{provider, team, "second"},
			slot{policy, team, "agents"}, slot{policy, team, "readers"})
	}
	slots = append(slots,
		slot{secret, operatorNamespace, "key"}, slot{provider, operatorNamespace, "central"}, slot{provider, operatorNamespace, "spare"},
		slot{policy, teams[0], "twin"}, slot{policy, teams[1], "twin"}, slot{policy, operatorNamespace, "platform"})
	for i := range 4 {
		slots = append(slots, slot{baseline, operatorNamespace, fmt.Sprintf("baseline-%d", i)})
	}
	return slots
}

// world makes random objects.
type world struct{ *rand.Rand }

func newWorld(seed uint64) world { return world{rand.New(rand.NewPCG(seed, 6))} }

// often is true that many times in ten.
func (w world) often(tenths int) bool { return w.IntN(10) < tenths }

func (w world) one(of ...string) string { return of[w.IntN(len(of))] }

// put makes a slot's object anew, or edits it into something else.
func (w world) put(ctx context.Context, s slot) error {
	key := client.ObjectKey{Namespace: s.namespace, Name: s.name}
	var o client.Object
	var change func()
	switch s.kind {
	case labels:
		ns, to := &corev1.Namespace{}, w.labels(s.name)
		o, change = ns, func() { ns.Labels = to }
	case secret:
		key, to := &corev1.Secret{}, w.secret()
		o, change = key, func() { key.Data = to }
	case provider:
		p, to := &v1alpha1.VisionProvider{}, w.provider()
		o, change = p, func() { p.Spec = to }
	default:
		p, to := &v1alpha1.VisionPolicy{}, w.policy(s)
		o, change = p, func() { p.Spec = to }
	}
	for {
		o.SetNamespace(key.Namespace)
		o.SetName(key.Name)
		err := edit(ctx, o, change)
		switch {
		case apierrors.IsInvalid(err): // what cannot be changed is made anew
			if err := w.remove(ctx, s); err != nil {
				return err
			}
		case !apierrors.IsNotFound(err):
			return wrap("editing", s, err)
		}
		o.SetResourceVersion("")
		o.SetUID("")
		change()
		if err := admin.Create(ctx, o); !apierrors.IsAlreadyExists(err) {
			return wrap("creating", s, err)
		}
	}
}

// remove deletes a slot's object; of a namespace only its labels.
func (w world) remove(ctx context.Context, s slot) error {
	meta := metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}
	var o client.Object
	switch s.kind {
	case labels:
		ns := &corev1.Namespace{ObjectMeta: meta}
		return edit(ctx, ns, func() { ns.Labels = map[string]string{corev1.LabelMetadataName: s.name} })
	case secret:
		o = &corev1.Secret{ObjectMeta: meta}
	case provider:
		o = &v1alpha1.VisionProvider{ObjectMeta: meta}
	default:
		o = &v1alpha1.VisionPolicy{ObjectMeta: meta}
	}
	return wrap("deleting", s, client.IgnoreNotFound(admin.Delete(ctx, o)))
}

func wrap(doing string, s slot, err error) error {
	if err != nil {
		return fmt.Errorf("%s %s %s/%s: %w", doing, s.kind, s.namespace, s.name, err)
	}
	return nil
}

func (w world) labels(name string) map[string]string {
	to := map[string]string{corev1.LabelMetadataName: name}
	if w.often(7) {
		to["tier"] = w.one("gold", "silver")
	}
	if w.often(4) {
		to["env"] = "prod"
	}
	return to
}

func (w world) secret() map[string][]byte {
	switch w.IntN(6) {
	case 0:
		return map[string][]byte{"other": []byte("sk-not-a-key")}
	case 1:
		return map[string][]byte{"api-key": {}}
	case 2:
		return map[string][]byte{"api-key": []byte("sk-not-a-key\n")}
	}
	return map[string][]byte{"api-key": fmt.Appendf(nil, "sk-not-a-key-%d", w.IntN(100))}
}

func (w world) provider() v1alpha1.VisionProviderSpec {
	p := plainProvider()
	p.Transport = v1alpha1.Transport(w.one(string(v1alpha1.TransportOpenAIChatCompletions), string(v1alpha1.TransportAnthropicMessages)))
	if w.often(3) {
		p.Models = append(p.Models, v1alpha1.Model{Name: w.one("large", "small"), ImageInput: new(w.often(7))})
	}
	if w.often(1) { // what only compile refuses
		p.Endpoints[0].CABundle = "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n"
	}
	if w.often(5) {
		p.Credentials = v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "key", Key: "api-key"}}
		if w.often(5) {
			p.Credentials.SecretRef.From = new(v1alpha1.SecretFromConsumer)
		}
	}
	switch w.IntN(4) {
	case 0:
		p.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromAll)}
	case 1:
		p.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: new(v1alpha1.NamespacesFromSelector),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": w.one("gold", "silver")}}}
	}
	return p
}

// plainProvider can be used as it is.
func plainProvider() v1alpha1.VisionProviderSpec {
	return v1alpha1.VisionProviderSpec{
		Transport:   v1alpha1.TransportOpenAIChatCompletions,
		Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://models.example.com/v1"}},
		Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
		Models:      []v1alpha1.Model{{Name: "vision", ImageInput: new(true)}},
	}
}

func (w world) policy(s slot) v1alpha1.VisionPolicySpec {
	var p v1alpha1.VisionPolicySpec
	switch {
	case s.kind == baseline:
		p.NamespaceSelector = &metav1.LabelSelector{}
		if w.often(8) {
			p.NamespaceSelector.MatchLabels = map[string]string{"tier": w.one("gold", "silver")}
		}
		if w.often(2) {
			p.NamespaceSelector.MatchLabels = map[string]string{"env": "prod"}
		}
	case w.often(1): // accepted nowhere but in the operator's namespace
		p.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "none"}}
	case s.name != "agents":
		p.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "reader"}}
	}
	if w.often(6) {
		p.Providers = w.references(s.kind == baseline)
	}
	if w.often(3) {
		p.DefaultModel = new(w.one("own/vision", "own@main/large", "central/vision", "auto"))
	}
	if w.often(2) {
		p.FallbackModels = []string{w.one("own/small", "central@main/vision")}
	}
	if w.often(3) {
		p.AllowedModels = []string{"*vision", w.one("*own@*", "*central@*")}
	}
	if w.often(2) {
		p.PerCallModel = new(v1alpha1.PerCallModelDenied)
	}
	if w.often(5) {
		p.Limits = &v1alpha1.Limits{Image: &v1alpha1.ImageLimits{MaxBytes: new(int64(1<<20 + w.IntN(1<<20)))}}
	}
	if w.often(2) {
		p.Injection = &v1alpha1.Injection{Mode: new(v1alpha1.InjectionMode(w.one("Image", "Observation")))}
	}
	return p
}

// references name own providers, which may not exist, and those of others, which may not be shared.
func (w world) references(central bool) []v1alpha1.ProviderReference {
	refs := []v1alpha1.ProviderReference{{Name: "central", Namespace: operatorNamespace}}
	if !central {
		refs = append(refs, v1alpha1.ProviderReference{Name: "own"})
	}
	if w.often(2) {
		refs = append(refs, v1alpha1.ProviderReference{Name: "second", Namespace: w.one(teams...), Alias: "borrowed"})
	}
	w.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	return refs
}

// injectedPod is a pod as injection leaves it, as far as the operator looks.
func injectedPod(namespace, profile string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent",
			Labels:      map[string]string{v1alpha1.InjectedLabel: "true"},
			Annotations: map[string]string{v1alpha1.InjectionAnnotation: fmt.Sprintf(`{"profile":%q}`, profile)}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}},
	}
}
