// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// tokenDirectory is where the ServiceAccount plugin mounts a token.
const tokenDirectory = "/var/run/secrets/kubernetes.io/serviceaccount"

func TestNoTokenOfTheAgentIsInTheRuntime(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		tokens int // in the agent
	}{
		"the plugin's token":                        {func(*corev1.Pod) {}, 1},
		"none is asked for":                         {func(pod *corev1.Pod) { pod.Spec.AutomountServiceAccountToken = new(false) }, 0},
		"the agent's own, as well":                  {ownToken("/tokens"), 2},
		"the agent's own, in place of the plugin's": {ownToken(tokenDirectory), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newServedTeam(t)
			pod := agent()
			c.change(pod)
			runtime := u.injects(pod)
			if n := tokensOf(pod, runtime); n != 0 {
				t.Errorf("%d tokens are mounted into the runtime: %v", n, runtime.VolumeMounts)
			}
			if n := tokensOf(pod, &pod.Spec.Containers[0]); n != c.tokens {
				t.Errorf("%d tokens are mounted into the agent, want %d", n, c.tokens)
			}
		})
	}
}

// ownToken mounts a token that the pod's author projects.
func ownToken(at string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
		}}})
		c := &pod.Spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "own", MountPath: at})
	}
}

// tokensOf counts the mounts of a container behind which there is a token.
func tokensOf(pod *corev1.Pod, c *corev1.Container) int {
	n := 0
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if p := pod.Spec.Volumes[i].Projected; p != nil && slices.ContainsFunc(p.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			n++
		}
	}
	return n
}

const mirror = "mirror.example/"

// meddler is another mutating webhook: it takes images from a mirror, adds a
// sidecar and puts all containers into another order.
type meddler struct{ called atomic.Int64 }

// Handle changes a pod, and one that it changed before no more.
func (m *meddler) Handle(_ context.Context, req admission.Request) admission.Response {
	m.called.Add(1)
	pod := &corev1.Pod{}
	if err := json.Unmarshal(req.Object.Raw, pod); err != nil {
		return admission.Errored(500, err)
	}
	if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "mesh" }) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh:1"})
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].Image = mirror + strings.TrimPrefix(list[i].Image, mirror)
		}
		// Sidecars first, as a mesh wants it, and the rest backwards by name.
		slices.SortFunc(list, func(a, b corev1.Container) int { return strings.Compare(b.Name, a.Name) })
	}
	var patch []map[string]any
	for name, list := range map[string][]corev1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
		if len(list) > 0 {
			patch = append(patch, map[string]any{"op": "replace", "path": "/spec/" + name, "value": list})
		}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return admission.Errored(500, err)
	}
	response, kind := admission.Allowed(""), admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = data, &kind
	return response
}

// install puts it before or behind ours, by name, in one namespace.
func (m *meddler) install(u *team, name string) {
	u.Helper()
	server := httptest.NewTLSServer(&admission.Webhook{Handler: m})
	u.Cleanup(server.Close)
	remove, err := envtest.InstallAnother(u.Context(), admin, name, u.namespace, server)
	if err != nil {
		u.Fatal(err)
	}
	u.Cleanup(func() {
		if err := remove(); err != nil {
			u.Error(err)
		}
	})
	eventually(u.T, "waiting for the API server to hear of the other webhook", func() error {
		if err := u.try(agent(), client.DryRunAll); err != nil {
			return err
		}
		if m.called.Load() == 0 {
			return errors.New("it was not called")
		}
		return nil
	})
}

func TestWhatAnotherWebhookMakesOfTheRuntimeIsLeft(t *testing.T) {
	for name, ours := range map[string]float64{"aa-meddler": 2, "zz-meddler": 2} {
		t.Run(name, func(t *testing.T) {
			u, other := newServedTeam(t), &meddler{}
			other.install(u, name)
			before := calls(t)
			pod := agent()
			c := u.injects(pod)
			if n := calls(t) - before; n != ours {
				t.Errorf("the operator was called %v times, want %v", n, ours)
			}
			if c.Image != mirror+runtimeImage {
				t.Errorf("the runtime's image is %s", c.Image)
			}
			names := func(list []corev1.Container) (all []string) {
				for _, c := range list {
					all = append(all, c.Name)
				}
				return all
			}
			if got := names(pod.Spec.InitContainers); !slices.Equal(got, []string{"vision-runtime", "setup"}) {
				t.Errorf("the init containers are %q", got)
			}
			if got := names(pod.Spec.Containers); !slices.Equal(got, []string{"mesh", "agent"}) {
				t.Errorf("the containers are %q", got)
			}
			for _, c := range pod.Spec.Containers {
				if n := len(slices.DeleteFunc(slices.Clone(c.Env), func(v corev1.EnvVar) bool { return v.Name != compile.EnvRuntimeURL })); n != 1 {
					t.Errorf("container %s is told %d times where the runtime is", c.Name, n)
				}
			}
			injection, err := inject.ParseInjection(pod.Annotations[v1alpha1.InjectionAnnotation])
			if err != nil || injection.Image != runtimeImage {
				t.Errorf("got the injection %+v, %v", injection, err)
			}
			again := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "again", Labels: pod.Labels, Annotations: pod.Annotations}, Spec: *pod.Spec.DeepCopy()}
			u.injects(again)
			if diff := cmp.Diff(comparable(t, pod), comparable(t, again)); diff != "" {
				t.Errorf("a copy of the pod became another:\n%s", diff)
			}
		})
	}
}
