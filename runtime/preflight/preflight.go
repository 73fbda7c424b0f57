// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight admits, degrades or refuses the images of one request
// before any network call: policy budgets, vendor limits, tokens and the
// candidate model, as a chain of named checks over facts. It is pure and
// deterministic: the same request gets the same decisions, on every machine.
//
// # What is never taken back
//
// An image that one request of a conversation left out is left out of every
// later request of it, so that a vendor's prompt cache stays valid and a model
// never sees the past change. No state is kept for that: Review replays the
// conversation turn by turn, labels each image as it was labelled then, and
// sheds at each turn what a request that ended there would have shed. What is
// shed stays shed. So for a request A and a request B that is A with turns
// appended, every image that Review leaves out of A is left out of B, with the
// same reason and the same note, provided that
//
//   - limits, candidate, output limit and whatever stands beside the turns
//     (instructions, tools) are the same,
//   - the turns tell their bytes, as those of TurnsOf do: a request that ended
//     earlier is measured by them, and
//   - A's facts are B's: an image keeps its sha256, size, type and marks (Required,
//     Soft, Untouchable), and a turn whether it is signed. A file that may not be
//     opened any more (ProbePaths), and of which the caller knows nothing else, loses
//     them: it stays a note, but weighs nothing in the turns where it once did.
//
// It holds for occurrences: a content that was shed and is shown again in a later
// turn is admitted there, and stays a note where it stood. A request that had to
// be refused sheds nothing, since it was never sent; what is bad about an image
// of it by itself makes that image a note once it is history.
//
// # What goes first
//
// Where a request is over a rule, what is optional goes, the oldest first; where a
// rule would then still refuse, what is soft goes, the oldest first; what is required
// refuses. What is untouchable stays and counts.
//
// A vendor that signs a model's reasoning holds the conversation before it to what
// it was. So optional images that a signed turn follows go in steps: with the first
// that has to go, the oldest other ones go too, up to four of them, at that turn and
// for the same reason. That prefix is then edited once for every four images, not
// for each of them. What a step takes depends on the turns up to it alone, as all
// that is shed does.
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
	// Turns are the conversation, in order. Without any, all images count as of
	// one turn, and only those that say so themselves are required.
	Turns []Turn
	// Images are all of the request, in message order.
	Images []Image
	// TextBytes counts what the model reads as text, images left out:
	// instructions and tools as well as the turns.
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
	// Declared is what the provider declares of the model; nil for one it does
	// not, which is then taken to see.
	Declared *router.Model
}

// name is the candidate in messages.
func (c *Candidate) name() string {
	if c.Route != "" {
		return "the model " + c.Route
	}
	if c.Model != "" {
		return "the model " + c.Model
	}
	return "the model"
}

// Image is one occurrence of an image in a request.
type Image struct {
	// ID names the occurrence in decisions, such as "messages[3].content[1]".
	ID string
	// SHA256 names the content; "" when it is not known (a remote image), which
	// makes the occurrence a content of its own.
	SHA256 string
	// Bytes is the raw size, 0 when unknown; Base64Bytes what the body carries,
	// 0 for an image that it only names.
	Bytes, Base64Bytes int64
	// Source is how the body gives the image, in the words of package vendors:
	// base64, url or file; "" when that is not to be checked.
	Source        string
	MediaType     string // "" when unknown
	Width, Height int    // 0 when unknown
	Orientation   int    // EXIF 1..8, 0 when not told
	Animated      bool
	Detail        string
	// Turn is the index in Input.Turns of the turn that the image stands in.
	Turn int
	// InResult says that the image stands within a tool's result. In a turn of
	// Results every image does.
	InResult bool
	// Required makes the image required whatever the turns say, such as one in
	// whose place no text may stand. Those of the newest human message, and those
	// in results that answer the newest assistant message, are required without it.
	Required bool
	// Soft says that the image never refuses a request, whatever makes it required:
	// it is one that nobody sent, such as one that a tool's result only names. While
	// it is required it goes behind all that is optional, the oldest first, where a
	// rule would refuse for it; and at once when it is of no use by itself. Once its
	// turn is history it is as any other. What has gone stays gone.
	Soft bool
	// Untouchable says that the image stays whatever it is: one of the assistant's
	// own turns. It is admitted always and never required. It counts, but for the
	// limits of one message: optional images make room for it. For it alone nothing
	// is refused; but where something is required, the model and its vendor count it
	// beside that, as they do when the request is sent. The policy does not.
	Untouchable bool
	// Until is the turn, as an index in Input.Turns, from which on the image stands
	// in the conversation no more, such as one that the policy keeps for the current
	// turn alone; 0 when it stays. Before that it counts as it did then, so that what
	// was left out beside it stays left out. Its decision is of that time.
	Until int
	// Bad is why the image cannot be used at all (not an image, type and declared
	// type differ, changed file); nil when it can.
	Bad *fault.Fault
}

// Outcome is what became of one image.
type Outcome string

// The outcomes.
const (
	Admitted Outcome = "admitted"
	// Degraded: left out, with a constant text note in its place; see Note.
	Degraded Outcome = "degraded"
	// Refused: required and not admissible; the request is refused.
	Refused Outcome = "refused"
)

// Decision is the record of one image.
type Decision struct {
	ID     string `json:"id"`
	SHA256 string `json:"sha256,omitempty"`
	// Required says that the request is refused rather than sent without the image;
	// false for one that is soft.
	Required bool    `json:"required"`
	Outcome  Outcome `json:"outcome"`
	// Reason is a stable CamelCase word; Message gives the limit, its source and the value.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Tokens is the estimate, and Basis the rule behind it; of an image that is
	// left out, what it would have cost.
	Tokens int64  `json:"tokens"`
	Basis  string `json:"basis,omitempty"`
}

// Tokens are the sums of a request, as estimated.
type Tokens struct {
	Text int64 `json:"text"`
	// Images is the sum over what is admitted, every occurrence.
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
	Refusal *fault.Fault
	// Decisions are one for each image, in message order.
	Decisions []Decision
	Tokens    Tokens
	// Warnings tell of what is not refused: skipped checks, estimates near a limit.
	Warnings []string
}

// Review judges the images of a request for one candidate. It reads the input
// and keeps nothing of it; its time grows with n log n of the images.
//
// Three stages: each image by itself, in the order of imageChecks; then the
// request as it grew, turn by turn, in the order of requestRules; then the
// record. A refusal is that of the first check that has one. What text is estimated
// to cost makes optional images go, and never refuses.
func Review(in Input) Verdict { return review(&in, termsOf(&in)) }

func review(in *Input, t *terms) Verdict {
	l := newLedger(in, t)
	refusal := l.replay()
	return l.verdict(refusal)
}
