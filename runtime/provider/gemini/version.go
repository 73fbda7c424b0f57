// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"strconv"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

// version is a model's, such as 2.5; the zero version is a model whose name has none.
type version struct{ major, minor int }

// versionOf reads "gemini-", then one or two digits, and perhaps a dot and as
// many, anywhere in a model's name: "models/gemini-2.5-flash-lite",
// "google/gemini-3-pro-preview". Names such as "gemini-flash-latest" have none.
func versionOf(model string) version {
	_, rest, found := strings.Cut(strings.ToLower(model), "gemini-")
	if !found {
		return version{}
	}
	if end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		rest = rest[:end]
	}
	major, minor, _ := strings.Cut(rest, ".")
	return version{major: number(major), minor: number(minor)}
}

// number reads one or two digits, and is 0 for anything else: more are a date.
func number(digits string) int {
	if len(digits) > 2 {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// dialect is what a model takes for a schema: JSON Schema from version 2.5 on,
// the subset of OpenAPI 3.0 that every version takes where the name does not tell.
func (v version) dialect() lower.Dialect {
	if v.major > 2 || v.major == 2 && v.minor >= 5 {
		return lower.GeminiJSONSchema
	}
	return lower.GeminiSchema
}
