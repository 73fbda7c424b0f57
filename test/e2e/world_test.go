// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e holds the end-to-end tests: the operator installed by its Helm chart
// into a real cluster with a real kubelet, real images, and a real Tesseract as
// the model. `make e2e` starts such a cluster; KUBECONFIG names another one. The
// tests change the whole cluster and run one after the other, in the order of
// the steps in e2e_test.go.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

const root = "../.."

// Where things are in the cluster.
const (
	operatorNamespace = "vision-system"
	release           = "vision-operator"
	team              = "team-a"
	agentPort         = 8080
)

// world is the cluster and how it is reached.
type world struct {
	client.Client
	rest *rest.Config
	http *http.Client
	// version is the tag of the images that were built and loaded.
	version string
	// node runs a command on the node, and is empty where the cluster is not ours.
	node string
	// figures are measured and told at the end.
	figures []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kubeconfig, version := os.Getenv("KUBECONFIG"), os.Getenv("E2E_VERSION")
	if kubeconfig == "" || version == "" {
		t.Fatal("KUBECONFIG names the cluster and E2E_VERSION the tag of the images; `make e2e` sets both")
	}
	log.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	calls, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{Client: c, rest: config, http: calls, version: version, node: os.Getenv("E2E_NODE")}
}

// figure keeps a measured figure for the end of the run.
func (w *world) figure(t *testing.T, format string, args ...any) {
	t.Helper()
	said := fmt.Sprintf(format, args...)
	w.figures = append(w.figures, said)
	t.Log(said)
}

// command runs a program in the repository's root and returns what it printed.
func (w *world) command(ctx context.Context, stdin, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = root
	cmd.Stdin = strings.NewReader(stdin)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), problems.String())
	}
	return out.String(), nil
}

func (w *world) helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := w.command(t.Context(), "", "hack/tools/run", append([]string{"helm"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (w *world) kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := w.command(t.Context(), stdin, "kubectl", args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies manifests of testdata, server-side.
func (w *world) apply(t *testing.T, files ...string) {
	t.Helper()
	args := []string{"apply", "--server-side", "--force-conflicts"}
	for _, file := range files {
		args = append(args, "-f", filepath.Join("test/e2e/testdata", file))
	}
	w.kubectl(t, "", args...)
}

// eventually tries until a check passes, every 200 ms.
func eventually(t *testing.T, patience time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %v", patience, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// rolledOut waits until a Deployment runs as it is specified.
func (w *world) rolledOut(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, 3*time.Minute, func() error {
		d := &appsv1.Deployment{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
			return err
		}
		if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != *d.Spec.Replicas ||
			d.Status.AvailableReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("deployment %s: %+v", name, d.Status)
		}
		return nil
	})
}

// pods are a namespace's that carry a label, without those that are going.
func (w *world) pods(t *testing.T, namespace, label, value string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := w.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{label: value}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// agent is the one pod of the Deployment agent, running.
func (w *world) agent(t *testing.T, namespace string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, 2*time.Minute, func() error {
		pods := w.pods(t, namespace, "app", "agent")
		if len(pods) != 1 {
			return fmt.Errorf("%d pods of the agent in %s", len(pods), namespace)
		}
		pod = &pods[0]
		for _, c := range pod.Status.ContainerStatuses {
			if !c.Ready {
				return fmt.Errorf("container %s of %s is not ready: %+v", c.Name, pod.Name, c.State)
			}
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s is %s: %+v", pod.Name, pod.Status.Phase, pod.Status.InitContainerStatuses)
		}
		return nil
	})
	return pod
}

// call asks the agent in a pod, through the API server, which works in every cluster.
func (w *world) call(ctx context.Context, pod *corev1.Pod, path string, query map[string]string) (status int, answer string, err error) {
	values := url.Values{}
	for name, value := range query {
		values.Set(name, value)
	}
	address := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s:%d/proxy%s?%s", w.rest.Host, pod.Namespace, pod.Name, agentPort, path, values.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// said is what came of a call, for a message.
func said(status int, answer string, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("HTTP %d %s", status, answer)
}
