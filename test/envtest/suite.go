// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Scheme returns a scheme of Kubernetes' own kinds and ours.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// CreateNamespace creates a namespace with labels ("key=value") and, in place of the
// controller that does so in a real cluster, its service account. A name that ends
// with "-" is the beginning of one that the API server makes up. It returns the name.
func CreateNamespace(ctx context.Context, c client.Client, name string, labels ...string) (string, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if strings.HasSuffix(name, "-") {
		ns.Name, ns.GenerateName = "", name
	}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		ns.Labels[key] = value
	}
	if err := c.Create(ctx, ns); err != nil {
		return "", err
	}
	return ns.Name, c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "default"}})
}

// Lazy is a cluster, and what runs beside it, that the first test which needs it
// starts: a package's fuzzing and benchmarks may need none.
type Lazy struct {
	Options Options
	// Prepare starts what runs beside the cluster, and returns what ends that.
	Prepare func(*Cluster) (stop func() error, err error)

	once    sync.Once
	failed  error
	cluster *Cluster
	stop    func() error
}

// Need starts the cluster, unless it runs, and what Prepare starts.
func (l *Lazy) Need(t testing.TB) {
	t.Helper()
	l.once.Do(func() {
		if l.cluster, l.failed = Start(l.Options); l.failed == nil {
			l.stop, l.failed = l.Prepare(l.cluster)
		}
	})
	if l.failed != nil {
		t.Fatal(l.failed)
	}
}

// Run runs m's tests, stops what they started and returns the exit code for
// [os.Exit]. What runs beside the cluster ends first: the API server would wait
// for its watches.
func (l *Lazy) Run(m *testing.M) int {
	code := m.Run()
	if l.stop != nil {
		code = failOn(l.stop(), code)
	}
	if l.cluster != nil {
		code = failOn(l.cluster.Stop(), code)
	}
	return code
}

// failOn is the exit code of a suite that has one, and that an error ended.
func failOn(err error, code int) int {
	if err == nil {
		return code
	}
	fmt.Fprintf(os.Stderr, "FAIL: %v\n", err)
	return max(code, 1)
}
