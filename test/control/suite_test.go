// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package control holds the whole control plane against a real API server: that
// routers and statuses come to what the objects say, whatever happened in which
// order; that nothing is written once they have; and that no fault of the API
// server, of etcd or of the operator itself shows in a router.
//
// What is expected never comes from the operator's own gathering: truth_test.go
// lists every object uncached and calls compile.Compile on them.
package control

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/test/envtest"
)

const (
	operatorNamespace = "vision-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":vision-operator"
)

// patience bounds every wait: for a machine that does much else.
const patience = 2 * time.Minute

// teams are the namespaces that tests share, one test at a time: without a
// namespace controller none of them would ever go.
var teams = []string{"team-a", "team-b", "team-c", "team-d", "team-e"}

// The suite's API server. The operator reaches it as its service account, with
// what config/rbac grants and no more.
var (
	cluster    *envtest.Cluster
	operator   *rest.Config
	admin      client.WithWatch
	scheme     = runtime.NewScheme()
	program    string // the operator, built
	kubeconfig string // its service account's
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	folder, err := os.MkdirTemp("", "vision-control-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "preparing the suite:", err)
		os.Exit(1)
	}
	options := envtest.Options{
		AuditWritesOf: operatorUser,
		// Watches of ConfigMaps come from etcd itself, which forgets nothing when the API server does.
		APIServerArgs: map[string][]string{"watch-cache-sizes": {"configmaps#0"}},
	}
	code := envtest.Run(m, options, func(c *envtest.Cluster) {
		cluster = c
		if err := prepare(context.Background(), folder); err != nil {
			fmt.Fprintln(os.Stderr, "preparing the suite:", err)
			os.Exit(1)
		}
	})
	if err := os.RemoveAll(folder); err != nil {
		fmt.Fprintln(os.Stderr, "cleaning up after the suite:", err)
	}
	os.Exit(code)
}

func prepare(ctx context.Context, folder string) (err error) {
	program, kubeconfig = filepath.Join(folder, "vision-operator"), filepath.Join(folder, "kubeconfig")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "../../cmd/vision-operator").CombinedOutput(); err != nil {
		return fmt.Errorf("building the operator: %w: %s", err, out)
	}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	if admin, err = client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for _, name := range append([]string{operatorNamespace}, teams...) {
		if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	if err := cluster.Install(ctx, operatorNamespace, "../../config/rbac"); err != nil {
		return err
	}
	operator, err = cluster.User(operatorUser, "system:serviceaccounts", "system:serviceaccounts:"+operatorNamespace)
	if err != nil {
		return err
	}
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: operator.Host, CertificateAuthorityData: operator.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: operator.CertData, ClientKeyData: operator.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, kubeconfig)
}

// eventually waits until check has no complaint.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// clean leaves of the shared namespaces what was there at first. An operator must
// be at work: only it may say when a router has gone.
func clean(t *testing.T) {
	t.Helper()
	ctx := context.Background() // also when the test has ended
	for _, namespace := range append([]string{operatorNamespace, metav1.NamespaceDefault}, teams...) {
		for _, o := range []client.Object{&v1alpha1.VisionPolicy{}, &v1alpha1.VisionProvider{}, &corev1.Secret{}, &corev1.Pod{}} {
			if err := admin.DeleteAllOf(ctx, o, client.InNamespace(namespace), client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "waiting for routers to go with the last policy", func() error {
		var left corev1.ConfigMapList
		if err := admin.List(ctx, &left, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%d ConfigMaps are left, the first is %s/%s", len(left.Items), left.Items[0].Namespace, left.Items[0].Name)
		}
		return nil
	})
}

// create makes objects as the administrator.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %T %s/%s: %v", o, o.GetNamespace(), o.GetName(), err)
		}
	}
}

// edit changes an object as the administrator, whatever others do to it meanwhile.
func edit(ctx context.Context, o client.Object, change func()) error {
	for {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change()
		if err := admin.Update(ctx, o); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// noted are the operator's writes that have been read, and where to read on.
var noted struct {
	writes []envtest.Write
	next   int64
}

// writes are the operator's so far, without those to its Lease.
func writes(t *testing.T) []envtest.Write {
	t.Helper()
	more, next, err := cluster.WritesSince(noted.next)
	if err != nil {
		t.Fatal(err)
	}
	noted.next = next
	noted.writes = append(noted.writes, slices.DeleteFunc(more, func(w envtest.Write) bool { return w.Resource == "leases" })...)
	return noted.writes
}

// vacate takes the Lease from an operator that was killed, which would else keep
// the next one waiting until it runs out.
func vacate(t *testing.T) {
	t.Helper()
	lease := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: v1alpha1.ManagedBy}}
	lease.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
	if err := client.IgnoreNotFound(admin.Delete(t.Context(), lease)); err != nil {
		t.Fatal(err)
	}
}
