// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strconv"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// ErrorBody is a refusal of ours in the shape of a dialect's own errors, ready to
// be sent with its status: what the vendor's SDKs turn into their typed errors.
// The fault's kind is the code, its message and hint are the message, and the
// member that its details name as field is the param. Causes are left out.
//
// Clients decide by the status whether to try again, which is wrong where a
// fault's Retryable says otherwise; SDKs of OpenAI and Anthropic obey the header
// x-should-retry before the status. Whoever sends the body sets it from
// Retryable, and Retry-After from RetryAfter; the body says both too, for a
// gateway that gets it without headers: "retryable", and for Gemini, whose
// clients look there, a google.rpc.RetryInfo. An unknown dialect is answered
// as OpenAI.
func ErrorBody(d Dialect, f *fault.Fault) (status int, body []byte) {
	f, status = f.Normalize(), f.Status()
	message := f.Message
	if f.RecoveryHint != "" {
		message += " (" + f.RecoveryHint + ")"
	}
	switch d {
	case AnthropicMessages:
		return status, anthropicError(status, message, f)
	case GeminiContents:
		return status, geminiError(status, message, f)
	}
	return status, openAIError(status, message, f)
}

func openAIError(status int, message string, f *fault.Fault) []byte {
	var param *string
	if field, ok := f.Details["field"].(string); ok {
		param = &field
	}
	type inner struct {
		Message   string  `json:"message"`
		Type      string  `json:"type"`
		Param     *string `json:"param"`
		Code      string  `json:"code"`
		Reason    string  `json:"reason,omitempty"`
		Retryable bool    `json:"retryable"`
	}
	kind := "invalid_request_error"
	switch {
	case status == 429:
		kind = "rate_limit_error"
	case status >= 500:
		kind = "server_error"
	}
	return compact(struct {
		Error inner `json:"error"`
	}{inner{message, kind, param, string(f.Kind), f.Reason, f.Retryable}})
}

func anthropicError(status int, message string, f *fault.Fault) []byte {
	type inner struct {
		Type      string `json:"type"`
		Message   string `json:"message"`
		Code      string `json:"code"`
		Reason    string `json:"reason,omitempty"`
		Retryable bool   `json:"retryable"`
	}
	// The vendor's types by status, from its page on errors.
	kind, ok := map[int]string{
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error", 529: "overloaded_error",
	}[status]
	switch {
	case ok:
	case status >= 500:
		kind = "api_error"
	default:
		kind = "invalid_request_error"
	}
	return compact(struct {
		Type  string `json:"type"`
		Error inner  `json:"error"`
	}{"error", inner{kind, message, string(f.Kind), f.Reason, f.Retryable}})
}

// domain is whose the reasons in a google.rpc.ErrorInfo are.
const domain = "visionoperator.dev"

func geminiError(status int, message string, f *fault.Fault) []byte {
	type detail struct {
		Type       string            `json:"@type"`
		Reason     string            `json:"reason,omitempty"`
		Domain     string            `json:"domain,omitempty"`
		Metadata   map[string]string `json:"metadata,omitempty"`
		RetryDelay string            `json:"retryDelay,omitempty"`
	}
	type inner struct {
		Code    int      `json:"code"`
		Message string   `json:"message"`
		Status  string   `json:"status"`
		Details []detail `json:"details"`
	}
	metadata := map[string]string{"code": string(f.Kind), "retryable": strconv.FormatBool(f.Retryable)}
	if f.Reason != "" {
		metadata["reason"] = f.Reason
	}
	details := []detail{{
		Type: "type.googleapis.com/google.rpc.ErrorInfo", Reason: strings.ToUpper(string(f.Kind)), Domain: domain, Metadata: metadata,
	}}
	if f.RetryAfter > 0 {
		// protobuf's JSON of a duration: seconds, with as many decimals as needed
		seconds := strconv.FormatFloat(f.RetryAfter.Round(time.Millisecond).Seconds(), 'f', -1, 64)
		details = append(details, detail{Type: "type.googleapis.com/google.rpc.RetryInfo", RetryDelay: seconds + "s"})
	}
	return compact(struct {
		Error inner `json:"error"`
	}{inner{status, message, canonical(status), details}})
}

// canonical is the name of the google.rpc.Code that an HTTP status stands for,
// from google/rpc/code.proto.
func canonical(status int) string {
	name, ok := map[int]string{
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 424: "FAILED_PRECONDITION",
		429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 501: "UNIMPLEMENTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}[status]
	switch {
	case ok:
		return name
	case status >= 500:
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}
