// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/vendors"
)

// maxRequest is the largest limits.request.maxBodyBytes that a policy may set.
const maxRequest = int64(1 << 30)

// asked is what is to be judged.
type asked struct {
	request review.Request
	// model is what the request is for, as far as it is named.
	model string
	// images are the paths of image files, in order; nil for a request's body.
	images []string
	// refused is set when they are so many that none was opened.
	refused *fault.Fault
}

// ask makes a review of the files.
func ask(o *preflightOptions, g *governed, stdin io.Reader) (*asked, error) {
	a := &asked{model: o.model}
	if strings.EqualFold(a.model, router.Auto) {
		a.model = ""
	}
	if len(o.files) == 1 {
		body, seen, err := readOne(o.files[0], stdin)
		switch {
		case err != nil:
			return nil, err
		case body != nil:
			return a, a.body(o, g, body)
		}
		return a, a.pictures(o, g, []*inspected{seen})
	}
	if slices.Contains(o.files, "-") {
		return nil, &usageError{problem: "- is given beside other files; standard input can only be judged alone"}
	}
	if a.refused = tooManyPaths(o.files, g); a.refused != nil {
		a.images = o.files
		return a, a.spokenOf(o, g)
	}
	var pictures []*inspected
	for _, path := range o.files {
		seen := inspect(path)
		if isJSON(seen.head) {
			return nil, &usageError{problem: fmt.Sprintf("%s is a model request and not an image; it can only be judged alone, and %d files are given", named(path), len(o.files))}
		}
		pictures = append(pictures, seen)
	}
	return a, a.pictures(o, g, pictures)
}

// tooManyPaths is the refusal of more different files than may be opened for one
// request.
func tooManyPaths(files []string, g *governed) *fault.Fault {
	var paths []preflight.Path
	for _, path := range files {
		paths = append(paths, preflight.Path{Name: filepath.Clean(path), Required: true})
	}
	return preflight.ProbePaths(nil, paths, g.grant.Profile.Limits.Request.MaxProbedPaths).Refusal
}

// refusal is the response to images that were not opened; nil where they were.
func (a *asked) refusal() *review.Response {
	if a.refused == nil {
		return nil
	}
	status := review.StatusOf(a.request.Dialect, a.refused)
	r := &review.Response{Status: status}
	for _, path := range a.images {
		r.Decisions = append(r.Decisions, preflight.Decision{
			ID: path, Required: true, Outcome: preflight.Refused, Reason: status.Reason, Message: status.Message,
		})
	}
	return r
}

// readOne reads a file as what it is: the body of a request, or an image.
func readOne(path string, stdin io.Reader) (body []byte, seen *inspected, err error) {
	if path != "-" {
		if seen = inspect(path); !isJSON(seen.head) {
			return nil, seen, nil
		}
		f, _, err := openRegular(path)
		if err != nil {
			return nil, nil, fmt.Errorf("reading %s: %w", named(path), err)
		}
		defer f.Close()
		body, err = readRequest(path, f)
		return body, nil, err
	}
	if body, err = readRequest(path, stdin); err != nil || isJSON(body) {
		return body, nil, err
	}
	seen = &inspected{path: path}
	seen.err = seen.read(bytes.NewReader(body), int64(len(body)))
	return nil, seen, nil
}

func readRequest(path string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxRequest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", named(path), bare(err))
	case int64(len(data)) > maxRequest:
		return nil, fmt.Errorf("reading %s: a request has at most %s, and this has more", named(path), preflight.Size(maxRequest))
	}
	return data, nil
}

// named is how messages call a file.
func named(path string) string {
	if path == "-" {
		return "standard input"
	}
	return printable(path)
}

// body asks about the body of a request, or about a VisionReview that holds one.
func (a *asked) body(o *preflightOptions, g *governed, data []byte) error {
	path := o.files[0]
	a.request = review.Request{Body: data}
	var top struct {
		Request json.RawMessage `json:"request"`
	}
	if json.Unmarshal(data, &top) == nil && top.Request != nil {
		enveloped, err := review.ReadEnvelope(data)
		if err != nil {
			return fmt.Errorf("reading %s: %w", named(path), err)
		}
		a.request = *enveloped // but for its profile: the flags say which policy governs
	}
	fromPath, inPath := review.FromPath(a.request.Path)
	for _, dialect := range []message.Dialect{o.dialect, a.request.Dialect, fromPath} {
		if dialect != "" {
			a.request.Dialect = dialect
			break
		}
	}
	var s shape
	unread := json.Unmarshal(a.request.Body, &s)
	if a.request.Dialect == "" {
		if unread != nil {
			return notRequest(path, len(a.request.Body), unread)
		}
		dialect, err := dialectOf(path, &s)
		if err != nil {
			return err
		}
		a.request.Dialect = dialect
	}
	own, _ := s.Model.(string)
	for _, model := range []string{a.request.Model, own, inPath, g.defaultRoute} {
		if a.model == "" {
			a.model = model
		}
	}
	if a.model == "" && unread == nil {
		return &usageError{problem: fmt.Sprintf("--model is missing; neither the request %s nor a policy names a model", named(path))}
	}
	a.request.Model = a.model
	return nil
}

