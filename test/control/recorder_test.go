// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// recorder sees every version of every vision-router ConfigMap, through faults
// of the API server and of etcd: it goes on from the version that it saw last.
type recorder struct {
	mu       sync.Mutex
	versions map[string]int    // how many of each namespace
	last     map[string]string // the resourceVersion of the last one of each namespace; of its end when it was deleted
	problems []string
	// always are the profiles that every version of a namespace must have.
	always map[string][]string
}

// record starts a recorder, which ends with the test. The policies named in
// always exist and are valid all the while: no version may lack their profiles,
// and the router may not go.
func record(t *testing.T, always map[string][]string) *recorder {
	t.Helper()
	r := &recorder{versions: map[string]int{}, last: map[string]string{}, always: always}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var now corev1.ConfigMapList
	if err := admin.List(ctx, &now, named(router.ConfigMapName)); err != nil {
		t.Fatal(err)
	}
	for i := range now.Items {
		r.see(watch.Added, &now.Items[i])
	}
	go func() {
		defer close(done)
		r.watch(ctx, now.ResourceVersion)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func named(name string) client.MatchingFields { return client.MatchingFields{"metadata.name": name} }

// watch sees versions from one on until ctx ends.
func (r *recorder) watch(ctx context.Context, version string) {
	for ctx.Err() == nil {
		w, err := admin.Watch(ctx, &corev1.ConfigMapList{}, named(router.ConfigMapName), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
		if err != nil {
			time.Sleep(20 * time.Millisecond) // the API server is away
			continue
		}
		for event := range w.ResultChan() {
			c, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				if err := apierrors.FromObject(event.Object); apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
					r.complain("versions were missed: %v", err)
					return
				}
				break
			}
			version = c.ResourceVersion
			r.see(event.Type, c)
		}
		w.Stop()
	}
}

// see takes in one version.
func (r *recorder) see(kind watch.EventType, c *corev1.ConfigMap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[c.Namespace] = c.ResourceVersion
	if c.Labels["owner"] == "somebody-else" {
		return
	}
	if kind == watch.Deleted {
		if len(r.always[c.Namespace]) > 0 {
			r.problems = append(r.problems, fmt.Sprintf("the router of %s went at version %s", c.Namespace, c.ResourceVersion))
		}
		return
	}
	r.versions[c.Namespace]++
	doc, err := router.Parse([]byte(c.Data[router.Key]))
	if err != nil {
		r.problems = append(r.problems, fmt.Sprintf("the router of %s at version %s: %v", c.Namespace, c.ResourceVersion, err))
		return
	}
	has := make(map[string]bool, len(doc.Profiles))
	for i := range doc.Profiles {
		has[doc.Profiles[i].ID] = true
	}
	for _, id := range r.always[c.Namespace] {
		if !has[id] {
			r.problems = append(r.problems, fmt.Sprintf("the router of %s at version %s has no profile %s", c.Namespace, c.ResourceVersion, id))
		}
	}
}

func (r *recorder) complain(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// ever reports whether a router of the namespace has been seen.
func (r *recorder) ever(namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions[namespace] > 0
}

// count is how many versions have been seen.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, of := range r.versions {
		n += of
	}
	return n
}

// more waits until there have been fifteen versions more.
func (r *recorder) more(t *testing.T, what string) {
	t.Helper()
	before := r.count()
	eventually(t, "waiting for routers "+what, func() error {
		if n := r.count() - before; n < 15 {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
}

// judge waits until the last version of every router has been seen, and fails
// the test for what was wrong with any.
func (r *recorder) judge(t *testing.T) {
	t.Helper()
	eventually(t, "waiting for the recorder to follow", func() error {
		var now corev1.ConfigMapList
		if err := admin.List(t.Context(), &now, named(router.ConfigMapName)); err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range now.Items {
			if c := &now.Items[i]; r.last[c.Namespace] != c.ResourceVersion && len(r.problems) == 0 {
				return fmt.Errorf("saw version %s of %s, which is at %s", r.last[c.Namespace], c.Namespace, c.ResourceVersion)
			}
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, problem := range r.problems {
		t.Error(problem)
	}
	t.Logf("versions of routers seen: %v", r.versions)
}

// forget asks no more for what must always be there.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.always)
}
