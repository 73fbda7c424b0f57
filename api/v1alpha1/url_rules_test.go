// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a refused URL is told.
const (
	wordsScheme  = "must begin with https:// or http://, in lower case"
	wordsUser    = "must not hold a user name or password"
	wordsQuery   = "must not hold a query or a fragment"
	wordsRefused = "must not point at a link-local, metadata, multicast or unspecified address"
	wordsHost    = "the host must be a name whose last label has a letter"
	wordsRest    = "a port of 1 to 65535 and a path of plain URL characters"
	wordsPlain   = "plain http is only for loopback and for hosts ending in .svc or .svc.cluster.local"
)

func TestURLsOfEndpoints(t *testing.T) {
	for _, c := range []struct{ name, url, words string }{
		{"https to a public name", "https://api.openai.com/v1", ""},
		{"https to a name in capitals, with a port", "https://MyResource.OpenAI.Azure.com:8443/openai/v1/", ""},
		{"https to a name of one label", "https://gateway", ""},
		{"https to a name whose last label begins with a digit and has a letter", "https://4090box:8000/v1", ""},
		{"https to an internationalised name", "https://api.xn--p1ai/v1", ""},
		{"https to an address", "https://192.0.2.10:8443", ""},
		{"https to an IPv6 address", "https://[2001:db8::1]:8443/v1", ""},
		{"https to a whole IPv6 address", "https://[2001:db8:0:0:1:0:0:1]/v1", ""},
		{"https to a whole IPv6 address with a port", "https://[2001:db8:0:0:1:0:0:1]:8443/v1", ""},
		{"https to an IPv6 address that ends in one zero group", "https://[2001:db8:1:2:3:4:5::]/v1", ""},
		{"https to a unique local IPv6 address", "https://[fd12:3456:789a::1]/v1", ""},
		{"a name that only begins as a link-local address does", "https://169.254.169.254.example.com/v1", ""},
		{"a path with an @ and an escape", "https://api.example.com/v1/@team/a%20b", ""},
		{"http to loopback", "http://127.0.0.1:8973/v1", ""},
		{"http to localhost", "http://localhost:8000/v1", ""},
		{"http to IPv6 loopback", "http://[::1]:8000/v1", ""},
		{"http to a Service", "http://vllm.models.svc:8000/v1", ""},
		{"http to a Service's whole name", "http://vllm.models.svc.cluster.local:8000/v1", ""},

		{"http to a public name", "http://api.openai.com/v1", wordsPlain},
		{"http to a private address", "http://10.0.0.5:8000/v1", wordsPlain},
		{"http to a name that only looks like a Service", "http://vllm.svc.example.com/v1", wordsPlain},
		{"http to a name that only looks like loopback", "http://127.0.0.1.example.com/v1", wordsPlain},
		{"http to a name that ends in svc without a dot", "http://notsvc/v1", wordsPlain},

		{"no scheme", "api.openai.com/v1", wordsScheme},
		{"a scheme in capitals", "HTTPS://api.openai.com/v1", wordsScheme},
		{"another scheme", "ftp://api.openai.com/v1", wordsScheme},
		{"a file", "file:///etc/passwd", wordsScheme},
		{"a leading space", " https://api.openai.com", wordsScheme},
		{"a user name", "https://user@api.example.com/v1", wordsUser},
		{"a user name and password", "https://user:secret@api.example.com/v1", wordsUser},
		{"a public name for a user before a metadata host", "https://api.openai.com@169.254.169.254/", wordsUser},
		{"a query", "https://api.example.com/v1?key=secret", wordsQuery},
		{"a fragment", "https://api.example.com/v1#there", wordsQuery},
		{"an empty query", "https://api.example.com/v1?", wordsQuery},

		{"link-local as four decimals", "https://169.254.169.254/latest/meta-data", wordsRefused},
		{"link-local over http", "http://169.254.169.254/v1", wordsRefused},
		{"link-local that is not the metadata service", "https://169.254.1.1:8443/v1", wordsRefused},
		{"ECS's credentials", "https://169.254.170.2/v2/credentials", wordsRefused},
		{"link-local as one decimal", "https://2852039166/v1", wordsHost},
		{"link-local as one hexadecimal", "https://0xA9FEA9FE/v1", wordsHost},
		{"link-local as one hexadecimal in lower case", "https://0xa9fea9fe:80/v1", wordsHost},
		{"link-local as four hexadecimals", "https://0xa9.0xfe.0xa9.0xfe/v1", wordsHost},
		{"link-local as four octals", "https://0251.0376.0251.0376/v1", wordsHost},
		{"link-local as one octal", "https://025177524776/v1", wordsHost},
		{"link-local as three parts", "https://169.254.43518/v1", wordsHost},
		{"link-local as two parts", "https://169.16689662/v1", wordsHost},
		{"link-local with mixed bases", "https://169.0xfe.0251.254/v1", wordsHost},
		{"link-local with a trailing dot", "https://169.254.169.254./v1", wordsHost},
		{"link-local with an escape", "https://169.254.169%2e254/v1", wordsHost},
		{"link-local with an escaped digit", "https://%3169.254.169.254/v1", wordsHost},
		{"link-local with full-width digits", "https://１６９.254.169.254/v1", wordsHost},
		{"link-local with an ideographic full stop", "https://169。254。169。254/v1", wordsHost},
		{"link-local mapped into IPv6", "https://[::ffff:169.254.169.254]/v1", wordsHost},
		{"link-local mapped into IPv6 in hexadecimal", "https://[::ffff:a9fe:a9fe]/v1", wordsHost},
		{"link-local mapped into IPv6 with every zero", "https://[0:0:0:0:0:ffff:a9fe:a9fe]/v1", wordsHost},
		{"link-local in the deprecated compatible form", "https://[::a9fe:a9fe]/v1", wordsHost},
		{"link-local behind NAT64", "https://[64:ff9b::a9fe:a9fe]/v1", wordsHost},
		{"link-local behind NAT64 with leading zeros", "https://[0064:ff9b::169.254.169.254]/v1", wordsHost},
		{"link-local behind 6to4", "https://[2002:a9fe:a9fe::1]/v1", wordsHost},
		{"link-local IPv6", "https://[fe80::1]/v1", wordsRefused},
		{"link-local IPv6 in capitals", "https://[FE80::1]:8443/v1", wordsRefused},
		{"link-local IPv6 at the range's end", "https://[febf::1]/v1", wordsRefused},
		{"link-local IPv6 with a zone", "https://[fe80::1%25eth0]/v1", wordsHost},
		{"AWS's metadata over IPv6", "https://[fd00:ec2::254]/v1", wordsRefused},
		{"AWS's metadata over IPv6 with every zero", "https://[fd00:0ec2:0:0:0:0:0:254]/v1", wordsRefused},
		{"Google's metadata over IPv6", "https://[fd20:ce::254]/v1", wordsRefused},
		{"Google's metadata by name", "https://metadata.google.internal/v1", wordsRefused},
		{"Alibaba's metadata", "https://100.100.100.200/v1", wordsRefused},
		{"Oracle's metadata", "https://192.0.0.192/v1", wordsRefused},
		{"Azure's wire server", "https://168.63.129.16/v1", wordsRefused},
		{"the unspecified address", "https://0.0.0.0/v1", wordsRefused},
		{"the unspecified IPv6 address", "https://[::]/v1", wordsHost},
		{"multicast", "https://224.0.0.1/v1", wordsRefused},

		{"no host", "https:///v1", wordsHost},
		{"a host that begins with a dot", "https://.svc/v1", wordsHost},
		{"two dots in a row", "https://a..example.com/v1", wordsHost},
		{"a trailing dot", "https://api.example.com./v1", wordsHost},
		{"a decimal above 255", "https://256.1.1.1/v1", wordsHost},
		{"IPv6 without brackets", "https://2001:db8::1/v1", wordsHost},
		{"IPv6 without its closing bracket", "https://[2001:db8::1/v1", wordsHost},
		{"IPv6 with nine groups", "https://[1:2:3:4:5:6:7:8:9]/v1", wordsHost},
		{"IPv6 with eight groups and two colons in a row", "https://[1:2:3:4::5:6:7:8]/v1", wordsHost},
		{"IPv6 with two colons in a row twice", "https://[1::2::3]/v1", wordsHost},
		{"a backslash before an @", `https://api.example.com\@evil.example.com/v1`, wordsUser},
		{"a backslash", `https://api.example.com\evil`, wordsHost},
		{"port 0", "https://api.example.com:0/v1", wordsRest},
		{"port 65536", "https://api.example.com:65536/v1", wordsRest},
		{"a port that is no number", "https://api.example.com:https/v1", wordsRest},
		{"an empty port", "https://api.example.com:/v1", wordsRest},
		{"a space in the path", "https://api.example.com/v 1", wordsRest},
		{"a newline", "https://api.example.com/v1\n", wordsRest},
		{"an escape cut off", "https://api.example.com/v1%2", wordsRest},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rule{edit: fmt.Sprintf("spec: {endpoints: [{name: local, url: %q}]}", c.url)}
			if c.words != "" {
				r.field, r.words = "spec.endpoints[0].url", c.words
			}
			r.check(t, baseProvider)
		})
	}
}

