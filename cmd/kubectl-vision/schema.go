// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/config/crd"
)

// kindSchema judges objects of one kind as the API server does: by the types and
// bounds of its CRD's schema, then by its CEL rules.
type kindSchema struct {
	openapi    apiservervalidation.SchemaValidator
	structural *schema.Structural
	rules      *cel.Validator
}

// loadSchemas reads the CRDs that this program carries, by kind.
func loadSchemas() (map[string]*kindSchema, error) {
	files, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs: %w", err)
	}
	schemas := make(map[string]*kindSchema, len(files))
	for _, file := range files {
		data, err := crd.Bases.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the CRDs: %w", err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &definition); err != nil {
			return nil, fmt.Errorf("reading the CRDs: %s: %w", file, err)
		}
		if schemas[definition.Spec.Names.Kind], err = newKindSchema(&definition); err != nil {
			return nil, fmt.Errorf("reading the CRDs: %s: %w", file, err)
		}
	}
	return schemas, nil
}

func newKindSchema(definition *apiextensionsv1.CustomResourceDefinition) (*kindSchema, error) {
	for _, version := range definition.Spec.Versions {
		if version.Name != v1alpha1.GroupVersion.Version {
			continue
		}
		internal := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, internal, nil); err != nil {
			return nil, err
		}
		openapi, _, err := apiservervalidation.NewSchemaValidator(internal)
		if err != nil {
			return nil, err
		}
		structural, err := schema.NewStructural(internal)
		if err != nil {
			return nil, err
		}
		return &kindSchema{openapi: openapi, structural: structural, rules: cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
	}
	return nil, fmt.Errorf("there is no version %s", v1alpha1.GroupVersion.Version)
}

// check returns why the API server would refuse to create an object, given as
// JSON. Values are never repeated: one may be a credential in the wrong place.
func (k *kindSchema) check(data []byte) ([]string, error) {
	object := map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil {
		return nil, err
	}
	delete(object, "status") // which nobody can create
	errs := apiservervalidation.ValidateCustomResource(nil, object, k.openapi)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	if len(errs) == 0 { // as the API server, which spends no CEL on what has no form
		errs, _ = k.rules.Validate(context.Background(), nil, k.structural, object, nil, celconfig.RuntimeCELCostBudget)
	}
	problems := make([]string, len(errs))
	for i, err := range errs {
		problems[i] = problemOf(err)
	}
	slices.Sort(problems) // the schema's validator walks maps
	return problems, nil
}

// problemOf is an error without its value.
func problemOf(err *field.Error) string {
	detail := strings.TrimPrefix(err.Detail, err.Field+" in body ")
	if detail == "" || err.Type == field.ErrorTypeNotSupported {
		return strings.TrimSuffix(err.Field+": "+err.Type.String()+": "+detail, ": ")
	}
	return err.Field + ": " + detail
}
