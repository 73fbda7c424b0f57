// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// amounts are resources, as "name=quantity".
func amounts(list ...string) corev1.ResourceList {
	made := corev1.ResourceList{}
	for _, item := range list {
		name, quantity, _ := strings.Cut(item, "=")
		made[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return made
}

// sized is an agent, all of whose containers have requests and limits.
func sized(name string, list ...string) *corev1.Pod {
	pod := agent()
	pod.Name = name
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		containers[0].Resources = corev1.ResourceRequirements{Requests: amounts(list...), Limits: amounts(list...)}
	}
	return pod
}

func TestAPodThatPodSecurityRestrictedAcceptsIsAcceptedWithTheRuntime(t *testing.T) {
	u := newServedTeam(t, restricted, "pod-security.kubernetes.io/warn=restricted")
	for name, change := range map[string]func(*corev1.Pod){
		"pod-says": func(*corev1.Pod) {},
		"containers-say": func(pod *corev1.Pod) { // and nothing holds for ours
			said := pod.Spec.SecurityContext
			pod.Spec.SecurityContext = nil
			for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
				sc := list[0].SecurityContext.DeepCopy()
				sc.RunAsNonRoot, sc.RunAsUser, sc.SeccompProfile = said.RunAsNonRoot, said.RunAsUser, said.SeccompProfile
				list[0].SecurityContext = sc
			}
		},
		"platform-says-the-user": func(pod *corev1.Pod) { pod.Spec.SecurityContext.RunAsUser = nil },
	} {
		pod := agent()
		pod.Name = name
		change(pod)
		u.injects(pod)
	}
	bad := agent()
	bad.Spec.SecurityContext = nil
	if err := u.try(bad); !apierrors.IsForbidden(err) || strings.Contains(err.Error(), inject.ContainerName) {
		t.Errorf("got %v, want that Pod Security refuses the agent, and does not speak of the runtime", err)
	}
}

// quota makes a ResourceQuota that counts, as the controller manager does.
func (u *team) quota(hard corev1.ResourceList) *corev1.ResourceQuota {
	u.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	u.make(q)
	q.Status.Hard, q.Status.Used = hard, corev1.ResourceList{}
	for name := range hard {
		q.Status.Used[name] = resource.MustParse("0")
	}
	if err := u.Status().Update(u.Context(), q); err != nil {
		u.Fatal(err)
	}
	return q
}

func TestAQuotaCountsTheRuntimeAndRefusesWhatExceedsIt(t *testing.T) {
	u := newServedTeam(t)
	q := u.quota(amounts("pods=10", "requests.cpu=1", "requests.memory=1Gi", "limits.cpu=10", "limits.memory=1Gi",
		"requests.ephemeral-storage=10Gi", "limits.ephemeral-storage=10Gi"))
	first := sized("first", "cpu=100m", "memory=300Mi", "ephemeral-storage=1Gi")
	first.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] = resource.MustParse("1") // else Guaranteed
	eventually(t, "waiting for the API server to hear of the quota", func() error {
		bare := agent()
		if err := u.try(bare, client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "failed quota") {
			return fmt.Errorf("a pod without limits: %w", err)
		}
		return nil
	})
	u.injects(first)
	if err := u.Get(t.Context(), client.ObjectKeyFromObject(q), q); err != nil {
		t.Fatal(err)
	}
	// The agent's 300Mi and the runtime's 256Mi; 100m and 10m.
	if memory, cpu := q.Status.Used[corev1.ResourceLimitsMemory], q.Status.Used[corev1.ResourceRequestsCPU]; memory.String() != "556Mi" || cpu.String() != "110m" {
		t.Errorf("the quota counts %s of memory and %s of CPU", memory.String(), cpu.String())
	}
	err := u.try(sized("second", "cpu=100m", "memory=300Mi", "ephemeral-storage=1Gi"))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: quota, requested: limits.memory=556Mi") {
		t.Errorf("got %v, want that the quota refuses the second pod", err)
	}
}

