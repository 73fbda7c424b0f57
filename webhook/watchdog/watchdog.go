// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchdog finds the pods that asked for the vision runtime and run
// without it: they were created while the webhook could not be reached, before
// their label or policy was there, or the runtime cannot stand beside them. Who
// made such a pod often does not know, since admission warnings go to whoever
// creates it, which is a controller.
//
// It is a runnable of the replica that leads. It sweeps over such pods, decides
// for each as the webhook would decide now, and tells what it found: an Event at
// the pod, counts for the status of policies, a metric, a line in the log. If
// asked to, it evicts pods that would get the runtime when made anew (evict.go).
//
// What is decided is in judge.go, book.go, pace.go and standin.go, which read and
// write nothing.
package watchdog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// DefaultInterval is the time between two sweeps.
const DefaultInterval = 30 * time.Second

// Decider decides on a pod as if it were created now.
type Decider interface {
	Decide(ctx context.Context, pod *corev1.Pod, namespace string) (inject.Plan, error)
}

// Options are what the watchdog needs beside a manager.
type Options struct {
	Decider Decider
	Scope   gather.Scope
	// Count is told how many pods of a namespace run without the runtime, by the
	// ID of the profile that would serve them: those of every namespace that has
	// some, or had some before, after each sweep. Nil: nobody is told.
	Count func(namespace string, byProfile map[string]int32)
	// Interval is the time between two sweeps; 0 stands for DefaultInterval.
	Interval time.Duration
	// Evict lets it evict pods; then the operator needs the rights of
	// config/rbac/eviction_role.yaml.
	Evict bool
	// grace is how long after its start nothing is evicted: a minute, so that one
	// leader after another does not evict more than one would.
	grace time.Duration
}

// Setup adds the watchdog to a manager whose client reads both kinds, and the
// metadata of namespaces, from a cache. What the operator may do must include:
// list of pods; create and patch of events.k8s.io events.
func Setup(mgr ctrl.Manager, options Options) error {
	if options.Decider == nil {
		return errors.New("setting up the watchdog: nobody decides")
	}
	if options.Interval == 0 {
		options.Interval = DefaultInterval
	}
	if options.Count == nil {
		options.Count = func(string, map[string]int32) {}
	}
	if options.grace == 0 {
		options.grace = time.Minute
	}
	w := &watchdog{
		Options: options,
		cached:  mgr.GetClient(),
		finder:  finder{live: mgr.GetAPIReader(), page: pageSize},
		events:  mgr.GetEventRecorder(v1alpha1.ManagedBy),
		log:     mgr.GetLogger().WithName("watchdog"),
	}
	if options.Evict {
		core, err := apiutil.RESTClientForGVK(corev1.SchemeGroupVersion.WithKind("Pod"), false, false, mgr.GetConfig(), serializer.NewCodecFactory(mgr.GetScheme()), mgr.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("setting up the watchdog: making a client: %w", err)
		}
		w.evictor = &evictor{live: mgr.GetAPIReader(), client: mgr.GetClient(), core: core, events: w.events, log: w.log}
	}
	if err := mgr.Add(w); err != nil {
		return fmt.Errorf("setting up the watchdog: %w", err)
	}
	return nil
}

// watchdog is the runnable.
type watchdog struct {
	Options
	cached  client.Reader
	finder  finder
	events  events.EventRecorder
	log     logr.Logger
	evictor *evictor // nil when nothing is to be evicted

	book book
	last counts
}

// NeedLeaderElection says that one replica alone sweeps.
func (w *watchdog) NeedLeaderElection() bool { return true }

// Start sweeps until ctx ends. A sweep that fails is told in the log, and the
// next one comes after the interval all the same.
func (w *watchdog) Start(ctx context.Context) error {
	evictAfter := time.Now().Add(w.grace)
	for {
		s, err := w.sweep(ctx)
		switch {
		case err == nil && w.evictor != nil && time.Now().After(evictAfter):
			w.evictor.evict(ctx, s.candidates)
		case err != nil && ctx.Err() == nil:
			w.log.Error(err, "Looking for pods without the vision runtime; what was found before holds")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.Interval):
		}
	}
}

// sweep is what one look at all pods gathers.
type sweep struct {
	counts     counts
	candidates []candidate
	// decided are findings that hold for all pods alike; see alike.
	decided map[string]verdict
	// policies are those that may serve a namespace's pods.
	policies map[string][]v1alpha1.VisionPolicy
	failed   map[string]bool // namespaces in which a decision failed
}

// verdict is a finding, if there is one.
type verdict struct {
	finding finding
	ok      bool
}

