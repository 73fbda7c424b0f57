// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/reach"
)

// quickProbes probe twenty times a second.
var quickProbes = Intervals{Probe: 50 * time.Millisecond}

// script is a prober that finds what it is told.
type script struct {
	mu     sync.Mutex
	reason string
	probes atomic.Int64
}

func (s *script) say(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = reason
}

func (s *script) Probe(_ context.Context, _ string, targets []reach.Target) ([]reach.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes.Add(1)
	var results []reach.Result
	for _, t := range targets {
		results = append(results, reach.Result{Endpoint: t.Endpoint, Reason: s.reason})
	}
	return results, nil
}

// silent is a prober that never comes to an end.
type silent struct{}

func (silent) Probe(ctx context.Context, _ string, _ []reach.Target) ([]reach.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// internet leads every name to a public address of its own, behind which is a listener.
type internet map[string]string // absolute name to listener

func (n internet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	names := n.names()
	if i := slices.Index(names, host); i >= 0 {
		return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 215, byte(i)})}, nil
	}
	return nil, &net.DNSError{Name: host, IsNotFound: true}
}

func (n internet) LookupCNAME(_ context.Context, host string) (string, error) { return host, nil }

func (n internet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, network, n[n.names()[ap.Addr().As4()[3]]])
}

func (n internet) names() []string {
	var names []string
	for name := range n {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func probedProvider(name string) *v1alpha1.VisionProvider {
	p := goodProvider(name)
	p.Spec.Probe = &v1alpha1.EndpointProbe{}
	return p
}

// edit changes a provider's spec.
func (w *world) edit(name string, change func(*v1alpha1.VisionProviderSpec)) {
	w.Helper()
	var p v1alpha1.VisionProvider
	w.eventually("editing VisionProvider "+name, func() error {
		if err := w.get(&p, name); err != nil {
			return err
		}
		change(&p.Spec)
		return admin.Update(w.Context(), &p)
	})
}

// told lists the events on a provider as "type reason action".
func (w *world) told(name string) []string {
	w.Helper()
	var list eventsv1.EventList
	if err := admin.List(w.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	var told []string
	for _, e := range list.Items {
		if e.Regarding.Kind == "VisionProvider" && e.Regarding.Name == name {
			told = append(told, fmt.Sprintf("%s %s %s", e.Type, e.Reason, e.Action))
		}
	}
	slices.Sort(told)
	return told
}

func (w *world) eventuallyTold(name string, want ...string) {
	w.Helper()
	w.eventually("waiting for events", func() error {
		if got := w.told(name); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
}

func TestReachableComesWithSpecProbeAndGoesWithIt(t *testing.T) {
	var asked, others atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Authorization")) > 0 || len(r.Header.Values("X-Team")) > 0 {
			t.Error("the endpoint's key or headers are sent")
		}
		asked.Add(1)
		http.Redirect(w, r, "http://other.example/", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	world := internet{"models.example.com.": server.Listener.Addr().String(), "other.example.": other.Listener.Addr().String()}
	w := newProbedWorld(t, quickProbes, reach.New(reach.Options{Resolver: world, Dial: world.dial}))
	p := keyedProvider("cloud", "key")
	p.Spec.Endpoints = []v1alpha1.Endpoint{{Name: "main", URL: "http://models.example.com/v1", AllowPlainHTTP: new(true),
		Headers: []v1alpha1.HTTPHeader{{Name: "X-Team", Value: "search"}}}}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}}, p)
	without := w.providerCondition("cloud", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if c := meta.FindStatusCondition(without.Status.Conditions, v1alpha1.ConditionReachable); c != nil || asked.Load() != 0 {
		t.Errorf("without spec.probe there is %+v after %d probes", c, asked.Load())
	}

	w.edit("cloud", func(spec *v1alpha1.VisionProviderSpec) { spec.Probe = &v1alpha1.EndpointProbe{} })
	w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	w.providerCondition("cloud", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	w.edit("cloud", func(spec *v1alpha1.VisionProviderSpec) { spec.Endpoints[0].URL = "http://gone.example.com/v1" })
	w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionFalse, v1alpha1.ReasonDNSFailed)
	w.providerCondition("cloud", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDNSFailed)

	w.edit("cloud", func(spec *v1alpha1.VisionProviderSpec) { spec.Probe = nil })
	w.eventually("waiting for the condition to go", func() error {
		p := &v1alpha1.VisionProvider{}
		if err := w.get(p, "cloud"); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReachable); c != nil {
			return fmt.Errorf("there is %+v", c)
		}
		return holds(p.Status.Conditions, p.Generation, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})
	if asked.Load() == 0 || others.Load() != 0 {
		t.Errorf("the endpoint was asked %d times, the host of its redirect %d times", asked.Load(), others.Load())
	}
}

func TestProbesThatFindNothingNewWriteNothing(t *testing.T) {
	for _, reason := range []string{v1alpha1.ReasonReachable, v1alpha1.ReasonTimeout} {
		s := &script{reason: reason}
		w := newProbedWorld(t, quickProbes, s)
		w.create(probedProvider("cloud"))
		w.providerCondition("cloud", v1alpha1.ConditionReachable, reach.Status(reason), reason)
		time.Sleep(300 * time.Millisecond) // whatever is still under way, the event included
		writes, probes, versions := w.writes.Load(), s.probes.Load(), w.versions()
		time.Sleep(time.Second)
		if n := s.probes.Load() - probes; n < 5 {
			t.Errorf("there were %d probes only", n)
		}
		if n := w.writes.Load() - writes; n != 0 || w.versions() != versions {
			t.Errorf("with %s the controllers wrote %d times", reason, n)
		}
	}
}

func TestAnEndpointThatFailsAndReturnsIsToldOnceEach(t *testing.T) {
	s := &script{reason: v1alpha1.ReasonReachable}
	w := newProbedWorld(t, quickProbes, s)
	w.create(probedProvider("cloud"))
	w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	time.Sleep(200 * time.Millisecond)
	w.eventuallyTold("cloud")
	s.say(v1alpha1.ReasonConnectionFailed)
	w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionFalse, v1alpha1.ReasonConnectionFailed)
	w.eventuallyTold("cloud", "Warning ConnectionFailed Probing")
	s.say(v1alpha1.ReasonReachable)
	w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	w.eventuallyTold("cloud", "Normal Reachable Probing", "Warning ConnectionFailed Probing")
}

func TestTheOtherConditionsOfAProviderAreToldAsWell(t *testing.T) {
	w := newWorld(t, quick)
	w.create(keyedProvider("cloud", "key"))
	w.eventuallyTold("cloud", "Warning SecretNotFound ReadingCredentials")
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"api-key": []byte("sk-1")}})
	w.eventuallyTold("cloud", "Normal Resolved ReadingCredentials", "Warning SecretNotFound ReadingCredentials")
	w.edit("cloud", func(spec *v1alpha1.VisionProviderSpec) { spec.Endpoints[0].CABundle = "no certificate" })
	w.eventuallyTold("cloud", "Normal Resolved ReadingCredentials", "Warning Invalid Validating", "Warning SecretNotFound ReadingCredentials")
}

