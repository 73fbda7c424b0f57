// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// unread is something that a decision depends on and that could not be read.
type unread struct {
	// Resource is "visionpolicies", "secrets" and so on, Namespace where; Name is
	// empty for a whole list.
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Why is what stood in the way, and Means what follows for the answer.
	Why   string `json:"why"`
	Means string `json:"means"`
}

// tolerant is a reader that notes what may not be read, and goes on as if it were
// not there: what is known is told, and what is not known is told as well.
type tolerant struct {
	from client.Reader
	// pods is the namespace of the pod in question.
	pods   string
	unread []unread
}

// Get reads one object. A Secret stays forbidden, which is not the same as missing.
func (t *tolerant) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := t.from.Get(ctx, key, into, options...)
	if !withheld(err) {
		return err
	}
	if ns, ok := into.(*metav1.PartialObjectMetadata); ok {
		t.note(unread{Resource: "namespaces", Name: key.Name, Why: reasonOf(err),
			Means: "its labels are not known: whether it opts its pods in, and which baselines and Pod Security hold there"})
		ns.Name, ns.Labels = key.Name, map[string]string{corev1.LabelMetadataName: key.Name}
		return nil
	}
	if _, ok := into.(*corev1.Secret); ok {
		t.note(unread{Resource: "secrets", Namespace: key.Namespace, Name: key.Name, Why: reasonOf(err), Means: "whether the key in it is good is not known"})
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, err)
	}
	return err
}

// List reads a list; one that is forbidden is empty.
func (t *tolerant) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := t.from.List(ctx, into, options...)
	if !withheld(err) {
		return err
	}
	asked := (&client.ListOptions{}).ApplyOptions(options)
	missed := unread{Namespace: asked.Namespace, Why: reasonOf(err)}
	switch into.(type) {
	case *v1alpha1.VisionPolicyList:
		missed.Resource, missed.Means = "visionpolicies", "the policies of the namespace are not known"
		if asked.Namespace != t.pods {
			missed.Means = "the baselines are not known: one may serve the pod, limit what its policy grants, or refuse it"
		}
	case *v1alpha1.VisionProviderList:
		missed.Resource, missed.Means = "visionproviders", "its providers count as missing: their models are not known"
	case *corev1.LimitRangeList:
		missed.Resource, missed.Means = "limitranges", "the runtime's resources are not fitted into them"
	default:
		return err
	}
	t.note(missed)
	return nil
}

// note keeps what is missed, once: an object may be asked for twice.
func (t *tolerant) note(u unread) {
	if !slices.Contains(t.unread, u) {
		t.unread = append(t.unread, u)
	}
}

// misses reports whether some of a resource was not read.
func (t *tolerant) misses(resource string) bool {
	return slices.ContainsFunc(t.unread, func(u unread) bool { return u.Resource == resource })
}

// withheld reports whether an object may be there and is not shown.
func withheld(err error) bool { return apierrors.IsForbidden(err) || errors.Is(err, errNotInFiles) }

// reasonOf is why the API server, or a file, does not give something.
func reasonOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" {
		return status.Status().Message
	}
	return err.Error()
}

// filed reads objects of files as if they were in a cluster.
type filed struct{ objects *objects }

// Get reads a Namespace's metadata or a Secret. A namespace that the files do not
// hold has its name for a label; a Secret may well be kept out of files.
func (f filed) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch o := into.(type) {
	case *metav1.PartialObjectMetadata:
		labels := map[string]string{}
		maps.Copy(labels, f.objects.namespaces[key.Name])
		labels[corev1.LabelMetadataName] = key.Name
		o.Name, o.Labels = key.Name, labels
		if _, there := f.objects.namespaces[key.Name]; !there {
			return errNotInFiles
		}
		return nil
	case *corev1.Secret:
		secret, there := f.objects.explained.secrets[key]
		if !there {
			return errNotInFiles
		}
		secret.DeepCopyInto(o)
		return nil
	}
	return fmt.Errorf("reading files: there is no %T in them", into)
}

// errNotInFiles is an object that the files do not hold and a cluster may.
var errNotInFiles = errors.New("the files do not hold it")

// List reads a namespace's policies, providers or LimitRanges.
func (f filed) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	namespace := (&client.ListOptions{}).ApplyOptions(options).Namespace
	switch l := into.(type) {
	case *v1alpha1.VisionPolicyList:
		l.Items = within(f.objects.policies, namespace, func(p *v1alpha1.VisionPolicy) string { return p.Namespace })
	case *v1alpha1.VisionProviderList:
		l.Items = within(f.objects.providers, namespace, func(p *v1alpha1.VisionProvider) string { return p.Namespace })
	case *corev1.LimitRangeList:
		l.Items = within(f.objects.explained.limitRanges, namespace, func(l *corev1.LimitRange) string { return l.Namespace })
	default:
		return fmt.Errorf("reading files: there is no %T in them", into)
	}
	return nil
}

// within are the items of a namespace.
func within[T any](items []T, namespace string, of func(*T) string) []T {
	var in []T
	for i := range items {
		if of(&items[i]) == namespace {
			in = append(in, items[i])
		}
	}
	return in
}
