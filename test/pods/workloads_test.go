// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/webhook/inject"
)

// workload is an object with a template of pods, and what its controller sets in
// a pod besides.
type workload struct {
	object   client.Object
	template func() *corev1.PodTemplateSpec
	complete func(*corev1.Pod)
}

// workloads are one of each kind that agents run as.
func workloads() map[string]workload {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: agent().Labels}, Spec: agent().Spec}
	finite := *template.DeepCopy()
	finite.Spec.RestartPolicy = corev1.RestartPolicyNever
	selector, meta := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}, metav1.ObjectMeta{Name: "agent"}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}
	stateful := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: *template.DeepCopy(), ServiceName: "agents",
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "state"}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: amounts("storage=1Gi")},
		}}}}}
	stateful.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: finite}}
	cron := &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "0 3 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: finite}}}}
	return map[string]workload{
		"Deployment": {deployment, func() *corev1.PodTemplateSpec { return &deployment.Spec.Template }, func(pod *corev1.Pod) {
			pod.GenerateName, pod.Labels["pod-template-hash"] = "agent-7d4b9c6f5-", "7d4b9c6f5"
		}},
		"StatefulSet": {stateful, func() *corev1.PodTemplateSpec { return &stateful.Spec.Template }, func(pod *corev1.Pod) {
			pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain = "agent-0", "agent-0", "agents"
			pod.Labels["apps.kubernetes.io/pod-index"], pod.Labels["statefulset.kubernetes.io/pod-name"] = "0", "agent-0"
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "state", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "state-agent-0"},
			}})
		}},
		"Job": {job, func() *corev1.PodTemplateSpec { return &job.Spec.Template }, func(pod *corev1.Pod) {
			pod.GenerateName, pod.Finalizers = "agent-", []string{batchv1.JobTrackingFinalizer}
		}},
		"CronJob": {cron, func() *corev1.PodTemplateSpec { return &cron.Spec.JobTemplate.Spec.Template }, func(pod *corev1.Pod) {
			pod.GenerateName, pod.Labels[batchv1.JobNameLabel] = "agent-29412345-", "agent-29412345"
			pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
		}},
	}
}

// podOf makes a pod of a workload's template as its controller does.
func podOf(w workload) *corev1.Pod {
	t := w.template().DeepCopy()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}, Spec: t.Spec}
	w.complete(pod)
	return pod
}

func TestPodsOfEveryWorkloadAreInjectedAndItsTemplateIsNot(t *testing.T) {
	for kind, w := range workloads() {
		t.Run(kind, func(t *testing.T) {
			u := newServedTeam(t, restricted)
			u.make(w.object)
			pod := podOf(w)
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "agent", UID: w.object.GetUID(), Controller: new(true)}}
			before := pod.DeepCopy()
			c := u.injects(pod)
			if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
				t.Error("the runtime is no native sidecar, and would keep a Job from ending")
			}
			if want := before.Spec.Containers[0].VolumeMounts[0].MountPath; !strings.Contains(strings.Join(c.Args, " "), "--workspace "+want+" ") {
				t.Errorf("the runtime's arguments %q do not name %s", c.Args, want)
			}
			if pod.Spec.RestartPolicy != before.Spec.RestartPolicy {
				t.Errorf("the pod's restartPolicy became %s", pod.Spec.RestartPolicy)
			}
			if said := u.warned.all(); len(said) > 0 {
				t.Errorf("got warnings %q", said)
			}
			if err := u.Get(t.Context(), client.ObjectKeyFromObject(w.object), w.object); err != nil {
				t.Fatal(err)
			}
			for _, c := range w.template().Spec.InitContainers {
				if c.Name == inject.ContainerName {
					t.Error("the template has the runtime")
				}
			}
		})
	}
}

func TestAServerSideAppliedWorkloadShowsNoDriftAfterItsPodWasInjected(t *testing.T) {
	for kind, w := range workloads() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			u := newServedTeam(t)
			manifest := manifestOf(t, kind, u.namespace, w.object)
			if _, err := cluster.Kubectl(t.Context(), manifest, "apply", "--server-side", "-f", "-"); err != nil {
				t.Fatal(err)
			}
			if err := u.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: "agent"}, w.object); err != nil {
				t.Fatal(err)
			}
			version := w.object.GetResourceVersion()
			u.injects(podOf(w))
			// kubectl diff fails where something differs.
			if diff, err := cluster.Kubectl(t.Context(), manifest, "diff", "--server-side", "-f", "-"); err != nil || diff != "" {
				t.Errorf("kubectl diff: %v\n%s", err, diff)
			}
			if _, err := cluster.Kubectl(t.Context(), manifest, "apply", "--server-side", "-f", "-"); err != nil {
				t.Error(err)
			}
			if err := u.Get(t.Context(), client.ObjectKeyFromObject(w.object), w.object); err != nil || w.object.GetResourceVersion() != version {
				t.Errorf("applying it again wrote the object (%v)", err)
			}
		})
	}
}

func TestAServerSideAppliedPodShowsNoDriftAfterItWasInjected(t *testing.T) {
	u := newServedTeam(t)
	manifest := manifestOf(t, "Pod", u.namespace, agent())
	if _, err := cluster.Kubectl(t.Context(), manifest, "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := u.Get(t.Context(), client.ObjectKey{Namespace: u.namespace, Name: "agent"}, pod); err != nil || runtimeOf(pod) == nil {
		t.Fatalf("the pod is not injected: %v", err)
	}
	if diff, err := cluster.Kubectl(t.Context(), manifest, "diff", "--server-side", "-f", "-"); err != nil || diff != "" {
		t.Errorf("kubectl diff: %v\n%s", err, diff)
	}
}

// manifestOf writes an object as a user would: without its status.
func manifestOf(t *testing.T, kind, namespace string, o client.Object) string {
	t.Helper()
	versions := map[string]schema.GroupVersion{"Pod": corev1.SchemeGroupVersion, "Job": batchv1.SchemeGroupVersion, "CronJob": batchv1.SchemeGroupVersion}
	gv, ok := versions[kind]
	if !ok {
		gv = appsv1.SchemeGroupVersion
	}
	o.SetNamespace(namespace)
	o.GetObjectKind().SetGroupVersionKind(gv.WithKind(kind))
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	data, err := yaml.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
