// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider is the seam between the engine and the wire protocols: one
// folder below it per protocol, each implementing Observer. The decorators in
// provider/transport make their HTTP clients.
package provider

import "context"

// Observer sends one image with its instructions to one model of one endpoint
// and returns the model's text. It judges nothing, and what it asks twice is
// only a question whose structured output was refused. Errors are *fault.Fault;
// provider/retry reads from them whether to try again.
type Observer interface {
	Observe(ctx context.Context, req Request) (Reply, error)
}

// Sizer is implemented by an Observer that can tell the exact size in bytes of
// the HTTP body it would send, before it sends anything.
type Sizer interface {
	RequestBytes(req Request) int64
}

// Lister is implemented by an Observer whose protocol has a list of models.
type Lister interface {
	// List asks the endpoint which models it serves. Errors are *fault.Fault.
	List(ctx context.Context) ([]Listed, error)
}

// Listed is one model as an endpoint lists it.
type Listed struct {
	// Name is what Request.Model takes.
	Name string
	// ImageInput is what the endpoint says; Unknown when it does not tell, as
	// most lists do not.
	ImageInput Answer
	// ContextWindowTokens and MaxOutputTokens are 0 when the list does not tell.
	ContextWindowTokens int64
	MaxOutputTokens     int64
}

// Answer is yes, no, or nothing said.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	Yes
	No
)

// Request is one look at one image, in no vendor's terms.
type Request struct {
	// Model is the name as the endpoint knows it; it may contain slashes.
	Model string
	// Instructions are the system text, Prompt the caller's task.
	Instructions string
	Prompt       string
	Image        Image
	// Schema, when set, asks for structured output.
	Schema *OutputSchema
	// MaxOutputTokens caps the reply; 0 leaves it to the endpoint.
	MaxOutputTokens int64
	// BeforeLarge, when set, is called before more than SmallReply bytes of the
	// reply are read. It may wait; its error ends the call.
	BeforeLarge func(context.Context) error
}

// SmallReply is what an Observer may hold of any reply, in bytes: 128 KiB, eight
// bytes for each token of the longest observation that is asked for.
const SmallReply = 128 << 10

// Image is the bytes of one image and the media type found in them.
type Image struct {
	MediaType string
	Data      []byte
}

// OutputSchema names a JSON Schema (draft 2020-12, strict-mode subset).
type OutputSchema struct {
	Name string
	JSON []byte
}

// Reply is a model's answer.
type Reply struct {
	// Text is the reply's text, never blank.
	Text string
	// Model is the name that the endpoint says answered; may be empty.
	Model string
	Usage Usage
}

// Usage is what the endpoint says it counted, in tokens; 0 when it said nothing.
type Usage struct {
	InputTokens  int64
	OutputTokens int64
}
