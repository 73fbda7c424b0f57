// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/preflight"
)

// Decision is what was decided about messages.
type Decision struct {
	// Inject says that the messages are to be changed by ranges, or that messages are
	// to be put in.
	Inject bool `json:"inject"`
	// Reason is injection.Ready, or why nothing is put in: a stable CamelCase word.
	Reason string `json:"reason"`
	// Route is the model's in the policy's words; "" for one that it does not have.
	Route string `json:"route,omitempty"`
	// Form is how images are shown: Image, Observation or Off.
	Form   string    `json:"form"`
	Sights []Sighted `json:"sights"`
	// Skipped counts, by reason, what named an image and is no sight.
	Skipped map[string]int `json:"skipped,omitempty"`
	// The counts are those of a Record.
	Injected    int `json:"injected"`
	Observed    int `json:"observed"`
	Degraded    int `json:"degraded"`
	Unavailable int `json:"unavailable"`
	// Images are preflight's decisions on each image, in the order of their turns, and
	// Tokens its estimates.
	Images            []preflight.Decision `json:"images,omitempty"`
	Tokens            *preflight.Tokens    `json:"tokens,omitempty"`
	HistoryNotVisible bool                 `json:"historyNotVisible,omitempty"`
	Warnings          []string             `json:"warnings,omitempty"`
}

// answer lays the answer out:
//
//	{"decision": {…}, "ranges": […], "viewedImages": {…}}             vendors' dialects
//	{"decision": {…}, "append"?: {…}, "insert": […], "remove": […], "viewedImages": {…}}  lists
func (p *injecting) answer() (*message.Spliced, *fault.Fault) {
	viewed, bad := p.nowViewed()
	if bad != nil {
		return nil, bad
	}
	d, r := &p.decision, &p.record
	d.Route, d.Form, d.Sights, d.Skipped = r.Route, r.Form, r.Sights, r.Skipped
	d.Injected, d.Observed, d.Degraded, d.Unavailable = r.Injected, r.Observed, r.Degraded, r.Unavailable
	d.Images, d.Tokens, d.HistoryNotVisible, d.Warnings = r.Decisions, r.Tokens, r.HistoryNotVisible, r.Warnings
	if d.Sights == nil {
		d.Sights = []Sighted{}
	}
	pieces := []message.Segment{{Text: []byte(`{"decision":`)}, {Text: compact(d)}}
	if p.ask.Dialect == injection.ListDialect {
		pieces = append(pieces, p.putIn()...)
		pieces = append(pieces, message.Segment{Text: []byte(`,"remove":`)}, message.Segment{Text: compact(append([]int{}, p.remove...))})
	} else {
		pieces = append(append(pieces, message.Segment{Text: []byte(`,"ranges":`)}), message.ByteRanges(p.edits, injection.Wrapped)...)
	}
	pieces = append(pieces, message.Segment{Text: []byte(`,"viewedImages":`)}, message.Segment{Text: viewed}, message.Segment{Text: []byte("}\n")})
	answer, err := message.Splice(nil, []message.Edit{{Segments: pieces}})
	if err != nil {
		return nil, fault.As(err)
	}
	return answer, nil
}

// putIn are the messages that are put into a list: the one that stands last, and those
// of older calls of the model.
func (p *injecting) putIn() []message.Segment {
	var last []message.Segment
	insert := []message.Segment{{Text: []byte(`,"insert":[`)}}
	for _, c := range p.composed {
		if c.Last {
			last = append(append(last, message.Segment{Text: []byte(`,"append":`)}), c.Pieces...)
			continue
		}
		head := `{"before":` + strconv.Itoa(c.Before) + `,"message":`
		if len(insert) > 1 {
			head = "," + head
		}
		insert = append(append(append(insert, message.Segment{Text: []byte(head)}), c.Pieces...), message.Segment{Text: []byte("}")})
	}
	return append(append(last, insert...), message.Segment{Text: []byte("]")})
}

// nowViewed is the state of viewed images with what is shown now: facts about
// images, and no data. Where an update emptied it, it says so, so that it empties
// what it is merged with.
func (p *injecting) nowViewed() ([]byte, *fault.Fault) {
	now := injection.Viewed{}
	for i := range p.record.Sights {
		s, sighted := &p.plan.Sights[i], &p.record.Sights[i]
		if sighted.Outcome != SightInjected && sighted.Outcome != SightObserved || s.Path == injection.ClearMember {
			continue
		}
		if _, told := p.viewed[s.Path]; !s.Fresh && (told || p.ask.Cleared) {
			continue // what is told is of a newer view, or the older one was to be forgotten
		}
		picture := p.found[i].picture
		now[s.Path] = injection.ViewedImage{
			MIMEType: picture.MediaType, Size: picture.Size, SHA256: picture.SHA256, Width: picture.Width, Height: picture.Height, CallID: s.CallID,
		}
	}
	state, err := p.viewed.Merge(injection.ViewedUpdate{Images: now})
	if err != nil {
		return nil, fault.New(fault.BudgetExceeded, "TooManyViewedImages", "%s", err.Error()).Because(err).
			With("field", "viewedImages").Hint(`Send {"%s": true} among the updates to forget older images.`, injection.ClearMember)
	}
	if !p.ask.Cleared {
		return compact(state), nil
	}
	all := map[string]any{injection.ClearMember: true}
	for path, image := range state {
		all[path] = image
	}
	return compact(all), nil
}

// compact is JSON without the escapes that only HTML needs. What it is given can be written.
func compact(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// named bounds what a caller calls a model, for messages.
func named(name string) string { return observation.Printable(name[:min(len(name), longestNamed)]) }
