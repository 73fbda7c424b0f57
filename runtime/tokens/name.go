// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import "strings"

// normal brings a model's name as users and clouds write it into the catalog's
// form: lower case, without path, tag, date mark or vendor's prefix, words parted
// by "-", and the parts of a version by ".".
//
//	accounts/fireworks/models/Qwen2p5-VL-72B  qwen2.5-vl-72b
//	us.anthropic.claude-opus-4-7-v1:0         claude-opus-4.7-v1
//	claude-sonnet-4-5@20250929                claude-sonnet-4.5
//	ft:gpt-4o-mini-2024-07-18:acme::x1        gpt-4o-mini-2024-07-18
//	google/gemma-4-31b:free                   gemma-4-31b
func normal(model string) string {
	s := strings.TrimSpace(model)
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		s = s[i+1:]
	}
	s = strings.ToLower(s)
	s = strings.TrimPrefix(s, "ft:")
	if i := strings.IndexAny(s, ":@"); i >= 0 {
		s = s[:i]
	}
	s = withoutVendor(s)
	return joinVersions([]byte(strings.ReplaceAll(strings.ReplaceAll(s, "_", "-"), " ", "-")))
}

// withoutVendor cuts leading labels without a digit, each ended by a dot: regions
// and vendors, as in us.anthropic.claude-3 or amazon.nova-pro.
func withoutVendor(s string) string {
	for {
		label, rest, ok := strings.Cut(s, ".")
		if !ok || label == "" || rest == "" || strings.ContainsAny(label, "0123456789") {
			return s
		}
		s = rest
	}
}

// joinVersions writes a dot between two short numbers: the "-" of 4-5 and the "p"
// of 2p5, where neither number has more than two digits and no letter follows, so
// that dates (2025-04-14) and sizes (3-8b) stay apart. After a "p" a letter or
// anything else may follow.
func joinVersions(s []byte) string {
	for i := 1; i < len(s)-1; i++ {
		if s[i] != '-' && s[i] != 'p' || !digit(s[i-1]) || !digit(s[i+1]) {
			continue
		}
		left, right := i, i+1
		for left > 0 && digit(s[left-1]) {
			left--
		}
		for right < len(s) && digit(s[right]) {
			right++
		}
		short := i-left <= 2 && right-i-1 <= 2
		if short && (s[i] == 'p' || right == len(s) || !letter(s[right])) {
			s[i] = '.'
		}
	}
	return string(s)
}

func digit(c byte) bool  { return c >= '0' && c <= '9' }
func letter(c byte) bool { return c >= 'a' && c <= 'z' }

// ends reports whether a pattern that ends at i in the normalised name s ends
// there sensibly: not within a word or a number, nor within a version, so that
// gpt-5 is not the start of gpt-5.1 nor gpt-5.1 of gpt-5.10.
func ends(s string, i int) bool {
	if i == len(s) {
		return true
	}
	if digit(s[i]) || letter(s[i]) {
		return false
	}
	return s[i] != '.' || i+1 == len(s) || !digit(s[i+1])
}

// begins reports whether a word begins at i.
func begins(s string, i int) bool {
	return i == 0 || !digit(s[i-1]) && !letter(s[i-1]) && s[i-1] != '.'
}
