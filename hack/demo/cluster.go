// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/test/envtest"
)

// What the samples and config/local say, which the demo must agree with.
const (
	namespace         = "vision-demo"
	operatorNamespace = "vision-system"
	serviceAccount    = "vision-operator"
	secretName        = "ocr-key"
	secretKey         = "api-key"
	podName           = "agent"
	providerName      = "vision-ocr"
	providerAddress   = "127.0.0.1:8973"
	webhookAddress    = "127.0.0.1:9443"
	healthAddress     = "127.0.0.1:8081"
	runtimeURL        = "http://127.0.0.1:8970"
	mcpURL            = runtimeURL + "/mcp"
	runtimeHealthURL  = "http://127.0.0.1:8971"
)

// portsAreFree refuses to start where a port that the demo needs is taken.
func portsAreFree() error {
	for _, address := range []string{providerAddress, webhookAddress, healthAddress, "127.0.0.1:8970", "127.0.0.1:8971"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("checking that ports are free: the demo needs %s (is another demo running?): %w", address, err)
		}
		l.Close()
	}
	return nil
}

// build builds the three programs that run.
func (d *demo) build(ctx context.Context) error {
	if _, err := exec.LookPath("tesseract"); err != nil {
		return fmt.Errorf("the embedded provider needs tesseract: run `apt-get install -y tesseract-ocr`: %w", err)
	}
	for _, program := range []string{"vision-operator", "vision-runtime", providerName} {
		started := time.Now()
		build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", filepath.Join(d.bin, program), "./cmd/"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // static: it runs below a root of its own
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", program, err, out)
		}
		d.say("built %s in %s", program, time.Since(started).Round(100*time.Millisecond))
	}
	return nil
}

func (d *demo) startControlPlane(ctx context.Context) (err error) {
	if d.cluster, err = envtest.Start(envtest.Options{WithoutCRDs: true}); err != nil {
		return err
	}
	if d.client, err = client.New(d.cluster.Config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return err
	}
	version, err := d.cluster.Kubectl(ctx, "", "version")
	if err != nil {
		return err
	}
	d.say("%s", strings.ReplaceAll(strings.TrimSpace(version), "\n", ", "))
	return nil
}

func (d *demo) install(ctx context.Context) error {
	out, err := d.cluster.Kubectl(ctx, "", "apply", "--server-side", "-k", "config/local")
	if err != nil {
		return err
	}
	d.show("kubectl says", out)
	_, err = d.cluster.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=30s",
		"crd/visionproviders.visionoperator.dev", "crd/visionpolicies.visionoperator.dev")
	return err
}

// startOperator runs the operator as its service account: what its roles do
// not grant, it cannot do.
func (d *demo) startOperator(ctx context.Context) error {
	user := "system:serviceaccount:" + operatorNamespace + ":" + serviceAccount
	config, err := d.cluster.User(user, "system:serviceaccounts", "system:serviceaccounts:"+operatorNamespace, "system:authenticated")
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(d.dir, "operator.kubeconfig")
	if err := writeKubeconfig(config, user, kubeconfig); err != nil {
		return err
	}
	operator, err := d.processes.start("vision-operator", exec.Command(filepath.Join(d.bin, "vision-operator"), //nolint:noctx // stopped by processes.stop
		"--kubeconfig", kubeconfig,
		"--operator-namespace", operatorNamespace,
		"--webhook-listen", webhookAddress,
		"--health-listen", healthAddress,
		"--metrics-listen", "0",
	))
	if err != nil {
		return err
	}
	d.say("as %s", user)
	return operator.waitFor(ctx, 60*time.Second, "the operator to be ready", func(ctx context.Context) error {
		return httpOK(ctx, "http://"+healthAddress+"/readyz")
	})
}

// startProvider makes up a key, gives it to the provider as a file and to the
// cluster as the Secret that the sample refers to. The key is printed nowhere.
func (d *demo) startProvider(ctx context.Context) error {
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return err
	}
	key := base64.RawURLEncoding.EncodeToString(random)
	keyFile := filepath.Join(d.dir, "provider.key")
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
		return err
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: namespace}, Data: map[string][]byte{secretKey: []byte(key)}},
	}
	for _, o := range objects {
		if err := d.client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %s: %w", o.GetName(), err)
		}
	}
	provider, err := d.processes.start(providerName, exec.Command(filepath.Join(d.bin, providerName), //nolint:noctx // stopped by processes.stop
		"--listen", providerAddress, "--api-key-file", keyFile))
	if err != nil {
		return err
	}
	d.say("listening on %s; its key is in the Secret %s/%s", providerAddress, namespace, secretName)
	return provider.waitFor(ctx, 20*time.Second, "the provider to listen", func(ctx context.Context) error {
		return httpOK(ctx, "http://"+providerAddress+"/healthz")
	})
}

func (d *demo) applySamples(ctx context.Context) error {
	out, err := d.cluster.Kubectl(ctx, "", "apply", "-k", "config/samples")
	if err != nil {
		return err
	}
	d.show("kubectl says", out)
	out, err = d.cluster.Kubectl(ctx, "", "-n", namespace, "wait", "--for=condition=Ready", "--timeout=30s",
		"visionprovider/ocr", "visionpolicy/default")
	if err != nil {
		return err
	}
	d.show("kubectl wait --for=condition=Ready", out)
	d.pod = &corev1.Pod{}
	return d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: podName}, d.pod)
}

func writeKubeconfig(config *rest.Config, user, path string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"demo": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: {
			ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"demo": {Cluster: "demo", AuthInfo: user}},
		CurrentContext: "demo",
	}, path)
}

func httpOK(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(resp.Body, 512))
		return errors.Join(fmt.Errorf("%s answered %s: %s", url, resp.Status, body), err)
	}
	return nil
}
