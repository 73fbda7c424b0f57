// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// schema is that of an object, or of a list's items, of fields that are strings.
func schema(fields ...string) *apiextensionsv1.JSONSchemaProps {
	s := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, f := range fields {
		s.Properties[f] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	return s
}

func below(name string, held *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{name: *held}}
}

func list(items *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}}
}

func table(values *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	return &apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: values}}
}

func TestWhatAnInstalledKindLacksIsNamed(t *testing.T) {
	loose := schema()
	loose.XPreserveUnknownFields = new(true)
	tests := map[string]struct {
		want, have *apiextensionsv1.JSONSchemaProps
		missing    []string
	}{
		"nothing":                           {schema("a", "b"), schema("a", "b"), nil},
		"nothing where there is more":       {schema("a"), schema("a", "b"), nil},
		"fields, in order":                  {schema("b", "a", "c"), schema("b"), []string{".a", ".c"}},
		"the topmost only":                  {below("spec", below("probe", schema("interval"))), below("spec", schema()), []string{".spec.probe"}},
		"a field of a list's items":         {below("spec", list(schema("name", "url"))), below("spec", list(schema("name"))), []string{".spec[].url"}},
		"a list that is none":               {below("spec", list(schema("name"))), below("spec", schema()), []string{".spec[]"}},
		"a field of a table's values":       {table(schema("a")), table(schema()), []string{".*.a"}},
		"the values of a table":             {table(schema("a")), schema(), []string{".*"}},
		"nothing of a table of anything":    {table(schema("a")), table(nil), nil},
		"nothing where anything is kept":    {below("spec", schema("a")), below("spec", loose), nil},
		"nothing of a schema without rules": {schema(), schema(), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := missing(kindOf(test.want), kindOf(test.have))
			if !slices.Equal(got, test.missing) {
				t.Errorf("got %q, want %q", got, test.missing)
			}
		})
	}
}

// kindOf is a CRD with one version.
func kindOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: s},
		Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
	}}}}
}

func TestAnInstalledKindMustServeTheVersionAndItsStatus(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinitionVersion)
		want   string
	}{
		"another version":           {func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Name = "v2" }, "version v1"},
		"the version is not served": {func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Served = false }, "version v1"},
		"the status is no resource": {func(v *apiextensionsv1.CustomResourceDefinitionVersion) { v.Subresources = nil }, "the status subresource"},
	} {
		t.Run(name, func(t *testing.T) {
			installed := kindOf(schema("a"))
			test.change(&installed.Spec.Versions[0])
			if got := missing(kindOf(schema("a")), installed); !slices.Equal(got, []string{test.want}) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAnErrorNamesTheFirstOfManyFields(t *testing.T) {
	names := strings.Split("abcdefghijklmno", "")
	if got := shortened(names); got != "a, b, c, d, e, f, g, h, i, j and 5 more" {
		t.Errorf("got %q", got)
	}
}

func TestAnOperatorBesideOlderKindsDoesNotStart(t *testing.T) {
	ctx := t.Context()
	install(t, freeAddress(t))
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	var kind apiextensionsv1.CustomResourceDefinition
	if err := admin.Get(ctx, client.ObjectKey{Name: "visionpolicies.visionoperator.dev"}, &kind); err != nil {
		t.Fatal(err)
	}
	spec := kind.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	delete(spec.Properties, "fallbackModels")
	if err := admin.Update(ctx, &kind); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { install(t, "127.0.0.1:9443") })

	bounded, cancel := context.WithTimeout(ctx, 30*time.Second) // for one that starts
	defer cancel()
	err = run(bounded, []string{"--operator-namespace", "vision-system", "--kubeconfig", operatorKubeconfig(t),
		"--health-listen", off, "--metrics-listen", off, "--webhook-listen", off}, io.Discard, io.Discard)
	if _, outdated := errors.AsType[*outdatedKindsError](err); !outdated {
		t.Fatalf("got %v, want an *outdatedKindsError", err)
	}
	for _, want := range []string{"visionpolicies.visionoperator.dev lacks .spec.fallbackModels;", "kubectl apply --server-side -k config/crd"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}

	guest, err := cluster.User("guest")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := checkKinds(ctx, guest, logr.FromSlogHandler(slog.NewTextHandler(&log, nil))); err != nil || !strings.Contains(log.String(), "not checked") {
		t.Errorf("somebody who may not read them: got %v and the log %q", err, log.String())
	}
}
