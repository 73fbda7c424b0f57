// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

var (
	reference = observation.NewReference("/w/a.png", strings.Repeat("ab", 32), "image/png", 70, 2, 3)
	selection = &observation.Selection{
		SelectedMode: observation.ModeUnavailable, SelectionReason: observation.ReasonNone, Candidates: []observation.Candidate{},
	}
	whole = &observation.Result{
		VisualReference: reference,
		Observation: &observation.Observation{
			Type: "visual_observation", Schema: observation.Schema, VisualReferenceID: reference.ID, Prompt: "p",
			GeneratedBy: observation.GeneratedBy{Mode: observation.ModeAdapter}, Summary: "s", Uncertainties: []string{},
		},
		VisionSelection: selection,
	}
	failure = reply.NewFailure(fault.New(fault.VisionAdapterUnavailable, "None", "m").With("n", 1).Hint("h"), &observation.Result{
		VisualReference: reference, VisionSelection: selection,
	})
	bare = reply.NewFailure(fault.New(fault.PolicyDenied, "", "m"), nil)
)

func TestEachSchemaAcceptsWhatItDescribesAndNothingElse(t *testing.T) {
	tests := []struct {
		name   string
		schema json.RawMessage
		value  any
		valid  bool
	}{
		{"a result is a result", tool.ResultSchema(), whole, true},
		{"a failure is no result", tool.ResultSchema(), failure, false},
		{"a failure with its image is a failure", tool.FailureSchema(), failure, true},
		{"a failure without an image is a failure", tool.FailureSchema(), bare, true},
		{"a result is no failure", tool.FailureSchema(), whole, false},
		{"a result is an output", tool.OutputSchema(), whole, true},
		{"a failure with its image is an output", tool.OutputSchema(), failure, true},
		{"a failure without an image is an output", tool.OutputSchema(), bare, true},
		{"an empty object is no output", tool.OutputSchema(), map[string]any{}, false},
		{"half a result is no output", tool.OutputSchema(), map[string]any{"visual_reference": reference, "cached": false}, false},
		{"a failure of an unknown kind is no output", tool.OutputSchema(), reply.NewFailure(fault.New("odd", "", "m"), nil), false},
		{"arguments are arguments", tool.InputSchema(), tool.Args{Path: "a", Prompt: "b"}, true},
		{"a blank path is none", tool.InputSchema(), tool.Args{Prompt: "b"}, false},
		{"another field is refused", tool.InputSchema(), map[string]any{"path": "a", "prompt": "b", "x": "y"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var schema jsonschema.Schema
			if err := json.Unmarshal(test.schema, &schema); err != nil {
				t.Fatal(err)
			}
			resolved, err := schema.Resolve(nil)
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(test.value)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(data, &value); err != nil {
				t.Fatal(err)
			}
			if err := resolved.Validate(value); (err == nil) != test.valid {
				t.Errorf("valid: %t; got %v for %s", test.valid, err, data)
			}
		})
	}
}

func TestTheErrorSchemaDescribesEveryFieldOfAFault(t *testing.T) {
	var schema struct {
		Properties struct {
			Error struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(tool.FailureSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	described := schema.Properties.Error.Properties
	shown := 0
	for i := range reflect.TypeFor[fault.Fault]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[fault.Fault]().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		shown++
		if described[name] == nil {
			t.Errorf("%s is not described", name)
		}
	}
	if shown != len(described) {
		t.Errorf("%d fields are shown, %d described", shown, len(described))
	}
}

func TestSchemasAreOwnedByTheirCallers(t *testing.T) {
	for name, schema := range map[string]func() json.RawMessage{
		"input": tool.InputSchema, "result": tool.ResultSchema, "failure": tool.FailureSchema, "output": tool.OutputSchema,
	} {
		clear(schema())
		if !json.Valid(schema()) {
			t.Errorf("%s: a caller changed the schema of another", name)
		}
	}
}
