// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// partsOf are the parts of a content that are objects; none where it is a string.
func partsOf(b []byte, content message.Span) []message.Span {
	if kindOf(b, content) != '[' {
		return nil
	}
	var parts []message.Span
	for _, part := range elementsOf(b, content) {
		if b[part.Start] == '{' {
			parts = append(parts, part)
		}
	}
	return parts
}

// listImage tells of a part whether it is an image, and which base64 it holds; ""
// where its bytes are elsewhere. Frameworks write OpenAI's and Anthropic's parts, and
// LangChain's own: {"type":"image","source_type":"base64","data"} and {"type":"image","base64"}.
func listImage(b []byte, part message.Span) (data string, is bool) {
	url := ""
	switch stringOf(b, memberOf(b, part, "type")) {
	case "image_url", "input_image":
		v := memberOf(b, part, "image_url")
		if kindOf(b, v) == '{' {
			v = memberOf(b, v, "url")
		}
		url = stringOf(b, v)
	case "image":
		if source := memberOf(b, part, "source"); kindOf(b, source) == '{' {
			part = source
		}
		for _, name := range []string{"base64", "data"} {
			if data = stringOf(b, memberOf(b, part, name)); data != "" {
				return data, true
			}
		}
		url = stringOf(b, memberOf(b, part, "url"))
	case "media":
		data = stringOf(b, memberOf(b, part, "data"))
		return data, strings.HasPrefix(stringOf(b, memberOf(b, part, "mime_type")), "image/")
	default:
		return "", false
	}
	if !isDataURL(url) {
		return "", true
	}
	_, data, ok := strings.Cut(url, ",")
	if !ok || data == "" {
		data = "," // a data URL without data is one all the same
	}
	return data, true
}

// isDataURL reports whether a URL holds data (RFC 2397).
func isDataURL(url string) bool {
	const scheme = "data:"
	url = strings.TrimLeft(url, " \t\r\n")
	return len(url) >= len(scheme) && strings.EqualFold(url[:len(scheme)], scheme)
}

// digestOf is the sha256 of bytes in base64; "" where it is malformed.
func digestOf(data string) string {
	raw, ok := strict(data)
	if !ok {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// strict decodes base64 with the standard alphabet and padding, and nothing beside
// it: no line break, no white space, no other alphabet. Nothing is malformed too.
func strict(data string) (raw []byte, ok bool) {
	if data == "" || strings.ContainsAny(data, "\r\n") {
		return nil, false
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(data)
	return raw, err == nil
}

// digestsOf are the digests of the images that a content holds, in order; "" for one
// whose bytes are elsewhere or malformed.
func digestsOf(b []byte, content message.Span) []string {
	var digests []string
	for _, part := range partsOf(b, content) {
		if data, is := listImage(b, part); is {
			digests = append(digests, digestOf(data))
		}
	}
	return digests
}
