// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// randomPods is how many pods that an API server stores are tried.
const randomPods = 500

// twins are two namespaces that are alike, but that one asks for the runtime.
type twins struct {
	without, with *team
	// seen counts what became of pods, by the reason where one is not injected.
	seen map[string]int
}

// newTwins makes twins with a policy and with what else their namespace holds.
func newTwins(t *testing.T, spec v1alpha1.VisionPolicySpec, labels []string, others ...client.Object) *twins {
	t.Helper()
	w := &twins{without: newTeam(t, labels...), with: newTeam(t, append(slices.Clone(labels), optIn)...), seen: map[string]int{}}
	objects := serving()
	objects[2].(*v1alpha1.VisionPolicy).Spec = spec
	w.with.make(objects...)
	for _, o := range others {
		w.without.make(o.DeepCopyObject().(client.Object))
		w.with.make(o)
	}
	return w
}

// obstacles are the reasons for which a pod may stay without the runtime.
var obstacles = []inject.Reason{
	inject.ReasonHostNetwork, inject.ReasonWindows, inject.ReasonNameCollision, inject.ReasonPortCollision, inject.ReasonWorkspaceConflict,
}

func TestRandomPodsThatAreAcceptedWithoutTheRuntimeAreAcceptedWithIt(t *testing.T) {
	custom := v1alpha1.VisionPolicySpec{Runtime: &v1alpha1.Runtime{
		Workspaces: []string{"/desk", "/data", "/only"}, RunAsUser: new(int64(1234)),
		Resources: &corev1.ResourceRequirements{Requests: amounts("cpu=20m", "memory=64Mi"), Limits: amounts("memory=300Mi")},
	}}
	strict := v1alpha1.VisionPolicySpec{Admission: &v1alpha1.Admission{Mode: new(v1alpha1.AdmissionEnforce)}}
	bounds := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "bounds"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Max: amounts("cpu=4", "memory=2Gi"), Min: amounts("cpu=10m", "memory=16Mi"), Default: amounts("cpu=500m", "memory=200Mi"),
	}}}}
	frugal := v1alpha1.VisionPolicySpec{Runtime: &v1alpha1.Runtime{Resources: &corev1.ResourceRequirements{Requests: amounts("cpu=20m")}}}
	ratio := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "ratio"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypePod, MaxLimitRequestRatio: amounts("cpu=2"),
	}}}}
	all := []*twins{
		newTwins(t, v1alpha1.VisionPolicySpec{}, nil),
		newTwins(t, custom, nil),
		newTwins(t, strict, []string{enforced}),
		newTwins(t, v1alpha1.VisionPolicySpec{}, nil, bounds),
		newTwins(t, custom, []string{"pod-security.kubernetes.io/enforce=baseline"}),
		newTwins(t, v1alpha1.VisionPolicySpec{}, nil, ratio),
		newTwins(t, frugal, nil),
	}
	for _, u := range []*team{all[6].without, all[6].with} {
		u.quota(amounts("requests.cpu=1k", "limits.cpu=1k", "limits.memory=1Ti"))
	}
	eventually(t, "waiting for the operator to hear of the LimitRanges", func() error {
		pod, tight := sized("probe", "cpu=20m", "memory=16Mi"), sized("tight", "cpu=20m", "memory=16Mi")
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1")
		tight.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("15Mi") // else Guaranteed
		return errors.Join(all[3].with.try(pod, client.DryRunAll), all[5].with.try(tight, client.DryRunAll))
	})

	g, made, accepted := newGenerator(7), 0, 0
	for accepted < randomPods && made < 10*randomPods {
		w := all[made%len(all)]
		if made++; w.try(t, made, g.pod()) {
			accepted++
		}
	}
	seen := map[string]int{}
	for _, w := range all {
		for what, n := range w.seen {
			seen[what] += n
		}
	}
	t.Logf("of %d random pods the API server accepts %d; of these: %v", made, accepted, seen)
	if accepted < randomPods || seen[injected] < randomPods/2 {
		t.Errorf("%d pods were accepted and %d injected, want at least %d and %d", accepted, seen[injected], randomPods, randomPods/2)
	}
	for _, reason := range obstacles {
		if seen[string(reason)] == 0 {
			t.Errorf("no pod met %s: the generator is too tame", reason)
		}
	}
}

// injected is what becomes of most pods.
const injected = "injected"

