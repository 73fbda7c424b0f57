// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/controllers/compile"
)

// mostObjects bounds what a memo keeps, counted in the policies and providers that
// it was compiled from; beyond, all is forgotten.
const mostObjects = 4000

// compiled is what a decision takes of a namespace's policies and providers.
type compiled struct {
	servers []v1alpha1.VisionPolicy
	output  compile.Output
}

func compileNow(in compile.Input) compiled {
	return compiled{servers: compile.Servers(in), output: compile.Compile(in)}
}

// memo keeps what was last compiled for each namespace. It is asked with all that
// compile depends on, which is read anew for every pod, and answers only for the
// very same: nothing has to tell it of a change. The zero memo is ready. What it
// returns is shared and must not be changed.
type memo struct {
	mu      sync.Mutex
	kept    map[string]remembered
	objects int
}

type remembered struct {
	of       identity
	compiled compiled
}

// identity tells one compile.Input from another: an object of the API server is
// the same while its UID and its resourceVersion are.
type identity struct {
	operatorNamespace string
	labels            map[string]string
	policies          []version
	providers         []version
}

type version struct {
	uid             types.UID
	resourceVersion string
}

// compile is compileNow, done once for equal inputs. Objects that are of no API
// server, and have no identity, are compiled each time.
func (m *memo) compile(in compile.Input) compiled {
	of, ok := identify(in)
	if !ok {
		return compileNow(in)
	}
	m.mu.Lock()
	before, found := m.kept[in.Namespace]
	m.mu.Unlock()
	if found && before.of.equal(of) {
		return before.compiled
	}
	made := compileNow(in)
	m.keep(in.Namespace, remembered{of: of, compiled: made})
	return made
}

func (m *memo) keep(namespace string, r remembered) {
	size := r.of.size()
	if size > mostObjects {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, ok := m.kept[namespace]; ok {
		m.objects -= before.of.size()
	}
	if m.kept == nil || m.objects+size > mostObjects {
		m.kept, m.objects = map[string]remembered{}, 0
	}
	m.kept[namespace] = r
	m.objects += size
}

func identify(in compile.Input) (identity, bool) {
	of := identity{
		operatorNamespace: in.OperatorNamespace,
		labels:            in.NamespaceLabels,
		policies:          make([]version, len(in.Policies)),
		providers:         make([]version, len(in.Providers)),
	}
	ok := true
	for i := range in.Policies {
		of.policies[i] = versionOf(&in.Policies[i].ObjectMeta, &ok)
	}
	for i := range in.Providers {
		of.providers[i] = versionOf(&in.Providers[i].ObjectMeta, &ok)
	}
	// A cache lists in no order, and compile has its own.
	slices.SortFunc(of.policies, version.compare)
	slices.SortFunc(of.providers, version.compare)
	return of, ok
}

// versionOf clears ok for an object without a version.
func versionOf(o *metav1.ObjectMeta, ok *bool) version {
	*ok = *ok && o.UID != "" && o.ResourceVersion != ""
	return version{uid: o.UID, resourceVersion: o.ResourceVersion}
}

func (v version) compare(w version) int {
	return cmp.Or(cmp.Compare(v.uid, w.uid), cmp.Compare(v.resourceVersion, w.resourceVersion))
}

func (a identity) equal(b identity) bool {
	return a.operatorNamespace == b.operatorNamespace && maps.Equal(a.labels, b.labels) &&
		slices.Equal(a.policies, b.policies) && slices.Equal(a.providers, b.providers)
}

// size is the room that an identity's input takes, in objects, and one for the
// namespace itself.
func (a identity) size() int { return 1 + len(a.policies) + len(a.providers) }
