// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/envtest"
)

const operatorNamespace = "vision-system"

// The suite's API server. Controllers reach it as the operator's service
// account, with what config/rbac grants and no more.
var (
	cluster  *envtest.Cluster
	operator *rest.Config
	admin    client.Client
	scheme   = runtime.NewScheme()
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	os.Exit(envtest.Run(m, envtest.Options{}, func(c *envtest.Cluster) {
		cluster = c
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "preparing the suite:", err)
			os.Exit(1)
		}
	}))
}

func prepare() (err error) {
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	if admin, err = client.New(cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	ctx := context.Background()
	if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}); err != nil {
		return err
	}
	if _, err := cluster.Kubectl(ctx, "", "apply", "-n", operatorNamespace, "-k", "../config/rbac"); err != nil {
		return err
	}
	operator, err = cluster.User("system:serviceaccount:"+operatorNamespace+":vision-operator",
		"system:serviceaccounts", "system:serviceaccounts:"+operatorNamespace)
	return err
}

// world is one namespace of the API server with the controllers at work in it.
type world struct {
	*testing.T
	namespace string
	others    []string      // further namespaces that the controllers look at
	writes    *atomic.Int64 // requests of the controllers that write
	stamps    *atomic.Int64 // those among them that patch a pod's status
	prober    prober        // nil: the real network
	missing   *Missing      // who looks for pods without the runtime tells it here
	stop      func()
}

// quick are intervals for tests that wait for what cannot be watched.
var quick = Intervals{CredentialRetry: 50 * time.Millisecond, CredentialRefresh: 50 * time.Millisecond, Leftover: 50 * time.Millisecond, Pods: 200 * time.Millisecond}

func newWorld(t *testing.T, intervals Intervals) *world {
	t.Helper()
	return newProbedWorld(t, intervals, nil)
}

// newProbedWorld is a world in which endpoints are probed by another than the real network.
func newProbedWorld(t *testing.T, intervals Intervals, prober prober) *world {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}
	if err := admin.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, namespace: ns.Name, prober: prober}
	w.start(intervals)
	return w
}

// newWideWorld is a world of several namespaces, each with the labels.
func newWideWorld(t *testing.T, intervals Intervals, others int, labels map[string]string) *world {
	t.Helper()
	w := &world{T: t}
	for i := range others + 1 {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-", Labels: labels}}
		if err := admin.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			w.namespace = ns.Name
		} else {
			w.others = append(w.others, ns.Name)
		}
	}
	w.start(intervals)
	return w
}

// in is the same world, seen from another of its namespaces.
func (w *world) in(namespace string) *world {
	other := *w
	other.namespace = namespace
	return &other
}

// label sets a label of the world's namespace, or takes it away when empty.
func (w *world) label(key, value string) {
	w.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: orNil(value)}}})
	if err != nil {
		w.Fatal(err)
	}
	if err := admin.Patch(w.Context(), ns, client.RawPatch(types.MergePatchType, patch)); err != nil {
		w.Fatal(err)
	}
}

func orNil(value string) any {
	if value == "" {
		return nil
	}
	return value
}

// start starts the controllers; they end with the test at the latest.
func (w *world) start(intervals Intervals) {
	w.Helper()
	w.writes, w.stamps, w.missing = &atomic.Int64{}, &atomic.Int64{}, &Missing{}
	counted := rest.CopyConfig(operator)
	counter := &writeCounter{writes: w.writes, stamps: w.stamps}
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { counter.next = next; return counter })
	cacheOptions, namespaces := CacheOptions(), append([]string{w.namespace}, w.others...)
	cacheOptions.DefaultNamespaces = map[string]cache.Config{operatorNamespace: {}}
	for _, namespace := range namespaces {
		cacheOptions.DefaultNamespaces[namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme:     scheme,
		Cache:      cacheOptions,
		Client:     ClientOptions(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		w.Fatal(err)
	}
	if err := Setup(mgr, Options{OperatorNamespace: operatorNamespace, Namespaces: namespaces, Intervals: intervals, Missing: w.missing, prober: w.prober}); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the controllers ended with %v", err)
		}
	}
	w.Cleanup(w.stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		w.Fatal("the cache does not fill")
	}
}

type writeCounter struct {
	next   http.RoundTripper
	writes *atomic.Int64
	stamps *atomic.Int64
}

func (c *writeCounter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		c.writes.Add(1)
		if strings.Contains(req.URL.Path, "/pods/") {
			c.stamps.Add(1)
		}
	}
	return c.next.RoundTrip(req)
}

// create makes an object in the world's namespace.
func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		o.SetNamespace(w.namespace)
		if err := admin.Create(w.Context(), o); err != nil {
			w.Fatal(err)
		}
	}
}

// get reads an object again.
func (w *world) get(o client.Object, name string) error {
	return admin.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o)
}

// eventually waits until check has no complaint.
func (w *world) eventually(what string, check func() error) {
	w.Helper()
	deadline := time.Now().Add(30 * time.Second)
	var err error
	for time.Now().Before(deadline) {
		if err = check(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	w.Fatalf("%s: %v", what, err)
}

// policyCondition waits until a policy has a condition of a status and a reason, and returns the policy.
func (w *world) policyCondition(name, kind string, status metav1.ConditionStatus, reason string) *v1alpha1.VisionPolicy {
	w.Helper()
	p := &v1alpha1.VisionPolicy{}
	w.eventually("waiting for VisionPolicy "+name, func() error {
		if err := w.get(p, name); err != nil {
			return err
		}
		return holds(p.Status.Conditions, p.Generation, kind, status, reason)
	})
	return p
}

// providerCondition is the same for a provider.
func (w *world) providerCondition(name, kind string, status metav1.ConditionStatus, reason string) *v1alpha1.VisionProvider {
	w.Helper()
	p := &v1alpha1.VisionProvider{}
	w.eventually("waiting for VisionProvider "+name, func() error {
		if err := w.get(p, name); err != nil {
			return err
		}
		return holds(p.Status.Conditions, p.Generation, kind, status, reason)
	})
	return p
}

func holds(conditions []metav1.Condition, generation int64, kind string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != generation {
		return fmt.Errorf("want %s=%s %s of generation %d, got %+v", kind, status, reason, generation, conditions)
	}
	return nil
}

// document reads the published router.
func (w *world) document() (*router.Document, *corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	if err := w.get(&cm, router.ConfigMapName); err != nil {
		return nil, nil, err
	}
	doc, err := router.Parse([]byte(cm.Data[router.Key]))
	return doc, &cm, err
}

func goodProvider(name string) *v1alpha1.VisionProvider {
	return &v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://models.example.com/v1"}},
			Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
			Models:      []v1alpha1.Model{{Name: "vision", ImageInput: new(true)}},
		},
	}
}

func keyedProvider(name, secret string) *v1alpha1.VisionProvider {
	p := goodProvider(name)
	p.Spec.Credentials = v1alpha1.Credentials{SecretRef: &v1alpha1.SecretKeyReference{Name: secret, Key: "api-key"}}
	return p
}

func goodPolicy(name string) *v1alpha1.VisionPolicy {
	return &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
