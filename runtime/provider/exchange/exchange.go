// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exchange is what the wire protocols have in common: one request with
// an image in it goes out as JSON, streamed, and one JSON reply comes back
// whole, or a fault that says by its reason what went wrong. Its Client speaks
// any protocol that is described as a Protocol. It knows none itself, asks nothing
// twice but a question whose structured output was refused, and shows nothing of
// what a provider wrote.
package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
)

// Post is one call with an image.
type Post struct {
	Client *http.Client
	URL    string
	// Header is sent beside Content-Type and Accept; nil for none.
	Header http.Header
	Body   *Body
	// BeforeLarge is provider.Request's.
	BeforeLarge func(context.Context) error
}

// Do sends the request and returns the reply's bytes when its status is 200.
// Errors are *fault.Fault; that of another status has a *StatusError as its cause.
func (p Post) Do(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, p.Body.Reader())
	if err != nil {
		return nil, badURL(err)
	}
	req.ContentLength = p.Body.Size()
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(p.Body.Reader()), nil }
	req.Header.Set("Content-Type", "application/json")
	return do(ctx, p.Client, req, p.Header, p.BeforeLarge)
}

// Get fetches a small JSON document, such as a list of models.
func Get(ctx context.Context, client *http.Client, url string, header http.Header) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, badURL(err)
	}
	return do(ctx, client, req, header, nil)
}

func do(ctx context.Context, client *http.Client, req *http.Request, header http.Header, beforeLarge func(context.Context) error) ([]byte, error) {
	req.Header.Set("Accept", "application/json")
	for name, values := range header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, callFault(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // the reply was read or given up
	if resp.StatusCode != http.StatusOK {
		return nil, statusFault(resp)
	}
	body, err := readReply(ctx, resp.Body, beforeLarge)
	if err != nil {
		return nil, callFault(ctx, err)
	}
	return body, nil
}

// readReply reads a reply whole, and asks beforeLarge in between when it is a large one.
func readReply(ctx context.Context, from io.Reader, beforeLarge func(context.Context) error) ([]byte, error) {
	var reply bytes.Buffer
	if _, err := reply.ReadFrom(io.LimitReader(from, provider.SmallReply)); err != nil {
		return nil, err
	}
	if reply.Len() == provider.SmallReply && beforeLarge != nil {
		if err := beforeLarge(ctx); err != nil {
			return nil, err
		}
	}
	_, err := reply.ReadFrom(from)
	return reply.Bytes(), err
}

// Read decodes a reply. It is blind to members that into has not; what, such as
// "a chat completion", is what the reply should have been.
func Read(reply []byte, into any, what string) error {
	if len(bytes.TrimSpace(reply)) == 0 {
		return Failed("Empty", true, "the provider's reply is empty")
	}
	if err := json.Unmarshal(reply, into); err != nil {
		return Unreadable(what)
	}
	return nil
}

// Unreadable is a reply that is not what it should have been; see Read.
func Unreadable(what string) *fault.Fault {
	return Failed("InvalidResponse", false, "the provider's reply is not %s", what).Because(errShape)
}

// errShape stands for a decoder's error, whose text may repeat the reply.
var errShape = errors.New("reading the reply: JSON does not match")

// Failed is a fault of a provider that was called and did not answer usably.
func Failed(reason string, retryable bool, format string, args ...any) *fault.Fault {
	f := fault.New(fault.VisionObservationFailed, reason, format, args...)
	f.Retryable = retryable
	return f
}

// Unwritable is a request that could not be laid out.
func Unwritable(err error) *fault.Fault {
	return Failed("Internal", false, "the request could not be written").Because(err)
}

// Refused is a model, or the filter before it, that will not look at the image
// for this prompt.
func Refused(format string, args ...any) *fault.Fault {
	return Failed("Refused", false, format, args...).
		Hint("Ask for something else; the same image and prompt will be refused again.")
}

// Truncated is a reply that its output limit cut off.
func Truncated() *fault.Fault {
	return Failed("Truncated", false, "the model's reply was cut off at its output limit").
		Hint("Ask for less, or raise the model's maxOutputTokens.")
}

// Empty is a reply that holds no text.
func Empty() *fault.Fault { return Failed("Empty", true, "the model's reply holds no text") }

func badURL(err error) *fault.Fault {
	return fault.New(fault.VisionAdapterUnavailable, "EndpointInvalid", "the endpoint's URL is not usable").Because(err)
}
