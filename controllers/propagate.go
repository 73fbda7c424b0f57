// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Bounds of how many pods are stamped in a second, over all namespaces. A stamp is
// a write of a pod, which its node and every watcher of pods hear of. The most is
// what the operator's client sends in a second at all.
const (
	DefaultStampsPerSecond = 20
	MaxStampsPerSecond     = 200
)

// stampsAtOnce is how many pods one reconcile stamps: then other namespaces
// have their turn, and a newer router may have come.
const stampsAtOnce = 20

// propagator tells the nodes of a namespace's injected pods that there is a new
// router or a new key: a node mounts them anew when a pod changes, and else in
// about a minute. It counts the pods on the way. The name of a request is the
// namespace.
type propagator struct {
	client  client.Client // cached, and to write with
	pods    client.Reader // cached: metadata of injected pods
	secrets *secretVersions
	scope   gather.Scope
	image   string
	limiter flowcontrol.RateLimiter
	sent    *sentStamps
	tally   *tally
	router  *alarm // of the router controller
	refused time.Duration
}

// Reconcile stamps the pods of one namespace, and counts them.
func (r *propagator) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	doc, digest, err := r.published(ctx, req.Name)
	if err != nil || doc == nil {
		return reconcile.Result{}, err
	}
	stamp, refresh, err := r.stamp(ctx, doc, digest)
	if err != nil {
		return reconcile.Result{}, err
	}
	pods, err := listPods(ctx, r.pods, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.sent.keep(req.Name, pods)
	again, stamping := r.stampAll(ctx, pods, stamp)
	if err := r.count(ctx, doc, pods, stamp); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: earliest(refresh, again)}, stamping
}

// published is the router that we published in a namespace; nil when there is
// none, or when somebody edited it, which the router controller undoes.
func (r *propagator) published(ctx context.Context, namespace string) (*router.Document, string, error) {
	var cm corev1.ConfigMap
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: router.ConfigMapName}, &cm)
	switch {
	case apierrors.IsNotFound(err):
		r.tally.forget(namespace)
		r.secrets.forgetOthers(namespace, nil)
		r.sent.keep(namespace, nil)
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, router.ConfigMapName, err)
	case !writtenByUs(&cm):
		return nil, "", nil
	}
	data := []byte(cm.Data[router.Key])
	doc, err := router.Parse(data)
	if err != nil {
		return nil, "", fmt.Errorf("reading the router of namespace %s: %w", namespace, err)
	}
	return doc, router.Digest(data), nil
}

// stamp is what the pods of a document shall have, and when to look at the
// Secrets again; zero for never.
func (r *propagator) stamp(ctx context.Context, doc *router.Document, digest string) (string, time.Duration, error) {
	keys := usedSecrets(doc)
	r.secrets.forgetOthers(doc.Namespace, keys)
	versions := make([]secretVersion, len(keys))
	var refresh time.Duration
	for i, key := range keys {
		v, changed, err := r.secrets.fresh(ctx, key)
		if err != nil {
			return "", 0, err
		}
		if changed {
			r.router.ring(doc.Namespace, 0)
		}
		versions[i] = v
		refresh = earliest(refresh, max(soon, time.Until(v.at.Add(r.secrets.lasts(v)))))
	}
	return routerStamp(digest, keys, versions), refresh, nil
}

// stampAll stamps the first pods that lack the stamp, and says when to come for
// more. A refusal is counted and not soon repeated; a failure that may pass is
// an error.
func (r *propagator) stampAll(ctx context.Context, pods []metav1.PartialObjectMetadata, stamp string) (again time.Duration, err error) {
	done := 0
	for i := range pods {
		pod := &pods[i]
		wanted, wait := r.sent.wants(pod, stamp, r.refused, time.Now())
		again = earliest(again, wait)
		if !wanted {
			continue
		}
		if done++; done > stampsAtOnce {
			return soon, nil
		}
		if err := r.limiter.Wait(ctx); err != nil {
			return 0, fmt.Errorf("waiting to stamp pods: %w", err)
		}
		told, err := r.stampOne(ctx, pod, stamp)
		if err != nil {
			return 0, err
		}
		if !told {
			again = earliest(again, soon)
		}
	}
	return again, nil
}

