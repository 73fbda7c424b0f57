// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var secretName = client.ObjectKey{Namespace: "vision-system", Name: DefaultSecret}

// installed is a cluster in which our webhook configurations are, without a caBundle.
func installed(more ...client.Object) *fake.ClientBuilder {
	url := "https://127.0.0.1:9443/pods"
	service := admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Name: DefaultService, Namespace: "vision-system"}}
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(more...).WithObjects(
		&admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: DefaultConfiguration},
			Webhooks:   []admissionv1.MutatingWebhook{{Name: "a.visionoperator.dev", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}}, {Name: "b.visionoperator.dev", ClientConfig: service}},
		},
		&admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: DefaultConfiguration},
			Webhooks:   []admissionv1.ValidatingWebhook{{Name: "c.visionoperator.dev", ClientConfig: service}},
		},
	)
}

func replica(t *testing.T, c client.WithWatch, now *clock) *Certificates {
	t.Helper()
	made, err := New(c, logr.Discard(), Options{Namespace: "vision-system", Hosts: []string{"webhook.example"}, Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func mustSync(t *testing.T, c *Certificates) {
	t.Helper()
	if err := c.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func bundles(t *testing.T, c client.Client) [][]byte {
	t.Helper()
	configurations, errs := readConfigurations(t.Context(), c, DefaultConfiguration, DefaultConfiguration)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var out [][]byte
	for _, conf := range configurations {
		for _, e := range conf.entries {
			out = append(out, e.config.CABundle)
		}
	}
	return out
}

// checkTrusted fails unless every caBundle makes an API server accept the
// replica's certificate for each host.
func checkTrusted(t *testing.T, c client.Client, r *Certificates, now *clock, hosts ...string) {
	t.Helper()
	leaf, err := r.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, bundle := range bundles(t, c) {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(bundle) {
			t.Fatalf("caBundle %d holds no certificate", i)
		}
		for _, host := range hosts {
			if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: now.Now()}); err != nil {
				t.Errorf("caBundle %d does not make %s trusted: %v", i, host, err)
			}
		}
	}
}

func TestOneSyncMakesTheCASignsALeafAndFillsEveryCABundle(t *testing.T) {
	now, c := newClock(), installed().Build()
	r := replica(t, c, now)
	if _, err := r.GetCertificate(nil); !errors.Is(err, errNoCertificate) {
		t.Errorf("before the first sync: got error %v, want errNoCertificate", err)
	}
	if r.Ready(nil) == nil {
		t.Error("ready before the first sync")
	}
	mustSync(t, r)
	if r.Ready(nil) == nil {
		t.Error("ready before the API server can have heard of the CA")
	}
	now.Add(propagation)
	if err := r.Ready(nil); err != nil {
		t.Errorf("after the first sync: %v", err)
	}
	second := replica(t, c, now)
	mustSync(t, second)
	if err := second.Ready(nil); err != nil {
		t.Errorf("a second replica, which had nothing to put in place, is not ready: %v", err)
	}
	checkTrusted(t, c, r, now, "vision-operator-webhook.vision-system.svc", "webhook.example", "127.0.0.1")
}

func TestASecondSyncWritesNothing(t *testing.T) {
	now := newClock()
	writes := 0
	c := installed().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	r := replica(t, c, now)
	mustSync(t, r)
	first, leaf := writes, r.leaf
	now.Add(time.Hour)
	mustSync(t, r)
	if first != 3 || writes != first {
		t.Errorf("got %d writes at first and %d more, want 3 and none", first, writes-first)
	}
	if r.leaf != leaf {
		t.Error("the leaf was signed anew")
	}
}

func TestReplicasThatStartTogetherAgreeOnOneCA(t *testing.T) {
	now, c := newClock(), installed().Build()
	var replicas []*Certificates
	var group sync.WaitGroup
	for range 5 {
		r := replica(t, c, now)
		replicas = append(replicas, r)
		group.Go(func() {
			if err := r.Sync(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, r := range replicas {
		checkTrusted(t, c, r, now, "127.0.0.1")
	}
}

func TestTheLeafIsRenewedAfterTwoThirdsOfItsLife(t *testing.T) {
	now, c := newClock(), installed().Build()
	r := replica(t, c, now)
	mustSync(t, r)
	leaf := r.leaf
	now.Add(DefaultLeafLifetime/3*2 + time.Hour)
	mustSync(t, r)
	if r.leaf == leaf {
		t.Error("the leaf was not renewed")
	}
	checkTrusted(t, c, r, now, "127.0.0.1")
}

func TestAnExpiredLeafIsNotReady(t *testing.T) {
	now, c := newClock(), installed().Build()
	r := replica(t, c, now)
	mustSync(t, r)
	now.Add(DefaultLeafLifetime + time.Hour)
	if r.Ready(nil) == nil {
		t.Error("ready with an expired certificate")
	}
}

// Two replicas live through a year: at no step may any caBundle distrust any replica.
func TestWhileTheCARotatesEveryReplicaStaysTrusted(t *testing.T) {
	now, c := newClock(), installed().Build()
	a, b := replica(t, c, now), replica(t, c, now)
	mustSync(t, a)
	mustSync(t, b)
	first := a.leaf.Leaf.AuthorityKeyId
	rotatedAt := -1
	for day := range 400 {
		now.Add(24 * time.Hour)
		mustSync(t, a)
		checkTrusted(t, c, a, now, "127.0.0.1")
		checkTrusted(t, c, b, now, "127.0.0.1") // has not looked yet
		mustSync(t, b)
		checkTrusted(t, c, b, now, "127.0.0.1")
		if rotated := bytes.Count(bundles(t, c)[0], []byte("BEGIN")) == 2; rotated && rotatedAt < 0 {
			rotatedAt = day
			if !bytes.Equal(a.leaf.Leaf.AuthorityKeyId, first) {
				t.Error("the replica served a leaf of the new CA at once; API servers may not have heard of it")
			}
			now.Add(DefaultOverlap + time.Second)
			mustSync(t, a)
			if bytes.Equal(a.leaf.Leaf.AuthorityKeyId, first) {
				t.Error("after the overlap the replica still serves a leaf of the old CA")
			}
			checkTrusted(t, c, a, now, "127.0.0.1")
		}
	}
	if rotatedAt < 200 || rotatedAt > 300 {
		t.Errorf("the CA was renewed on day %d, want after about two thirds of a year", rotatedAt)
	}
	if n := bytes.Count(bundles(t, c)[0], []byte("BEGIN")); n != 1 {
		t.Errorf("after the old CA expired the caBundle holds %d certificates, want 1", n)
	}
}

func TestAWipedCABundleIsPutBack(t *testing.T) {
	now, c := newClock(), installed().Build()
	r := replica(t, c, now)
	mustSync(t, r)
	conf := &admissionv1.MutatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: DefaultConfiguration}, conf); err != nil {
		t.Fatal(err)
	}
	conf.Webhooks[1].ClientConfig.CABundle = nil
	if err := c.Update(t.Context(), conf); err != nil {
		t.Fatal(err)
	}
	mustSync(t, r)
	checkTrusted(t, c, r, now, "127.0.0.1")
}

func TestAMissingConfigurationIsNotReadyButTheOtherIsServed(t *testing.T) {
	now, c := newClock(), installed().Build()
	if err := c.Delete(t.Context(), &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: DefaultConfiguration}}); err != nil {
		t.Fatal(err)
	}
	r := replica(t, c, now)
	if err := r.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), "ValidatingWebhookConfiguration") {
		t.Errorf("got error %v, want one that names the missing configuration", err)
	}
	if r.Ready(nil) == nil {
		t.Error("ready without a configuration")
	}
	conf := &admissionv1.MutatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: DefaultConfiguration}, conf); err != nil {
		t.Fatal(err)
	}
	if len(conf.Webhooks[0].ClientConfig.CABundle) == 0 {
		t.Error("the other configuration got no caBundle")
	}
}