// try creates a pod in both twins, in dry runs, and reports whether the API
// server accepts it by itself.
func (w *twins) try(t *testing.T, number int, pod *corev1.Pod) bool {
	t.Helper()
	plain, served := pod.DeepCopy(), pod.DeepCopy()
	if err := w.without.try(plain, client.DryRunAll); err != nil {
		return false
	}
	w.with.warned.all()
	err := w.with.try(served, client.DryRunAll)
	said := strings.Join(w.with.warned.all(), "\n")
	forbidden := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied the request: vision-operator: ")
	if err != nil && !forbidden {
		t.Errorf("pod %d is accepted without the runtime, and with it: %v\n%s", number, err, written(pod))
		return true
	}
	if forbidden {
		said = err.Error()
	}
	if err == nil && runtimeOf(served) != nil && isOurs(served) {
		w.seen[injected]++
		w.compare(t, number, plain, served)
		return true
	}
	reasons := slices.Clone(obstacles)
	if forbidden { // by admission.mode Enforce
		reasons = append(reasons, inject.ReasonWorkspaceNotAllowed, inject.ReasonNoWorkspace)
	}
	i := slices.IndexFunc(reasons, func(r inject.Reason) bool { return strings.Contains(said, string(r)+": ") })
	if i < 0 {
		t.Errorf("pod %d is not injected, for no reason that is told: %q\n%s", number, said, written(pod))
		return true
	}
	w.seen[string(reasons[i])]++
	return true
}

func isOurs(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.InjectedLabel] == "true" }

// compare sees that nothing but what is ours differs between a pod with the
// runtime and one without, and that a Guaranteed pod is still one.
func (w *twins) compare(t *testing.T, number int, plain, served *corev1.Pod) {
	t.Helper()
	if plain.Status.QOSClass != served.Status.QOSClass && plain.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("pod %d is %s with the runtime and %s without\n%s", number, served.Status.QOSClass, plain.Status.QOSClass, written(plain))
	}
	if c := runtimeOf(served); tokensOf(served, c) != 0 {
		t.Errorf("pod %d has a token in the runtime: %v", number, c.VolumeMounts)
	}
	w.again(t, number, served)
	a, b := comparable(t, plain), comparable(t, withoutRuntime(served))
	a.QOSClass, b.QOSClass, b.Injection = "", "", inject.Injection{}
	for _, one := range []*told{&a, &b} {
		delete(one.Annotations, "kubernetes.io/limit-ranger") // the API server's note on all containers
		if len(one.Annotations) == 0 {
			one.Annotations = nil
		}
		if r := one.Spec.Resources; r != nil {
			r.Requests = nil // which it sums up over all containers where they are not set
		}
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("pod %d differs in what is not ours (-without +with):\n%s", number, diff)
	}
}

// again sees that a copy of an injected pod is injected into the same pod.
func (w *twins) again(t *testing.T, number int, served *corev1.Pod) {
	t.Helper()
	copied := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: served.Name, Labels: served.Labels, Annotations: served.Annotations}, Spec: *served.Spec.DeepCopy()}
	if err := w.with.try(copied, client.DryRunAll); err != nil {
		t.Errorf("a copy of pod %d with the runtime is refused: %v", number, err)
		return
	}
	if diff := cmp.Diff(comparable(t, served).Spec, comparable(t, copied).Spec); diff != "" {
		t.Errorf("a copy of pod %d with the runtime became another:\n%s", number, diff)
	}
}

// withoutRuntime takes out what injection adds.
func withoutRuntime(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	spec := &pod.Spec
	if last := len(spec.InitContainers) - 1; isRuntime(spec.InitContainers[last]) {
		spec.InitContainers = slices.Delete(spec.InitContainers, last, last+1)
	}
	if len(spec.InitContainers) == 0 {
		spec.InitContainers = nil
	}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, "vision-runtime-") })
	env := compile.Env()
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Value != "" && v.Value == env[v.Name] })
		c.EnvFrom = slices.DeleteFunc(c.EnvFrom, func(s corev1.EnvFromSource) bool {
			return s.ConfigMapRef != nil && s.ConfigMapRef.Name == compile.EnvConfigMapName
		})
		if len(c.Env) == 0 {
			c.Env = nil
		}
	}
	delete(pod.Labels, v1alpha1.InjectedLabel)
	return pod
}

// written is a pod for people.
func written(pod *corev1.Pod) string {
	data, err := yaml.Marshal(pod)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
