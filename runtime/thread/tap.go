// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package thread

import (
	"encoding/json"
	"io"
	"mime"
	"slices"
)

// maxPending is how many calls of one reply are remembered, and pendingBytes how
// much they may take until the reply says to which response they belong.
const (
	maxPending   = 256
	pendingBytes = 1 << 20
)

// Tap returns a writer for the bytes of one reply of the Responses API, as they
// pass and without a content encoding: a JSON object or a stream of events, as
// its content type says. Calls are known once the Write that completes their
// response or event has returned; write to the Tap before the client, so that
// none is asked for before it is known. Write never fails and holds one item at
// most, of up to MaxItem bytes. Close drops what is not complete. A Tap is for one
// goroutine.
//
// completed is called, once, when the reply has said that the response is
// complete: with it, the vendor keeps what the request brought. It may be nil.
func (t *Table) Tap(contentType string, completed func()) io.WriteCloser {
	p := &tap{table: t, completed: completed}
	p.scan.found = p.found
	kind, _, _ := mime.ParseMediaType(contentType)
	switch kind {
	case "text/event-stream":
		p.scan.event = true
		p.lines = &lines{data: p.read, dispatch: p.next}
	case "application/json":
	default:
		p.closed = true
	}
	return p
}

// itemDone is the type of the event that tells a whole item, and responseDone are
// those of the events that end a response which is kept.
const itemDone = `"response.output_item.done"`

var responseDone = []string{`"response.completed"`, `"response.incomplete"`}

// tap is one reply on its way.
type tap struct {
	table  *Table
	scan   scan
	lines  *lines // nil for a JSON object
	closed bool
	// completed is nil once it was called.
	completed func()

	response, conversation string
	// Of the object or event that is being read.
	done    bool // the event says that an item is complete
	last    bool // the event says that the response is
	item    Call
	hasItem bool
	pending []Call
	bytes   int64 // of pending
}

// Write takes a piece of the reply.
func (p *tap) Write(b []byte) (int, error) {
	switch {
	case p.closed:
	case p.lines != nil:
		p.lines.write(b)
	default:
		p.read(b)
	}
	return len(b), nil
}

// read reads on in the object or event.
func (p *tap) read(b []byte) {
	p.scan.write(b)
	if p.scan.state == ended {
		p.commit()
	}
}

// Close ends the reply.
func (p *tap) Close() error {
	p.closed, p.pending, p.scan.buf = true, nil, nil
	return nil
}

// next ends an event.
func (p *tap) next() {
	p.scan.reset()
	p.done, p.last, p.item, p.hasItem, p.pending, p.bytes = false, false, Call{}, false, nil, 0
}

// commit remembers what a whole object or event has told.
func (p *tap) commit() {
	if p.hasItem && p.done {
		p.pending = append(p.pending, p.item)
	}
	for i := range p.pending {
		p.pending[i].Response, p.pending[i].Conversation = p.response, p.conversation
	}
	p.table.remember(p.pending)
	p.pending, p.bytes, p.hasItem = nil, 0, false
	if p.completed != nil && (p.last || p.lines == nil) {
		p.completed()
		p.completed = nil
	}
}

// found takes a member that the scan gives out.
func (p *tap) found(m member, text []byte) {
	switch m {
	case typeMember:
		p.done, p.last = string(text) == itemDone, slices.Contains(responseDone, string(text))
	case idMember:
		p.response = shortString(text)
	case conversationName:
		var object struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(text, &object) == nil {
			text = object.ID
		}
		p.conversation = shortString(text)
	case itemMember:
		p.item, p.hasItem = callOf(text)
	case elementMember:
		call, ok := callOf(text)
		if ok && len(p.pending) < maxPending && p.bytes+call.size() <= pendingBytes {
			p.pending = append(p.pending, call)
			p.bytes += call.size()
		}
	case other, responseMember, outputMember:
	}
}

// shortString is a JSON string of at most maxID bytes, or "".
func shortString(text []byte) string {
	var s string
	if json.Unmarshal(text, &s) != nil || len(s) > maxID {
		return ""
	}
	return s
}

// names are the items that are calls which the client answers, and the names of
// their tools where the item gives none.
var names = map[string]string{
	"function_call": "", "custom_tool_call": "",
	"computer_call": "computer", "local_shell_call": "shell", "shell_call": "shell", "apply_patch_call": "apply_patch",
}

// callOf reads an item as a call. One that is not complete is none.
func callOf(text []byte) (Call, bool) {
	var item struct {
		Type      string `json:"type"`
		Status    string `json:"status"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
		Input     string `json:"input"`
	}
	if json.Unmarshal(text, &item) != nil {
		return Call{}, false
	}
	name, ok := names[item.Type]
	if !ok || item.CallID == "" || len(item.CallID) > maxID || item.Status != "" && item.Status != "completed" {
		return Call{}, false
	}
	call := Call{ID: item.CallID, Name: name}
	if name == "" {
		call.Name, call.Arguments = item.Name, item.Arguments
		if item.Type == "custom_tool_call" {
			call.Arguments = item.Input
		}
	}
	if call.Name == "" || len(call.Name) > maxName {
		return Call{}, false
	}
	if len(call.Arguments) > maxArguments {
		call.Arguments = ""
	}
	return call, true
}
