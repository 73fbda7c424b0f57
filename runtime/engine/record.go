// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
)

// Record is what was decided about a model request: what headers, the log and
// metrics tell of it. It holds no content.
type Record struct {
	// Route is the model's, in the policy's words.
	Route string
	// Form is how images are shown to it: one of router's Injection modes, but for
	// InjectionAuto.
	Form string
	// Sights are the images that tools and humans named, in their order.
	Sights []Sighted
	// Skipped counts, by reason, what named an image and is no sight.
	Skipped map[string]int
	// Injected counts the images that were put in, Observed those that are shown as
	// text, Degraded those that were left out for a limit, and Unavailable the
	// sights whose image could not be shown.
	Injected, Observed, Degraded, Unavailable int
	// Edits are where the body differs from the client's.
	Edits []message.Range
	// Tokens are estimates; nil when the request has no images.
	Tokens *preflight.Tokens
	// Decisions are those about the body's own images and the sights, by turn.
	Decisions []preflight.Decision
	// HistoryNotVisible says that the vendor keeps the conversation, so that what
	// was said there is not counted.
	HistoryNotVisible bool
	// SignaturesDropped says that signed reasoning was left out, because its vendor
	// had refused it beside an edit.
	SignaturesDropped bool
	Warnings          []string
}

// Outcomes of a sight.
const (
	SightInjected    = "injected"
	SightObserved    = "observed"
	SightDegraded    = "degraded"
	SightUnavailable = "unavailable"
	SightShown       = "shown" // by the tool or the client already
)

// Sighted is what became of a sight.
type Sighted struct {
	ID      string `json:"id"`
	CallID  string `json:"callID,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	Outcome string `json:"outcome"`
	// Reason is a stable CamelCase word; "" for images that are shown.
	Reason string `json:"reason,omitempty"`
}
