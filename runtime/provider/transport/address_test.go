// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net/netip"
	"testing"
)

func TestAddressesThatAreNeverDialled(t *testing.T) {
	for name, addr := range map[string]string{
		"the metadata address":               "169.254.169.254",
		"the first of IPv4 link-local":       "169.254.0.0",
		"ECS task credentials":               "169.254.170.2",
		"IPv6 link-local":                    "fe80::1",
		"the last of IPv6 link-local":        "febf:ffff::1",
		"IPv6 link-local with a zone":        "fe80::1%eth0",
		"IPv4-mapped metadata":               "::ffff:169.254.169.254",
		"IPv4-mapped in hexadecimal":         "::ffff:a9fe:a9fe",
		"IPv4-compatible metadata":           "::169.254.169.254",
		"NAT64 metadata":                     "64:ff9b::a9fe:a9fe",
		"6to4 metadata":                      "2002:a9fe:a9fe::1",
		"AWS metadata over IPv6":             "fd00:ec2::254",
		"EKS pod identity over IPv6":         "fd00:ec2::23",
		"Google metadata over IPv6":          "fd20:ce::254",
		"Alibaba metadata":                   "100.100.100.200",
		"Oracle classic metadata":            "192.0.0.192",
		"Azure's wire server":                "168.63.129.16",
		"the unspecified IPv4 address":       "0.0.0.0",
		"the unspecified IPv6 address":       "::",
		"a multicast address":                "224.0.0.1",
		"IPv6 multicast of link-local scope": "ff02::1",
	} {
		t.Run(name, func(t *testing.T) {
			if !Refused(netip.MustParseAddr(addr)) {
				t.Errorf("%s is dialled", addr)
			}
		})
	}
}

func TestAddressesThatAProviderMayHave(t *testing.T) {
	for name, addr := range map[string]string{
		"loopback":              "127.0.0.1",
		"IPv6 loopback":         "::1",
		"IPv4-mapped loopback":  "::ffff:127.0.0.1",
		"a cluster address":     "10.96.0.10",
		"a private address":     "192.168.1.4",
		"a unique local one":    "fd12:3456::1",
		"carrier-grade NAT":     "100.64.0.1",
		"beside link-local":     "169.253.255.255",
		"after link-local":      "169.255.0.0",
		"beside IPv6 link":      "fec0::1",
		"a public address":      "104.18.6.192",
		"a public IPv6 address": "2606:4700::6812:6c0",
		"NAT64 of a public one": "64:ff9b::6812:6c0",
	} {
		t.Run(name, func(t *testing.T) {
			if Refused(netip.MustParseAddr(addr)) {
				t.Errorf("%s is refused", addr)
			}
		})
	}
}

func TestControlJudgesWhatANameResolvedTo(t *testing.T) {
	for _, tc := range []struct {
		network, address string
		refused          bool
	}{
		{"tcp4", "169.254.169.254:80", true},
		{"tcp6", "[fe80::1%lo]:443", true},
		{"tcp6", "[::ffff:169.254.169.254]:443", true},
		{"tcp4", "127.0.0.1:443", false},
		{"udp4", "127.0.0.1:443", true},
		{"tcp4", "not an address", true},
	} {
		err := Control(context.Background(), tc.network, tc.address, nil)
		if _, ok := errors.AsType[*AddressError](err); ok != tc.refused {
			t.Errorf("Control(%s, %s) = %v; refused should be %v", tc.network, tc.address, err, tc.refused)
		}
	}
}

func TestHostsThatSpellAnAddressOddly(t *testing.T) {
	for host, refused := range map[string]bool{
		"2852039166":                   true,
		"0xA9FEA9FE":                   true,
		"0xa9.0xfe.0xa9.0xfe":          true,
		"169.254.43518":                true,
		"169.254.169.254.":             true,
		"169.254.169.254":              true,
		"::ffff:169.254.169.254":       true,
		"":                             true,
		"api.openai.com":               false,
		"api.openai.com.":              false,
		"vllm.models.svc":              false,
		"localhost":                    false,
		"10.0.0.1":                     false,
		"127.0.0.1":                    false,
		"::1":                          false,
		"1password.example":            false,
		"xn--bcher-kva.xn--p1ai":       false,
		"169.254.169.254.nip.io":       false, // judged after resolution
		"metadata.google.internal":     false, // judged after resolution
		"vision-ocr.vision-system.svc": false,
	} {
		if got := checkHost(host) != nil; got != refused {
			t.Errorf("checkHost(%q) refuses: %v, want %v", host, got, refused)
		}
	}
}

func FuzzCheckHost(f *testing.F) {
	for _, seed := range []string{"2852039166", "::ffff:169.254.169.254", "api.openai.com", "0x", ".", "fe80::1%eth0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		addr, err := netip.ParseAddr(host)
		if err == nil && Refused(addr) != (checkHost(host) != nil) {
			t.Errorf("checkHost(%q) and Refused differ", host)
		}
	})
}
