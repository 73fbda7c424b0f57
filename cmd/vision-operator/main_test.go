// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/envtest"
)

var cluster *envtest.Cluster

func TestMain(m *testing.M) {
	os.Exit(envtest.Run(m, envtest.Options{WithoutCRDs: true}, func(c *envtest.Cluster) { cluster = c }))
}

func TestACommandLineThatCannotWorkSaysWhy(t *testing.T) {
	good := []string{"--operator-namespace", "vision-system"}
	tests := map[string]struct {
		args []string
		says string
	}{
		"an unknown flag":              {append(good, "--nope"), "--nope"},
		"an argument":                  {append(good, "run"), `"run"`},
		"no namespace outside a pod":   {nil, "--operator-namespace must be given"},
		"a namespace that is none":     {[]string{"--operator-namespace", "Vision"}, `"Vision"`},
		"an address without a port":    {append(good, "--health-listen", "localhost"), "--health-listen"},
		"a pull policy that is none":   {append(good, "--runtime-image-pull-policy", "Sometimes"), "Sometimes"},
		"a quantity that is none":      {append(good, "--runtime-requests", "cpu=some"), `"some" is no quantity of cpu`},
		"a resource of another kind":   {append(good, "--runtime-limits", "pods=3"), `"pods"`},
		"requests above limits":        {append(good, "--runtime-requests", "memory=2Gi", "--runtime-limits", "memory=1Gi"), "--runtime-limits allows 1Gi"},
		"a log level that is none":     {append(good, "--log-level", "loud"), "loud"},
		"a log format that is neither": {append(good, "--log-format", "xml"), "xml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), test.args, io.Discard, io.Discard)
			if exitCode(err) != exitUsage || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("got exit code %d and %v, want %d and %q", exitCode(err), err, exitUsage, test.says)
			}
		})
	}
}

func TestHelpAndVersionGoToStdout(t *testing.T) {
	for arg, want := range map[string]string{"--help": "--webhook-cert-dir", "--version": "vision-operator "} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{arg}, &out, io.Discard); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: got %q (%v), want %q in it", arg, out.String(), err, want)
		}
	}
}

func TestResourcesOfTheRuntimeComeFromTheFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want *corev1.ResourceRequirements
	}{
		"none leave it to injection": {nil, nil},
		"requests and limits": {[]string{"--runtime-requests", "cpu=20m,memory=64Mi", "--runtime-limits", "memory=512Mi"}, &corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := parse(append([]string{"--operator-namespace", "vision-system"}, test.args...), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if got := webhookOptions(cfg).Runtime.Resources; !equality.Semantic.DeepEqual(got, test.want) {
				t.Errorf("Resources = %v, want %v", got, test.want)
			}
		})
	}
}

func TestTheDefaultRuntimeImageIsAlwaysAnImage(t *testing.T) {
	old := version
	defer func() { version = old }()
	for linked, want := range map[string]string{"v0.1.0": "v0.1.0", "v0.1.0+dirty": "dev", "(devel)": "dev"} {
		version = linked
		if got := defaultRuntimeImage(); got != "ghcr.io/visionoperator/vision-runtime:"+want {
			t.Errorf("for version %s got %s", linked, got)
		}
	}
}

func TestAnAPIServerThatIsTooOldIsRefused(t *testing.T) {
	for reported, ok := range map[string]bool{"v1.29.15": false, "v1.30.0": true, "v1.30.4-gke.1348000": true, "v1.37.2": true, "v2.0.0": true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := json.NewEncoder(w).Encode(map[string]string{"gitVersion": reported}); err != nil {
				t.Error(err)
			}
		}))
		err := checkServer(&rest.Config{Host: server.URL})
		server.Close()
		if _, old := errors.AsType[*oldServerError](err); old == ok || ok && err != nil {
			t.Errorf("%s: got %v", reported, err)
		}
		if !ok && !strings.Contains(err.Error(), "1.30 or later") {
			t.Errorf("%s: the error does not name the minimum: %v", reported, err)
		}
	}
}

func TestAnAPIServerThatCannotBeFoundIsNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	err := run(t.Context(), []string{"--operator-namespace", "vision-system", "--kubeconfig", missing}, io.Discard, io.Discard)
	if exitCode(err) != exitFailed || !strings.Contains(err.Error(), missing) {
		t.Errorf("got %v", err)
	}
}