// notRequest says why content that begins like JSON is no request.
func notRequest(path string, length int, err error) error {
	if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("reading %s: it is not JSON at byte %d of %d: %w", named(path), bad.Offset, length, err)
	}
	return fmt.Errorf("reading %s: it is JSON and not an object, which a model request is", named(path))
}

// pictures asks about images: a request with one message that holds them all, with
// facts in the place of their data.
func (a *asked) pictures(o *preflightOptions, g *governed, seen []*inspected) error {
	if err := a.spokenOf(o, g); err != nil {
		return err
	}
	var facts []message.Facts
	for _, i := range seen {
		switch {
		case !i.hashed:
			return fmt.Errorf("reading %s: %w", named(i.path), i.err)
		case i.bytes == 0:
			return fmt.Errorf("reading %s: the file is empty; an image has at least 1 byte", named(i.path))
		}
		facts = append(facts, message.Facts{SHA256: i.sha256, Bytes: i.bytes, Head: shortest(i.head, i.bytes)})
		a.images = append(a.images, i.path)
	}
	body, err := json.Marshal(requestOf(a.request.Dialect, facts))
	if err != nil {
		return fmt.Errorf("writing a request with the images: %w", err)
	}
	a.request.Body = body
	return nil
}

// spokenOf chooses the model that images are judged for, and its dialect.
func (a *asked) spokenOf(o *preflightOptions, g *governed) error {
	if a.model == "" {
		a.model = g.defaultRoute
	}
	if a.model == "" {
		return &usageError{problem: "--model is missing; images are judged for a model, and no policy names one"}
	}
	a.request = review.Request{Dialect: o.dialect, Model: a.model}
	if o.dialect == "" {
		a.request.Dialect = spoken(a.model, g)
	}
	return nil
}

// spoken is the dialect of a model: its provider's, else that of the only vendor who
// makes it, else OpenAI's.
func spoken(model string, g *governed) message.Dialect {
	transport := g.transport(model)
	for _, d := range message.Dialects() {
		if d.Transport() == transport {
			return d
		}
	}
	switch vendors.Find("", "", model, "").Vendor {
	case "anthropic":
		return message.AnthropicMessages
	case "gemini-api":
		return message.GeminiContents
	}
	return message.OpenAIChat
}

// shortest is as much of the head as tells what all of it does, so that the facts
// are small.
func shortest(head []byte, size int64) []byte {
	whole, refused := probe.Head(head, size)
	if refused != nil {
		return head
	}
	for n := 32; n < len(head); n *= 2 {
		if some, err := probe.Head(head[:n], size); err == nil && some == whole {
			return head[:n]
		}
	}
	return head
}

// requestOf is a request whose one message holds images told as facts; see
// message.Facts. Its model is named beside it.
func requestOf(dialect message.Dialect, images []message.Facts) any {
	type object = map[string]any
	parts := make([]object, len(images))
	for i := range images {
		f := &images[i]
		switch dialect {
		case message.OpenAIResponses:
			parts[i] = object{"type": "input_image", "image_url": f}
		case message.AnthropicMessages:
			parts[i] = object{"type": "image", "source": object{"type": "facts", "sha256": f.SHA256, "bytes": f.Bytes, "head": f.Head}}
		case message.GeminiContents:
			parts[i] = object{"inlineData": f}
		default:
			parts[i] = object{"type": "image_url", "image_url": object{"url": f}}
		}
	}
	switch dialect {
	case message.OpenAIResponses:
		return object{"input": []object{{"role": "user", "content": parts}}}
	case message.GeminiContents:
		return object{"contents": []object{{"role": "user", "parts": parts}}}
	}
	return object{"messages": []object{{"role": "user", "content": parts}}}
}

// rename puts the paths of image files in the place of their parts' names, for
// there is no request that its author could look into.
func (a *asked) rename(r *review.Response) {
	if a.images == nil {
		return
	}
	var plain, quoted []string
	for i := range r.Decisions {
		id, path := r.Decisions[i].ID, a.images[i]
		plain = append(plain, id, named(path))
		escaped, _ := json.Marshal(named(path)) // of a string, which cannot fail
		quoted = append(quoted, id, string(escaped[1:len(escaped)-1]))
		r.Decisions[i].ID = path
	}
	names := strings.NewReplacer(plain...)
	for i := range r.Decisions {
		r.Decisions[i].Message = names.Replace(r.Decisions[i].Message)
	}
	for i := range r.Warnings {
		r.Warnings[i] = names.Replace(r.Warnings[i])
	}
	if r.Status != nil {
		r.Status.Message = names.Replace(r.Status.Message)
		r.Status.Body = json.RawMessage(strings.NewReplacer(quoted...).Replace(string(r.Status.Body)))
	}
}
