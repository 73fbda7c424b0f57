// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/config/crd"
)

// mostNamed is how many missing fields of a kind an error names.
const mostNamed = 10

// checkKinds holds the CRDs that are installed against those of this build. An
// older one lets the API server drop, without a word, fields that this build
// obeys and conditions that it writes. Newer ones are fine. Where the operator
// may not read them, nothing is checked, which the log says.
func checkKinds(ctx context.Context, config *rest.Config, log logr.Logger) error {
	needed, err := builtKinds()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("checking the installed CRDs: %w", err)
	}
	reader, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("checking the installed CRDs: %w", err)
	}
	outdated := &outdatedKindsError{}
	for i := range needed {
		var installed apiextensionsv1.CustomResourceDefinition
		err := reader.Get(ctx, client.ObjectKeyFromObject(&needed[i]), &installed)
		switch {
		case apierrors.IsForbidden(err):
			log.Info("The installed CRDs are not checked: the operator may not read them", "crd", needed[i].Name)
		case apierrors.IsNotFound(err):
			outdated.lacks = append(outdated.lacks, needed[i].Name+" is not installed")
		case err != nil:
			return fmt.Errorf("checking the installed CRDs: %w", err)
		default:
			if missing := missing(&needed[i], &installed); len(missing) > 0 {
				outdated.lacks = append(outdated.lacks, needed[i].Name+" lacks "+shortened(missing))
			}
		}
	}
	if len(outdated.lacks) > 0 {
		return outdated
	}
	return nil
}

// outdatedKindsError is what the installed CRDs lack.
type outdatedKindsError struct{ lacks []string }

// Error names it and says what to run.
func (e *outdatedKindsError) Error() string {
	return fmt.Sprintf("the installed CRDs are older than this build: %s; apply this version's first, which Helm leaves undone when it upgrades: "+
		"kubectl apply --server-side -k config/crd, or, from the chart, kubectl apply --server-side -f charts/vision-operator/files/crds",
		strings.Join(e.lacks, "; "))
}

// shortened names the first of many.
func shortened(names []string) string {
	if len(names) > mostNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// builtKinds are the CRDs of this build.
func builtKinds() ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(crd.Bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs of this build: %w", err)
	}
	kinds := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		data, err := crd.Bases.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the CRDs of this build: %w", err)
		}
		if err := yaml.Unmarshal(data, &kinds[i]); err != nil {
			return nil, fmt.Errorf("reading the CRDs of this build: %s: %w", file, err)
		}
	}
	return kinds, nil
}

// missing lists what a CRD needs and the installed one does not serve: versions,
// the status subresource and the topmost fields, as paths like
// ".spec.endpoints[].url", in order.
func missing(needed, installed *apiextensionsv1.CustomResourceDefinition) []string {
	var found []string
	for _, want := range needed.Spec.Versions {
		i := slices.IndexFunc(installed.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == want.Name && v.Served
		})
		if i < 0 {
			found = append(found, "version "+want.Name)
			continue
		}
		have := installed.Spec.Versions[i]
		if hasStatus(&want) && !hasStatus(&have) {
			found = append(found, "the status subresource")
		}
		if want.Schema != nil && have.Schema != nil {
			found = missingFields(found, "", want.Schema.OpenAPIV3Schema, have.Schema.OpenAPIV3Schema)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func hasStatus(v *apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return v.Subresources != nil && v.Subresources.Status != nil
}

// missingFields appends the fields of want below path that have would drop.
func missingFields(found []string, path string, want, have *apiextensionsv1.JSONSchemaProps) []string {
	if want == nil || have != nil && have.XPreserveUnknownFields != nil && *have.XPreserveUnknownFields {
		return found
	}
	if have == nil {
		return append(found, path)
	}
	for name := range want.Properties {
		wanted := want.Properties[name]
		if held, ok := have.Properties[name]; ok {
			found = missingFields(found, path+"."+name, &wanted, &held)
		} else {
			found = append(found, path+"."+name)
		}
	}
	if want.Items != nil {
		var held *apiextensionsv1.JSONSchemaProps
		if have.Items != nil {
			held = have.Items.Schema
		}
		found = missingFields(found, path+"[]", want.Items.Schema, held)
	}
	if want.AdditionalProperties != nil && (have.AdditionalProperties == nil || !have.AdditionalProperties.Allows || have.AdditionalProperties.Schema != nil) {
		var held *apiextensionsv1.JSONSchemaProps
		if have.AdditionalProperties != nil {
			held = have.AdditionalProperties.Schema
		}
		found = missingFields(found, path+".*", want.AdditionalProperties.Schema, held)
	}
	return found
}
