// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

const (
	optIn      = v1alpha1.InjectLabel + "=" + v1alpha1.InjectEnabled
	enforced   = v1alpha1.EnforceLabel + "=true"
	restricted = "pod-security.kubernetes.io/enforce=restricted"
)

// team works in a namespace of its own, and sees the warnings of the API server.
type team struct {
	*testing.T
	client.Client
	namespace string
	warned    *warned
}

// newTeam makes a namespace with labels ("key=value") and a team in it.
func newTeam(t *testing.T, labels ...string) *team {
	t.Helper()
	namespace, err := envtest.CreateNamespace(t.Context(), admin, "team-", labels...)
	if err != nil {
		t.Fatal(err)
	}
	made := &team{T: t, namespace: namespace, warned: &warned{}}
	config := rest.CopyConfig(cluster.Config)
	config.WarningHandlerWithContext = made.warned
	if made.Client, err = client.New(config, client.Options{Scheme: scheme, Mapper: admin.RESTMapper()}); err != nil {
		t.Fatal(err)
	}
	return made
}

// newServedTeam is a team whose pods a policy serves.
func newServedTeam(t *testing.T, labels ...string) *team {
	t.Helper()
	made := newTeam(t, labels...)
	made.make(serving()...)
	made.warned.all() // what was warned of the policy
	return made
}

// make creates objects in the team's namespace.
func (u *team) make(objects ...client.Object) {
	u.Helper()
	for _, o := range objects {
		if err := u.try(o); err != nil {
			u.Fatal(err)
		}
	}
}

// try creates an object in the team's namespace.
func (u *team) try(o client.Object, options ...client.CreateOption) error {
	o.SetNamespace(u.namespace)
	return u.Create(u.Context(), o, options...)
}

// injects creates a pod and returns the runtime's container in it.
func (u *team) injects(pod *corev1.Pod) *corev1.Container {
	u.Helper()
	u.make(pod)
	c := runtimeOf(pod)
	if c == nil {
		u.Fatalf("pod %s is not injected: %s", pod.Name, u.warned.all())
	}
	return c
}

// serving are a policy, and what it needs to serve pods.
func serving() []client.Object {
	return []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "openai-key"}, Data: map[string][]byte{"token": []byte("sk-test")}},
		&v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Name: "openai"}, Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "default", URL: "https://api.openai.com/v1"}},
			Credentials: v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "openai-key", Key: "token"}},
			Models:      []v1alpha1.Model{{Name: "gpt-4o", ImageInput: new(true)}},
		}},
		&v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "agents"}},
	}
}

// agent is a pod that asks for the runtime and that Pod Security's restricted
// level accepts.
func agent() *corev1.Pod {
	hardened := &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Labels: map[string]string{"app": "agent", v1alpha1.InjectLabel: v1alpha1.InjectEnabled}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{{Name: "setup", Image: "setup:1", SecurityContext: hardened}},
			Containers: []corev1.Container{{
				Name: "agent", Image: "agent:1", SecurityContext: hardened,
				VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/desk"}},
			}},
			Volumes: []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

func runtimeOf(pod *corev1.Pod) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.InitContainers, isRuntime)
	if i < 0 {
		return nil
	}
	return &pod.Spec.InitContainers[i]
}

func isRuntime(c corev1.Container) bool { return c.Name == inject.ContainerName }

// calls counts the requests that the pod webhook answered.
func calls(t *testing.T) float64 {
	t.Helper()
	total := 0.0
	for labels, value := range series(t, "controller_runtime_webhook_requests_total") {
		if strings.Contains(labels, "webhook="+webhook.PodPath+";") {
			total += value
		}
	}
	return total
}

// series are the values of a metric of this process by "label=value;…".
func series(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels strings.Builder
			for _, l := range m.GetLabel() {
				fmt.Fprintf(&labels, "%s=%s;", l.GetName(), l.GetValue())
			}
			found[labels.String()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return found
}

// warned collects the operator's warnings.
type warned struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext keeps a warning that is the operator's.
func (w *warned) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ours, ok := strings.CutPrefix(text, "vision-operator: "); ok {
		w.texts = append(w.texts, ours)
	}
}

// all returns what was warned of since it was last asked.
func (w *warned) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
