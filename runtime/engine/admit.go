// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/base64"

	"github.com/visionoperator/vision-operator/runtime/downscale"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/selection"
	"github.com/visionoperator/vision-operator/runtime/tokens"
	"github.com/visionoperator/vision-operator/runtime/vendors"
)

// check says what stands against a choice beside the router: that no connection
// can be made, or what preflight has against the image for that model. What was
// admitted is kept for when the model is asked.
func (l *look) check(choice *selection.Choice) (observation.Reason, *fault.Fault) {
	client := l.snapshot.clientOf(choice)
	if client.err != nil {
		return observation.ReasonEndpointInvalid, fault.New(fault.VisionAdapterUnavailable, "EndpointInvalid", "the endpoint of %s is not usable", choice.Route).
			With("model", choice.Route.String()).Hint("Ask the platform team to check the endpoint's caBundle.").Because(client.err)
	}
	admitted, bad := l.admit(choice, client)
	if bad != nil {
		return observation.ReasonOverLimit, bad
	}
	if l.admitted == nil {
		l.admitted = map[router.Route]admission{}
	}
	l.admitted[choice.Route] = admitted
	return "", nil
}

// admission is what preflight found for one model.
type admission struct {
	tokens preflight.Tokens
	// copy is what a smaller copy must keep to that is sent in the image's place,
	// because the image itself was refused; nil when it is sent itself.
	copy    *downscale.Limits
	refused *fault.Fault
}

// admit sends the look through the chain of preflight, as a request of one
// required image to one model.
func (l *look) admit(choice *selection.Choice, c *client) (admission, *fault.Fault) {
	terms, in := l.snapshot.termsOf(choice, c), l.facts(choice, c)
	verdict := terms.Review(in)
	if !verdict.Allowed {
		return l.shrink(terms, in, refusal(verdict.Refusal))
	}
	return admission{tokens: verdict.Tokens}, nil
}

// exactBody is from which length of image and text on a request is laid out to know
// its own: 2 MiB, half of the least limit on requests that a vendor publishes. Where
// the provider declares one, it always is.
const exactBody = 2 << 20

// escaped is how many bytes of JSON a byte of text may become.
const escaped = 6

// candidate is a choice as preflight knows it.
func candidate(choice *selection.Choice, c *client) preflight.Candidate {
	return preflight.Candidate{
		Route: choice.Route.String(), Model: choice.Model.Name,
		Transport: choice.Provider.Transport, Host: c.host, Declared: choice.Model,
	}
}

// facts are what preflight judges, by the terms of a choice.
func (l *look) facts(choice *selection.Choice, c *client) preflight.Input {
	pic, asked := l.picture, ask(choice, l.picture, l.request.Prompt)
	sent := int64(base64.StdEncoding.EncodedLen(len(pic.data)))
	in := preflight.Input{
		Images: []preflight.Image{{
			SHA256: pic.reference.SHA256, Bytes: int64(len(pic.data)), Base64Bytes: sent, Source: vendors.SourceBase64,
			MediaType: pic.facts.MediaType, Width: pic.facts.Width, Height: pic.facts.Height,
			Orientation: pic.facts.Orientation, Animated: pic.facts.Animated == probe.Yes, Required: true,
		}},
		TextBytes:       int64(len(asked.Instructions) + len(asked.Prompt) + len(asked.Schema.JSON)),
		MaxOutputTokens: asked.MaxOutputTokens,
	}
	if limits := choice.Model.Limits; sent+escaped*in.TextBytes > exactBody || limits != nil && limits.MaxRequestBytes > 0 {
		in.BodyBytes = c.wire.RequestBytes(asked)
	}
	return in
}

// refusal words a fault of preflight for a look: the image is the one of the path,
// and the length of the look's own body is not the caller's.
func refusal(f *fault.Fault) *fault.Fault {
	f.HTTPStatus = 0
	if f.Kind == fault.InvalidToolInput {
		f.With("field", fieldPath)
	}
	return f
}

// clamp lowers what a model may write to what its context window leaves, where
// that is known, after the image and the text. Of a small window no more is kept
// free than preflight keeps.
func (a *admission) clamp(asked provider.Request) provider.Request {
	input := a.tokens.Text + a.tokens.Images
	fits := tokens.ClampOutput(asked.MaxOutputTokens, a.tokens.Window, input)
	asked.MaxOutputTokens = max(fits, min(asked.MaxOutputTokens, a.tokens.Window-input-a.tokens.Headroom))
	return asked
}
