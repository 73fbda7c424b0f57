// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddressesAreJudgedByWhereTheHostLives(t *testing.T) {
	for name, tc := range map[string]struct {
		addr            string
		public, service bool
	}{
		"a public address":                   {"104.18.6.192", true, true},
		"a public IPv6 address":              {"2606:4700::6812:6c0", true, true},
		"a public one, IPv4-mapped":          {"::ffff:104.18.6.192", true, true},
		"a public one behind NAT64":          {"64:ff9b::6812:6c0", true, true},
		"a private address":                  {"10.96.0.10", false, true},
		"a private one of class B":           {"172.31.255.255", false, true},
		"a private one of class C":           {"192.168.1.4", false, true},
		"a private one, IPv4-mapped":         {"::ffff:10.96.0.10", false, true},
		"a private one behind NAT64":         {"64:ff9b::a60:a", false, false},
		"a unique local address":             {"fd12:3456::1", false, true},
		"shared address space":               {"100.64.0.1", false, true},
		"benchmarking":                       {"198.18.0.1", false, true},
		"loopback":                           {"127.0.0.1", false, false},
		"the last of loopback":               {"127.255.255.255", false, false},
		"IPv6 loopback":                      {"::1", false, false},
		"IPv4-mapped loopback":               {"::ffff:127.0.0.1", false, false},
		"NAT64 loopback":                     {"64:ff9b::7f00:1", false, false},
		"6to4 loopback":                      {"2002:7f00:1::1", false, false},
		"the metadata address":               {"169.254.169.254", false, false},
		"IPv4-mapped metadata":               {"::ffff:a9fe:a9fe", false, false},
		"NAT64 metadata":                     {"64:ff9b::a9fe:a9fe", false, false},
		"local NAT64 metadata":               {"64:ff9b:1::a9fe:a9fe", false, false},
		"IPv4-compatible metadata":           {"::169.254.169.254", false, false},
		"IPv6 link-local":                    {"fe80::1", false, false},
		"IPv6 link-local with a zone":        {"fe80::1%eth0", false, false},
		"a public IPv6 address with a zone":  {"2606:4700::1%eth0", false, false},
		"a unique local one with a zone":     {"fd12:3456::1%eth0", false, false},
		"AWS metadata over IPv6":             {"fd00:ec2::254", false, false},
		"Google metadata over IPv6":          {"fd20:ce::254", false, false},
		"Alibaba metadata":                   {"100.100.100.200", false, false},
		"Oracle classic metadata":            {"192.0.0.192", false, false},
		"Azure's wire server":                {"168.63.129.16", false, false},
		"the unspecified address":            {"0.0.0.0", false, false},
		"the unspecified IPv6 address":       {"::", false, false},
		"multicast":                          {"224.0.0.1", false, false},
		"IPv6 multicast":                     {"ff02::1", false, false},
		"broadcast":                          {"255.255.255.255", false, false},
		"reserved":                           {"240.0.0.1", false, false},
		"documentation":                      {"192.0.2.1", false, false},
		"IPv6 documentation":                 {"2001:db8::1", false, false},
		"Teredo":                             {"2001::1", false, false},
		"site-local, deprecated":             {"fec0::1", false, false},
		"IPv6 that nobody was given":         {"4000::1", false, false},
		"beside link-local":                  {"169.253.255.255", true, true},
		"beside the private class B":         {"172.32.0.0", true, true},
		"beside shared address space":        {"100.128.0.0", true, true},
		"beside the wire server":             {"168.63.129.17", true, true},
		"the highest before multicast":       {"223.255.255.255", true, true},
		"public IPv6 beside protocol blocks": {"2001:200::1", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			addr := netip.MustParseAddr(tc.addr)
			if got := reachable(addr, elsewhere); got != tc.public {
				t.Errorf("elsewhere, %s is dialled: %t, want %t", addr, got, tc.public)
			}
			if got := reachable(addr, ownService); got != tc.service {
				t.Errorf("for a Service, %s is dialled: %t, want %t", addr, got, tc.service)
			}
		})
	}
	if public(netip.Addr{}) || reachable(netip.Addr{}, ownService) {
		t.Error("no address is dialled")
	}
}

