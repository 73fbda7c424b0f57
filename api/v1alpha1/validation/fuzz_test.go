// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// FuzzURL looks for a URL that is accepted and yet leads elsewhere than it
// says: to a refused address, through userinfo, or to no host at all.
func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"https://api.openai.com/v1", "http://127.0.0.1:8973/v1", "http://[::1]/", "https://[2001:db8::1]:8443/v1", "http://a.b.svc:80/@x",
		"https://169.254.169.254/", "https://0xA9FEA9FE/", "https://169.254.43518", "https://[::ffff:a9fe:a9fe]/", "https://u:p@h/", "https://h?q", "https://h/%zz", "https://h\\@e/",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, raw string, plain bool) {
		if urlProblem(raw, plain) != "" {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
			t.Fatalf("%q is accepted and reads as %+v, %v", raw, u, err)
		}
		host := u.Hostname()
		if addr, err := netip.ParseAddr(host); err == nil {
			if refusedAddress(addr.Unmap()) || addr.Is4In6() || addr.Zone() != "" {
				t.Fatalf("%q is accepted and leads to %s", raw, addr)
			}
			if u.Scheme == "http" && !plain && !addr.IsLoopback() {
				t.Fatalf("%q is accepted without allowPlainHTTP", raw)
			}
			return
		}
		last := host[strings.LastIndexByte(host, '.')+1:]
		if !strings.ContainsFunc(strings.ToLower(last), letter) || hexNumber(strings.ToLower(last)) {
			t.Fatalf("%q is accepted and its host may be read as a number", raw)
		}
	})
}

// FuzzCABundle feeds bundles; nothing but a panic or an accepted key is wrong.
func FuzzCABundle(f *testing.F) {
	f.Add("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	f.Add("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
	f.Add("junk")
	f.Fuzz(func(t *testing.T, bundle string) {
		p := goodProvider()
		p.Spec.Endpoints[0].CABundle = bundle
		if len(Provider(p)) == 0 && bundle != "" && !strings.Contains(bundle, "-----BEGIN CERTIFICATE-----") {
			t.Fatalf("%q is accepted", bundle)
		}
	})
}

// FuzzDuration looks for a duration that is accepted and is not as long as it says.
func FuzzDuration(f *testing.F) {
	for _, s := range []string{"30s", "1h30m", "500ms", "0s", "1.5s", "99999h99999h99999h99999h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ms, ok := milliseconds(v1alpha1.Duration(s)); ok && (ms < 0 || len(s) > 28) {
			t.Fatalf("%q is read as %d ms", s, ms)
		}
	})
}

// FuzzFamily looks for a family that is accepted and not known, for one that is
// refused beside near ones that are refused too, and for a panic.
func FuzzFamily(f *testing.F) {
	for _, s := range []string{"openai-pach", "gpt-4o", "gemini-classical", "zzz", "", "gpt-5.9", "\x00", "é"} {
		f.Add(s, "claude-opus-4-7")
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, family, model string) {
		known := family == "" || declaredFamily(family).Match().How == tokens.ByDeclaration
		c := &checks{}
		if c.family(field.NewPath("f"), family); known != (len(c.errs) == 0) {
			t.Fatalf("%q: known %t, problems %v", family, known, c.errs)
		}
		if w := familyWarning(model, family); w != "" && !known {
			t.Fatalf("%q is refused and warned of: %s", family, w)
		}
		near := nearFamilies(family)
		if len(near) > maxNear {
			t.Fatalf("%q is near %q", family, near)
		}
		for _, n := range near {
			if declaredFamily(n).Match().How != tokens.ByDeclaration || edits(n, family) != edits(family, n) {
				t.Fatalf("%q is near %q", family, n)
			}
		}
	})
}
