// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reach finds out whether a provider's endpoints answer.
//
// A probe of one endpoint passes five steps, and the first that fails gives the reason:
//
//	place     the host may be asked for at all             AddressNotAllowed
//	resolve   it has addresses, and all of them are judged DNSFailed, AddressNotAllowed
//	dial      one of those addresses takes a connection    ConnectionFailed, Timeout
//	encrypt   its certificate is trusted (https)           TLSFailed, Timeout
//	ask       it answers a GET of the base URL             ConnectionFailed, Timeout, ServerError
//
// Every HTTP answer below 500 is Reachable: no key is sent, so 401, 403, 404 and
// 405 are what a healthy endpoint says. A redirect is such an answer and is
// followed nowhere. Neither the key nor the endpoint's extra headers are sent.
// Of an answer only the status line and headers are read, 16 KiB at most, and
// nothing of it is told.
//
// The operator stands where its users do not, so it connects to public addresses
// and to Services of the provider's own namespace only: whatever else a name
// resolves to is neither dialled nor told. What was judged is what is dialled;
// there is no second resolution and no HTTP proxy.
//
// All probes of a Prober share one budget.
package reach

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// Bounds of the time between two probes of a provider; MinInterval and
// MaxInterval are those of spec.probe.interval.
const (
	MinInterval     = 10 * time.Second
	MaxInterval     = 24 * time.Hour
	DefaultInterval = 5 * time.Minute
)

// Target is what is probed of an endpoint.
type Target struct {
	// Endpoint is its name.
	Endpoint string
	// URL is its base URL, http or https.
	URL string
	// CABundle is the PEM of what is trusted in place of the system's roots; empty for those.
	CABundle string
}

// Targets are a provider's endpoints, in their order.
func Targets(p *v1alpha1.VisionProvider) []Target {
	targets := make([]Target, 0, len(p.Spec.Endpoints))
	for _, e := range p.Spec.Endpoints {
		targets = append(targets, Target{Endpoint: e.Name, URL: e.URL, CABundle: e.CABundle})
	}
	return targets
}

// Interval is the time between two probes of a provider, without jitter. What
// no valid object has is brought within the bounds.
func Interval(p *v1alpha1.VisionProvider) time.Duration {
	if p.Spec.Probe == nil || p.Spec.Probe.Interval == nil {
		return DefaultInterval
	}
	interval, err := time.ParseDuration(string(*p.Spec.Probe.Interval))
	if err != nil {
		return DefaultInterval
	}
	return min(max(interval, MinInterval), MaxInterval)
}

// Result is what became of one probe.
type Result struct {
	Endpoint string
	// Reason is one of those of the condition Reachable.
	Reason string
}

// Status is what a reason says of an endpoint: True, False, or Unknown where
// the operator did not try.
func Status(reason string) metav1.ConditionStatus {
	switch reason {
	case v1alpha1.ReasonReachable:
		return metav1.ConditionTrue
	case v1alpha1.ReasonAddressNotAllowed:
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}

// explanations are the words for each reason. They are fixed: nothing that a
// server or a resolver said is among them.
var explanations = map[string]string{
	v1alpha1.ReasonAddressNotAllowed: "is not probed: the operator connects to public addresses and to Services of the provider's namespace only; runtimes may reach it all the same",
	v1alpha1.ReasonDNSFailed:         "has a host for which no address was found",
	v1alpha1.ReasonConnectionFailed:  "refused or broke the connection, or gave no HTTP answer",
	v1alpha1.ReasonTLSFailed:         "has a certificate that is not trusted, or does not speak TLS 1.2 or later",
	v1alpha1.ReasonTimeout:           "did not answer in time",
	v1alpha1.ReasonServerError:       "answered with a status of 500 or above",
}

// Condition sums up a provider's results. It is False when an endpoint does not
// answer, else Unknown when one was not tried, else True; the reason is the
// first such endpoint's, and the message names each.
func Condition(results []Result) metav1.Condition {
	decides := Result{Reason: v1alpha1.ReasonReachable}
	var parts []string
	for _, r := range results {
		if rank(r.Reason) > rank(decides.Reason) {
			decides = r
		}
		if r.Reason != v1alpha1.ReasonReachable {
			parts = append(parts, fmt.Sprintf("endpoint %q %s", r.Endpoint, explanations[r.Reason]))
		}
	}
	message := "every endpoint answers"
	if len(parts) > 0 {
		message = strings.Join(parts, "; ")
	}
	return metav1.Condition{Type: v1alpha1.ConditionReachable, Status: Status(decides.Reason), Reason: decides.Reason, Message: message}
}

// rank orders reasons by how much they weigh in a summary.
func rank(reason string) int {
	switch Status(reason) {
	case metav1.ConditionTrue:
		return 0
	case metav1.ConditionUnknown:
		return 1
	}
	return 2
}