// sweep looks at all pods once and tells what it found.
func (w *watchdog) sweep(ctx context.Context) (*sweep, error) {
	namespaces, err := w.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	s := &sweep{counts: newCounts(), decided: map[string]verdict{}, policies: map[string][]v1alpha1.VisionPolicy{}, failed: map[string]bool{}}
	asked := w.selections(namespaces)
	w.finder.forget(asked)
	w.book.open()
	for _, selection := range asked {
		err := w.finder.each(ctx, selection, func(pod *corev1.Pod) {
			if ns := namespaces[pod.Namespace]; ns != nil && watched(pod) {
				w.look(ctx, s, ns, pod)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	w.book.close()
	w.tell(s.counts)
	return s, nil
}

// namespaces are the metadata of those whose pods reach the webhook, by name:
// neither kube-system nor the operator's own, and none that is being deleted,
// where nothing can be told.
func (w *watchdog) namespaces(ctx context.Context) (map[string]*metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := w.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	found := make(map[string]*metav1.PartialObjectMetadata, len(list.Items))
	for i := range list.Items {
		ns := &list.Items[i]
		if w.Scope.Holds(ns.Name) && ns.Name != w.Scope.OperatorNamespace && ns.Name != metav1.NamespaceSystem && ns.DeletionTimestamp == nil {
			found[ns.Name] = ns
		}
	}
	return found, nil
}

// selections are the lists to ask for: of the pods that ask themselves, of all
// namespaces at once where the operator looks at all; and in each namespace that
// asks, of those that leave it to the namespace.
func (w *watchdog) selections(namespaces map[string]*metav1.PartialObjectMetadata) []selection {
	var asked []selection
	if len(w.Scope.Namespaces) == 0 {
		asked = append(asked, selection{labels: asking})
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		if len(w.Scope.Namespaces) > 0 {
			asked = append(asked, selection{namespace: name, labels: asking})
		}
		if namespaces[name].Labels[v1alpha1.InjectLabel] == v1alpha1.InjectEnabled {
			asked = append(asked, selection{namespace: name, labels: undecided})
		}
	}
	return asked
}

// look takes in one pod.
func (w *watchdog) look(ctx context.Context, s *sweep, ns *metav1.PartialObjectMetadata, pod *corev1.Pod) {
	v, err := w.judge(ctx, s, pod)
	if err != nil {
		if !s.failed[pod.Namespace] {
			s.failed[pod.Namespace] = true
			w.log.Error(err, "Deciding on a pod without the vision runtime; what was found before holds", "namespace", pod.Namespace, "pod", pod.Name)
		}
		v.finding, v.ok = w.book.before(pod.UID)
	}
	if !v.ok {
		return
	}
	s.counts.add(pod.Namespace, w.profile(ctx, s, ns, pod), v.finding.reason)
	if w.book.note(pod.UID, v.finding) {
		w.events.Eventf(pod, nil, corev1.EventTypeWarning, string(v.finding.reason), "Injecting", "%s", note(v.finding.message))
		w.log.Info("A pod runs without the vision runtime", "namespace", pod.Namespace, "pod", pod.Name,
			"reason", string(v.finding.reason), "message", v.finding.message)
	}
	if w.evictor == nil || v.finding.reason != ReasonRuntimeMissing || err != nil {
		return
	}
	if c, ok := candidateOf(pod); ok {
		s.candidates = append(s.candidates, c)
	}
}

// judge decides on a pod, once for all that are alike.
func (w *watchdog) judge(ctx context.Context, s *sweep, pod *corev1.Pod) (verdict, error) {
	key := alike(pod)
	if v, ok := s.decided[key]; ok && key != "" {
		return v, nil
	}
	plan, err := w.Decider.Decide(ctx, pod, pod.Namespace)
	if err != nil {
		return verdict{}, err
	}
	f, ok := judge(plan)
	v := verdict{f, ok}
	if key != "" {
		s.decided[key] = v
	}
	return v, nil
}

// profile is the ID of the profile that would serve a pod; empty when none would,
// or when that cannot be read now.
func (w *watchdog) profile(ctx context.Context, s *sweep, ns *metav1.PartialObjectMetadata, pod *corev1.Pod) string {
	policies, known := s.policies[pod.Namespace]
	if !known {
		in, err := w.Scope.Gather(ctx, w.cached, pod.Namespace, ns.Labels)
		if err != nil {
			w.log.Error(err, "Counting pods without the vision runtime", "namespace", pod.Namespace)
		} else {
			policies = compile.Servers(in)
		}
		s.policies[pod.Namespace] = policies
	}
	id, _ := compile.Serving(policies, pod.Labels, pod.Annotations[v1alpha1.PolicyAnnotation])
	return id
}

// tell tells the counts: of the namespaces that had some before as well.
func (w *watchdog) tell(now counts) {
	expose(w.last.reasons, now.reasons)
	for namespace := range w.last.profiles {
		if now.profiles[namespace] == nil {
			w.Count(namespace, nil)
		}
	}
	for namespace, byProfile := range now.profiles {
		w.Count(namespace, byProfile)
	}
	w.last = now
}
