// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/shared"
	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/anthropic"
	"github.com/visionoperator/vision-operator/runtime/provider/gemini"
	"github.com/visionoperator/vision-operator/runtime/provider/openai/chat"
)

// refusal is an error that a vendor answers with, as its SDK writes it.
type refusal struct {
	status int
	body   func(t *testing.T) []byte
	word   string // the vendor's own for it
	reason string // ours
}

// sameRefusal serves a refusal and compares what our client says of it with what
// the SDK reads: the status and the vendor's word.
func sameRefusal(t *testing.T, s *server, client provider.Observer, want refusal, status int, word string) {
	t.Helper()
	if status != want.status || !strings.EqualFold(word, want.word) {
		t.Fatalf("the SDK reads status %d and %q", status, word)
	}
	before := len(s.seen)
	_, err := client.Observe(context.Background(), plain("m"))
	if err == nil {
		t.Fatal("no error")
	}
	f := fault.As(err)
	if f.Reason != want.reason || f.Details["upstream_status"] != want.status {
		t.Errorf("the fault is %s with %v, want %s", f.Reason, f.Details, want.reason)
	}
	if !strings.Contains(strings.ToLower(f.Message), strings.ToLower(word)) {
		t.Errorf("the message %q does not have the vendor's word %q", f.Message, word)
	}
	if strings.Contains(f.Error(), "secret") {
		t.Errorf("the fault repeats what the vendor wrote: %v", f)
	}
	if got := len(s.seen) - before; got != 1 {
		t.Errorf("%d calls", got)
	}
}

func TestOpenAIErrors(t *testing.T) {
	writes := func(code, kind, message string) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			return encoded(t, map[string]any{"error": openai.Error{Code: code, Type: kind, Message: message}})
		}
	}
	for name, want := range map[string]refusal{
		"a wrong key":       {http.StatusUnauthorized, writes("invalid_api_key", "invalid_request_error", "Incorrect API key provided: sk-secret"), "invalid_api_key", "Unauthorized"},
		"too many calls":    {http.StatusTooManyRequests, writes("rate_limit_exceeded", "requests", "Rate limit reached"), "rate_limit_exceeded", "RateLimited"},
		"no quota":          {http.StatusTooManyRequests, writes("insufficient_quota", "insufficient_quota", "You exceeded your current quota"), "insufficient_quota", "QuotaExhausted"},
		"not such an image": {http.StatusBadRequest, writes("invalid_image_format", "invalid_request_error", "You uploaded an unsupported image."), "invalid_image_format", "ImageRefused"},
		"a failure":         {http.StatusInternalServerError, writes("server_error", "server_error", "secret"), "server_error", "UpstreamStatus"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveStatus(t, want.status, want.body(t))
			client := openAI(s)
			_, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{})
			read, ok := errors.AsType[*openai.Error](err)
			if !ok {
				t.Fatal(err)
			}
			sameRefusal(t, s, chat.New(s.endpoint(t, "/v1")), want, read.StatusCode, read.Code)
		})
	}
}

func TestAnthropicErrors(t *testing.T) {
	writes := func(kind shared.ErrorType, message string) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			return encoded(t, shared.ErrorResponse{RequestID: "req_1", Error: shared.ErrorObjectUnion{Type: string(kind), Message: message}})
		}
	}
	const tooLarge = "messages.0.content.1.image.source.base64: image exceeds 10 MB maximum: 23045044 bytes > 10485760 bytes"
	for name, want := range map[string]refusal{
		"a wrong key":     {http.StatusUnauthorized, writes(shared.ErrorTypeAuthenticationError, "invalid x-api-key secret"), "authentication_error", "Unauthorized"},
		"a closed model":  {http.StatusForbidden, writes(shared.ErrorTypePermissionError, "no"), "permission_error", "Unauthorized"},
		"too many calls":  {http.StatusTooManyRequests, writes(shared.ErrorTypeRateLimitError, "slow"), "rate_limit_error", "RateLimited"},
		"a large image":   {http.StatusBadRequest, writes(shared.ErrorTypeInvalidRequestError, tooLarge), "invalid_request_error", "ImageRefused"},
		"an unknown name": {http.StatusNotFound, writes(shared.ErrorTypeNotFoundError, "model: secret"), "not_found_error", "UpstreamStatus"},
		"an overload":     {529, writes(shared.ErrorTypeOverloadedError, "Overloaded"), "overloaded_error", "UpstreamStatus"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveStatus(t, want.status, want.body(t))
			client := claude(s)
			_, err := client.Messages.New(context.Background(), sdk.MessageNewParams{MaxTokens: 1})
			read, ok := errors.AsType[*sdk.Error](err)
			if !ok {
				t.Fatal(err)
			}
			sameRefusal(t, s, anthropic.New(s.endpoint(t, "")), want, read.StatusCode, string(read.Type()))
		})
	}
}

func TestGeminiErrors(t *testing.T) {
	writes := func(code int, status, message string) func(t *testing.T) []byte {
		return func(t *testing.T) []byte {
			return encoded(t, map[string]any{"error": genai.APIError{Code: code, Status: status, Message: message}})
		}
	}
	for name, want := range map[string]refusal{
		"a closed model":    {http.StatusForbidden, writes(403, "PERMISSION_DENIED", "secret"), "PERMISSION_DENIED", "Unauthorized"},
		"too many calls":    {http.StatusTooManyRequests, writes(429, "RESOURCE_EXHAUSTED", "slow"), "RESOURCE_EXHAUSTED", "RateLimited"},
		"not such an image": {http.StatusBadRequest, writes(400, "INVALID_ARGUMENT", "Unable to process input image. secret"), "INVALID_ARGUMENT", "ImageRefused"},
		"an unknown name":   {http.StatusNotFound, writes(404, "NOT_FOUND", "models/secret is not found"), "NOT_FOUND", "UpstreamStatus"},
		"an overload":       {http.StatusServiceUnavailable, writes(503, "UNAVAILABLE", "The model is overloaded."), "UNAVAILABLE", "UpstreamStatus"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveStatus(t, want.status, want.body(t))
			_, err := google(t, s).Models.GenerateContent(context.Background(), "m", genai.Text("?"), nil)
			read, ok := errors.AsType[genai.APIError](err)
			if !ok {
				t.Fatal(err)
			}
			sameRefusal(t, s, gemini.New(s.endpoint(t, "/v1beta")), want, read.Code, read.Status)
		})
	}
}
