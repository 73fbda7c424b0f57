// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers"
	"github.com/visionoperator/vision-operator/controllers/gather"
	"github.com/visionoperator/vision-operator/test/envtest"
	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

const pause = 100 * time.Millisecond

// world is a namespace of the API server, with the webhooks that all share and a
// watchdog and controllers of its own.
type world struct {
	*testing.T
	namespace string
	stop      func() error
}

// newWorld makes a namespace with labels ("key=value"); nothing runs in it yet.
func newWorld(t *testing.T, labels ...string) *world {
	t.Helper()
	suite.Need(t)
	namespace, err := envtest.CreateNamespace(t.Context(), admin, "team-", labels...)
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, namespace: namespace}
}

// serve lets a policy serve the world's pods.
func (w *world) serve() {
	w.Helper()
	w.create(serving()...)
}

// serving are a policy and what it needs to serve pods.
func serving() []client.Object {
	return []client.Object{
		&v1alpha1.VisionProvider{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://models.example.com/v1"}},
			Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
			Models:      []v1alpha1.Model{{Name: "vision", ImageInput: new(true)}},
		}},
		&v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "agents"}},
	}
}

// watch starts the controllers and the watchdog, until the test ends.
func (w *world) watch(options Options) {
	w.Helper()
	scope := gather.Scope{OperatorNamespace: operatorNamespace, Namespaces: []string{w.namespace}}
	cached := controllers.CacheOptions()
	cached.DefaultNamespaces = map[string]cache.Config{operatorNamespace: {}, w.namespace: {}}
	mgr, err := ctrl.NewManager(operator, ctrl.Options{
		Scheme: scheme, Cache: cached, Client: controllers.ClientOptions(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.Fatal(err)
	}
	missing := &controllers.Missing{}
	err = controllers.Setup(mgr, controllers.Options{OperatorNamespace: operatorNamespace, Namespaces: scope.Namespaces, Missing: missing,
		Intervals: controllers.Intervals{Pods: 2 * pause}})
	if err != nil {
		w.Fatal(err)
	}
	options.Scope, options.Count, options.Interval = scope, missing.Count, pause
	if options.Decider == nil {
		options.Decider = &webhook.Decider{Cached: mgr.GetClient(), Live: mgr.GetAPIReader(), Scope: scope, Settings: inject.Settings{Image: runtimeImage}}
	}
	if err := Setup(mgr, options); err != nil {
		w.Fatal(err)
	}
	stop := runManager(mgr)
	w.Cleanup(func() {
		if err := stop(); err != nil {
			w.Errorf("the watchdog ended with %v", err)
		}
	})
	w.stop = stop
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		o.SetNamespace(w.namespace)
		if err := admin.Create(w.Context(), o); err != nil {
			w.Fatal(err)
		}
	}
}

// agent is a pod of an image that asks for the runtime.
func agent(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.InjectLabel: v1alpha1.InjectEnabled}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "agent", Image: "agent:1", VolumeMounts: []corev1.VolumeMount{{Name: "work", MountPath: "/workspace"}}}},
			Volumes:    []corev1.Volume{{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
}

// of makes a pod one of a template: a ReplicaSet's, of a hash.
func of(owner types.UID, hash string, pod *corev1.Pod) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "agent", UID: owner, Controller: new(true), BlockOwnerDeletion: new(true)}}
	pod.Labels["pod-template-hash"] = hash
	return pod
}

func newOwner() types.UID { return uuid.NewUUID() }

// away makes the API server look for the webhooks where nobody listens, until
// the function that it returns is called.
func (w *world) away() (back func()) {
	w.Helper()
	w.pointAt("127.0.0.1:1", false)
	return func() { w.Helper(); w.pointAt(address, true) }
}

// pointAt changes where the API server looks for the pod webhooks, and waits
// until it does.
func (w *world) pointAt(host string, reached bool) {
	w.Helper()
	conf := &admissionregistrationv1.MutatingWebhookConfiguration{}
	eventually(w.T, "pointing the API server at "+host, func() error {
		if err := admin.Get(w.Context(), client.ObjectKey{Name: configuration}, conf); err != nil {
			return err
		}
		for i := range conf.Webhooks {
			conf.Webhooks[i].ClientConfig.URL = new(urlAt(host))
		}
		return admin.Update(w.Context(), conf)
	})
	eventually(w.T, "waiting for the API server to look at "+host, func() error { return reachable(w.Context(), reached) })
}

func hasRuntime(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == inject.ContainerName })
}

// told are the reasons and numbers of the Events at the world's pods, as "pod reason".
func (w *world) told() map[string]string {
	w.Helper()
	var list eventsv1.EventList
	if err := admin.List(w.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	found := map[string]string{}
	for _, e := range list.Items {
		if e.Regarding.Kind != "Pod" {
			continue
		}
		key := e.Regarding.Name + " " + e.Reason
		if _, twice := found[key]; twice || e.Series != nil {
			w.Errorf("the Event %s is told more than once", key)
		}
		found[key] = e.Note
	}
	return found
}

// tells waits until there are these Events, and no others.
func (w *world) tells(want ...string) map[string]string {
	w.Helper()
	var got map[string]string
	slices.Sort(want)
	eventually(w.T, "waiting for Events", func() error {
		got = w.told()
		if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, want) {
			return fmt.Errorf("got %q, want %q", keys, want)
		}
		return nil
	})
	return got
}

// counts waits until the policy's status counts so many pods without the runtime
// and the metric says the same.
func (w *world) counts(missing int32, byReason map[string]float64) {
	w.Helper()
	eventually(w.T, "waiting for the counts", func() error {
		var p v1alpha1.VisionPolicy
		if err := admin.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: "agents"}, &p); err != nil {
			return err
		}
		if got := p.Status.Pods; got == nil && missing > 0 || got != nil && got.Missing != missing {
			return fmt.Errorf("the status counts %+v, want %d missing", got, missing)
		}
		if got := exposed(w.T, w.namespace); !maps.Equal(got, byReason) {
			return fmt.Errorf("the metric says %v, want %v", got, byReason)
		}
		return nil
	})
}

// sweeps waits for some more sweeps.
func (w *world) sweeps() { time.Sleep(6 * pause) }

// lives reports whether a pod is there.
func (w *world) lives(name string) bool {
	w.Helper()
	err := admin.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &corev1.Pod{})
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

// gone waits until a pod is gone.
func (w *world) gone(name string) {
	w.Helper()
	eventually(w.T, "waiting for the end of pod "+name, func() error {
		if w.lives(name) {
			return errors.New("it is there")
		}
		return nil
	})
}

// status sets a pod's phase, as the kubelet does.
func (w *world) status(name string, phase corev1.PodPhase) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"status": corev1.PodStatus{Phase: phase,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	if err != nil {
		w.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := admin.Status().Patch(w.Context(), pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.Fatal(err)
	}
}
