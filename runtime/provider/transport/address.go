// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// refusedPrefixes are never dialled. Loopback and private ranges are not among
// them: providers beside the pod and in the cluster are legitimate.
var refusedPrefixes = []netip.Prefix{
	// RFC 3927 and RFC 4291: link-local. 169.254.169.254 is the metadata address
	// of AWS, Azure, Google Cloud, OpenStack, Oracle and DigitalOcean;
	// 169.254.170.2 and 169.254.170.23 hand out AWS ECS and EKS credentials.
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),
	// AWS EC2 user guide, "Access instance metadata": IMDS over IPv6; the EKS
	// Pod Identity agent answers at fd00:ec2::23.
	netip.MustParsePrefix("fd00:ec2::/32"),
	// Google Cloud, "View and query VM metadata": metadata.google.internal on IPv6-only machines.
	netip.MustParsePrefix("fd20:ce::254/128"),
	// Alibaba Cloud ECS, "View instance metadata".
	netip.MustParsePrefix("100.100.100.200/32"),
	// Oracle Cloud Infrastructure Classic, "Retrieving instance metadata".
	netip.MustParsePrefix("192.0.0.192/32"),
	// Azure, "What is IP address 168.63.129.16?": the wire server.
	netip.MustParsePrefix("168.63.129.16/32"),
	// RFC 1122 and RFC 4291: the unspecified address, which the kernel takes for this host.
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("::/128"),
	// RFC 1112 and RFC 4291: multicast; link-local scope included.
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("ff00::/8"),
}

// embeddings are IPv6 prefixes that carry an IPv4 address which a translator
// would dial; offset is where its four bytes begin.
var embeddings = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},   // RFC 6052, NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12}, // RFC 8215, local NAT64 as /96 networks use it
	{netip.MustParsePrefix("2002::/16"), 2},       // RFC 3056, 6to4
	{netip.MustParsePrefix("::/96"), 12},          // RFC 4291, IPv4-compatible (deprecated)
}

// Refused reports whether an address is link-local, a metadata service, or
// another one that no provider can have. IPv4-mapped and otherwise embedded
// IPv4 addresses are judged by the IPv4 address within; zones are ignored.
func Refused(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, p := range refusedPrefixes {
		if p.Contains(addr) {
			return true
		}
	}
	if addr.Is4() || addr == netip.IPv6Loopback() {
		return false
	}
	b := addr.As16()
	for _, e := range embeddings {
		if e.prefix.Contains(addr) && Refused(netip.AddrFrom4([4]byte(b[e.offset:e.offset+4]))) {
			return true
		}
	}
	return false
}

// AddressError is a refusal to dial.
type AddressError struct {
	// Address is what was refused: an IP address, or a host that spells one oddly.
	Address string
}

// Error names the address.
func (e *AddressError) Error() string {
	return fmt.Sprintf("address %s is link-local, a metadata service or otherwise not a provider's", e.Address)
}

// Control refuses a connection by the address that a name resolved to, at the
// last moment before the connection is made, so that no second resolution can
// differ. It is a net.Dialer's ControlContext.
func Control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return &AddressError{Address: network + " socket"}
	}
	ap, err := netip.ParseAddrPort(address)
	if err != nil || Refused(ap.Addr()) {
		return &AddressError{Address: address}
	}
	return nil
}

// Dialer is a net.Dialer that refuses the addresses of Refused after resolution.
func Dialer() *net.Dialer {
	return &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second, ControlContext: Control}
}

// checkHost refuses a host by its spelling. It guards calls that go through a
// proxy, which resolves the name out of our sight: literal addresses that are
// refused, and numbers that some resolvers take for an address (2852039166,
// 0xA9FEA9FE, 169.254.43518).
func checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		if Refused(addr) {
			return &AddressError{Address: host}
		}
		return nil
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" || strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return &AddressError{Address: host}
	}
	return nil
}
