// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"net/url"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
)

// target is where a model request goes, as far as the request line tells.
type target struct {
	dialect message.Dialect
	// model is the path's; "" where it names none.
	model string
	// bodied says that the method carries a model request.
	bodied bool
}

// targetOf reads what surrounds the body.
func targetOf(req *Request) (target, error) {
	switch req.Operation {
	case Preflight, "":
	case Inject:
		f := malformed("operation", "OperationUnsupported", "a review does not put images in: the operation Inject is not served").
			Hint("POST /v1/inject says which images to show in messages, and where; ask for the operation Preflight to have a request judged.")
		f.HTTPStatus = statusNotImplemented
		return target{}, f
	default:
		return target{}, malformed("operation", "OperationUnknown", "there is no operation %q; there are Preflight and Inject", clip(string(req.Operation)))
	}
	if len(req.PatchTypes) > 0 && patchType(req.PatchTypes) == "" {
		return target{}, malformed("patchTypes", "PatchTypeUnknown", "none of the patch types is known; there are JSONPatch and ByteRanges")
	}
	t, known := target{}, false
	t.dialect, t.model = FromPath(req.Path)
	if req.Dialect != "" {
		t.dialect = req.Dialect
	}
	switch {
	case req.Dialect != "" && !slices.Contains(message.Dialects(), req.Dialect):
		return target{}, malformed("dialect", string(message.UnknownDialect), "there is no dialect %q", clip(string(req.Dialect))).With("dialects", message.Dialects())
	case t.dialect == "" && req.Path == "":
		return target{}, noDialect("neither a dialect nor a path is given")
	case t.dialect == "":
		return target{}, noDialect("the path is none of a dialect's, and no dialect is given")
	}
	if t.bodied, known = methods[strings.ToUpper(req.Method)]; !known {
		return target{}, malformed("method", "MethodUnknown", "a model request is a POST, not a %q", clip(req.Method))
	}
	return t, nil
}

// methods say whether a request has a body to look at.
var methods = map[string]bool{"POST": true, "": true, "GET": false, "HEAD": false, "OPTIONS": false, "DELETE": false}

func noDialect(why string) *fault.Fault {
	return malformed("dialect", string(message.UnknownDialect), "%s", why).With("dialects", message.Dialects()).
		Hint("Give the dialect, or the path of the model request.")
}

// endings are the paths of the dialects; anything may stand before them.
var endings = []struct {
	path    string
	dialect message.Dialect
}{
	{"/chat/completions", message.OpenAIChat},
	{"/responses", message.OpenAIResponses},
	{"/v1/messages", message.AnthropicMessages},
	{"/v1/messages/count_tokens", message.AnthropicMessages},
}

// FromPath is the dialect that is spoken at a path, and the model that the path
// names; each "" where the path does not tell. A query is ignored, and anything
// may stand before what the vendors publish: /v1/chat/completions,
// /v1/responses, /v1/messages, /v1beta/models/{model}:generateContent and
// :streamGenerateContent. Azure's /deployments/{model}/… names a model too.
func FromPath(path string) (message.Dialect, string) {
	path, _, _ = strings.Cut(path, "?")
	path = "/" + strings.Trim(path, "/")
	for _, e := range endings {
		if before, ok := strings.CutSuffix(path, e.path); ok {
			return e.dialect, lastAfter(before, "/deployments/")
		}
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	for _, method := range []string{":generateContent", ":streamGenerateContent", "%3AgenerateContent", "%3AstreamGenerateContent"} {
		if model, ok := strings.CutSuffix(last, method); ok && model != "" {
			return message.GeminiContents, unescaped(model)
		}
	}
	return "", ""
}

// lastAfter is the one segment that follows a mark at a path's end.
func lastAfter(path, mark string) string {
	at := strings.LastIndex(path, mark)
	if at < 0 || strings.Contains(path[at+len(mark):], "/") {
		return ""
	}
	return unescaped(path[at+len(mark):])
}

// unescaped is a segment of a path as it was meant.
func unescaped(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}

// clip bounds a caller's text in a message.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
