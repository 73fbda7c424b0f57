// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

const restricted = "pod-security.kubernetes.io/enforce=restricted"

func provider() *v1alpha1.VisionProvider {
	return &v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "openai"},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "default", URL: "https://api.openai.com/v1"}},
			Credentials: v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: "openai-key", Key: "token"}},
			Models:      []v1alpha1.Model{{Name: "gpt-4o", ImageInput: new(true)}},
		},
	}
}

func policy(mode v1alpha1.AdmissionMode) *v1alpha1.VisionPolicy {
	return &v1alpha1.VisionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec:       v1alpha1.VisionPolicySpec{Admission: &v1alpha1.Admission{Mode: &mode}},
	}
}

// agent is a pod that Pod Security's restricted level accepts.
func agent(labels ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Labels: map[string]string{"app": "agent"}},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{{Name: "setup", Image: "setup:1"}},
			Containers: []corev1.Container{{
				Name: "agent", Image: "agent:1",
				VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/workspace"}},
			}},
			Volumes: []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		list[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		pod.Labels[key] = value
	}
	return pod
}

const (
	optIn  = v1alpha1.InjectLabel + "=" + v1alpha1.InjectEnabled
	optOut = v1alpha1.InjectLabel + "=" + v1alpha1.InjectDisabled
)

func runtimeOf(pod *corev1.Pod) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == inject.ContainerName })
	if i < 0 {
		return nil
	}
	return &pod.Spec.InitContainers[i]
}

// calls counts the requests that the pod webhook answered.
func calls(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, f := range families {
		if f.GetName() != "controller_runtime_webhook_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "webhook" && l.GetValue() == PodPath {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}

func TestALabelledPodIsInjectedAndPassesPodSecurityRestricted(t *testing.T) {
	u := newUser(t, restricted)
	u.create(provider(), policy(v1alpha1.AdmissionWarn))
	pod := agent(optIn)
	u.create(pod)

	c := runtimeOf(pod)
	if c == nil {
		t.Fatalf("no %s in %v; warnings: %s", inject.ContainerName, pod.Spec.InitContainers, u.warned.all())
	}
	if pod.Spec.InitContainers[0].Name != "setup" || c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("the runtime is no native sidecar after the pod's own init containers")
	}
	if *c.SecurityContext.RunAsUser != 1000 {
		t.Errorf("the runtime runs as %d, want the agent's 1000", *c.SecurityContext.RunAsUser)
	}
	if pod.Labels[v1alpha1.InjectedLabel] != "true" {
		t.Error("the pod is not labelled as injected")
	}
	injection, err := inject.ParseInjection(pod.Annotations[v1alpha1.InjectionAnnotation])
	if err != nil || injection.Profile != "policy/default" {
		t.Errorf("got injection %+v, %v", injection, err)
	}
	env := map[string]string{}
	for _, v := range pod.Spec.Containers[0].Env {
		env[v.Name] = v.Value
	}
	if diff := cmp.Diff(compile.Env(), env); diff != "" {
		t.Errorf("the agent's environment:\n%s", diff)
	}
	if w := u.warned.all(); w != "" {
		t.Errorf("got warnings %s", w)
	}
}

func TestARootAgentGetsARootRuntimeThatPodSecurityBaselineAccepts(t *testing.T) {
	u := newUser(t, "pod-security.kubernetes.io/enforce=baseline")
	u.create(provider(), policy(v1alpha1.AdmissionWarn))
	pod := agent(optIn)
	pod.Spec.SecurityContext.RunAsUser, pod.Spec.SecurityContext.RunAsNonRoot = new(int64(0)), nil
	u.create(pod)
	c := runtimeOf(pod)
	if c == nil || *c.SecurityContext.RunAsUser != 0 || len(c.SecurityContext.Capabilities.Add) != 0 {
		t.Errorf("got %v, want a runtime that is root without capabilities", c)
	}
}

func TestTheAgentsTokenIsNotMountedIntoTheRuntime(t *testing.T) {
	u := newUser(t)
	u.create(provider(), policy(v1alpha1.AdmissionWarn))
	pod := agent(optIn)
	u.create(pod)
	const directory = "/var/run/secrets/kubernetes.io/serviceaccount"
	volumeAt := func(c *corev1.Container) string {
		for _, m := range c.VolumeMounts {
			if m.MountPath == directory {
				return m.Name
			}
		}
		return ""
	}
	if v := volumeAt(&pod.Spec.Containers[0]); !strings.HasPrefix(v, "kube-api-access-") {
		t.Fatalf("the agent has %q at %s: without a token there, this test shows nothing", v, directory)
	}
	if v := volumeAt(runtimeOf(pod)); v != "vision-runtime-no-token" {
		t.Errorf("the runtime has %q at %s", v, directory)
	}
}

func TestAPodThatNobodyAskedForIsUntouchedAndNeverReachesUs(t *testing.T) {
	for name, c := range map[string]struct {
		namespace []string
		pod       []string
	}{
		"no label anywhere":                          {},
		"the pod opts out of its namespace's opt-in": {namespace: []string{optIn}, pod: []string{optOut}},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, c.namespace...)
			u.create(provider(), policy(v1alpha1.AdmissionWarn))
			before := calls(t)
			pod := agent(c.pod...)
			u.create(pod)
			if runtimeOf(pod) != nil || pod.Labels[v1alpha1.InjectedLabel] != "" {
				t.Error("the pod was injected")
			}
			if after := calls(t); after != before {
				t.Errorf("the webhook was called %v times", after-before)
			}
		})
	}
}

