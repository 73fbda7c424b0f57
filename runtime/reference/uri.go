// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"strings"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

// scheme begins the path that names a kept image.
const scheme = "vision://"

// URI is the path that names the image with this id.
func URI(id string) string { return scheme + id }

// ParseURI reads a path that may be "vision://vis_" and 16 lower-case
// hexadecimal digits, with white space around it. isURI tells it from a file's
// path; ok says that the id is well formed, and id is "" otherwise.
func ParseURI(path string) (id string, isURI bool, ok bool) {
	path = strings.TrimSpace(path)
	if len(path) < len(scheme) || !strings.EqualFold(path[:len(scheme)], scheme) {
		return "", false, false
	}
	id = path[len(scheme):]
	if !observation.IsReferenceID(id) {
		return "", true, false
	}
	return id, true, true
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
