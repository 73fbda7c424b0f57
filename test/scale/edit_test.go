// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/test/envtest"
)

func TestAnEditWritesItsRouterAndTheStatusesThatItChanges(t *testing.T) {
	// Two policies and one provider in the first namespaces, one of each elsewhere.
	grown.grow(t, 2*namespaces+50)
	routers := observe(t)
	launch(t)
	allRight(t, routers)
	settle(t, mark(t))
	const inFirst, inLast = 2, 1 // policies
	tests := map[string]struct {
		edit func(text string) error
		want map[string]int
	}{
		"of one of two policies of a namespace: both tell of the new router": {
			func(text string) error {
				return ask(t.Context(), client.ObjectKey{Namespace: namespaceName(0), Name: "agents-1"}, text)
			},
			map[string]int{"configmaps": 1, "visionpolicies/status": inFirst},
		},
		"of the only policy of a namespace": {
			func(text string) error {
				return ask(t.Context(), client.ObjectKey{Namespace: namespaceName(namespaces - 1), Name: "agents-0"}, text)
			},
			map[string]int{"configmaps": 1, "visionpolicies/status": inLast},
		},
		"of a provider: its own status tells of the generation as well": {
			func(text string) error {
				return move(t.Context(), client.ObjectKey{Namespace: namespaceName(0), Name: providerName(0)}, "https://"+text+".example.com/v1")
			},
			map[string]int{"configmaps": 1, "visionpolicies/status": inFirst, "visionproviders/status": 1},
		},
		"of the provider that all namespaces share; the operator's own is not served": {
			func(text string) error {
				return move(t.Context(), client.ObjectKey{Namespace: operatorNamespace, Name: shared}, "https://"+text+".example.com/v1")
			},
			map[string]int{"configmaps": namespaces, "visionpolicies/status": namespaces + 50, "visionproviders/status": 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from := mark(t)
			if err := test.edit(nextText()); err != nil {
				t.Fatal(err)
			}
			writes := settle(t, from)
			for _, w := range writes {
				if w.Code >= 300 {
					t.Errorf("the API server did not take %s", w)
				}
				if w.Resource == "configmaps" && w.Name != router.ConfigMapName {
					t.Errorf("an edit writes %s", w)
				}
			}
			if early := statusesBeforeTheLastRouter(writes); early > namespaces/4 {
				t.Errorf("%d statuses were written before the last router: routers come first", early)
			}
			if got := count(writes); list(got) != list(test.want) {
				t.Errorf("the edit writes %s, want %s", list(got), list(test.want))
			}
		})
	}
}

// statusesBeforeTheLastRouter counts statuses of policies; a few may be on their
// way while the last namespaces are woken.
func statusesBeforeTheLastRouter(writes []envtest.Write) int {
	statuses, before := 0, 0
	for _, w := range writes {
		switch w.Resource {
		case "visionpolicies/status":
			statuses++
		case "configmaps":
			before = statuses
		}
	}
	return before
}
