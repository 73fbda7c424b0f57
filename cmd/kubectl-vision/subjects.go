// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// subject is a pod that is explained: one that there is, or one that a workload's
// template makes.
type subject struct {
	// kind and name are the object's that was asked about: Pod or a workload.
	kind, name string
	pod        *corev1.Pod
}

// namespace is where the pod is, or would be.
func (s *subject) namespace() string { return s.pod.Namespace }

// workload is a kind that pods come from.
type workload struct {
	kind string
	// words are what a person calls it, in lower case.
	words []string
	// empty makes an object of the kind.
	empty func() client.Object
	// template takes a pod's template out of such an object.
	template func(client.Object) *corev1.PodTemplateSpec
}

// workloads are the kinds that are explained besides Pod.
var workloads = []workload{
	{"Deployment", []string{"deployment", "deployments", "deploy", "deployment.apps", "deployments.apps"},
		func() client.Object { return &appsv1.Deployment{} },
		func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.Deployment).Spec.Template }},
	{"StatefulSet", []string{"statefulset", "statefulsets", "sts", "statefulset.apps", "statefulsets.apps"},
		func() client.Object { return &appsv1.StatefulSet{} },
		func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.StatefulSet).Spec.Template }},
	{"DaemonSet", []string{"daemonset", "daemonsets", "ds", "daemonset.apps", "daemonsets.apps"},
		func() client.Object { return &appsv1.DaemonSet{} },
		func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.DaemonSet).Spec.Template }},
	{"ReplicaSet", []string{"replicaset", "replicasets", "rs", "replicaset.apps", "replicasets.apps"},
		func() client.Object { return &appsv1.ReplicaSet{} },
		func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.ReplicaSet).Spec.Template }},
	{"Job", []string{"job", "jobs", "job.batch", "jobs.batch"},
		func() client.Object { return &batchv1.Job{} },
		func(o client.Object) *corev1.PodTemplateSpec { return &o.(*batchv1.Job).Spec.Template }},
	{"CronJob", []string{"cronjob", "cronjobs", "cj", "cronjob.batch", "cronjobs.batch"},
		func() client.Object { return &batchv1.CronJob{} },
		func(o client.Object) *corev1.PodTemplateSpec {
			return &o.(*batchv1.CronJob).Spec.JobTemplate.Spec.Template
		}},
}

// podOf is the pod that a workload's template makes. Like one in the request of a
// controller it has no name yet.
func podOf(kind string, owner client.Object, template *corev1.PodTemplateSpec) subject {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: owner.GetName() + "-", Namespace: owner.GetNamespace(),
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(template.Annotations),
		},
		Spec: *template.Spec.DeepCopy(),
	}
	return subject{kind: kind, name: owner.GetName(), pod: pod}
}

// explainable is what explain reads of files besides policies, providers and namespaces.
type explainable struct {
	subjects    []subject
	limitRanges []corev1.LimitRange
	secrets     map[client.ObjectKey]*corev1.Secret
}

// reader takes one object of a kind.
type reader func(o *objects, where, name string, data []byte) error

// explainedKinds read what explain needs, by apiVersion and kind.
var explainedKinds = map[string]reader{
	"v1 Pod":              readPod,
	"v1 Secret":           readSecret,
	"v1 LimitRange":       readLimitRange,
	"apps/v1 Deployment":  readWorkload[appsv1.Deployment]("Deployment"),
	"apps/v1 StatefulSet": readWorkload[appsv1.StatefulSet]("StatefulSet"),
	"apps/v1 DaemonSet":   readWorkload[appsv1.DaemonSet]("DaemonSet"),
	"apps/v1 ReplicaSet":  readWorkload[appsv1.ReplicaSet]("ReplicaSet"),
	"batch/v1 Job":        readWorkload[batchv1.Job]("Job"),
	"batch/v1 CronJob":    readWorkload[batchv1.CronJob]("CronJob"),
}

// settle gives an object without a namespace the default one and refuses a second
// of its name.
func (o *objects) settle(where, kind string, object client.Object) error {
	if object.GetName() == "" {
		return fmt.Errorf("%s: metadata.name is missing", kind)
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(o.defaultNamespace)
	}
	key := fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
	if first, twice := o.seen[key]; twice {
		return fmt.Errorf("%s is there twice: first in %s", key, first)
	}
	o.seen[key] = where
	return nil
}

func readPod(o *objects, where, name string, data []byte) error {
	pod, err := decode[corev1.Pod]("Pod", name, data)
	if err != nil {
		return err
	}
	shown := pod.Name
	if shown == "" && pod.GenerateName != "" {
		pod.Name = pod.GenerateName // for settle, which wants a name
		defer func() { pod.Name = "" }()
		shown = pod.GenerateName + "…"
	}
	if err := o.settle(where, "Pod", pod); err != nil {
		return err
	}
	o.explained.subjects = append(o.explained.subjects, subject{kind: "Pod", name: shown, pod: pod})
	return nil
}

func readLimitRange(o *objects, where, name string, data []byte) error {
	limits, err := decode[corev1.LimitRange]("LimitRange", name, data)
	if err != nil {
		return err
	}
	if err := o.settle(where, "LimitRange", limits); err != nil {
		return err
	}
	o.explained.limitRanges = append(o.explained.limitRanges, *limits)
	return nil
}

// readSecret never repeats what is in a Secret: an error of the decoder may.
func readSecret(o *objects, where, name string, data []byte) error {
	secret := &corev1.Secret{}
	if json.Unmarshal(data, secret) != nil {
		return fmt.Errorf("reading Secret %s: it is no Secret: its data must be in base64, or plain in stringData", name)
	}
	if err := o.settle(where, "Secret", secret); err != nil {
		return err
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	o.explained.secrets[client.ObjectKeyFromObject(secret)] = secret
	return nil
}

// readWorkload reads a kind that pods come from.
func readWorkload[T any](kind string) reader {
	var of workload
	for _, w := range workloads {
		if w.kind == kind {
			of = w
		}
	}
	return func(o *objects, where, name string, data []byte) error {
		read, err := decode[T](kind, name, data)
		if err != nil {
			return err
		}
		object := any(read).(client.Object)
		if err := o.settle(where, kind, object); err != nil {
			return err
		}
		o.explained.subjects = append(o.explained.subjects, podOf(kind, object, of.template(object)))
		return nil
	}
}

// reference is a live object that is asked about.
type reference struct {
	// of is nil for a pod.
	of   *workload
	name string
}

// parseReference reads KIND/NAME, or NAME for a pod.
func parseReference(text string) (reference, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found {
		kind, name = "pod", text
	}
	if name == "" || strings.Contains(name, "/") {
		return reference{}, &usageError{problem: fmt.Sprintf("%q is no KIND/NAME", text)}
	}
	kind = strings.ToLower(kind)
	switch kind {
	case "pod", "pods", "po":
		return reference{name: name}, nil
	}
	names := []string{"pod"}
	for i := range workloads {
		for _, word := range workloads[i].words {
			if word == kind {
				return reference{of: &workloads[i], name: name}, nil
			}
		}
		names = append(names, workloads[i].words[0])
	}
	return reference{}, &usageError{problem: fmt.Sprintf("%q names no kind that pods come from; the kinds are %s", text, strings.Join(names, ", "))}
}