func TestANamespacesLabelOptsItsPodsIn(t *testing.T) {
	for _, labels := range [][]string{{optIn}, {optIn, v1alpha1.EnforceLabel + "=true"}} {
		u := newUser(t, labels...)
		u.create(provider(), policy(v1alpha1.AdmissionWarn))
		before := calls(t)
		pod := agent()
		u.create(pod)
		if runtimeOf(pod) == nil {
			t.Errorf("namespace with %v: the pod was not injected", labels)
		}
		if n := calls(t) - before; n != 1 {
			t.Errorf("namespace with %v: the webhook was called %v times, want once: its entries exclude each other", labels, n)
		}
	}
}

func TestWithoutAPolicyThePodIsCreatedWithAWarning(t *testing.T) {
	u := newUser(t)
	pod := agent(optIn)
	u.create(pod)
	if runtimeOf(pod) != nil {
		t.Error("the pod was injected")
	}
	if w := u.warned.all(); !strings.Contains(w, "299 vision-operator: NoPolicy: ") {
		t.Errorf("got warnings %q, want NoPolicy", w)
	}
}

func TestAWarningSurvivesWhatThePodsAuthorWrote(t *testing.T) {
	u := newUser(t)
	u.create(provider(), policy(v1alpha1.AdmissionWarn))
	pod := agent(optIn)
	pod.Annotations = map[string]string{v1alpha1.WorkspacesAnnotation: "/proc/\x00\r\nx,/workspace"}
	u.create(pod)
	if w := u.warned.all(); !strings.Contains(w, "299 vision-operator: WorkspaceRefused: annotation visionoperator.dev/workspaces: /proc/???x cannot be a workspace") {
		t.Errorf("got warnings %q, want WorkspaceRefused", w)
	}
}

func TestAPolicyAndAPodAppliedTogetherMeet(t *testing.T) {
	u := newUser(t)
	manifest := marshalAll(t, u.namespace, provider(), policy(v1alpha1.AdmissionWarn), agent(optIn))
	out, err := cluster.Kubectl(t.Context(), manifest, "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := u.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: "agent"}, pod); err != nil {
		t.Fatal(err)
	}
	if runtimeOf(pod) == nil {
		t.Errorf("the pod was not injected: %s", out)
	}
}

func TestASecondApplyOfTheSamePodChangesNothing(t *testing.T) {
	u := newUser(t)
	u.create(provider(), policy(v1alpha1.AdmissionWarn))
	manifest := marshalAll(t, u.namespace, agent(optIn))
	var versions []string
	for range 2 {
		version, err := cluster.Kubectl(t.Context(), manifest, "apply", "-f", "-", "-o", "jsonpath={.metadata.resourceVersion}")
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, version)
	}
	if versions[0] != versions[1] {
		diff, err := cluster.Kubectl(t.Context(), manifest, "diff", "-f", "-")
		t.Errorf("the second apply wrote the pod: %s %v", diff, err)
	}
}

func TestACopyOfAnInjectedPodIsInjectedOnce(t *testing.T) {
	u := newUser(t)
	u.create(provider(), policy(v1alpha1.AdmissionWarn))
	first := agent(optIn)
	u.create(first)
	second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "copy", Labels: first.Labels, Annotations: first.Annotations}, Spec: *first.Spec.DeepCopy()}
	u.create(second)
	if !equality.Semantic.DeepEqual(first.Spec, second.Spec) {
		t.Errorf("the copy differs:\n%s", cmp.Diff(first.Spec, second.Spec))
	}
}

func TestADryRunShowsTheInjectedPodAndStoresNothing(t *testing.T) {
	u := newUser(t)
	u.create(provider(), policy(v1alpha1.AdmissionWarn))
	pod := agent(optIn)
	pod.Namespace = u.namespace
	if err := u.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if runtimeOf(pod) == nil {
		t.Error("the dry run does not show the runtime")
	}
	if err := u.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that nothing is stored", err)
	}
}

func TestAdmissionModeSaysWhatBecomesOfAPodThatCannotBeServed(t *testing.T) {
	for mode, want := range map[v1alpha1.AdmissionMode]struct {
		denied  bool
		warning string
	}{
		v1alpha1.AdmissionEnforce: {denied: true},
		v1alpha1.AdmissionWarn:    {warning: "HostNetwork"},
		v1alpha1.AdmissionOff:     {},
	} {
		t.Run(string(mode), func(t *testing.T) {
			u := newUser(t)
			u.create(provider(), policy(mode))
			pod := agent(optIn)
			pod.Namespace, pod.Spec.HostNetwork = u.namespace, true
			err := u.Create(t.Context(), pod)
			if denied := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "HostNetwork"); denied != want.denied || !want.denied && err != nil {
				t.Errorf("got error %v, want a refusal: %v", err, want.denied)
			}
			if w := u.warned.all(); want.warning == "" && w != "" || !strings.Contains(w, want.warning) {
				t.Errorf("got warnings %q, want %q", w, want.warning)
			}
		})
	}
}