func TestAReplicaThatWasReadyStaysSoWhenAConfigurationIsDeleted(t *testing.T) {
	now, c := newClock(), installed().Build()
	r := replica(t, c, now)
	mustSync(t, r)
	if err := c.Delete(t.Context(), &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: DefaultConfiguration}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Sync(t.Context()); err == nil {
		t.Error("the missing configuration is not told")
	}
	now.Add(propagation)
	if err := r.Ready(nil); err != nil {
		t.Errorf("the other configuration's pods would find nobody: %v", err)
	}
}

func TestSecretsThatAreAlreadyThere(t *testing.T) {
	ours := map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
	for name, c := range map[string]struct {
		labels  map[string]string
		data    map[string][]byte
		foreign bool
	}{
		"an empty one is adopted":                  {},
		"another key in it does not matter":        {data: map[string][]byte{"note": []byte("x")}},
		"a broken one of ours is replaced":         {labels: ours, data: map[string][]byte{certificateKey: []byte("x")}},
		"a broken one that is not ours is refused": {data: map[string][]byte{certificateKey: []byte("x")}, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretName.Namespace, Name: secretName.Name, Labels: c.labels}, Data: c.data}
			now, cl := newClock(), installed(secret).Build()
			r := replica(t, cl, now)
			err := r.Sync(t.Context())
			if _, foreign := errors.AsType[*ForeignSecretError](err); foreign != c.foreign {
				t.Fatalf("got error %v, want a foreign secret: %v", err, c.foreign)
			}
			if !c.foreign {
				checkTrusted(t, cl, r, now, "127.0.0.1")
			}
		})
	}
}

func TestThePrivateKeyReachesNoLogAndNoError(t *testing.T) {
	now := newClock()
	var log bytes.Buffer
	logger := funcr.New(func(prefix, args string) { log.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 10})
	c := installed().Build()
	r, err := New(c, logger, Options{Namespace: "vision-system", Now: now.Now})
	if err != nil {
		t.Fatal(err)
	}
	mustSync(t, r)
	a, err := ensureAuthority(t.Context(), c, secretName, &succession{now: now.Now(), lifetime: DefaultCALifetime})
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("printing", "ca", a)
	fmt.Fprintf(&log, "%v %+v %#v %s %x", a, a, a, a, a)
	_, key, err := a.encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseAuthority(key, key); err == nil || strings.Contains(err.Error(), string(key[40:80])) {
		t.Errorf("got error %v, want one without the key", err)
	}
	raw, err := a.key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	number := new(big.Int).SetBytes(raw)
	for _, secret := range []string{string(key[40:80]), number.String(), number.Text(16)} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the private key was printed:\n%s", log.String())
		}
	}
	if log.Len() == 0 {
		t.Error("nothing was logged, so this test sees nothing")
	}
}

func FuzzParseAuthority(f *testing.F) {
	a, err := newAuthority(time.Now(), DefaultCALifetime, nil)
	if err != nil {
		f.Fatal(err)
	}
	certificates, key, err := a.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(certificates, key)
	f.Add(key, certificates)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte{})
	f.Fuzz(func(t *testing.T, certificates, key []byte) {
		a, err := parseAuthority(certificates, key)
		if err != nil {
			return
		}
		c, k, err := a.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseAuthority(c, k); err != nil {
			t.Errorf("what was read does not survive writing: %v", err)
		}
	})
}
