// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// transition is one sentence about a change of a stored object.
type transition struct {
	name, base string
	from, to   string // YAML, merged into the base
	// field and words are what the refusal names; both empty: it is accepted.
	field, words string
}

var transitions = []transition{
	{name: "another transport", base: baseProvider, to: "spec: {transport: OpenAIResponses}", field: "spec.transport", words: "create another one"},
	{name: "all but the transport", base: baseProvider, to: "spec: {endpoints: [{name: other, url: 'https://b.example.com'}], credentials: {none: null, secretRef: {name: a, key: b}}, models: [{name: m, imageInput: false}]}"},
	{name: "an ordinary policy into a baseline", base: basePolicy, to: "spec: {namespaceSelector: {}}", field: "spec.namespaceSelector", words: "create another VisionPolicy"},
	{name: "an ordinary policy into a baseline of some", base: basePolicy, from: "spec: {defaultModel: auto}", to: "spec: {namespaceSelector: {matchLabels: {a: b}}}", field: "spec.namespaceSelector", words: "create another VisionPolicy"},
	{name: "a baseline of all into an ordinary policy", base: basePolicy, from: "spec: {defaultModel: auto, namespaceSelector: {}}", to: "spec: {namespaceSelector: null}", field: "spec.namespaceSelector", words: "create another VisionPolicy"},
	{name: "a baseline of some into an ordinary policy", base: basePolicy, from: "spec: {defaultModel: auto, namespaceSelector: {matchLabels: {a: b}}}", to: "spec: {namespaceSelector: null}", field: "spec.namespaceSelector", words: "create another VisionPolicy"},
	{name: "a baseline of all into one of some", base: basePolicy, from: "spec: {namespaceSelector: {}}", to: "spec: {namespaceSelector: {matchLabels: {a: b}}}"},
	{name: "a baseline of some into one of all", base: basePolicy, from: "spec: {namespaceSelector: {matchLabels: {a: b}}}", to: "spec: {namespaceSelector: {matchLabels: null}}"},
	{name: "all else of a baseline", base: basePolicy, from: "spec: {namespaceSelector: {}}", to: "spec: {podSelector: {matchLabels: {a: b}}, defaultModel: a/b}"},
	{name: "all else of an ordinary policy", base: basePolicy, to: "spec: {podSelector: {matchLabels: {a: b}}, defaultModel: a/b}"},
}

// TestWhatCannotBeChanged changes stored objects in both ways in which people do:
// with an update, and by applying another file.
func TestWhatCannotBeChanged(t *testing.T) {
	ns := namespace(t.Context(), t, "transitions")
	for _, c := range transitions {
		t.Run(c.name, func(t *testing.T) {
			start := edited(t, c.base, c.from)
			start.SetNamespace(ns)
			stored := start.DeepCopy()
			if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(stored), client.FieldOwner("people")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = api.Delete(context.Background(), start) })
			manifest, err := start.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			want := edited(t, string(manifest), c.to)
			update := want.DeepCopy()
			update.SetResourceVersion(stored.GetResourceVersion())
			c.judge(t, "update", api.Update(t.Context(), update, client.DryRunAll))
			c.judge(t, "apply", api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(want.DeepCopy()), client.FieldOwner("people")))
		})
	}
}

func (c transition) judge(t *testing.T, how string, err error) {
	t.Helper()
	switch {
	case c.field == "" && err != nil:
		t.Errorf("%s: refused: %v", how, err)
	case c.field != "" && !names(err, c.field, c.words):
		t.Errorf("%s: the answer names no %q with %q: %v", how, c.field, c.words, err)
	}
}

// TestRulesAboutChangesLeaveAllOtherWritesAlone writes what nobody means as a change
// of what cannot be changed.
func TestRulesAboutChangesLeaveAllOtherWritesAlone(t *testing.T) {
	ns := namespace(t.Context(), t, "other-writes")
	for name, c := range map[string]struct{ base, edit string }{
		"a provider": {baseProvider, ""}, "an ordinary policy": {basePolicy, ""}, "a baseline": {basePolicy, "{metadata: {name: base}, spec: {namespaceSelector: {}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			o := edited(t, c.base, c.edit)
			o.SetNamespace(ns)
			if err := api.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			patch := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
			const status = `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
			if err := api.Status().Patch(t.Context(), o, patch(status)); err != nil {
				t.Errorf("a patch of the status: %v", err)
			}
			if err := api.Status().Update(t.Context(), o); err != nil {
				t.Errorf("an update of the status: %v", err)
			}
			if err := api.Patch(t.Context(), o, patch(`{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/x"]}}`)); err != nil {
				t.Errorf("a patch of the metadata: %v", err)
			}
			// Somebody else applies a label alone, and says nothing of the spec.
			other := edited(t, "{}", "{apiVersion: visionoperator.dev/v1alpha1, metadata: {labels: {c: d}}}")
			other.SetKind(o.GetKind())
			other.SetName(o.GetName())
			other.SetNamespace(ns)
			if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(other), client.FieldOwner("somebody-else")); err != nil {
				t.Errorf("an apply of a label: %v", err)
			}
			if err := api.Patch(t.Context(), o, patch(`{"metadata":{"finalizers":null}}`)); err != nil {
				t.Errorf("a finalizer's end: %v", err)
			}
			if err := api.Delete(t.Context(), o); err != nil {
				t.Errorf("a deletion: %v", err)
			}
		})
	}
}
