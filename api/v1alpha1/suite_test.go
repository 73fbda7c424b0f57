// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1_test asks a real API server what it makes of both kinds.
package v1alpha1_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/api/v1alpha1/validation"
	"github.com/visionoperator/vision-operator/test/envtest"
)

var (
	// cluster is the API server that this package's tests ask, with the CRDs installed.
	cluster *envtest.Cluster
	// api reaches it with typed and untyped objects.
	api client.Client
)

func TestMain(m *testing.M) {
	os.Exit(envtest.Run(m, envtest.Options{}, func(c *envtest.Cluster) {
		scheme := runtime.NewScheme()
		if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
			panic(err)
		}
		made, err := client.New(c.Config, client.Options{Scheme: scheme})
		if err != nil {
			panic(err)
		}
		cluster, api = c, made
	}))
}

// The objects that cases edit; each is accepted as it is.
const (
	baseProvider = `
apiVersion: visionoperator.dev/v1alpha1
kind: VisionProvider
metadata: {name: ocr, namespace: default}
spec:
  transport: OpenAIChatCompletions
  endpoints: [{name: local, url: "https://api.example.com/v1"}]
  credentials: {none: {}}
  models: [{name: tesseract, imageInput: true}]
`
	basePolicy = `
apiVersion: visionoperator.dev/v1alpha1
kind: VisionPolicy
metadata: {name: agents, namespace: default}
spec: {}
`
)

// rule is one sentence about what the API accepts or refuses.
type rule struct {
	name string
	edit string // YAML, merged into the base; lists are replaced, null removes
	// field and words are what the refusal names; both empty: the object is accepted.
	field, words string
	// schemaOnly: the Go types cannot hold the mistake, or the schema alone judges it.
	schemaOnly bool
}

// check asks the API server (in a dry run) and the pure validator, which must agree.
func (r rule) check(t *testing.T, base string) {
	t.Helper()
	object := edited(t, base, r.edit)
	err := api.Create(t.Context(), object.DeepCopy(), client.DryRunAll)
	problems := judged(t, object, !r.schemaOnly)
	if r.field == "" {
		if err != nil {
			t.Errorf("the API server refused: %v", err)
		}
		if len(problems) > 0 {
			t.Errorf("the validator refused: %v", problems.ToAggregate())
		}
		return
	}
	if !names(err, r.field, r.words) {
		t.Errorf("the API server's answer names no %q with %q: %v", r.field, r.words, err)
	}
	if !r.schemaOnly && len(problems) == 0 {
		t.Errorf("the API server refused and the validator did not: %v", err)
	}
}

// judged is what the pure validator says.
func judged(t *testing.T, object *unstructured.Unstructured, strict bool) field.ErrorList {
	t.Helper()
	var into any
	var judge func() field.ErrorList
	switch object.GetKind() {
	case "VisionProvider":
		p := &v1alpha1.VisionProvider{}
		into, judge = p, func() field.ErrorList { return validation.Provider(p) }
	default:
		p := &v1alpha1.VisionPolicy{}
		into, judge = p, func() field.ErrorList { return validation.Policy(p) }
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		if strict {
			t.Fatal(err)
		}
		return nil
	}
	return judge()
}

// names reports whether err is a refusal with a cause that names the field and the words.
func names(err error, field, words string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field && strings.Contains(cause.Message, words) {
			return true
		}
	}
	return false
}

// edited returns base with edit merged into it.
func edited(t *testing.T, base, edit string) *unstructured.Unstructured {
	t.Helper()
	var object, patch map[string]any
	for text, into := range map[string]*map[string]any{base: &object, edit: &patch} {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		u := &unstructured.Unstructured{}
		if string(data) == "null" {
			continue
		}
		// Through unstructured's own decoder, since it wants int64 and not float64.
		wrapped := fmt.Sprintf(`{"apiVersion":"v1","kind":"Wrapped","data":%s}`, data)
		if err := u.UnmarshalJSON([]byte(wrapped)); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		*into = u.Object["data"].(map[string]any)
	}
	merge(object, patch)
	return &unstructured.Unstructured{Object: object}
}

func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		existing, hadMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && hadMap:
			merge(existing, inner)
		default:
			into[key] = value
		}
	}
}

// namespace makes a namespace that the test has for itself.
func namespace(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	if err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTheBasesOfAllCasesAreAccepted(t *testing.T) {
	rule{}.check(t, baseProvider)
	rule{}.check(t, basePolicy)
}
