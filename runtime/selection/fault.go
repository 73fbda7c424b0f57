// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func perCallDenied(model string) *fault.Fault {
	return fault.New(fault.PolicyDenied, "PerCallModelDenied", "the policy lets no call choose a model").
		With("field", "model").With("model", clip(model)).Hint("Call again without model.")
}

func badRoute(err error) *fault.Fault {
	return fault.New(fault.InvalidToolInput, "InvalidRoute", "model is not a route: want provider@endpoint/model or provider/model").
		With("field", "model").Hint("Call again without model, or with a route that the policy allows.").Because(err)
}

func notAllowed(route router.Route, perCall bool) *fault.Fault {
	f := fault.New(fault.PolicyDenied, "ModelNotAllowed", "the policy does not allow the model %s", route).With("model", route.String())
	if perCall {
		return f.With("field", "model").Hint("Call again without model, or with one that the policy allows.")
	}
	return f.Hint("Ask the platform team: the policy's default model is not among its allowed models.")
}

// unavailableWhy gives, for each candidate's reason, the fault's reason and the words.
var unavailableWhy = map[observation.Reason]struct{ reason, words string }{
	observation.ReasonUnknownRoute:         {"RouteNotInRouter", "is not in the router"},
	observation.ReasonLacksImageInput:      {"ModelLacksImageInput", "takes no images"},
	observation.ReasonTransportUnsupported: {"TransportUnsupported", "speaks a protocol that this runtime does not speak yet"},
	observation.ReasonCredentialNotMounted: {"CredentialNotMounted", "has a provider whose key is not mounted in this pod"},
}

// namedUnavailable refuses a route that was named; choice is nil when the router has it not.
func (c *chooser) namedUnavailable(route router.Route, choice *Choice, reason observation.Reason) *fault.Fault {
	why, hint := unavailableWhy[reason], "Name another model, or ask the platform team to make this one usable."
	switch _, listed := c.listOf(route); {
	case choice == nil && listed && reason == observation.ReasonUnknownRoute:
		why.words = "is not in the router, and its endpoint is not known to list it"
	case choice != nil && choice.Discovered && reason == observation.ReasonLacksImageInput:
		why.words = "is not known to take images"
		hint = "Name another model, or ask the platform team to declare this one with imageInput."
	}
	return fault.New(fault.VisionAdapterUnavailable, why.reason, "the model %s %s; no other is used in its place", route, why.words).
		With("model", route.String()).Hint("%s", hint)
}

// maxUnlisted bounds the endpoints that a fault names.
const maxUnlisted = 8

// noCandidate refuses an automatic choice. An endpoint that should list its
// models and gave none is no candidate, so the fault names it: the list may
// come later.
func (c *chooser) noCandidate() *fault.Fault {
	f := fault.New(fault.VisionAdapterUnavailable, "NoCandidate", "no model of the policy can look at images").
		Hint("Ask the platform team for a provider with a model that takes images.")
	var unlisted []string
	for at := range c.catalog.Discoverable() {
		name := at.Route.Provider + "@" + at.Route.Endpoint
		switch {
		case len(unlisted) == maxUnlisted:
		case c.Unmounted[at.Provider.Name]:
			unlisted = append(unlisted, name+" "+string(observation.ReasonCredentialNotMounted))
		case c.Discovered == nil || len(c.Discovered(at.Provider, at.Endpoint.Name)) == 0:
			unlisted = append(unlisted, name+" no_models_listed")
			f.Retryable = true
		}
	}
	if unlisted == nil {
		return c.withoutKeys(f)
	}
	return f.With("unlisted", unlisted).
		Hint("Call again later, or ask the platform team: endpoints that should list their models gave no list.")
}

// withoutKeys asks for a key in place of a model, where one could look if it had a key.
func (c *chooser) withoutKeys(f *fault.Fault) *fault.Fault {
	for _, candidate := range c.selection.Candidates {
		if candidate.Reason == observation.ReasonCredentialNotMounted {
			return f.Hint("Ask the platform team for the provider's key, which is not mounted; the candidates say whose.")
		}
	}
	return f
}

// against is what Check said of the first candidate that it spoke against.
func (c *chooser) against() *fault.Fault {
	if c.checked.Kind == fault.VisionAdapterUnavailable {
		return c.unavailable(c.checked)
	}
	return c.checked
}

// unavailable adds what was examined to a fault.
func (c *chooser) unavailable(f *fault.Fault) *fault.Fault {
	s := &c.selection
	f.With("selected_mode", s.SelectedMode).With("selection_reason", s.SelectionReason).With("candidates", s.Candidates)
	if s.PrimaryModel != "" {
		f.With("primary_provider", s.PrimaryProvider).With("primary_model", s.PrimaryModel)
	}
	return f
}

// clip bounds a caller's text in details, in bytes.
func clip(s string) string { return s[:min(len(s), 253)] }
