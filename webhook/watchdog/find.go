// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// pageSize is how many pods are read at once.
const pageSize = 250

// running selects pods that have not ended.
var running = fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")

// selection is a list of pods that lack the runtime.
type selection struct {
	namespace string // empty for all
	labels    labels.Selector
}

// The two selections are those of the pod webhooks' entries, without the pods
// that were injected.
var (
	// asking are pods that ask for the runtime themselves.
	asking = selectorOf(v1alpha1.InjectLabel + "=" + v1alpha1.InjectEnabled)
	// undecided are pods that leave it to their namespace's label.
	undecided = selectorOf("!" + v1alpha1.InjectLabel)
)

func selectorOf(asked string) labels.Selector {
	s, err := labels.Parse(asked + ",!" + v1alpha1.InjectedLabel)
	utilruntime.Must(err) // both parts are constants
	return s
}

// finder lists pods, from the API server itself: a cache would hold every pod of
// every namespace that opted in.
type finder struct {
	live client.Reader
	// page is how many pods are held in memory at once: pageSize, but in tests.
	page int
	// found is how many a selection gave the last time. Only those that gave some,
	// or were not asked yet, are paged through.
	found map[string]int
}

// each visits the pods of a selection.
//
// A list with a limit is read from etcd by API servers before 1.34, all pods of
// the namespaces and not only the selected ones: a look every half a minute at a
// cluster of 10,000 pods would be a heavy load. With resourceVersion=0 the API
// server answers from memory, and ignores the limit. So the first look asks it
// that way for metadata, of which there is mostly none; few are then read
// likewise, and only many are paged through. A look that is some seconds old does
// no harm here.
func (f *finder) each(ctx context.Context, s selection, visit func(*corev1.Pod)) error {
	key := s.namespace + "/" + s.labels.String()
	if before, asked := f.found[key]; asked && before <= f.page {
		n, err := f.look(ctx, s)
		if err != nil {
			return err
		}
		if f.found[key] = n; n == 0 {
			return nil
		}
	}
	n, err := f.read(ctx, s, f.options(key), visit)
	if err != nil {
		return err
	}
	f.found[key] = n
	return nil
}

// options are how the pods of a selection are read, after a look or without.
func (f *finder) options(key string) metav1.ListOptions {
	if n, looked := f.found[key]; looked && n <= f.page {
		return metav1.ListOptions{ResourceVersion: "0"}
	}
	return metav1.ListOptions{Limit: int64(f.page)}
}

// look counts the pods of a selection.
func (f *finder) look(ctx context.Context, s selection) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := f.live.List(ctx, list, s.options(metav1.ListOptions{ResourceVersion: "0"})); err != nil {
		return 0, s.failed(err)
	}
	return len(list.Items), nil
}

// read visits the pods of a selection, page by page.
func (f *finder) read(ctx context.Context, s selection, options metav1.ListOptions, visit func(*corev1.Pod)) (n int, err error) {
	for {
		list := &corev1.PodList{}
		if err := f.live.List(ctx, list, s.options(options)); err != nil {
			return 0, s.failed(err)
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		n += len(list.Items)
		if options.Continue = list.Continue; options.Continue == "" {
			return n, nil
		}
	}
}

func (s selection) options(raw metav1.ListOptions) *client.ListOptions {
	return &client.ListOptions{Namespace: s.namespace, LabelSelector: s.labels, FieldSelector: running, Limit: raw.Limit, Continue: raw.Continue, Raw: &raw}
}

func (s selection) failed(err error) error {
	where := "all namespaces"
	if s.namespace != "" {
		where = "namespace " + s.namespace
	}
	return fmt.Errorf("listing pods without the vision runtime in %s: %w", where, err)
}

// forget drops what is known of the selections that are no longer asked for.
func (f *finder) forget(asked []selection) {
	keep := make(map[string]int, len(asked))
	for _, s := range asked {
		key := s.namespace + "/" + s.labels.String()
		if n, ok := f.found[key]; ok {
			keep[key] = n
		}
	}
	f.found = keep
}
