// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/serve/guard"
)

// refuse is how the guard refuses a request: in the dialect of its path.
func (p *proxy) refuse(w http.ResponseWriter, r *http.Request, f *fault.Fault) {
	c := parse(r.URL.EscapedPath())
	now := time.Now()
	write(w, c.dialect, f)
	p.Done(&Outcome{Dialect: c.dialect, Operation: c.operation, Result: string(f.Kind), Reason: f.Reason, Began: now})
}

// fail answers with the fault that an error carries.
func (x *trip) fail(err error) {
	f := fault.As(err)
	x.Result, x.Reason = string(f.Kind), f.Reason
	if gone(x.r.Context()) {
		x.Result = Canceled
	}
	x.letGo()        // before the sender, who may be slow
	guard.Drain(x.r) // of which nothing is left where the body was read
	write(x.w, x.call.dialect, f)
}

// write answers with a fault in a dialect's shape.
func write(w http.ResponseWriter, d message.Dialect, f *fault.Fault) {
	status, body := message.ErrorBody(d, f)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Should-Retry", strconv.FormatBool(f.Retryable))
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((f.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs none
}

// unreached answers for an upstream that did not.
func (x *trip) unreached(p *Prepared, err error) {
	f := unanswered(err)
	if gone(x.r.Context()) {
		f = fault.New(fault.VisionAdapterUnavailable, "Canceled", "the call was cancelled before the provider answered").Because(err)
		f.HTTPStatus, f.Retryable = http.StatusServiceUnavailable, true
	}
	x.fail(f.With("provider", p.Provider))
}

// unanswered is the fault of a call without a reply. A fault from a layer below,
// such as a key that is not mounted, stays what it is.
func unanswered(err error) *fault.Fault {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	var failure transport.Failure
	if e, ok := errors.AsType[*transport.Error](err); ok {
		failure = e.Failure
	}
	reason, text, status, again := "Connection", "the provider could not be reached", http.StatusBadGateway, true
	switch failure {
	case transport.Timeout:
		reason, text, status = "Timeout", "the provider did not answer in time", http.StatusGatewayTimeout
	case transport.Refusal:
		reason, text, again = "AddressRefused", "the provider's host stands for a link-local or metadata address, which is never called", false
	case transport.Resolution:
		reason, text = "HostNotFound", "the provider's host has no address"
	case transport.Untrusted, transport.Handshake:
		reason, text, again = "TLS", "the provider's TLS certificate is not trusted, or it does not speak TLS", false
	}
	f := fault.New(fault.VisionAdapterUnavailable, reason, "%s", text).Because(err)
	f.HTTPStatus, f.Retryable = status, again
	if !again {
		_ = f.Hint("Ask the platform team to check the endpoint's url and caBundle.")
	}
	return f
}

func (x *trip) notFound() *fault.Fault {
	f := fault.New(fault.InvalidToolInput, "NotFound", "the proxy serves nothing at %s", named(x.call.plain)).
		Hint("The policy may open further paths in runtime.proxy.passthrough.")
	f.HTTPStatus = http.StatusNotFound
	return f
}

func (x *trip) wrongMethod() *fault.Fault {
	allow := []string{x.call.operation.method()}
	if allow[0] == http.MethodGet {
		allow = append(allow, http.MethodHead)
	}
	x.w.Header().Set("Allow", strings.Join(allow, ", "))
	f := fault.New(fault.InvalidToolInput, "MethodNotAllowed", "%s does not take %s", named(x.call.plain), named(x.r.Method)).
		Hint("Use %s.", allow[0])
	f.HTTPStatus = http.StatusMethodNotAllowed
	return f
}

// named is a caller's own word as a message shows it.
func named(word string) string {
	const most = 200
	return observation.Printable(word[:min(len(word), most)])
}
