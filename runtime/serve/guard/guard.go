// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard protects a loopback listener from the browsers and foreign
// pages that can reach it: any page open in the pod can send requests to
// 127.0.0.1, and a name that an attacker controls can resolve to it.
//
// A request passes when its Host is one of ours, no page sent it, and its body
// is JSON of a bounded size. It says nothing about who the caller is: every
// process of the pod is trusted alike.
package guard

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

// MaxBodyBytes is the largest JSON body, whatever a policy says: 1 MiB, many
// times what a path and a prompt need, and little enough to be read whole.
const MaxBodyBytes = 1 << 20

// Options are what a guard compares requests with.
type Options struct {
	// Port is the port we listen on. A Host without a port means 80.
	Port int
	// ExtraHosts are names, without port, that are ours beside localhost,
	// 127.0.0.1 and ::1: for a listener that is reached from outside the pod.
	ExtraHosts []string
	// MaxBodyBytes lowers the package's MaxBodyBytes. It is asked for every
	// request, because the policy can change; nil, and an answer of 0, leave it.
	MaxBodyBytes func() int64
}

// loopback are the hosts that are always ours.
var loopback = []string{"localhost", "127.0.0.1", "::1"}

// check is one rule; it returns nil when the request may pass.
type check func(*http.Request) *fault.Fault

// Handler lets only requests through to next that pass every check. The body
// that next sees has been read whole, within the limit.
func Handler(next http.Handler, opts Options) http.Handler {
	hosts := slices.Concat(loopback, opts.ExtraHosts)
	checks := []check{
		func(r *http.Request) *fault.Fault { return checkHost(r, hosts, opts.Port) },
		checkOrigin,
		checkSite,
		checkMediaType,
		func(r *http.Request) *fault.Fault { return readBody(r, opts.limit()) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, check := range checks {
			if f := check(r); f != nil {
				reply.Fault(w, f)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// limit is the largest body now.
func (o *Options) limit() int64 {
	if o.MaxBodyBytes != nil {
		if lower := o.MaxBodyBytes(); lower > 0 {
			return min(lower, MaxBodyBytes)
		}
	}
	return MaxBodyBytes
}

// checkHost refuses a Host that is not ours, which is how a name that was
// rebound to loopback shows itself.
func checkHost(r *http.Request, hosts []string, port int) *fault.Fault {
	name, p := splitHost(r.Host)
	if p == port && slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, name) }) {
		return nil
	}
	return fault.New(fault.PolicyDenied, "HostNotAllowed", "the request's Host is not this runtime's").
		Hint("Send the request to http://127.0.0.1:%d.", port)
}

// splitHost takes a Host header apart; the port is -1 when there is something
// in its place that is not a port.
func splitHost(host string) (name string, port int) {
	if bare, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(host, "]") {
		return strings.TrimSuffix(bare, "]"), 80
	}
	if !strings.Contains(host, ":") {
		return host, 80
	}
	name, text, err := net.SplitHostPort(host)
	if err != nil {
		return "", -1
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || (strings.Contains(name, ":") != strings.HasPrefix(host, "[")) {
		return "", -1
	}
	return name, int(n)
}

// checkOrigin refuses every request that names an origin: only pages do.
func checkOrigin(r *http.Request) *fault.Fault {
	if _, ok := r.Header["Origin"]; !ok {
		return nil
	}
	return fromPage("OriginNotAllowed", "requests with an Origin header are refused")
}

// checkSite refuses what a browser says another site caused. A page on another
// port of localhost counts as the same site to a browser, and not to us.
func checkSite(r *http.Request) *fault.Fault {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "none" && site != "same-origin" {
			return fromPage("CrossSiteNotAllowed", "requests that another site's page caused are refused")
		}
	}
	return nil
}

func fromPage(reason, message string) *fault.Fault {
	return fault.New(fault.PolicyDenied, reason, "%s", message).
		Hint("Call the vision runtime from the agent's own process, not from a web page.")
}

// checkMediaType refuses a body that is not declared as JSON: the types that
// a page may send without asking first (text/plain, forms) never pass.
func checkMediaType(r *http.Request) *fault.Fault {
	if r.ContentLength == 0 && r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
		return nil
	}
	declared := r.Header.Values("Content-Type")
	if len(declared) == 1 {
		if media, _, err := mime.ParseMediaType(declared[0]); err == nil && media == "application/json" {
			return nil
		}
	}
	f := fault.New(fault.InvalidToolInput, "UnsupportedMediaType", "the body must be declared as Content-Type: application/json")
	f.HTTPStatus = http.StatusUnsupportedMediaType
	return f
}

// readBody reads the body whole and puts it back, so that no handler can read
// more than the limit and all of them refuse alike.
func readBody(r *http.Request, limit int64) *fault.Fault {
	if r.ContentLength > limit {
		drain(r.Body)
		return tooLarge(limit, fmt.Sprintf("%d bytes", r.ContentLength)).With("body_bytes", r.ContentLength)
	}
	if r.ContentLength == 0 {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return fault.New(fault.InvalidToolInput, "BodyUnreadable", "the body ended before it was complete").Because(err)
	}
	if int64(len(data)) > limit {
		drain(r.Body)
		return tooLarge(limit, "more")
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	r.ContentLength = int64(len(data))
	return nil
}

// drainBytes is how much of a refused body is read and thrown away: a client
// that is cut off while it sends sees a broken connection in place of the
// refusal. 64 MiB is more than a caller's likely mistake, an image in base64.
const drainBytes = 64 << 20

func drain(body io.Reader) { _, _ = io.CopyN(io.Discard, body, drainBytes) }

// tooLarge is a body over the limit; size says by how much, as far as known.
func tooLarge(limit int64, size string) *fault.Fault {
	f := fault.New(fault.BudgetExceeded, "BodyTooLarge", "the body may have %d bytes and has %s", limit, size).
		With("max_body_bytes", limit).
		Hint("Send the image's path, not its bytes.")
	f.HTTPStatus = http.StatusRequestEntityTooLarge
	return f
}
