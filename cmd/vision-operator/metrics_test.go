// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
)

func TestMetricsAreForWhoHoldsTheReadersRole(t *testing.T) {
	admin, monitoring := install(t, freeAddress(t)), fresh("monitoring")
	create(t, admin, namespace(monitoring),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring, Name: "prometheus"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: monitoring, Name: "other"}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: monitoring},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "vision-operator-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: monitoring, Name: "prometheus"}},
		})
	address := freeAddress(t)
	directory, roots := certificate(t)
	operator := startOperator(t, "--metrics-listen", address, "--metrics-cert-dir", directory)
	operator.waitReady(t)

	tests := map[string]struct {
		token string
		want  int
	}{
		"nobody": {"", http.StatusUnauthorized},
		// controller-runtime's filter takes the API server's no for a failure.
		"a token that is none": {"nonsense", http.StatusInternalServerError},
		"another account":      {token(t, monitoring, "other"), http.StatusForbidden},
		"the reader":           {token(t, monitoring, "prometheus"), http.StatusOK},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, body := scrape(t, "https://"+address+"/metrics", test.token, &tls.Config{RootCAs: roots})
			if code != test.want {
				t.Fatalf("got %d: %.200s, want %d", code, body, test.want)
			}
			if has := strings.Contains(body, "controller_runtime_"); has != (code == http.StatusOK) {
				t.Errorf("metrics in the answer: %t", has)
			}
		})
	}
}

func TestMetricsWithoutACertificateAreEncryptedAllTheSame(t *testing.T) {
	install(t, freeAddress(t))
	address := freeAddress(t)
	startOperator(t, "--metrics-listen", address).waitReady(t)
	if code, body := scrape(t, "https://"+address+"/metrics", "", &tls.Config{InsecureSkipVerify: true}); code != http.StatusUnauthorized { //nolint:gosec // self-signed
		t.Errorf("over HTTPS: got %d: %.200s, want 401", code, body)
	}
	if _, body := scrape(t, "http://"+address+"/metrics", "", nil); strings.Contains(body, "controller_runtime_") {
		t.Error("plain HTTP gives the metrics")
	}
}

func TestInsecureMetricsAreForEverybody(t *testing.T) {
	install(t, freeAddress(t))
	address := freeAddress(t)
	startOperator(t, "--metrics-listen", address, "--metrics-insecure").waitReady(t)
	if code, body := scrape(t, "http://"+address+"/metrics", "", nil); code != http.StatusOK || !strings.Contains(body, "controller_runtime_") {
		t.Errorf("got %d: %.200s", code, body)
	}
}

func TestACertificateDirectoryWithoutACertificateIsNamed(t *testing.T) {
	directory := t.TempDir()
	if _, _, err := metricsOptions(configuration{metricsListen: ":0", metricsCertDir: directory}); err == nil || !strings.Contains(err.Error(), directory) {
		t.Errorf("got %v, want an error that names %s", err, directory)
	}
}

// certificate writes tls.crt and tls.key for 127.0.0.1 and returns what trusts them.
func certificate(t *testing.T) (directory string, roots *x509.CertPool) {
	t.Helper()
	directory = t.TempDir()
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(directory, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cert) {
		t.Fatal("the certificate does not parse")
	}
	return directory, roots
}

// token is one of a service account.
func token(t *testing.T, namespace, account string) string {
	t.Helper()
	answer, err := kubernetes.NewForConfigOrDie(cluster.Config).CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// scrape asks for a page, with a token unless it is empty, once somebody listens:
// the metrics' server may start after the operator is ready.
func scrape(t *testing.T, url, token string, trust *tls.Config) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}, Timeout: 30 * time.Second}
	resp, err := caller.Do(req)
	for deadline := time.Now().Add(30 * time.Second); errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(deadline); resp, err = caller.Do(req) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}
