// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serviceHost and urlHost are how the API server verifies the entries of installed.
const serviceHost, urlHost = DefaultService + ".vision-system.svc", "127.0.0.1"

// issue writes a certificate for hosts into a directory, as a new CA's; the CA is in ca.crt.
func issue(t *testing.T, folder string, lifetime time.Duration, hosts ...string) *authority {
	t.Helper()
	a, err := newAuthority(time.Now(), DefaultCALifetime, nil)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.sign(time.Now(), lifetime, hosts)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{keyFile: encodePEM("PRIVATE KEY", key), certificateFile: encodePEM("CERTIFICATE", leaf.Certificate[0]), authorityFile: a.bundle()} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// inject fills every caBundle, as cert-manager's cainjector does.
func inject(t *testing.T, c client.Client, bundle []byte) {
	t.Helper()
	configurations, errs := readConfigurations(t.Context(), c, DefaultConfiguration, DefaultConfiguration)
	for _, conf := range configurations {
		_, err := ensureBundle(t.Context(), c, conf, func([]byte) []byte { return bundle }, "injector")
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestACertificateOfOnesOwnIsServedAndReloaded(t *testing.T) {
	folder, cluster := t.TempDir(), installed().Build()
	if _, err := New(cluster, logr.Discard(), Options{Directory: folder}); err == nil {
		t.Fatal("a directory without a certificate was accepted")
	}
	issue(t, folder, time.Hour, serviceHost, urlHost)
	r, err := New(cluster, logr.Discard(), Options{Directory: folder})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	waitForHosts(t, r, urlHost, serviceHost)
	issue(t, folder, time.Hour, "two.example")
	waitForHosts(t, r, "two.example")
}

func waitForHosts(t *testing.T, r *Certificates, hosts ...string) {
	t.Helper()
	var got []string
	for range 300 {
		served, err := r.GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		if got = hostsOf(served.Leaf); slices.Equal(got, hosts) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("got a certificate for %v, want %v", got, hosts)
}

func TestWithACertificateOfOnesOwnReadinessWaitsForSomebodyElseToFillTheCABundles(t *testing.T) {
	folder, cluster := t.TempDir(), installed().Build()
	ca := issue(t, folder, time.Hour, serviceHost, urlHost)
	r, err := New(cluster, logr.Discard(), Options{Directory: folder})
	if err != nil {
		t.Fatal(err)
	}
	sync := func() error { return errors.Join(r.Sync(t.Context()), r.Ready(nil)) }
	if err := sync(); !errors.Is(err, errNoBundle) {
		t.Errorf("with empty caBundles: got %v", err)
	}
	other, err := newAuthority(time.Now(), DefaultCALifetime, nil)
	if err != nil {
		t.Fatal(err)
	}
	inject(t, cluster, other.bundle())
	if untrusted, ok := errors.AsType[*UntrustedError](sync()); !ok || untrusted.Host != urlHost {
		t.Errorf("with another CA's caBundles: got %v", untrusted)
	}
	inject(t, cluster, ca.bundle())
	if err := sync(); err != nil {
		t.Errorf("with the CA in every caBundle: %v", err)
	}
	inject(t, cluster, other.bundle())
	if err := r.Sync(t.Context()); err == nil {
		t.Error("a caBundle that was spoilt later is not told")
	}
	if err := r.Ready(nil); err != nil {
		t.Errorf("and takes the replica away from the other webhooks: %v", err)
	}
	for i, bundle := range bundles(t, cluster) {
		if string(bundle) != string(other.bundle()) {
			t.Errorf("caBundle %d was written to", i)
		}
	}
}

func TestACertificateOfOnesOwnThatTheAPIServerWouldRefuseIsNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		lifetime time.Duration
		hosts    []string
		public   bool
		ready    bool
	}{
		"good, of a CA":                           {lifetime: time.Hour, hosts: []string{serviceHost, urlHost}, ready: true},
		"good, of a public CA":                    {lifetime: time.Hour, hosts: []string{serviceHost, urlHost}, public: true, ready: true},
		"for another name":                        {lifetime: time.Hour, hosts: []string{"elsewhere.example"}},
		"for another name, of a public CA":        {lifetime: time.Hour, hosts: []string{"elsewhere.example"}, public: true},
		"expired":                                 {lifetime: -time.Second, hosts: []string{serviceHost, urlHost}},
		"expired, of a CA that is not to be seen": {lifetime: -time.Second, hosts: []string{serviceHost, urlHost}, public: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder, cluster := t.TempDir(), installed().Build()
			ca := issue(t, folder, c.lifetime, c.hosts...)
			if c.public {
				if err := os.WriteFile(filepath.Join(folder, authorityFile), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				inject(t, cluster, ca.bundle())
			}
			r, err := New(cluster, logr.Discard(), Options{Directory: folder})
			if err != nil {
				t.Fatal(err)
			}
			err = errors.Join(r.Sync(t.Context()), r.Ready(nil))
			if (err == nil) != c.ready {
				t.Errorf("got %v, want ready: %v", err, c.ready)
			}
		})
	}
}
