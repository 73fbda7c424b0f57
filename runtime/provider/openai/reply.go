// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

var errNoMark = errors.New("the image has no place in the message")

type completion struct {
	Model   string `json:"model"`
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content content `json:"content"`
			Refusal string  `json:"refusal"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		PromptTokens     int64 `json:"prompt_tokens"`
		CompletionTokens int64 `json:"completion_tokens"`
	} `json:"usage"`
	Error *apiError `json:"error"`
}

// content is a reply's content: null, a string, or a list of parts.
type content []string

// UnmarshalJSON reads each form.
func (c *content) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(data, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			*c = append(*c, p.Text)
		}
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*c = content{text}
	return nil
}

// text joins the texts: trimmed, blank ones skipped, a blank line between.
func (c content) text() string {
	var texts []string
	for _, t := range c {
		if t = strings.TrimSpace(t); t != "" {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, "\n\n")
}

// apiError is the part of an error body that is safe to show. Its message is
// not read: providers repeat keys and request bytes in it.
type apiError struct {
	Code any `json:"code"`
	Type any `json:"type"`
}

// word is what vendors' codes look like; keys do not.
var word = regexp.MustCompile(`^[a-z]+(_[a-z]+){0,7}$`)

// words renders the code and the type, when they are words: " (code, type)".
func (e *apiError) words() string {
	var out []string
	for _, v := range []any{e.Code, e.Type} {
		if s, ok := v.(string); ok && len(s) <= 64 && word.MatchString(s) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// maxErrorBody bounds what is read of an error's body to find its code.
const maxErrorBody = 64 << 10

// statusFault turns a status other than 200 into a fault.
func statusFault(resp *http.Response) *fault.Fault {
	var doc struct {
		Error *apiError `json:"error"`
	}
	words := ""
	if data, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)); err == nil && json.Unmarshal(data, &doc) == nil && doc.Error != nil {
		words = doc.Error.words()
	}
	var f *fault.Fault
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		f = failed("Unauthorized", false, "the provider refused the credential with status %d%s", code, words).
			Hint("Check the key in the provider's Secret and what it may do.")
	case code == http.StatusTooManyRequests:
		f = failed("RateLimited", true, "the provider limits the rate of calls%s", words).Hint("Wait, then call again.")
		f.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	case code == http.StatusRequestTimeout || code == http.StatusGatewayTimeout:
		f = failed("Timeout", true, "the provider timed out with status %d%s", code, words)
	case code >= 500:
		f = failed("UpstreamStatus", true, "the provider failed with status %d%s", code, words)
		f.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	case code >= 300 && code < 400:
		f = failed("UpstreamStatus", false, "the provider redirects with status %d, and redirects to another host are not followed", code).
			Hint("Set the endpoint's url to where the provider is.")
	default:
		f = failed("UpstreamStatus", false, "the provider refused the request with status %d%s", code, words)
	}
	return f.With("upstream_status", resp.StatusCode)
}

// maxRetryAfter bounds what a provider may ask for.
const maxRetryAfter = time.Hour

// retryAfter reads a Retry-After header, in seconds or as a date; 0 when it says nothing usable.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	var d time.Duration
	if n, err := strconv.ParseInt(value, 10, 32); err == nil {
		d = time.Duration(n) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// callFault turns a call without a reply into a fault. A fault from a layer
// below, such as a key that is not mounted, stays what it is.
func callFault(ctx context.Context, err error) *fault.Fault {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	e, ok := errors.AsType[*transport.Error](err)
	if !ok {
		return failed("Connection", true, "the provider could not be reached").Because(err)
	}
	switch {
	case e.Failure == transport.Canceled || errors.Is(ctx.Err(), context.Canceled):
		return failed("Canceled", true, "the call was cancelled before the provider answered").Because(e)
	case e.Failure == transport.Timeout:
		return failed("Timeout", true, "the provider did not answer in time").Because(e)
	case e.Failure == transport.TooLarge:
		return failed("InvalidResponse", false, "the provider's reply is over %d bytes", transport.MaxResponseBytes).Because(e)
	case e.Failure == transport.Refusal:
		return fault.New(fault.VisionAdapterUnavailable, "AddressRefused",
			"the provider's host stands for a link-local or metadata address, which is never called").Because(e)
	case e.Failure == transport.Untrusted || e.Failure == transport.Handshake:
		return failed("Connection", false, "the provider's TLS certificate is not trusted, or it does not speak TLS").
			Hint("Check the endpoint's url and caBundle.").Because(e)
	}
	return failed("Connection", true, "the provider could not be reached").Because(e)
}
