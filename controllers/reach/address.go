// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net/netip"
	"strings"
)

// place is where a host lives, as its name tells.
type place int

const (
	elsewhere  place = iota // its addresses must be public
	ownService              // a Service of the provider's namespace
	refused                 // never asked for
)

// clusterDomain is the domain under which a cluster's Services are found; that
// of nearly all clusters, and the one that rules on URLs know.
const clusterDomain = "cluster.local"

// locate says where a host of a provider of a namespace lives, and the absolute
// name to resolve. Search lists are never used: they would make
// "service.namespace" of another namespace out of what looks like a public name.
func locate(host, namespace string) (place, string) {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	name = strings.TrimSuffix(name, "."+clusterDomain)
	switch {
	case strings.HasSuffix(name, "."+namespace+".svc") && !strings.HasPrefix(name, "."):
		return ownService, name + "." + clusterDomain + "."
	case strings.HasSuffix(name, ".svc"), name == "svc", name == clusterDomain,
		!strings.Contains(name, "."), strings.HasSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), "."+clusterDomain):
		return refused, ""
	}
	return elsewhere, name + "."
}

// reachable reports whether the operator may dial an address. For a Service of
// the provider's own namespace that is what cluster networks use, too; for all
// others it must be public.
func reachable(addr netip.Addr, at place) bool {
	addr = addr.Unmap()
	switch {
	case public(addr):
		return true
	case at != ownService || addr.Zone() != "" || within(addr, neverService):
		return false
	}
	return addr.IsPrivate() || within(addr, clusterRanges)
}

// clusterRanges are what Services and pods may have beside private and public addresses.
var clusterRanges = prefixes(
	"100.64.0.0/10", // RFC 6598, shared address space: pods of some clouds
	"198.18.0.0/15", // RFC 2544, benchmarking: some clusters' Services
)

// neverService are metadata addresses within private or shared ranges.
var neverService = prefixes(
	"100.100.100.200/32", // Alibaba Cloud ECS, "View instance metadata"
	"fd00:ec2::/32",      // AWS EC2, IMDS and EKS Pod Identity over IPv6
	"fd20:ce::254/128",   // Google Cloud, metadata.google.internal
)

// special are the addresses of IPv4, and of the part of IPv6 that is given out as
// global unicast (2000::/3), that are not public: the entries of IANA's IPv4 and
// IPv6 Special-Purpose Address Registries, and what they leave out.
var special = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // shared address space
	"127.0.0.0/8",      // loopback
	"169.254.0.0/16",   // link-local
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // protocol assignments
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relay, deprecated
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarking
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast
	"168.63.129.16/32", // Azure's wire server, which is no public service
	"2001::/23",        // protocol assignments: Teredo, ORCHID, benchmarking
	"2001:db8::/32",    // documentation
	"2002::/16",        // 6to4, which embeds any IPv4 address
	"3fff::/20",        // documentation
)

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")     // RFC 4291, as IANA gives it out
	nat64         = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
)

// public reports whether an address can be that of a host on the internet. An
// address behind NAT64 is judged by the IPv4 address within.
func public(addr netip.Addr) bool {
	addr = addr.Unmap()
	switch {
	case !addr.IsValid() || addr.Zone() != "":
		return false
	case nat64.Contains(addr):
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	case addr.Is6() && !globalUnicast.Contains(addr):
		return false
	}
	return !within(addr, special)
}

func within(addr netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}
