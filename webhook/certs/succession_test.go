// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// born is a CA that was made at a moment.
func born(t *testing.T, at time.Time, lifetime time.Duration, predecessors ...*x509.Certificate) *authority {
	t.Helper()
	a, err := newAuthority(at, lifetime, predecessors)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestWhichCATheSecretShouldHold(t *testing.T) {
	now := newClock().Now()
	const year = DefaultCALifetime
	mine, theirs, old := born(t, now, year), born(t, now, year), born(t, now.Add(-year/4*3), year)
	ahead := born(t, now.Add(time.Hour), year)
	gone := born(t, now.Add(-2*year), year).current()
	justGone := born(t, now.Add(-year-time.Minute), year).current()
	foreign := *theirs.current()
	foreign.Subject.CommonName = "somebody else's"
	list := func(of ...*authority) []*x509.Certificate {
		var out []*x509.Certificate
		for _, a := range of {
			out = append(out, a.current())
		}
		return out
	}
	with := func(a *authority, more ...*x509.Certificate) *authority {
		return &authority{key: a.key, trusted: distinct(a.trusted, more)}
	}
	for name, c := range map[string]struct {
		found      *authority
		succession succession
		keeps      *authority // nil: a new CA
		trusted    []*x509.Certificate
		writes     bool
	}{
		"nothing is known":                     {writes: true},
		"a good one stays":                     {found: theirs, keeps: theirs, trusted: list(theirs)},
		"a lost one comes back":                {succession: succession{remembered: mine}, keeps: mine, trusted: list(mine), writes: true},
		"a lost one that is due is succeeded":  {succession: succession{remembered: old}, trusted: list(old), writes: true},
		"a due one is succeeded":               {found: old, trusted: list(old), writes: true},
		"one of a clock that is far ahead too": {found: ahead, trusted: list(ahead), writes: true},
		"a shorter lifetime makes one due":     {found: born(t, now.Add(-year/2), year), succession: succession{lifetime: year / 2}, writes: true},
		"a longer lifetime leaves one alone":   {found: theirs, succession: succession{lifetime: 2 * year}, keeps: theirs, trusted: list(theirs)},
		"another's is told of the one that signed what is served": {
			found: theirs, succession: succession{remembered: mine, inUse: old}, keeps: theirs, trusted: list(theirs, old, mine), writes: true,
		},
		"one that trusts both stays": {
			found: with(theirs, mine.current(), old.current()), succession: succession{remembered: mine, inUse: old}, keeps: theirs, trusted: list(theirs, mine, old),
		},
		"an older one that was put back gives way": {
			found: old, succession: succession{remembered: mine}, keeps: mine, trusted: list(mine, old), writes: true,
		},
		"without a memory those of ours in the caBundles stay trusted": {
			succession: succession{bundled: []*x509.Certificate{mine.current(), &foreign, gone, old.current()}}, trusted: list(mine, old), writes: true,
		},
		"what has only just expired stays, for other clocks": {found: with(theirs, justGone), keeps: theirs, trusted: []*x509.Certificate{theirs.current(), justGone}},
		"what has expired goes":                              {found: with(theirs, gone), keeps: theirs, trusted: list(theirs), writes: true},
	} {
		t.Run(name, func(t *testing.T) {
			c.succession.now = now
			if c.succession.lifetime == 0 {
				c.succession.lifetime = year
			}
			got, err := c.succession.next(c.found)
			if err != nil {
				t.Fatal(err)
			}
			if writes := got != c.found; writes != c.writes {
				t.Errorf("writes: %v, want %v", writes, c.writes)
			}
			trusted := got.trusted
			if c.keeps == nil {
				if got.due(now, c.succession.lifetime) || got.current().NotAfter != now.Add(c.succession.lifetime).Truncate(time.Second) {
					t.Errorf("the new CA holds until %s", got.current().NotAfter)
				}
				trusted = trusted[1:]
				if c.found != nil && len(c.trusted) == 0 {
					c.trusted = list(c.found)
				}
			} else if !got.key.Equal(c.keeps.key) {
				t.Error("the Secret would hold another CA")
			}
			if !sameCertificates(trusted, c.trusted) || c.keeps != nil && !trusted[0].Equal(c.keeps.current()) {
				t.Errorf("%d certificates are trusted, want %d", len(trusted), len(c.trusted))
			}
		})
	}
}

func deleteSecret(t *testing.T, c client.Client) {
	t.Helper()
	if err := c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secretName.Namespace, Name: secretName.Name}}); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, c client.Client, how func(*corev1.Secret)) {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), secretName, secret); err != nil {
		t.Fatal(err)
	}
	how(secret)
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// spoils are what people and tools do to the Secret.
func spoils(t *testing.T, now time.Time) map[string]func(*testing.T, client.Client) {
	return map[string]func(*testing.T, client.Client){
		"deleted": deleteSecret,
		"emptied": func(t *testing.T, c client.Client) { edit(t, c, func(s *corev1.Secret) { s.Data = nil }) },
		"garbled": func(t *testing.T, c client.Client) {
			edit(t, c, func(s *corev1.Secret) { s.Data[certificateKey] = []byte("garbage") })
		},
		"garbled, and no longer marked as ours": func(t *testing.T, c client.Client) {
			edit(t, c, func(s *corev1.Secret) { s.Data[privateKeyKey], s.Labels = []byte("garbage"), nil })
		},
		"replaced by another CA": func(t *testing.T, c client.Client) {
			other := born(t, now, DefaultCALifetime)
			edit(t, c, func(s *corev1.Secret) {
				if err := store(s, other); err != nil {
					t.Error(err)
				}
			})
		},
		"deleted, and made anew by a replica that knows nothing": func(t *testing.T, c client.Client) {
			deleteSecret(t, c)
			mustSync(t, replica(t, c.(client.WithWatch), &clock{now: now}))
		},
	}
}

