// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
)

// StatusError is a reply with a status other than 200, or with an error in a
// reply of status 200: what of its error is safe to show, and to decide by. The
// message is not kept: providers repeat keys and request bytes in it.
type StatusError struct {
	// Status is the reply's; for an error in a reply of status 200, what that
	// error stands for where it tells.
	Status int
	// Code and Type are the vendor's words, such as "invalid_image_format" and
	// "invalid_request_error"; empty when it has none or they are no words.
	Code, Type string
	// Param is the member of the request that the vendor names, such as
	// "response_format"; empty when it names none, "other" when it is no word.
	Param string
	// AboutImage says that the vendor's words name the image as what it does not take.
	AboutImage bool

	wait time.Duration // what the body asks to wait, 0 when it says nothing
}

// Error gives the status and the words.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d%s", e.Status, e.words()) }

// words renders code and type: " (code, type)".
func (e *StatusError) words() string {
	var out []string
	for _, w := range []string{e.Code, e.Type} {
		if w != "" {
			out = append(out, w)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// RefusesFormat reports whether err may be a server's refusal of structured
// output: a status with which servers refuse a request they do not understand,
// and no word that says what else was wrong. member is the request's member
// that asks for it, such as "response_format".
func RefusesFormat(err error, member string) bool {
	e, ok := errors.AsType[*StatusError](err)
	if !ok || (e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity && e.Status != http.StatusNotImplemented) {
		return false
	}
	if notAboutFormat[e.Code] || byPolicy[e.Code] || e.refusesKey() {
		return false
	}
	if e.Param == "" {
		return !e.AboutImage
	}
	member = strings.ToLower(member) // as word leaves it
	return e.Param == member || strings.HasPrefix(e.Param, member+".")
}

// notAboutFormat are codes that say that the same request would be refused
// without structured output as well; so do those of byPolicy.
var notAboutFormat = map[string]bool{
	"context_length_exceeded": true, "model_not_found": true, noQuota: true, "string_above_max_length": true,
}

// byPolicy are the codes of content filters: OpenAI's, Azure's and Alibaba's.
var byPolicy = map[string]bool{
	"content_filter": true, "content_policy_violation": true, "image_content_policy_violation": true,
	"responsible_ai_policy_violation": true, "responsibleaipolicyviolation": true, "moderation_blocked": true,
	"invalid_prompt": true, "bio_policy": true, "misalignment_policy_violation": true, "data_inspection_failed": true, "datainspectionfailed": true,
}

// word is what vendors' codes look like, of which base64 is all that has
// digits; keys do not, not even those that are all letters: they have more of
// them in a row.
var word = regexp.MustCompile(`^[A-Za-z]{1,30}([_.]([A-Za-z]{1,30}|base64)){0,7}$`)

// word returns s when it is a word, in lower case.
func (s said) word() string {
	if len(s) <= 64 && word.MatchString(string(s)) {
		return strings.ToLower(string(s))
	}
	return ""
}

// apiError is an error as OpenAI, Anthropic, Google and those who imitate them
// write it: below "error", or at the top.
type apiError struct {
	Code    said `json:"code"`
	Type    said `json:"type"`
	Status  said `json:"status"` // Google's word
	Param   said `json:"param"`
	Message said `json:"message"` // read for imageWords alone
	// Details are Google's, and some others' in shapes of their own.
	Details json.RawMessage `json:"details"`
}

// imageWords is how vendors that have no code for it say that they do not take
// an image: too large in bytes or pixels, or not of a type they know.
var imageWords = regexp.MustCompile(`(?i)\bimages?\b.{0,80}\b(exceed(s|ed|ing)?|too large|too many|maximum|max allowed|dimensions?|media.type|formats?|unsupported|invalid|corrupt(ed)?|decode)\b|\b(unsupported|invalid|could not (process|decode)|cannot (process|identify|decode)|unable to process|failed to (process|decode))\b.{0,40}\bimages?\b`)

// readStatus reads an error's body.
func readStatus(status int, body []byte) *StatusError {
	e := &StatusError{Status: status}
	var doc struct {
		apiError
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return e
	}
	from := doc.apiError
	if len(doc.Error) > 0 && json.Unmarshal(doc.Error, &from) != nil {
		from = apiError{Message: said(doc.Error)} // a bare string
	}
	e.Code, e.Type, e.Param = from.Code.word(), from.Type.word(), from.Param.word()
	if e.Code == "" {
		e.Code = from.Status.word()
	}
	reason, wait := readDetails(from.Details)
	if e.wait = wait; e.Type == "" {
		e.Type = reason
	}
	if e.Param == "" && from.Param != "" {
		e.Param = "other"
	}
	message := from.Message[:min(len(from.Message), maxMessage)]
	e.AboutImage = strings.Contains(e.Code, "image") || imageWords.MatchString(string(message))
	return e
}

const (
	// maxErrorBody bounds what is read of an error's body to find its code.
	maxErrorBody = 64 << 10
	// maxMessage bounds what is looked at of its message.
	maxMessage = 4 << 10
)

// statusFault turns a status other than 200 into a fault, by the table that
// vendors' own clients and gateways share: wait and try again on 408, 429 and
// 5xx, give up at once on the rest, and let x-should-retry overrule both.
func statusFault(resp *http.Response) *fault.Fault {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what was read of it is enough
	e := readStatus(resp.StatusCode, body)
	f := e.fault().With("upstream_status", e.Status).Because(e)
	switch resp.Header.Get("X-Should-Retry") {
	case "true":
		f.Retryable = true
	case "false":
		f.Retryable = false
	}
	if f.Retryable {
		f.RetryAfter = cmp.Or(retryAfter(resp.Header, time.Now()), e.wait)
	}
	return f
}

// noQuota is how OpenAI, and those who imitate it, say in a 429 that waiting does not help.
const noQuota = "insufficient_quota"

// fault is the table.
func (e *StatusError) fault() *fault.Fault {
	code, words := e.Status, e.words()
	switch {
	case code < 500 && byPolicy[e.Code]:
		return Refused("the provider's content filter refused the request%s", words)
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusBadRequest && e.refusesKey():
		return Failed("Unauthorized", false, "the provider refused the credential with status %d%s", code, words).
			Hint("Check the key in the provider's Secret and what it may do.")
	case code == http.StatusPaymentRequired || code == http.StatusTooManyRequests && (e.Code == noQuota || e.Type == noQuota):
		return Failed("QuotaExhausted", false, "the provider's account has no quota left%s", words).
			Hint("Ask the platform team: the provider's account needs more quota.")
	case code == http.StatusTooManyRequests:
		return Failed("RateLimited", true, "the provider limits the rate of calls%s", words).Hint("Wait, then call again.")
	case code == http.StatusRequestEntityTooLarge:
		return Failed("RequestTooLarge", false, "the provider refused the request as too large with status %d%s", code, words).
			Hint("Use a smaller image, or one compressed more.")
	case code == http.StatusUnsupportedMediaType || code < 500 && e.AboutImage:
		return Failed("ImageRefused", false, "the provider does not take this image: status %d%s", code, words).
			Hint("Use a smaller image, or another type of image file.")
	case code == http.StatusRequestTimeout || code == http.StatusGatewayTimeout:
		return Failed("Timeout", true, "the provider timed out with status %d%s", code, words)
	case code >= 500:
		return Failed("UpstreamStatus", code != http.StatusNotImplemented, "the provider failed with status %d%s", code, words)
	case code >= 300 && code < 400:
		return Failed("UpstreamStatus", false, "the provider redirects with status %d, and redirects to another host are not followed", code).
			Hint("Set the endpoint's url to where the provider is.")
	case code == http.StatusNotFound:
		return Failed("UpstreamStatus", false, "the provider refused the request with status 404%s", words).
			Hint("Check the endpoint's url, to which the protocol's own path is added, and that the model is there under this name.")
	}
	return Failed("UpstreamStatus", false, "the provider refused the request with status %d%s", code, words)
}

// ErrorIn is a fault for an error that a provider put into a reply of status
// 200, or nil when raw is none. Gateways do so once the reply has begun, and
// give the status that it should have had as the error's code; others give a
// word. Where neither tells, calling again is not worth it.
func ErrorIn(raw json.RawMessage) *fault.Fault {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	e := readStatus(http.StatusOK, append(append([]byte(`{"error":`), raw...), '}'))
	f := Failed("UpstreamStatus", false, "the provider answered with an error%s", e.words())
	if status := statusIn(raw, e); status != 0 {
		e.Status = status
		as := e.fault()
		f.Reason, f.Retryable, f.RecoveryHint = as.Reason, as.Retryable, as.RecoveryHint
	}
	return f.Because(e)
}

// statusIn is the status that an error in a reply of status 200 stands for, 0
// when it does not tell.
func statusIn(raw json.RawMessage, e *StatusError) int {
	var numbered struct {
		Code int `json:"code"`
	}
	if json.Unmarshal(raw, &numbered) == nil && numbered.Code >= 400 && numbered.Code < 600 {
		return numbered.Code
	}
	if status := wordStatus[e.Code]; status != 0 {
		return status
	}
	if status := wordStatus[e.Type]; status != 0 {
		return status
	}
	if e.AboutImage || byPolicy[e.Code] {
		return http.StatusBadRequest
	}
	return 0
}

// wordStatus are the words by which vendors name, in a reply of status 200, what
// is otherwise a status of its own.
var wordStatus = map[string]int{
	"server_error": http.StatusInternalServerError, "internal_server_error": http.StatusInternalServerError,
	"api_error": http.StatusInternalServerError, "overloaded_error": http.StatusServiceUnavailable,
	"rate_limit_exceeded": http.StatusTooManyRequests, "rate_limit_error": http.StatusTooManyRequests,
	noQuota: http.StatusTooManyRequests, "timeout": http.StatusGatewayTimeout,
}

// maxRetryAfter bounds what a provider may ask for.
const maxRetryAfter = time.Hour

// retryAfter reads how long a provider asks to wait: retry-after-ms, or
// Retry-After in seconds or as a date; 0 when it says nothing usable.
func retryAfter(h http.Header, now time.Time) time.Duration {
	var d time.Duration
	value := strings.TrimSpace(h.Get("Retry-After"))
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 32); err == nil && ms >= 0 {
		d = time.Duration(min(ms, 1e9)) * time.Millisecond
	} else if n, err := strconv.ParseInt(value, 10, 32); err == nil {
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
		return Failed("Connection", true, "the provider could not be reached").Because(err)
	}
	switch {
	case e.Failure == transport.Canceled || errors.Is(ctx.Err(), context.Canceled):
		return Failed("Canceled", true, "the call was cancelled before the provider answered").Because(e)
	case e.Failure == transport.Timeout:
		return Failed("Timeout", true, "the provider did not answer in time").Because(e)
	case e.Failure == transport.TooLarge:
		return Failed("InvalidResponse", false, "the provider's reply is over %d bytes", transport.MaxResponseBytes).Because(e)
	case e.Failure == transport.Refusal:
		return fault.New(fault.VisionAdapterUnavailable, "AddressRefused",
			"the provider's host stands for a link-local or metadata address, which is never called").Because(e)
	case e.Failure == transport.Untrusted || e.Failure == transport.Handshake:
		return Failed("Connection", false, "the provider's TLS certificate is not trusted, or it does not speak TLS").
			Hint("Check the endpoint's url and caBundle.").Because(e)
	}
	return Failed("Connection", true, "the provider could not be reached").Because(e)
}