func TestTheRuntimeIsFittedIntoALimitRange(t *testing.T) {
	for name, c := range map[string]struct {
		item corev1.LimitRangeItem
		pod  *corev1.Pod
		want corev1.ResourceRequirements
	}{
		"a maximum is the default of the agent, which becomes Guaranteed, and so the runtime": {
			item: corev1.LimitRangeItem{Max: amounts("cpu=500m", "memory=128Mi")},
			pod:  agent(),
			want: corev1.ResourceRequirements{Requests: amounts("cpu=100m", "memory=128Mi"), Limits: amounts("cpu=100m", "memory=128Mi")},
		},
		"defaults are not for the runtime, which has its own": {
			item: corev1.LimitRangeItem{Default: amounts("cpu=2", "memory=150Mi"), DefaultRequest: amounts("cpu=200m", "memory=50Mi"), Max: amounts("cpu=4", "memory=200Mi")},
			pod:  sized("agent", "cpu=1", "memory=150Mi"),
			want: corev1.ResourceRequirements{Requests: amounts("cpu=100m", "memory=200Mi"), Limits: amounts("cpu=100m", "memory=200Mi")},
		},
		"a minimum and a ratio raise what is requested": {
			item: corev1.LimitRangeItem{Min: amounts("cpu=50m", "memory=64Mi"), MaxLimitRequestRatio: amounts("cpu=4")},
			pod: func() *corev1.Pod {
				pod := sized("agent", "cpu=200m", "memory=100Mi")
				pod.Spec.Containers[0].Resources.Limits = amounts("cpu=400m", "memory=200Mi")
				return pod
			}(),
			want: corev1.ResourceRequirements{Requests: amounts("cpu=250m", "memory=64Mi"), Limits: amounts("cpu=1", "memory=256Mi")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newServedTeam(t)
			c.item.Type = corev1.LimitTypeContainer
			u.make(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "bounds"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{c.item}}})
			// Until the API server and the operator have heard of the LimitRange.
			eventually(t, "creating the pod", func() error {
				pod := c.pod.DeepCopy()
				if err := u.try(pod, client.DryRunAll); err != nil {
					return err
				}
				if got := runtimeOf(pod).Resources; !equality.Semantic.DeepEqual(got, c.want) {
					return fmt.Errorf("the runtime has %v, want %v", got, c.want)
				}
				return nil
			})
			u.injects(c.pod)
		})
	}
}

func TestAPodThatNamesNeitherItselfNorItsNamespaceIsInjected(t *testing.T) {
	u := newServedTeam(t)
	clients, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	pod := agent()
	pod.Name, pod.GenerateName = "", "agent-"
	for range 2 {
		made, err := clients.CoreV1().Pods(u.namespace).Create(t.Context(), pod.DeepCopy(), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		injection, err := inject.ParseInjection(made.Annotations[v1alpha1.InjectionAnnotation])
		if runtimeOf(made) == nil || err != nil || len(injection.Keys) != 1 || !strings.HasPrefix(injection.Keys[0], u.namespace+"/openai=") {
			t.Errorf("got the injection %+v, %v", injection, err)
		}
	}
}

func TestDefaultsOfALimitRangeDoNotMakeTheRuntimeExceedResourcesOfTheWholePod(t *testing.T) {
	u := newServedTeam(t)
	u.make(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "bounds"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Default: amounts("cpu=2", "memory=2Gi"), DefaultRequest: amounts("cpu=500m", "memory=200Mi"),
	}}}})
	pod := sized("agent", "cpu=400m", "memory=100Mi")
	pod.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu=500m", "memory=128Mi"), Limits: amounts("cpu=1", "memory=128Mi")}
	// Until the API server and the operator have heard of the LimitRange.
	eventually(t, "waiting for the LimitRange", func() error {
		bare, probe := unlabelled("bare"), pod.DeepCopy()
		if err := u.try(bare, client.DryRunAll); err != nil || bare.Spec.Containers[0].Resources.Limits == nil {
			return errors.Join(errors.New("a pod without limits gets none"), err)
		}
		return u.try(probe, client.DryRunAll)
	})
	c := u.injects(pod)
	if q := c.Resources.Limits.Memory(); q.String() != "128Mi" || !c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("the runtime has %v", c.Resources)
	}
}
