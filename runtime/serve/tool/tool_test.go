// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

func TestArgumentsAreTakenAsTheyAre(t *testing.T) {
	tests := []struct {
		name, raw string
		want      tool.Args
	}{
		{"path and prompt", `{"path":"/w/a.png","prompt":"read it"}`, tool.Args{Path: "/w/a.png", Prompt: "read it"}},
		{"a model", `{"model":"p@e/m","path":"a","prompt":"b"}`, tool.Args{Path: "a", Prompt: "b", Model: "p@e/m"}},
		{"a prompt that looks like a number stays text", `{"path":"a","prompt":"42"}`, tool.Args{Path: "a", Prompt: "42"}},
		{"a prompt that looks like a boolean stays text", `{"path":"a","prompt":"true"}`, tool.Args{Path: "a", Prompt: "true"}},
		{"a prompt that looks like JSON stays text", `{"path":"a","prompt":"{\"x\":[1]}"}`, tool.Args{Path: "a", Prompt: `{"x":[1]}`}},
		{"a prompt that looks like null stays text", `{"path":"a","prompt":"null"}`, tool.Args{Path: "a", Prompt: "null"}},
		{"blanks are kept for the engine to judge", `{"path":" a ","prompt":""}`, tool.Args{Path: " a "}},
		{"escapes and other scripts", `{"path":"a\u00e9\n","prompt":"读 \ud83d\ude00"}`, tool.Args{Path: "aé\n", Prompt: "读 😀"}},
		{"white space around", " \n{\"path\":\"a\",\"prompt\":\"b\"}\n ", tool.Args{Path: "a", Prompt: "b"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := tool.Decode([]byte(test.raw))
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	tests := []struct {
		name, raw, reason, field string
	}{
		{"nothing", ``, "MalformedArguments", ""},
		{"null", `null`, "MalformedArguments", ""},
		{"an array", `[{"path":"a","prompt":"b"}]`, "MalformedArguments", ""},
		{"a string", `"{}"`, "MalformedArguments", ""},
		{"an object that breaks off", `{"path":"a","prompt":"b"`, "MalformedArguments", ""},
		{"a value that breaks off", `{"path":`, "MalformedArguments", ""},
		{"a comma too many", `{"path":"a","prompt":"b",}`, "MalformedArguments", ""},
		{"a second object behind", `{"path":"a","prompt":"b"}{}`, "MalformedArguments", ""},
		{"garbage behind", `{"path":"a","prompt":"b"} x`, "MalformedArguments", ""},
		{"text that is not UTF-8", "{\"path\":\"a\xff\",\"prompt\":\"b\"}", "MalformedArguments", ""},
		{"an unknown field", `{"path":"a","prompt":"b","detail":"high"}`, "FieldUnknown", "detail"},
		{"a field in other letters", `{"Path":"a","prompt":"b"}`, "FieldUnknown", "Path"},
		{"an unknown field is named before a missing one", `{"image":"a"}`, "FieldUnknown", "image"},
		{"a field twice", `{"path":"a","path":"b","prompt":"c"}`, "FieldTwice", "path"},
		{"a prompt that is a number", `{"path":"a","prompt":42}`, "FieldType", "prompt"},
		{"a prompt that is a boolean", `{"path":"a","prompt":true}`, "FieldType", "prompt"},
		{"a path that is a list", `{"path":["a"],"prompt":"b"}`, "FieldType", "path"},
		{"a model that is an object", `{"path":"a","prompt":"b","model":{}}`, "FieldType", "model"},
		{"a model that is null", `{"path":"a","prompt":"b","model":null}`, "FieldType", "model"},
		{"no path", `{"prompt":"b"}`, "FieldMissing", "path"},
		{"no prompt", `{"path":"a"}`, "FieldMissing", "prompt"},
		{"nothing inside", `{}`, "FieldMissing", "path"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := tool.Decode([]byte(test.raw))
			f, ok := errors.AsType[*fault.Fault](err)
			if !ok || f.Kind != fault.InvalidToolInput || f.Reason != test.reason {
				t.Fatalf("got %#v; want reason %s", err, test.reason)
			}
			if field, _ := f.Details["field"].(string); field != test.field {
				t.Errorf("field is %q; want %q", field, test.field)
			}
			if test.field != "" && !strings.Contains(f.Message, test.field) {
				t.Errorf("message %q does not name the field", f.Message)
			}
		})
	}
}

func TestALongNameIsNotShownWhole(t *testing.T) {
	_, err := tool.Decode([]byte(`{"` + strings.Repeat("é", 5000) + `":1}`))
	if f := fault.As(err); len(f.Message) > 300 || f.Reason != "FieldUnknown" {
		t.Errorf("got %d bytes, reason %s", len(f.Message), f.Reason)
	}
}

func TestTheInputSchemaListsTheFieldsOfArgs(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Type, Description string
			MaxLength         int
		}
		Required             []string
		AdditionalProperties *bool
	}
	if err := json.Unmarshal(tool.InputSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	if schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Error("the schema permits other fields")
	}
	args := reflect.TypeFor[tool.Args]()
	if args.NumField() != len(schema.Properties) {
		t.Errorf("%d fields, %d properties", args.NumField(), len(schema.Properties))
	}
	for i := range args.NumField() {
		name, options, _ := strings.Cut(args.Field(i).Tag.Get("json"), ",")
		property, ok := schema.Properties[name]
		if !ok || property.Type != "string" || property.Description == "" {
			t.Errorf("property %s is %+v", name, property)
		}
		if required := options == ""; required != slices.Contains(schema.Required, name) {
			t.Errorf("%s: required in Go %t, not so in the schema", name, required)
		}
	}
}

