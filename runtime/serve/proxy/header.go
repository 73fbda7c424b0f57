// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// hops are the headers of one connection (RFC 9110 §7.6.1, with the older ones
// that proxies drop as well), and those that say of a body what the sender of
// each connection says anew.
var hops = set("Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Proxy-Authenticate", "Proxy-Authorization")

// kept are the headers of a client's request that stay here: what is its
// credential anywhere, and with it what names the account that it belongs to; and
// what the upstream's connection has of its own.
var kept = set("Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie",
	"Openai-Organization", "Openai-Project", "X-Goog-User-Project", "X-Goog-Iam-Authorization-Token",
	"Ocp-Apim-Subscription-Key", "X-Amz-Security-Token", "X-Auth-Token",
	"Host", "Content-Length", "Expect")

// telling are words by which names of further headers tell that they carry a
// credential, such as X-Forwarded-Authorization and X-Portkey-Api-Key, and endings
// how they do. No vendor has other headers of such names; one that ends in "key"
// alone may be no secret, such as Idempotency-Key.
var (
	telling = []string{
		"authorization", "authentication", "api-key", "apikey", "api-token", "secret", "password", "credential", "cookie",
		"access-key", "auth-key", "admin-key", "private-key", "subscription-key", "openai-key", "anthropic-key", "gemini-key", "google-key",
	}
	endings = []string{"-token", "-auth"}
)

// between says by its name whether a header is between the client and the runtime:
// X-Vision-Anything, the client's credentials, and what kept names. To many servers
// an underscore in a name is a dash, so it is one here.
func between(name string) bool {
	var short [64]byte
	folded := short[:0]
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			folded = append(folded, c|0x20)
		case c == '_':
			if kept[textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))] {
				return true
			}
			folded = append(folded, '-')
		default:
			folded = append(folded, c)
		}
	}
	for _, word := range telling {
		if bytes.Contains(folded, []byte(word)) {
			return true
		}
	}
	for _, end := range endings {
		if bytes.HasSuffix(folded, []byte(end)) {
			return true
		}
	}
	return bytes.HasPrefix(folded, []byte("x-vision-")) || string(folded) == "token"
}

// secretParameters are the parameters of a query that carry a credential.
var secretParameters = map[string]bool{
	"key": true, "access_token": true, "oauth_token": true, "api_key": true, "api-key": true, "apikey": true,
	"subscription-key": true, "auth_token": true, "token": true, "id_token": true, "refresh_token": true, "security_token": true,
	"client_secret": true, "secret": true, "password": true, "x-amz-security-token": true, "x-amz-credential": true, "x-amz-signature": true, "x-api-key": true, "x-goog-api-key": true, "authorization": true,
	"httpheaders": true, // by which Google's servers take headers
}

func set(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// upstreamHeaders are the headers that go up. Values are shared with from.
func upstreamHeaders(from http.Header) http.Header {
	named := connectionNamed(from)
	up := make(http.Header, len(from)+2)
	for name, values := range from {
		if !hops[name] && !kept[name] && !named[name] && !between(name) {
			up[name] = values
		}
	}
	if strings.Contains(strings.ToLower(strings.Join(from["Te"], ",")), "trailers") {
		up["Te"] = []string{"trailers"} // all that the runtime can promise as well
	}
	if _, said := up["User-Agent"]; !said {
		up["User-Agent"] = nil // or net/http would name itself
	}
	return up
}

// withMore is a copy of headers with what more says that they do not say yet: lists
// get longer (RFC 9110 §5.3).
func withMore(headers, more http.Header) http.Header {
	out := make(http.Header, len(headers)+len(more))
	maps.Copy(out, headers)
	for name, values := range more {
		said := out[name]
		for _, value := range values {
			if !saysAlready(said, value) {
				said = append(said[:len(said):len(said)], value)
			}
		}
		out[name] = said
	}
	return out
}

// saysAlready says whether a list holds a value.
func saysAlready(list []string, value string) bool {
	for _, line := range list {
		for item := range strings.SplitSeq(line, ",") {
			if textproto.TrimString(item) == value {
				return true
			}
		}
	}
	return false
}

// downstreamHeaders adds to a reply's headers those of the upstream's.
func downstreamHeaders(to, from http.Header) {
	named := connectionNamed(from)
	for name, values := range from {
		if !hops[name] && !named[name] {
			to[name] = values
		}
	}
	if _, said := from["Content-Type"]; !said {
		to["Content-Type"] = nil // or net/http would guess one
	}
}

// connectionNamed are the headers that Connection says are of one connection.
func connectionNamed(h http.Header) map[string]bool {
	var named map[string]bool
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
			if name == "" || hops[name] || name == "Close" {
				continue
			}
			if named == nil {
				named = map[string]bool{}
			}
			named[name] = true
		}
	}
	return named
}

// upstreamQuery is a query without the parameters that carry a credential, and
// without api-version where the endpoint has one of its own; every other byte of
// it stays.
func upstreamQuery(raw string, versioned bool) string {
	if raw == "" {
		return ""
	}
	var stays strings.Builder
	open := false // what stays ends in what parts two pairs, and the second is to come
	for rest := raw; rest != ""; {
		pair, next := rest, ""
		if end := strings.IndexAny(rest, "&;"); end >= 0 {
			pair, next = rest[:end+1], rest[end+1:]
		}
		if rest = next; dropped(pair, versioned) {
			continue
		}
		stays.WriteString(pair)
		open = len(rest) > 0
	}
	if query := stays.String(); open && len(query) > 0 && dropped(raw[strings.LastIndexAny(raw, "&;")+1:], versioned) {
		return query[:len(query)-1]
	}
	return stays.String()
}

// dropped says whether a pair of a query does not go up.
func dropped(pair string, versioned bool) bool {
	name, _, _ := strings.Cut(strings.TrimRight(pair, "&;"), "=")
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	name = strings.TrimLeft(strings.ToLower(strings.TrimSpace(name)), "$.") // as Google's servers take system parameters
	return secretParameters[name] || versioned && name == "api-version"
}
