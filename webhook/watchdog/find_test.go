// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// spy notes how lists are asked for.
type spy struct {
	client.Reader
	asked []string
	fails bool
}

func (s *spy) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if s.fails {
		return errors.New("no answer")
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	raw := o.AsListOptions()
	what := "metadata"
	if _, whole := list.(*corev1.PodList); whole {
		what = "pods"
	}
	switch {
	case raw.Continue != "":
		what = "more " + what
	case raw.ResourceVersion != "":
		what += " at " + raw.ResourceVersion
	}
	s.asked = append(s.asked, fmt.Sprintf("%s, at most %d", what, raw.Limit))
	return s.Reader.List(ctx, list, opts...)
}

func TestFewPodsAreReadFromMemoryAndManyArePagedThrough(t *testing.T) {
	w := newWorld(t)
	back := w.away()
	defer back()
	reader := &spy{Reader: admin}
	f := &finder{live: reader, page: 3}
	selected := selection{namespace: w.namespace, labels: asking}
	look := func(want []string, asked ...string) {
		t.Helper()
		reader.asked = nil
		f.forget([]selection{selected})
		var got []string
		if err := f.each(t.Context(), selected, func(pod *corev1.Pod) { got = append(got, pod.Name) }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the pods (-want +got):\n%s", diff)
		}
		if !slices.Equal(asked, reader.asked) {
			t.Errorf("asked for %q, want %q", reader.asked, asked)
		}
	}
	look(nil, "pods, at most 3") // nothing is known yet
	look(nil, "metadata at 0, at most 0")
	plain := agent("plain")
	plain.Labels = nil
	w.create(agent("a"), agent("b"), plain, agent("done"))
	w.status("done", corev1.PodSucceeded)
	eventually(t, "waiting for what is in memory", func() error {
		if n, err := f.look(t.Context(), selected); err != nil || n != 2 {
			return fmt.Errorf("got %d pods (%w)", n, err)
		}
		return nil
	})
	look([]string{"a", "b"}, "metadata at 0, at most 0", "pods at 0, at most 0")
	w.create(agent("c"), agent("d"), agent("e"), agent("f"), agent("g"))
	eventually(t, "waiting for what is in memory", func() error {
		if n, err := f.look(t.Context(), selected); err != nil || n != 7 {
			return fmt.Errorf("got %d pods (%w)", n, err)
		}
		return nil
	})
	all, paged := []string{"a", "b", "c", "d", "e", "f", "g"}, []string{"pods, at most 3", "more pods, at most 3", "more pods, at most 3"}
	look(all, append([]string{"metadata at 0, at most 0"}, paged...)...)
	look(all, paged...) // many are known: no look
	f.forget(nil)
	look(all, paged...)

	reader.fails = true
	if err := f.each(t.Context(), selected, func(*corev1.Pod) {}); err == nil || len(f.found) != 1 {
		t.Errorf("got %v, and %v is known", err, f.found)
	}
}