func TestHostsAreLocatedByTheirNames(t *testing.T) {
	for name, tc := range map[string]struct {
		host string
		want place
		dns  string
	}{
		"a public name":                              {"api.openai.com", elsewhere, "api.openai.com."},
		"a public name in capitals":                  {"API.OpenAI.com", elsewhere, "api.openai.com."},
		"an absolute name":                           {"api.openai.com.", elsewhere, "api.openai.com."},
		"an own Service":                             {"vllm.team.svc", ownService, "vllm.team.svc.cluster.local."},
		"an own Service in full":                     {"vllm.team.svc.cluster.local", ownService, "vllm.team.svc.cluster.local."},
		"an own Service in capitals":                 {"VLLM.Team.SVC", ownService, "vllm.team.svc.cluster.local."},
		"a pod of an own Service":                    {"vllm-0.vllm.team.svc", ownService, "vllm-0.vllm.team.svc.cluster.local."},
		"another namespace's Service":                {"vllm.other.svc", refused, ""},
		"another namespace's Service in full":        {"vllm.other.svc.cluster.local.", refused, ""},
		"another whose name ends like the namespace": {"vllm.my-team.svc", refused, ""},
		"the namespace in the wrong place":           {"team.vllm.svc", refused, ""},
		"no Service at all":                          {"team.svc", refused, ""},
		"an empty Service":                           {".team.svc", refused, ""},
		"a pod's name":                               {"10-0-0-1.team.pod.cluster.local", refused, ""},
		"the cluster's domain":                       {"cluster.local", refused, ""},
		"the cluster's domain twice":                 {"vllm.other.svc.cluster.local.cluster.local", refused, ""},
		"svc alone":                                  {"svc", refused, ""},
		"a short name":                               {"vllm", refused, ""},
		"localhost":                                  {"localhost", refused, ""},
		"an address as a number":                     {"2852039166", refused, ""},
		"nothing":                                    {"", refused, ""},
		"a short Service name is taken for a public name, which no search list completes": {"vllm.other", elsewhere, "vllm.other."},
		"a public name that looks like a Service":                                         {"vllm.team.svc.example.com", elsewhere, "vllm.team.svc.example.com."},
	} {
		t.Run(name, func(t *testing.T) {
			got, dns := locate(tc.host, "team")
			if got != tc.want || dns != tc.dns {
				t.Errorf("got %d %q, want %d %q", got, dns, tc.want, tc.dns)
			}
		})
	}
}

func FuzzLocate(f *testing.F) {
	for _, seed := range []string{"api.openai.com", "vllm.team.svc", "vllm.other.svc.cluster.local", "", ".", "a.svc.", "TEAM.svc.cluster.local.cluster.local"} {
		f.Add(seed, "team")
	}
	f.Add("x.svc.svc", "svc")
	f.Fuzz(func(t *testing.T, host, namespace string) {
		at, name := locate(host, namespace)
		inCluster := strings.HasSuffix(name, ".svc.") || strings.HasSuffix(name, "."+clusterDomain+".")
		switch {
		case at == refused && name != "":
			t.Errorf("locate(%q) refuses and names %q", host, name)
		case at == elsewhere && inCluster:
			t.Errorf("locate(%q) takes %q for a public name", host, name)
		case at == ownService && !strings.HasSuffix(name, "."+strings.ToLower(namespace)+".svc."+clusterDomain+"."):
			t.Errorf("locate(%q) takes %q for a Service of %q", host, name, namespace)
		case at != refused && !strings.HasSuffix(name, "."):
			t.Errorf("locate(%q) gives %q, which is not absolute", host, name)
		}
	})
}

func FuzzPublic(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2606:4700::1", "fe80::1%eth0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addr, err := netip.ParseAddr(text)
		if err != nil || !public(addr) {
			return
		}
		if addr = addr.Unmap(); addr.IsPrivate() || addr.IsLoopback() || !addr.IsGlobalUnicast() || addr.Zone() != "" {
			t.Errorf("%s is taken for public", addr)
		}
	})
}
