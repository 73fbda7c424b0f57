// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// Request asks for one look at one image. Text is taken as it is: a prompt of
// "42" or "true" is a prompt.
type Request struct {
	// Path is the image's path as the agent knows it: absolute and within a
	// workspace, or relative to the first one; or the "vision://" URI of an image
	// that was uploaded or looked at before.
	Path string
	// Prompt is what the caller wants to know. Surrounding white space is dropped.
	Prompt string
	// Model is a route for this call only, "provider@endpoint/model"; empty takes
	// the policy's default, and "auto" the first model that can see, whatever the
	// default is.
	Model string
	// PrimaryModel is the caller's own model, as a route, when the caller says
	// so. It is reported in the selection, and an automatic choice tries it first,
	// where the policy lets calls name a model at all.
	PrimaryModel string
}

// Fields of a Request as callers spell them, for details.field.
const (
	fieldPath   = "path"
	fieldPrompt = "prompt"
)

// checkRequest refuses blank arguments and returns the request trimmed.
func checkRequest(req Request) (Request, *fault.Fault) {
	for _, arg := range []struct{ field, value string }{{fieldPath, req.Path}, {fieldPrompt, req.Prompt}} {
		if strings.TrimSpace(arg.value) == "" {
			return req, fault.New(fault.InvalidToolInput, "Blank", "%s must not be empty", arg.field).
				With("field", arg.field).Hint("Call again with a %s.", arg.field)
		}
	}
	req.Prompt = strings.TrimSpace(req.Prompt)
	req.Model = strings.TrimSpace(req.Model)
	req.PrimaryModel = strings.TrimSpace(req.PrimaryModel)
	return req, nil
}
