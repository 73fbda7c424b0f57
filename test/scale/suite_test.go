// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale measures the operator as a cluster sees it: the built command
// runs as a process of its own, with its own roles, on a real API server that
// holds up to 2,000 of its objects in 200 namespaces. The figures come from
// benchmarks (make bench BENCH=Fleet); what does not depend on the machine, how
// many writes an edit costs, is a test as well.
package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/test/envtest"
)

const (
	operatorNamespace = "vision-system"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":vision-operator"
)

// suite is what all benchmarks and tests share: one API server, one command.
var suite struct {
	cluster    *envtest.Cluster
	folder     string // temporary
	command    string // the built operator
	kubeconfig string // of the operator's service account
	webhooks   string // where it serves admission
	scheme     *runtime.Scheme
	admin      client.WithWatch // of system:masters
	operator   client.Client    // as the operator, which alone may touch routers
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "vision-scale-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		return 1
	}
	defer os.RemoveAll(folder)
	suite.folder = folder
	return envtest.Run(m, envtest.Options{AuditWritesOf: operatorUser}, func(c *envtest.Cluster) {
		suite.cluster = c
		if err := prepare(context.Background(), c); err != nil {
			fmt.Fprintln(os.Stderr, "preparing the suite:", errors.Join(err, c.Stop()))
			os.Exit(1)
		}
	})
}

// prepare installs all but the Deployment, and builds the command.
func prepare(ctx context.Context, cluster *envtest.Cluster) (err error) {
	suite.scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(suite.scheme); err != nil {
			return err
		}
	}
	unlimited := *cluster.Config
	unlimited.QPS = -1
	if suite.admin, err = client.NewWithWatch(&unlimited, client.Options{Scheme: suite.scheme}); err != nil {
		return err
	}
	if suite.webhooks, err = envtest.FreeAddress(); err != nil {
		return err
	}
	if err := install(ctx, cluster, suite.webhooks); err != nil {
		return err
	}
	if err := signIn(cluster); err != nil {
		return err
	}
	return build(ctx)
}

// install applies config/local with the webhooks at an address.
func install(ctx context.Context, cluster *envtest.Cluster, webhooks string) error {
	manifests, err := cluster.Kubectl(ctx, "", "kustomize", "../../config/local")
	if err != nil {
		return err
	}
	const written = "https://127.0.0.1:9443/"
	if !strings.Contains(manifests, written) {
		return fmt.Errorf("config/local does not name %s", written)
	}
	manifests = strings.ReplaceAll(manifests, written, "https://"+webhooks+"/")
	_, err = cluster.Kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

// signIn makes the operator's client and kubeconfig.
func signIn(cluster *envtest.Cluster) error {
	config, err := cluster.User(operatorUser, "system:serviceaccounts", "system:serviceaccounts:"+operatorNamespace)
	if err != nil {
		return err
	}
	if suite.operator, err = client.New(config, client.Options{Scheme: suite.scheme}); err != nil {
		return err
	}
	suite.kubeconfig = filepath.Join(suite.folder, "kubeconfig")
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, suite.kubeconfig)
}

// build makes the command as `make build` does.
func build(ctx context.Context) error {
	suite.command = filepath.Join(suite.folder, "vision-operator")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", suite.command, "../../cmd/vision-operator")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the operator: %w: %s", err, output)
	}
	return nil
}
