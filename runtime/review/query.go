// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"net/url"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// ReadQuery reads a review whose body is the model request itself: everything
// else stands in the query of its address, by the names of the envelope.
// patchTypes may be given more than once, or with commas. A parameter that is
// not known is an error: nothing else tells a mistake in an address. The error
// is a *fault.Fault.
func ReadQuery(query url.Values, body []byte) (*Request, error) {
	if body == nil {
		body = []byte{}
	}
	r := &Request{Body: body}
	texts := map[string]func(string){
		"uid": func(s string) { r.UID = s }, "dialect": func(s string) { r.Dialect = message.Dialect(s) },
		"method": func(s string) { r.Method = s }, "path": func(s string) { r.Path = s },
		"model": func(s string) { r.Model = s }, "profile": func(s string) { r.Profile = s },
		"operation": func(s string) { r.Operation = Operation(s) },
	}
	for name, values := range query {
		set, known := texts[name]
		switch {
		case name == "patchTypes":
			for _, list := range values {
				for kind := range strings.SplitSeq(list, ",") {
					r.PatchTypes = append(r.PatchTypes, PatchType(strings.TrimSpace(kind)))
				}
			}
			continue
		case name == "dryRun":
			if !slices.Contains([]string{"true", "false"}, query.Get(name)) {
				return nil, malformed(name, "WrongType", "dryRun is neither true nor false")
			}
			r.DryRun = query.Get(name) == "true"
		case !known:
			return nil, malformed(clip(name), "Unknown", "there is no parameter %q", clip(name)).
				Hint("The parameters are uid, dialect, method, path, model, profile, operation, dryRun and patchTypes.")
		default:
			set(values[0])
		}
		if len(values) > 1 {
			return nil, malformed(name, "DuplicateMember", "%s is given %d times", name, len(values))
		}
	}
	return r, r.check()
}
