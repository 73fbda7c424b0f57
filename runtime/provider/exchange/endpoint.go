// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"net/http"
	"net/url"
	"strings"
)

// Endpoint is where a protocol's calls go.
type Endpoint struct {
	// BaseURL is the URL as it is declared, such as "https://api.openai.com/v1".
	BaseURL string
	// APIVersion, when set, goes with every call as the query parameter api-version.
	APIVersion string
	// Client brings deadline, credential, headers and limits; see transport.New.
	Client *http.Client
}

// URL is the address of a path below the base URL: path begins with a slash and
// is escaped where it must be.
func (e Endpoint) URL(path string) string {
	address := strings.TrimRight(e.BaseURL, "/") + path
	if e.APIVersion == "" {
		return address
	}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return address + separator + "api-version=" + url.QueryEscape(e.APIVersion)
}

// Host is the base URL's host name in lower case, "" when it does not parse.
func (e Endpoint) Host() string {
	u, err := url.Parse(e.BaseURL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// HostIn reports whether the endpoint's host is one of domains, or below one.
func (e Endpoint) HostIn(domains ...string) bool {
	host := e.Host()
	for _, domain := range domains {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}