// stampOne stamps one pod through its status, by which no container can be changed.
// told is false where the pod was about to change, or is another one by now.
func (r *propagator) stampOne(ctx context.Context, pod *metav1.PartialObjectMetadata, stamp string) (told bool, err error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{v1alpha1.RouterDigestAnnotation: stamp}}})
	if err != nil {
		return false, fmt.Errorf("stamping pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	before := r.sent.note(pod, stamp)
	err = r.client.Status().Patch(ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagedBy))
	switch {
	case err == nil:
		podStamps.WithLabelValues(stampWritten).Inc()
	case apierrors.IsNotFound(err): // it is gone
	case apierrors.IsConflict(err):
		r.sent.restore(pod, before)
		return false, nil
	case mayPass(err):
		r.sent.restore(pod, before)
		podStamps.WithLabelValues(stampFailed).Inc()
		return false, fmt.Errorf("stamping pod %s/%s: %w", pod.Namespace, pod.Name, err)
	default:
		r.sent.refuse(pod, stamp, time.Now())
		podStamps.WithLabelValues(stampRefused).Inc()
		log.FromContext(ctx).Info("The stamp of a pod was refused; its node mounts the router anew in about a minute", "pod", pod.Name, "reason", string(apierrors.ReasonForError(err)))
	}
	return true, nil
}

// mayPass reports whether a failure is the API server's, or of the way to it, and no
// answer. A webhook may refuse without a reason, which the status code tells.
func mayPass(err error) bool {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	return !answered || status.Status().Code >= http.StatusInternalServerError || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err)
}

// count counts the pods for the status of policies.
func (r *propagator) count(ctx context.Context, doc *router.Document, pods []metav1.PartialObjectMetadata, stamp string) error {
	namespace, counts := doc.Namespace, map[string]v1alpha1.PodCounts{}
	if len(pods) > 0 {
		ns, err := namespaceOf(ctx, r.client, namespace)
		if err != nil || ns == nil {
			return err
		}
		in, err := r.scope.Gather(ctx, r.client, namespace, ns.Labels)
		if err != nil {
			return err
		}
		now := today{policies: compile.Servers(in), image: r.image, keys: make(map[string][]string, len(doc.Profiles)),
			stamped: func(pod *metav1.PartialObjectMetadata) bool { return r.sent.has(pod, stamp) }}
		for i := range doc.Profiles {
			now.keys[doc.Profiles[i].ID] = compile.KeysOf(doc, &doc.Profiles[i])
		}
		counts = countPods(pods, now)
	}
	if r.tally.set(namespace, counts, time.Now()) {
		r.router.ring(namespace, r.tally.every)
		r.router.ring(r.scope.OperatorNamespace, r.tally.every) // baselines
	}
	return nil
}

func (r *propagator) setup(mgr ctrl.Manager) error {
	to := mapping{reader: r.client, scope: r.scope}
	isRouter := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == router.ConfigMapName })
	changed := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, isOld := e.ObjectOld.(*corev1.ConfigMap)
		new, isNew := e.ObjectNew.(*corev1.ConfigMap)
		return isOld && isNew && (old.Data[router.Key] != new.Data[router.Key] || writtenByUs(old) != writtenByUs(new))
	}}
	return ctrl.NewControllerManagedBy(mgr).
		Named("propagation").
		WithLogConstructor(namespaceLogger(mgr.GetLogger(), "propagation")).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(to.ofNamespaced), builder.WithPredicates(isRouter, changed)).
		Watches(&v1alpha1.VisionPolicy{}, handler.EnqueueRequestsFromMapFunc(to.ofPolicy), builder.WithPredicates(predicate.GenerationChangedPredicate{})). // whose pods are whose
		WatchesMetadata(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(to.ofNamespaced), builder.WithPredicates(podNews(r.sent.ours))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}
