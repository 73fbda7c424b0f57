// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// The rules of a URL, in the words of the CRD.
const (
	urlScheme  = "must begin with https:// or http://, in lower case"
	urlUser    = "must not hold a user name or password: name the key in spec.credentials"
	urlQuery   = "must not hold a query or a fragment: it is a base URL, such as https://api.example.com/v1"
	urlRefused = "must not point at a link-local, metadata, multicast or unspecified address"
	urlHost    = "the host must be a name whose last label has a letter, four plain decimals such as 192.0.2.1, or IPv6 in brackets without zone or embedded IPv4"
	urlRest    = "after the host there may be a port of 1 to 65535 and a path of plain URL characters, nothing else"
	urlPlain   = "plain http is only for loopback and for hosts ending in .svc or .svc.cluster.local: use https, or set allowPlainHTTP to send images and the key in the clear"
	urlLong    = "must be at most 2048 characters"
)

// urlProblem returns the first rule that a URL breaks, or nothing. It reads the
// URL as the runtime will, where the CRD's rules match its text; both refuse
// the same, but for a name of more than 253 characters, which is refused here alone.
func urlProblem(raw string, plainHTTP bool) string {
	if len(raw) > 2048 {
		return urlLong
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok || scheme != "https" && scheme != "http" {
		return urlScheme
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if strings.Contains(authority, "@") {
		return urlUser
	}
	if strings.ContainsAny(path, "?#") {
		return urlQuery
	}
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		host, port = authority[:i], authority[i:]
	}
	if problem := hostProblem(host); problem != "" {
		return problem
	}
	if !portOK(port) || !urlPath.MatchString(path) {
		return urlRest
	}
	if _, err := url.Parse(raw); err != nil {
		return urlRest
	}
	if scheme == "http" && !plainHTTP && !inside(host) {
		return urlPlain
	}
	return ""
}

var (
	urlPath   = regexp.MustCompile(`^(?:/(?:[-A-Za-z0-9._~!$&()*+,;=:@/]|%[0-9A-Fa-f]{2})*)?$`)
	hostLabel = regexp.MustCompile(`^[a-z0-9_](?:[-a-z0-9_]{0,61}[a-z0-9_])?$`)
	lastLabel = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$`)
)

// hostProblem judges a host as it stands in a URL, IPv6 in its brackets.
func hostProblem(host string) string {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		switch {
		case !ok || err != nil || !addr.Is6() || addr.Zone() != "" || strings.Contains(inner, ".") || embedsIPv4(addr):
			return urlHost
		case refusedAddress(addr):
			return urlRefused
		}
		return ""
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is4() {
		if refusedAddress(addr) {
			return urlRefused
		}
		return ""
	}
	name := strings.ToLower(host)
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	if len(name) > 253 || !lastLabel.MatchString(last) || !strings.ContainsFunc(last, letter) || hexNumber(last) {
		return urlHost
	}
	for _, label := range labels[:len(labels)-1] {
		if !hostLabel.MatchString(label) {
			return urlHost
		}
	}
	if name == "metadata.google.internal" || name == "metadata.goog" {
		return urlRefused
	}
	return ""
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' }

// hexNumber reports what C libraries read as a number, such as 0xa9fea9fe.
func hexNumber(label string) bool {
	digits, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(digits, "0123456789abcdef") == ""
}

// refusedPrefixes are addresses that no provider can have. The runtime's dialer
// refuses the same after resolution and names the source of each.
var refusedPrefixes = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local, and most clouds' metadata
	netip.MustParsePrefix("fe80::/10"),          // link-local
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS metadata
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud metadata
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud metadata
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud metadata
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's wire server
	netip.MustParsePrefix("0.0.0.0/8"),          // this host
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("ff00::/8"),           // multicast
}

func refusedAddress(addr netip.Addr) bool {
	for _, p := range refusedPrefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// embedsIPv4 reports forms that hide an IPv4 address: mapped, compatible,
// translated, and all else whose first group is zero, but for loopback; NAT64 and 6to4.
func embedsIPv4(addr netip.Addr) bool {
	b := addr.As16()
	return addr != netip.IPv6Loopback() && b[0] == 0 && b[1] == 0 ||
		b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b ||
		b[0] == 0x20 && b[1] == 0x02
}

// portOK accepts "" and ":1" to ":65535" without leading zeros.
func portOK(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port[1:], 10, 16)
	return err == nil && n > 0 && port == ":"+strconv.FormatUint(n, 10)
}

// inside reports whether a host is loopback or a Service's name.
func inside(host string) bool { return router.InsideHost(strings.Trim(host, "[]")) }

// service reports whether a host is the name of a Service of the cluster.
func service(host string) bool {
	return inside(host) && strings.Contains(strings.ToLower(host), ".svc")
}

func (c *checks) url(at *field.Path, e *v1alpha1.Endpoint) {
	problem := urlProblem(e.URL, e.AllowPlainHTTP != nil && *e.AllowPlainHTTP)
	switch {
	case problem == "":
	case strings.Contains(e.URL, "@") || len(e.URL) > 2048: // it may hold a password
		c.invalid(at, field.OmitValueType{}, problem)
	default:
		c.invalid(at, e.URL, problem)
	}
}
