// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault is the one error type that the runtime shows to its callers:
// a stable kind, a message, and what to do about it.
//
// Every adapter (HTTP, MCP, a model proxy) renders a Fault in its own shape;
// none of them invents kinds of its own.
package fault

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Kind is a stable, documented class of failure.
type Kind string

// The kinds. Each constant says when it is used; Status gives its HTTP status.
const (
	// InvalidToolInput is a request that can never succeed as it stands: a blank
	// or unknown field, a file that is not an accepted image, a path that does not exist.
	InvalidToolInput Kind = "invalid_tool_input"
	// PolicyDenied is a request that the platform team's policy forbids: a path
	// outside the workspaces, a model that is not allowed, a profile that is gone.
	PolicyDenied Kind = "policy_denied"
	// BudgetExceeded is a request over a limit of the policy or the provider.
	BudgetExceeded Kind = "budget_exceeded"
	// ImageReadFailed is a file that was found and then could not be read whole.
	ImageReadFailed Kind = "image_read_failed"
	// VisionAdapterUnavailable is a request for which no candidate model can serve.
	VisionAdapterUnavailable Kind = "vision_adapter_unavailable"
	// QuotaExceeded is a request over a quota of the policy; RetryAfter says when it resets.
	QuotaExceeded Kind = "quota_exceeded"
	// VisionObservationFailed is a model that was called and did not answer usably.
	VisionObservationFailed Kind = "vision_observation_failed"
	// RouterUnavailable is a runtime that has never had a router document it could read.
	RouterUnavailable Kind = "router_unavailable"
)

// statuses maps each kind to the HTTP status of the runtime's own API.
var statuses = map[Kind]int{
	InvalidToolInput:         http.StatusBadRequest,
	PolicyDenied:             http.StatusForbidden,
	BudgetExceeded:           http.StatusBadRequest,
	ImageReadFailed:          http.StatusUnprocessableEntity,
	VisionAdapterUnavailable: http.StatusFailedDependency,
	QuotaExceeded:            http.StatusTooManyRequests,
	VisionObservationFailed:  http.StatusBadGateway,
	RouterUnavailable:        http.StatusServiceUnavailable,
}

// StatusTooLarge is the HTTP status of a body over a limit on bytes.
const StatusTooLarge = http.StatusRequestEntityTooLarge

// Fault is the error that callers of the runtime see. Its fields reach models
// and logs: they hold no secret, no image byte and no host path that the
// caller did not give.
type Fault struct {
	// Kind is the stable class of the failure.
	Kind Kind `json:"kind"`
	// Reason is a stable CamelCase word that narrows Kind, such as
	// "ProfileNotFound" or "OutsideWorkspace". Empty when Kind says it all.
	Reason string `json:"reason,omitempty"`
	// Message is one sentence for people, with the limit and the actual value.
	Message string `json:"message"`
	// Retryable says whether the same request may succeed later.
	Retryable bool `json:"retryable"`
	// RecoveryHint is one sentence that tells the caller what to do instead.
	RecoveryHint string `json:"recoveryHint,omitempty"`
	// Details are the numbers and names behind Message, bounded by Normalize.
	Details map[string]any `json:"details,omitempty"`
	// RetryAfter is how long to wait before trying again; zero when unknown.
	RetryAfter time.Duration `json:"-"`
	// HTTPStatus overrides the status of Kind, such as StatusTooLarge for body
	// bytes; zero means Kind's.
	HTTPStatus int `json:"-"`
	// Cause is the error underneath. It is never rendered to callers.
	Cause error `json:"-"`
}

// New returns a Fault of a kind with a reason and a message built like fmt.Sprintf.
func New(kind Kind, reason, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Error returns "kind: message".
func (f *Fault) Error() string { return string(f.Kind) + ": " + f.Message }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Status is the HTTP status to answer with.
func (f *Fault) Status() int {
	if f.HTTPStatus != 0 {
		return f.HTTPStatus
	}
	if s, ok := statuses[f.Kind]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// With adds one detail and returns the same Fault.
func (f *Fault) With(key string, value any) *Fault {
	if f.Details == nil {
		f.Details = map[string]any{}
	}
	f.Details[key] = value
	return f
}

// Hint sets the recovery hint and returns the same Fault.
func (f *Fault) Hint(format string, args ...any) *Fault {
	f.RecoveryHint = fmt.Sprintf(format, args...)
	return f
}

// Because sets the cause and returns the same Fault.
func (f *Fault) Because(err error) *Fault {
	f.Cause = err
	return f
}

// As returns the Fault in err's chain. An error that carries none becomes a
// VisionObservationFailed whose message is fixed, so that foreign text never
// reaches a caller unread.
func As(err error) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return New(VisionObservationFailed, "Internal", "the vision runtime failed unexpectedly").Because(err)
}