// Two replicas run; one or the other looks first; at no step may any caBundle
// distrust what either serves. After each look, so after each order of them.
func TestWhateverBecomesOfTheSecretEveryReplicaStaysTrusted(t *testing.T) {
	for name, spoil := range spoils(t, newClock().Now()) {
		t.Run(name, func(t *testing.T) {
			now, c := newClock(), installed().Build()
			a, b := replica(t, c, now), replica(t, c, now)
			mustSync(t, a)
			mustSync(t, b)
			spoil(t, c)
			for round := range 12 {
				for i, r := range []*Certificates{b, a} {
					checkTrusted(t, c, a, now, "127.0.0.1")
					checkTrusted(t, c, b, now, "127.0.0.1")
					err := r.Sync(t.Context())
					if _, foreign := errors.AsType[*ForeignSecretError](err); err != nil && !foreign {
						t.Fatal(err)
					}
					if t.Failed() {
						t.Fatalf("before look %d of replica %d", round, i)
					}
				}
				now.Add(time.Minute)
			}
			if a.known.current().SerialNumber.Cmp(b.known.current().SerialNumber) != 0 || a.inUse.current().SerialNumber.Cmp(b.inUse.current().SerialNumber) != 0 {
				t.Error("the replicas do not agree on one CA")
			}
		})
	}
}

func TestALostSecretComesBackAsItWas(t *testing.T) {
	for _, name := range []string{"deleted", "emptied", "garbled"} {
		t.Run(name, func(t *testing.T) {
			now, c := newClock(), installed().Build()
			a := replica(t, c, now)
			mustSync(t, a)
			before, leaf := bundles(t, c), a.leaf
			spoils(t, now.Now())[name](t, c)
			mustSync(t, a)
			secret := &corev1.Secret{}
			if err := c.Get(t.Context(), secretName, secret); err != nil {
				t.Fatal(err)
			}
			got, err := readAuthority(secret)
			if err != nil || got == nil || !got.key.Equal(a.known.key) || secret.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
				t.Errorf("the Secret does not hold what it held (%v)", err)
			}
			if fmt.Sprint(bundles(t, c)) != fmt.Sprint(before) || a.leaf != leaf {
				t.Error("the caBundle or the leaf changed, and neither need have")
			}
		})
	}
}

func TestAReplicaThatReadAnOldSecretDoesNotTakeANewCAOutOfTheCABundle(t *testing.T) {
	now := newClock()
	var between func()
	c := installed().WithInterceptorFuncs(interceptor.Funcs{
		// What happens between a replica's reading of the Secret and its patch.
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if f := between; f != nil {
				between = nil
				f()
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	slow, fast := replica(t, c, now), replica(t, c, now)
	mustSync(t, fast)
	now.Add(DefaultCALifetime / 2)
	first := fast.known.current()
	// The slow one has the old CA to put back where somebody wiped it.
	wipe(t, c)
	between = func() { now.Add(DefaultCALifetime / 4); mustSync(t, fast) }
	mustSync(t, slow)
	if fast.known.current().Equal(first) {
		t.Fatal("the CA was not renewed, so this test sees nothing")
	}
	for i, bundle := range bundles(t, c) {
		for _, want := range []*x509.Certificate{first, fast.known.current()} {
			if !slices.ContainsFunc(parseBundle(bundle), want.Equal) {
				t.Errorf("caBundle %d lacks a CA", i)
			}
		}
	}
}

func TestTheSlowerOfTwoReplicasTakesWhatTheFasterWrote(t *testing.T) {
	for name, age := range map[string]time.Duration{"the first CA": 0, "a successor": DefaultCALifetime / 4 * 3} {
		t.Run(name, func(t *testing.T) {
			now := newClock()
			var between func() // what happens between a replica's reading and its writing of the Secret
			meanwhile := func() {
				if f := between; f != nil {
					between = nil
					f()
				}
			}
			c := installed().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					meanwhile()
					return c.Create(ctx, o, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					meanwhile()
					return c.Update(ctx, o, opts...)
				},
			}).Build()
			slow, fast := replica(t, c, now), replica(t, c, now)
			if age > 0 {
				mustSync(t, slow)
				mustSync(t, fast)
				now.Add(age)
			}
			between = func() { mustSync(t, fast) }
			mustSync(t, slow)
			if between != nil || !slow.known.key.Equal(fast.known.key) {
				t.Error("they do not agree on one CA")
			}
			checkTrusted(t, c, slow, now, "127.0.0.1")
			checkTrusted(t, c, fast, now, "127.0.0.1")
		})
	}
}

func TestTheListOfTrustedCAsIsBounded(t *testing.T) {
	now := newClock().Now()
	var many []*x509.Certificate
	for range 2 * maxTrusted {
		many = append(many, born(t, now, DefaultCALifetime).current())
	}
	s := &succession{now: now, lifetime: DefaultCALifetime, bundled: many}
	got, err := s.next(nil)
	if err != nil || len(got.trusted) != maxTrusted || got.due(now, DefaultCALifetime) {
		t.Errorf("got %d trusted CAs (%v), want %d, a new one first", len(got.trusted), err, maxTrusted)
	}
}

func wipe(t *testing.T, c client.Client) {
	t.Helper()
	conf := &admissionv1.MutatingWebhookConfiguration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: DefaultConfiguration}, conf); err != nil {
		t.Fatal(err)
	}
	for i := range conf.Webhooks {
		conf.Webhooks[i].ClientConfig.CABundle = nil
	}
	if err := c.Update(t.Context(), conf); err != nil {
		t.Fatal(err)
	}
}
