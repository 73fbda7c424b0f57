// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight admits, degrades or refuses the images of one request
// before any network call: policy budgets, vendor limits, tokens and the
// candidate model, as a chain of named checks over facts. It is pure and
// deterministic: the same request gets the same decisions, on every machine.
package preflight

import (
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Input is all that the decisions depend on.
type Input struct {
	// Limits are the policy's.
	Limits router.Limits
	// Candidate is the model that the request is for.
	Candidate Candidate
	// Images are all of the request, in message order.
	Images []Image
	// TextBytes counts what the model reads as text, images left out.
	TextBytes int64
	// BodyBytes is the request as it would be sent; 0 when not known.
	BodyBytes int64
	// MaxOutputTokens is what the request reserves for the answer; 0 when it does not say.
	MaxOutputTokens int64
}

// Candidate is a model as preflight needs it.
type Candidate struct {
	// Route names it in messages; Model is the wire's name.
	Route, Model string
	// Transport and Host tell the vendor's own limits.
	Transport, Host string
	// Declared is what the provider declares of the model; nil for one it does not.
	Declared *router.Model
}

// Image is one occurrence of an image in a request.
type Image struct {
	// ID names the occurrence in decisions, such as "messages[3].content[1]".
	ID string
	// SHA256 names the content; "" when it is not known (a remote image).
	SHA256 string
	// Bytes is the raw size, 0 when unknown; Base64Bytes what the wire carries.
	Bytes, Base64Bytes int64
	MediaType          string
	Width, Height      int // 0 when unknown
	Orientation        int // EXIF 1..8, 0 when not told
	Animated           bool
	Detail             string
	// Required images are never shed: those of the newest human message, and of
	// results that answer the newest assistant message.
	Required bool
	// Bad is why the image cannot be used at all (not an image, type and declared
	// type differ, changed file); nil when it can.
	Bad *fault.Fault
	// InHistory orders shedding: the turn it stands in.
	Turn int
}

// Outcome is what became of one image.
type Outcome string

// The outcomes.
const (
	Admitted Outcome = "admitted"
	// Degraded: left out, with a constant text note in its place.
	Degraded Outcome = "degraded"
	// Refused: required and not admissible; the request is refused.
	Refused Outcome = "refused"
)

// Decision is the record of one image.
type Decision struct {
	ID       string  `json:"id"`
	SHA256   string  `json:"sha256,omitempty"`
	Required bool    `json:"required"`
	Outcome  Outcome `json:"outcome"`
	// Reason is a stable CamelCase word; Message gives the limit, its source and the value.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Tokens is the estimate, and Basis the rule behind it.
	Tokens int64  `json:"tokens"`
	Basis  string `json:"basis,omitempty"`
}

// Tokens are the sums of a request, as estimated.
type Tokens struct {
	Text   int64 `json:"text"`
	Images int64 `json:"images"`
	// Output is what is reserved for the answer, Window the model's context
	// window, Headroom what is kept free of it; 0 window means unknown, and the
	// check was skipped.
	Output   int64 `json:"output"`
	Window   int64 `json:"window,omitempty"`
	Headroom int64 `json:"headroom,omitempty"`
}

// Verdict is the answer for one candidate.
type Verdict struct {
	Allowed bool
	// Refusal is set when not allowed.
	Refusal   *fault.Fault
	Decisions []Decision
	Tokens    Tokens
	// Warnings tell of what is not refused: skipped checks, estimates near a limit.
	Warnings []string
}