// The whole operator, installed from config/local and run as its service
// account: it gets ready, serves both webhooks, compiles and reports.
func TestTheOperatorRunsFromConfigLocal(t *testing.T) {
	ctx := t.Context()
	webhooks := freeAddress(t)
	manifests, err := cluster.Kubectl(ctx, "", "kustomize", "../../config/local")
	if err != nil {
		t.Fatal(err)
	}
	const written = "https://127.0.0.1:9443/"
	if n := strings.Count(manifests, written); n != 6 {
		t.Fatalf("config/local names %s %d times, want 6", written, n)
	}
	manifests = strings.ReplaceAll(manifests, written, "https://"+webhooks+"/")
	if _, err := cluster.Kubectl(ctx, manifests, "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(ctx, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
		t.Fatal(err)
	}
	operator := startOperator(t, webhooks)
	operator.waitReady(t)

	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	objects := []client.Object{team, sampleProvider(), &v1alpha1.VisionPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "agents"}}}
	for _, o := range objects {
		if err := operator.admin.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []string{"visionprovider/local", "visionpolicy/agents"} {
		if _, err := cluster.Kubectl(ctx, "", "-n", "team", "wait", "--for=condition=Ready", what, "--timeout=30s"); err != nil {
			t.Error(err)
		}
	}
	var cm corev1.ConfigMap
	if err := operator.admin.Get(ctx, client.ObjectKey{Namespace: "team", Name: router.ConfigMapName}, &cm); err != nil {
		t.Error(err)
	} else if doc, err := router.Parse([]byte(cm.Data[router.Key])); err != nil || len(doc.Profiles) != 1 {
		t.Errorf("got the document %+v (%v)", doc, err)
	}

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "agent", Labels: map[string]string{v1alpha1.InjectLabel: v1alpha1.InjectEnabled}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "agent"}}}}
	if err := operator.admin.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.InitContainers) != 1 || pod.Spec.InitContainers[0].Image != "registry.example.com/runtime:test" || pod.Labels[v1alpha1.InjectedLabel] != "true" {
		t.Errorf("the pod was not injected: %+v", pod)
	}
	bad := sampleProvider()
	bad.Name, bad.Spec.Endpoints[0].CABundle = "bad", "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n"
	if err := operator.admin.Create(ctx, bad); err == nil || !strings.Contains(err.Error(), "spec.endpoints[0].caBundle") {
		t.Errorf("a bad CA bundle: got %v, want a refusal that names the field", err)
	}

	if err := operator.stop(); err != nil {
		t.Errorf("the operator ended with %v", err)
	}
	if strings.Contains(operator.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log has errors:\n%s", operator.log.String())
	}
	for line := range strings.Lines(operator.log.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("the log has a line that is not JSON: %s", line)
		}
	}
}

type runningOperator struct {
	admin  client.Client
	health string
	log    *bytes.Buffer
	stop   func() error
	ended  chan error
}

// startOperator runs the operator with its own roles, as the demo does.
func startOperator(t *testing.T, webhooks string) *runningOperator {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	config, err := cluster.User("system:serviceaccount:vision-system:vision-operator", "system:serviceaccounts", "system:serviceaccounts:vision-system")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	o := &runningOperator{admin: admin, health: freeAddress(t), log: &bytes.Buffer{}, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		o.ended <- run(ctx, []string{"--operator-namespace", "vision-system", "--kubeconfig", kubeconfig, "--leader-elect",
			"--webhook-listen", webhooks, "--health-listen", o.health, "--metrics-listen", off,
			"--runtime-image", "registry.example.com/runtime:test"}, io.Discard, o.log)
	}()
	done := false
	o.stop = func() error {
		if done {
			return nil
		}
		done = true
		cancel()
		return <-o.ended
	}
	t.Cleanup(func() {
		if err := o.stop(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o *runningOperator) waitReady(t *testing.T) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-o.ended:
			o.ended <- err
			t.Fatalf("the operator ended: %v", err)
		default:
		}
		resp, err := http.Get("http://" + o.health + "/readyz?verbose=1") //nolint:noctx // the loop bounds it
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			return
		}
		last = string(body)
	}
	t.Fatalf("the operator is not ready: %s", last)
}

func sampleProvider() *v1alpha1.VisionProvider {
	return &v1alpha1.VisionProvider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "local"},
		Spec: v1alpha1.VisionProviderSpec{
			Transport:   v1alpha1.TransportOpenAIChatCompletions,
			Endpoints:   []v1alpha1.Endpoint{{Name: "main", URL: "https://models.example.com/v1"}},
			Credentials: v1alpha1.Credentials{None: &v1alpha1.NoCredentials{}},
			Models:      []v1alpha1.Model{{Name: "vision", ImageInput: new(true)}},
		},
	}
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