func TestEachArgumentMayBeAsLongAsItsSchemaSays(t *testing.T) {
	var schema struct {
		Properties map[string]struct{ MaxLength int }
	}
	if err := json.Unmarshal(tool.InputSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	for name, most := range map[string]int{"path": tool.MaxPath, "prompt": tool.MaxPrompt, "model": tool.MaxModel} {
		if schema.Properties[name].MaxLength != most {
			t.Errorf("%s: the schema says %d; want %d", name, schema.Properties[name].MaxLength, most)
		}
		arguments := map[string]string{"path": "a", "prompt": "b"}
		for extra, reason := range map[int]string{0: "", 1: "FieldTooLong"} {
			arguments[name] = strings.Repeat("é", most+extra)
			raw, _ := json.Marshal(arguments)
			_, err := tool.Decode(raw)
			if reason == "" {
				if err != nil {
					t.Errorf("%s of %d characters: %v", name, most, err)
				}
				continue
			}
			f := fault.As(err)
			if f.Reason != reason || f.Details["field"] != name || f.Details["max_char_count"] != most || f.Details["char_count"] != most+1 || len(f.Message) > 100 {
				t.Errorf("%s of %d characters: %v, %v", name, most+1, f, f.Details)
			}
		}
	}
}

func TestTheDescriptionNamesTheFourUses(t *testing.T) {
	for _, use := range []string{"screenshots", "code review", "documents", "diagnose visual problems", "charts", "tables"} {
		if !strings.Contains(tool.Description, use) {
			t.Errorf("%q is not named", use)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a","prompt":"42","model":"p@e/m"}`, `{"path":"a","prompt":42}`, `{}`, `[]`, `{"path":"a"`, "{\"a\xff\":1}", `{"path":{"path":"a"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, err := tool.Decode(raw)
		if err != nil {
			if f := fault.As(err); f.Kind != fault.InvalidToolInput || f.Message == "" {
				t.Fatalf("got %v", err)
			}
			return
		}
		// What is accepted is one object whose values are these very strings.
		var fields map[string]string
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatalf("accepted %q: %v", raw, err)
		}
		if fields["path"] != args.Path || fields["prompt"] != args.Prompt || fields["model"] != args.Model {
			t.Fatalf("%q was read as %+v", raw, args)
		}
	})
}