func TestARefusedURLIsToldOneRuleAndNotItsPassword(t *testing.T) {
	object := edited(t, baseProvider, `spec: {endpoints: [{name: local, url: "https://user:hunter2@169.254.169.254/v1?x#y"}]}`)
	err := api.Create(t.Context(), object)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the API server's answer: %v", err)
	}
	if text := judged(t, object, true).ToAggregate().Error(); strings.Contains(text, "hunter2") {
		t.Errorf("the validator's answer: %s", text)
	}
}

func TestAllowPlainHTTPOpensOtherHostsAndNotTheRefusedOnes(t *testing.T) {
	const edit = "spec: {endpoints: [{name: local, allowPlainHTTP: true, url: %q}]}"
	rule{edit: fmt.Sprintf(edit, "http://10.0.0.5:8000/v1")}.check(t, baseProvider)
	rule{edit: fmt.Sprintf(edit, "http://models.example.com/v1")}.check(t, baseProvider)
	rule{edit: fmt.Sprintf(edit, "http://169.254.169.254/v1"), field: "spec.endpoints[0].url", words: wordsRefused}.check(t, baseProvider)
}

// TestRandomURLsAreJudgedAlikeByTheAPIAndTheValidator puts pieces of URLs
// together, the same ones at each run.
func TestRandomURLsAreJudgedAlikeByTheAPIAndTheValidator(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	some := func(most int, join string, from ...string) string {
		parts := make([]string, 1+random.IntN(most))
		for i := range parts {
			parts[i] = pick(from...)
		}
		return strings.Join(parts, join)
	}
	accepted := 0
	for range 500 {
		host := some(8, "", "169", "254", ".", ".", ".", ":", "0", "0x", "a9", "svc", "local", "localhost", "127", "metadata.google.internal",
			"@", "/", "?", "#", "%25", "255", "256", "80", "-", "_", "é", "A", "z", "100.100.100.200", " ", "[", "]")
		switch random.IntN(4) {
		case 0:
			host = "[" + some(9, ":", "1", "0", "fe80", "ffff", "a9fe", "64", "ff9b", "2002", "fd00", "ec2", "fd20", "ce", "", "254", "00ab", "12345") + "]"
		case 1:
			host = some(5, ".", "169", "254", "0", "127", "255", "256", "0xa9", "svc", "example", "a-b", "a_b", "com", "")
		case 2:
			host = some(4, ".", "10", "models", "a-b", "a_b", "svc", "com")
		}
		url := pick("https://", "https://", "http://", "HTTPS://", "") + host + pick("", "", "/v1", ":443/v1", ":", ":65536", "/%2")
		object := edited(t, baseProvider, fmt.Sprintf("spec: {endpoints: [{name: local, url: %q}]}", url))
		err := api.Create(t.Context(), object.DeepCopy(), client.DryRunAll)
		problems := judged(t, object, true)
		if (err == nil) != (len(problems) == 0) {
			t.Errorf("%q: the API server says %v, the validator %v", url, err, problems)
		}
		if err == nil {
			accepted++
		}
	}
	if accepted < 25 || accepted > 475 {
		t.Errorf("%d of 500 URLs were accepted: the pieces must make both kinds", accepted)
	}
}
