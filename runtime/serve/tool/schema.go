// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

// InputSchema is the JSON Schema of Args.
func InputSchema() json.RawMessage { return slices.Clone(inputSchema) }

var inputSchema = json.RawMessage(`{
 "type": "object",
 "properties": {
  "path": {
   "type": "string",
   "minLength": 1,
   "maxLength": 4096,
   "description": "The image: the path of a file (PNG, JPEG, GIF, WebP or what else the model takes) in a workspace, absolute or relative to the first workspace; or a vision:// reference of an image that was uploaded or looked at before, as vision://vis_0123456789abcdef."
  },
  "prompt": {
   "type": "string",
   "minLength": 1,
   "maxLength": 65536,
   "description": "What to find out from the image, in plain words."
  },
  "model": {
   "type": "string",
   "minLength": 1,
   "maxLength": 381,
   "description": "Route of the vision model to use for this call only, as provider@endpoint/model or provider/model. Leave it out to use the policy's choice."
  }
 },
 "required": ["path", "prompt"],
 "additionalProperties": false
}`)

// errorSchema is the JSON Schema of a fault.Fault.
var errorSchema = json.RawMessage(`{
 "type": "object",
 "description": "What failed, why, and what to do instead.",
 "required": ["kind", "message", "retryable"],
 "properties": {
  "kind": {
   "type": "string",
   "description": "The stable class of the failure.",
   "enum": ["invalid_tool_input", "policy_denied", "budget_exceeded", "image_read_failed", "vision_adapter_unavailable", "quota_exceeded", "vision_observation_failed", "router_unavailable"]
  },
  "reason": {"type": "string", "description": "A stable CamelCase word that narrows kind."},
  "message": {"type": "string", "description": "One sentence, with the limit and the actual value."},
  "retryable": {"type": "boolean", "description": "Whether the same request may succeed later."},
  "recoveryHint": {"type": "string", "description": "What to do instead."},
  "details": {"type": "object", "description": "The numbers and names behind message; retry_after_seconds where the wait is known."}
 }
}`)

// object is a JSON Schema of an object, as far as this package composes them.
type object struct {
	Type        string                     `json:"type"`
	Description string                     `json:"description,omitempty"`
	Required    []string                   `json:"required,omitempty"`
	Properties  map[string]json.RawMessage `json:"properties"`
	AnyOf       []requirement              `json:"anyOf,omitempty"`
}

type requirement struct {
	Required []string `json:"required"`
}

// result is the published schema of a result, taken apart.
func result() object {
	var schema object
	mustUnmarshal(observation.ResultSchema(), &schema)
	return schema
}

// ResultSchema is the JSON Schema of a success: of an observation.Result.
func ResultSchema() json.RawMessage { return observation.ResultSchema() }

// ReferenceSchema is the JSON Schema of an observation.Reference.
func ReferenceSchema() json.RawMessage { return result().Properties["visual_reference"] }

// FailureSchema is the JSON Schema of a reply.Failure.
func FailureSchema() json.RawMessage {
	properties := result().Properties
	return mustMarshal(object{
		Type:        "object",
		Description: "The answer to a call that failed, with what was known of the image.",
		Required:    []string{"error"},
		Properties: map[string]json.RawMessage{
			"error":            errorSchema,
			"visual_reference": properties["visual_reference"],
			"vision_selection": properties["vision_selection"],
		},
	})
}

// OutputSchema is the JSON Schema of whatever a call answers, a success or a
// failure: the published schema of a result, with an error in place of what is
// missing. A host that validates structured content can validate both.
func OutputSchema() json.RawMessage {
	schema := result()
	success := requirement{Required: schema.Required}
	schema.Description = "The answer to one look at an image; on failure, the error and what was known of the image."
	schema.Required = nil
	schema.Properties = maps.Clone(schema.Properties)
	schema.Properties["error"] = errorSchema
	schema.AnyOf = []requirement{success, {Required: []string{"error"}}}
	return mustMarshal(schema)
}

// mustUnmarshal and mustMarshal take the program's own constants, which tests read.
func mustUnmarshal(data []byte, into any) {
	if err := json.Unmarshal(data, into); err != nil {
		panic("tool: embedded schema: " + err.Error())
	}
}

func mustMarshal(schema object) json.RawMessage {
	data, err := json.Marshal(schema)
	if err != nil {
		panic("tool: embedded schema: " + err.Error())
	}
	return data
}
