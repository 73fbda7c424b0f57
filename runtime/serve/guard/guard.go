// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard protects a loopback listener from the browsers and foreign
// pages that can reach it: any page open in the pod can send requests to
// 127.0.0.1, and a name that an attacker controls can resolve to it.
//
// A request passes when its Host is one of ours, no page sent it, and its body
// is of the type and size that its path takes: JSON, or the bytes of an image.
// It says nothing about who the caller is: every process of the pod is trusted
// alike.
package guard

import (
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/serve/reply"
)

// Options are what a guard compares requests with.
type Options struct {
	// Port is the port we listen on. A Host without a port means 80.
	Port int
	// ExtraHosts are names, without port, that are ours beside localhost,
	// 127.0.0.1 and ::1, on any port: for a listener that is reached from outside
	// the pod, through a Service that has a port of its own.
	ExtraHosts []string
	// Refuse words refusals; nil means reply.Fault.
	Refuse func(http.ResponseWriter, *http.Request, *fault.Fault)
}

// loopback are the hosts that are always ours.
var loopback = []string{"localhost", "127.0.0.1", "::1"}

// check is one rule; it returns nil when the request may pass.
type check func(*http.Request) *fault.Fault

// Handler lets only requests through to next that are sent to us, and by no
// page. It does not touch the body: each path behind it has a Body rule.
func Handler(next http.Handler, opts Options) http.Handler {
	refuse := refusing(opts.Refuse)
	checks := []check{
		func(r *http.Request) *fault.Fault { return checkHost(r, opts) },
		checkOrigin,
		checkSite,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, check := range checks {
			if f := check(r); f != nil {
				refuse(w, r, f)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// refusing is a way to word refusals, or reply.Fault.
func refusing(refuse func(http.ResponseWriter, *http.Request, *fault.Fault)) func(http.ResponseWriter, *http.Request, *fault.Fault) {
	if refuse != nil {
		return refuse
	}
	return func(w http.ResponseWriter, _ *http.Request, f *fault.Fault) { reply.Fault(w, f) }
}

// checkHost refuses a Host that is not ours, which is how a name that was
// rebound to loopback shows itself.
func checkHost(r *http.Request, opts Options) *fault.Fault {
	name, port := splitHost(r.Host)
	is := func(h string) bool { return strings.EqualFold(h, name) }
	if port == opts.Port && slices.ContainsFunc(loopback, is) || port >= 0 && slices.ContainsFunc(opts.ExtraHosts, is) {
		return nil
	}
	return fault.New(fault.PolicyDenied, "HostNotAllowed", "the request's Host is not this runtime's").
		Hint("Send the request to http://127.0.0.1:%d.", opts.Port)
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
