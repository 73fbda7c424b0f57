// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/visionoperator/vision-operator/webhook"
	"github.com/visionoperator/vision-operator/webhook/certs"
	"github.com/visionoperator/vision-operator/webhook/inject"
)

// oncePath is before the paths of webhooks that end the connection after each
// answer: an API server keeps connections, and would look at a certificate once.
const oncePath = "/once"

// lifetimes go through a CA in half a minute. What is left of a certificate when
// it is renewed is enough for a machine that is busy with other tests.
var lifetimes = certs.Options{CALifetime: 45 * time.Second, LeafLifetime: 15 * time.Second, Overlap: 4 * time.Second, Interval: 500 * time.Millisecond}

// slowly is an API server that takes its time to change a webhook configuration:
// what is done too early is then seen to be.
type slowly struct {
	http.RoundTripper
	by *atomic.Int64 // nanoseconds
}

// RoundTrip waits before a patch of a configuration, and before nothing else.
func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "webhookconfigurations") {
		time.Sleep(time.Duration(s.by.Load()))
	}
	return s.RoundTripper.RoundTrip(r)
}

// replica is one process of the operator, as far as the webhooks go.
type replica struct {
	manager.Manager
	address      string
	certificates *certs.Certificates
	checks       []healthz.Checker
	// stop ends a replica as Kubernetes does: no new connections first.
	stop func()

	mu    sync.Mutex
	away  bool
	calls int
}

// startReplica starts what webhook.Setup sets up.
func startReplica(t *testing.T, operator *rest.Config) *replica {
	t.Helper()
	mgr, err := ctrl.NewManager(operator, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{Manager: mgr, address: freeAddress(t)}
	options := webhook.Options{OperatorNamespace: operatorNamespace, Listen: r.address, Runtime: inject.Settings{Image: "registry.example/vision-runtime:v1"}, Certificates: lifetimes}
	if err := webhook.Setup(r, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	r.stop = sync.OnceFunc(func() {
		r.mu.Lock()
		r.away = true
		r.mu.Unlock()
		time.Sleep(200 * time.Millisecond)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	eventually(t, "waiting for a replica to be ready", time.Minute, func(context.Context) error { return r.ready() })
	return r
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Add lets the server's webhooks be reached with an end to each connection, too.
func (r *replica) Add(runnable manager.Runnable) error {
	switch runnable := runnable.(type) {
	case *certs.Certificates:
		r.certificates = runnable
	case ctrlwebhook.Server:
		mux := runnable.WebhookMux()
		runnable.Register(oncePath+"/", http.StripPrefix(oncePath, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			r.mu.Lock()
			r.calls++
			r.mu.Unlock()
			w.Header().Set("Connection", "close")
			mux.ServeHTTP(w, request)
		})))
	}
	return r.Manager.Add(runnable)
}

// AddReadyzCheck keeps the check for ready.
func (r *replica) AddReadyzCheck(_ string, check healthz.Checker) error {
	r.checks = append(r.checks, check)
	return nil
}

func (r *replica) ready() error {
	for _, check := range r.checks {
		if err := check(nil); err != nil {
			return err
		}
	}
	return nil
}

// called is how many admission requests came.
func (r *replica) called() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// leaf is the certificate that is served.
func (r *replica) leaf() (*x509.Certificate, error) {
	served, err := r.certificates.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		return nil, err
	}
	return served.Leaf, nil
}

func (r *replica) takesConnections() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.away
}

// balancer is what a Service is: one address, and connections to each replica in turn.
type balancer struct {
	listener net.Listener
	copies   sync.WaitGroup
	mu       sync.Mutex
	replicas []*replica
	turn     int
}

func startBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{listener: l}
	b.copies.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			b.copies.Go(func() { b.forward(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		b.copies.Wait()
	})
	return b
}

func (b *balancer) add(r *replica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = append(b.replicas, r)
}

// next is the replica whose turn it is, nil when none takes connections.
func (b *balancer) next() *replica {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.replicas {
		b.turn++
		if r := b.replicas[b.turn%len(b.replicas)]; r.takesConnections() {
			return r
		}
	}
	return nil
}

func (b *balancer) forward(from net.Conn) {
	defer from.Close()
	r := b.next()
	if r == nil {
		return
	}
	to, err := net.Dial("tcp", r.address)
	if err != nil {
		return
	}
	defer to.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			// Who closes first is no concern of a balancer's.
			_, _ = io.Copy(pair[0], pair[1])
			_ = pair[0].(*net.TCPConn).CloseWrite()
			done <- struct{}{}
		}()
	}
	<-done
	<-done
}
