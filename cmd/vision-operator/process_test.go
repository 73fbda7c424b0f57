// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// asProgram is a variable that makes the test's binary the operator.
const asProgram = "VISION_OPERATOR_RUNS_AS_A_PROGRAM"

// process is an operator that runs as a process of its own.
type process struct {
	health string
	log    *record
	ended  chan error
	signal func(os.Signal) error
}

// record is what a process writes.
type record struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes.String()
}

// startOperator runs the operator with its own roles, as the demo does, on free
// addresses; flags given beside them win. It ends with the test at the latest.
func startOperator(t *testing.T, flags ...string) *process {
	t.Helper()
	p := &process{health: freeAddress(t), log: &record{}, ended: make(chan error, 1)}
	args := append([]string{"--operator-namespace", "vision-system", "--kubeconfig", operatorKubeconfig(t), "--leader-elect",
		"--health-listen", p.health, "--webhook-listen", freeAddress(t), "--metrics-listen", off,
		"--runtime-image", "registry.example.com/runtime:test"}, flags...)
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), asProgram+"=1")
	command.Stderr = p.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p.signal = command.Process.Signal
	ended := p.ended
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("the operator ended with %v:\n%s", err, p.log)
		}
	})
	return p
}

// stop asks the process to end and waits until it has. An end that has been
// told of already is not told of again.
func (p *process) stop() error {
	if p.ended == nil {
		return nil
	}
	ended := p.ended
	p.ended = nil
	if err := p.signal(syscall.SIGTERM); err != nil && len(ended) == 0 {
		return err
	}
	return <-ended
}

func (p *process) waitReady(t *testing.T) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-p.ended:
			p.ended = nil
			t.Fatalf("the operator ended: %v\n%s", err, p.log)
		default:
		}
		resp, err := http.Get("http://" + p.health + "/readyz?verbose=1") //nolint:noctx // the loop bounds it
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		last = string(body)
		if err != nil || resp.StatusCode != http.StatusOK {
			continue
		}
		for _, check := range []string{"visionproviders", "visionpolicies", "webhook-certificate", "webhook-server"} {
			if !strings.Contains(last, "[+]"+check+" ok") {
				t.Errorf("readiness does not check %s: %s", check, last)
			}
		}
		return
	}
	t.Fatalf("the operator is not ready: %s\n%s", last, p.log)
}

// operatorKubeconfig writes a kubeconfig of the operator's service account.
func operatorKubeconfig(t *testing.T) string {
	t.Helper()
	return kubeconfigOf(t, "system:serviceaccount:vision-system:vision-operator", "system:serviceaccounts", "system:serviceaccounts:vision-system")
}

// kubeconfigOf writes a kubeconfig of a user.
func kubeconfigOf(t *testing.T, user string, groups ...string) string {
	t.Helper()
	config, err := cluster.User(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// install applies config/local with the webhooks at an address, and returns the
// administrator's client. It may be done again and again.
func install(t *testing.T, webhooks string) client.WithWatch {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // at the end of a test too
	manifests, err := cluster.Kubectl(ctx, "", "kustomize", "../../config/local")
	if err != nil {
		t.Fatal(err)
	}
	const written = "https://127.0.0.1:9443/"
	if n := strings.Count(manifests, written); n != 6 {
		t.Fatalf("config/local names %s %d times, want 6", written, n)
	}
	manifests = strings.ReplaceAll(manifests, written, "https://"+webhooks+"/")
	for _, args := range [][]string{
		{"apply", "--server-side", "--force-conflicts", "-f", "-"},
		{"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"},
	} {
		if _, err := cluster.Kubectl(ctx, manifests, args...); err != nil {
			t.Fatal(err)
		}
	}
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return admin
}

// waitFor waits until kubectl sees a condition of an object in a namespace.
func waitFor(t *testing.T, namespace, condition, object string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := cluster.Kubectl(ctx, "", "-n", namespace, "wait", "--for=condition="+condition, object, "--timeout=60s"); err != nil {
		t.Error(err)
	}
}

func sampleProvider(namespace string) *v1alpha1.VisionProvider {
	return &v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "local"},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://models.example.com/v1"}},
			Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
			Models:      []v1alpha1.Model{{Name: "vision", ImageInput: new(true)}},
		},
	}
}

func samplePolicy(namespace string) *v1alpha1.VisionPolicy {
	return &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agents"}}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