func TestAfterARestartWhatWasFoundHoldsUntilTheNextProbe(t *testing.T) {
	w := newProbedWorld(t, quickProbes, &script{reason: v1alpha1.ReasonTimeout})
	w.create(probedProvider("cloud"))
	w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionFalse, v1alpha1.ReasonTimeout)
	time.Sleep(200 * time.Millisecond)
	before := w.versions()
	w.stop()
	w.prober = silent{}
	w.start(quickProbes)
	time.Sleep(500 * time.Millisecond)
	if n := w.writes.Load(); n != 0 || w.versions() != before {
		t.Errorf("the controllers wrote %d times", n)
	}
	w.create(probedProvider("later")) // the controllers were at work all the time
	w.providerCondition("later", v1alpha1.ConditionReachable, metav1.ConditionUnknown, v1alpha1.ReasonNotProbed)
}

// The prober is the one of the operator: a listener on loopback stands where its users must not reach.
func TestTheOperatorsOwnNetworkIsNotProbed(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	w := newWorld(t, quickProbes)
	p := probedProvider("local")
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Endpoints = []v1alpha1.Endpoint{
		{Name: "address", URL: server.URL},
		{Name: "name", URL: "http://localhost:" + port},
		{Name: "service", URL: "http://kubernetes.default.svc"},
		{Name: "private", URL: "https://10.0.0.1"},
	}
	w.create(p)
	w.providerCondition("local", v1alpha1.ConditionReachable, metav1.ConditionUnknown, v1alpha1.ReasonAddressNotAllowed)
	if asked.Load() != 0 {
		t.Errorf("the listener was asked %d times", asked.Load())
	}
}

func TestAProviderThatIsNotAcceptedIsNotProbed(t *testing.T) {
	s := &script{reason: v1alpha1.ReasonReachable}
	w := newProbedWorld(t, quickProbes, s)
	p := probedProvider("broken")
	p.Spec.Endpoints[0].CABundle = "no certificate"
	w.create(p)
	w.providerCondition("broken", v1alpha1.ConditionReachable, metav1.ConditionUnknown, v1alpha1.ReasonNotAccepted)
	time.Sleep(200 * time.Millisecond)
	if s.probes.Load() != 0 {
		t.Errorf("it was probed %d times", s.probes.Load())
	}
}

func TestEditsDoNotMakeProbesMoreFrequent(t *testing.T) {
	s := &script{reason: v1alpha1.ReasonReachable}
	w := newProbedWorld(t, Intervals{}, s)
	w.create(probedProvider("cloud"))
	w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	for i := range 5 {
		w.edit("cloud", func(spec *v1alpha1.VisionProviderSpec) { spec.Models[0].Name = fmt.Sprintf("vision-%d", i) })
		w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionTrue, v1alpha1.ReasonReachable)
	}
	for i := range 5 {
		w.edit("cloud", func(spec *v1alpha1.VisionProviderSpec) {
			spec.Endpoints[0].URL = fmt.Sprintf("https://%d.example.com/", i)
		})
		w.providerCondition("cloud", v1alpha1.ConditionReachable, metav1.ConditionUnknown, v1alpha1.ReasonNotProbed)
	}
	time.Sleep(200 * time.Millisecond)
	if n := s.probes.Load(); n != 1 {
		t.Errorf("there were %d probes", n)
	}
}
