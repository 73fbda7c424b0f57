// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// Edits says by which edits of the body the sights get what is shown of them: one
// Shown for each of p.Sights. Nothing but insertions is made, save that an empty
// content gives way; images and notes stand in the order of the sights. A Shown
// without picture and text makes no edit, and neither does a sight whose image is
// in the conversation already.
//
// Where things are put, by the kind of the sight and the plan's Place:
//
//   - a call InToolResult: at the end of its result's content;
//   - a call UserMessage: in one message of the user's right after the last turn of
//     results of the step; where the wire lets other parts follow results in one
//     message (Anthropic, and Gemini with one result), right behind the last result;
//   - a call AssistantThenUserMessage: likewise one message of the user's, behind a
//     short one of the assistant's;
//   - Markdown: right behind the part that holds the text.
//
// A mark for the vendor's cache is neither added nor moved.
func (p *Plan) Edits(r *message.Request, body []byte, shown []Shown) []message.Edit {
	w, ok := wires[r.Dialect]
	if !ok || len(shown) != len(p.Sights) {
		return nil
	}
	e := &editor{Plan: p, wire: w, r: r, body: body, shown: slices.Clone(shown)}
	for i, s := range shown {
		if s.Picture != nil && s.Picture.MediaType == "" { // no wire takes one
			e.shown[i] = Shown{Text: p.Unavailable(i, "its media type is "+unknown)}
		}
	}
	for _, group := range e.groups() {
		switch place := e.Sights[group[0]]; {
		case place.Kind == Markdown:
			e.besideText(place.Text, group)
		case e.Place == router.ToolImagesInToolResult:
			e.intoResult(place.Result, group)
		default:
			e.afterResults(place.Turn, group)
		}
	}
	slices.SortStableFunc(e.edits, func(a, b message.Edit) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return e.edits
}

// editor gathers the edits of one plan.
type editor struct {
	*Plan
	*wire
	r     *message.Request
	body  []byte
	shown []Shown
	edits []message.Edit
}

// groups are the sights that show something, by where that is put.
func (e *editor) groups() [][]int {
	type place struct {
		kind Kind
		at   int
	}
	var groups [][]int
	known := map[place]int{}
	for i, s := range e.Sights {
		if s.State == ShownByTool || s.State == ShownInConversation || e.shown[i].Picture == nil && e.shown[i].Text == "" {
			continue
		}
		at := place{s.Kind, s.Turn}
		switch {
		case s.Kind == Markdown:
			at.at = s.Text
		case e.Place == router.ToolImagesInToolResult:
			at.at = s.Result
		}
		if at.at < 0 {
			continue
		}
		n, ok := known[at]
		if !ok {
			n, known[at] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// intoResult puts what a group shows at the end of a result's content.
func (e *editor) intoResult(result int, group []int) {
	res := &e.r.Results[result]
	if !res.Takes {
		return
	}
	dress := dress{boxed: e.r.Dialect == message.GeminiContents, snake: e.snake(res)}
	e.into(res, e.parts(group, dress))
}

// into puts parts at the end of a result's content, whatever that is.
func (e *editor) into(res *message.Result, parts []message.Segment) {
	content := res.Content
	if content.Len() == 0 { // it is not there, or is null
		content = memberOf(e.body, res.Object, e.content)
	}
	if content.Len() == 0 {
		at := res.Object.End - 1
		comma := ","
		if last(e.body, at) == '{' {
			comma = ""
		}
		e.insert(at, text(comma+`"`+e.content+`":[`), parts, text("]"))
		return
	}
	switch e.body[content.Start] {
	case '"':
		if e.refusesBlank && blank(e.body[content.Start:content.End]) {
			e.replace(content, text("["), parts, text("]"))
			return
		}
		e.insert(content.Start, text("["+e.textHead))
		e.insert(content.End, text(e.textTail+","), parts, text("]"))
	case '[':
		e.insert(content.End-1, e.comma(content), parts)
	case '{':
		e.insert(content.Start, text("["))
		e.insert(content.End, text(","), parts, text("]"))
	default: // null
		e.replace(content, text("["), parts, text("]"))
	}
}

// comma is what stands before one more element of an array.
func (e *editor) comma(array message.Span) []message.Segment {
	if last(e.body, array.End-1) == '[' {
		return nil
	}
	return text(",")
}

// besideText puts what a group shows right behind the part that holds a text.
func (e *editor) besideText(at int, group []int) {
	t := &e.r.Texts[at]
	parts := e.parts(group, dress{})
	switch {
	case e.body[t.Part.Start] == '"' && e.r.Turns[t.Turn].Span == t.Part:
		// Responses: the whole input is this text.
		e.insert(t.Part.Start, text("["+e.user[0]+e.textHead))
		e.insert(t.Part.End, text(e.textTail+","), parts, text(e.user[1]+"]"))
	case e.body[t.Part.Start] == '"':
		e.insert(t.Part.Start, text("["+e.textHead))
		e.insert(t.Part.End, text(e.textTail+","), parts, text("]"))
	case last(e.body, t.Part.Start) == ':': // one part in the place of a list
		e.insert(t.Part.Start, text("["))
		e.insert(t.Part.End, text(","), parts, text("]"))
	default:
		e.insert(t.Part.End, text(","), parts)
	}
}

// afterResults puts what a group shows behind the results of its step, of which
// turn is the last.
func (e *editor) afterResults(turn int, group []int) {
	res, alone := e.lastResult(turn)
	bridged := e.Place == router.ToolImagesAssistantThenUser
	switch {
	case e.r.Dialect == message.AnthropicMessages && !bridged && res != nil:
		// The vendor wants results first, and takes other blocks behind them.
		e.insert(res.Object.End, text(","), e.message(group, dress{}))
	case e.r.Dialect == message.GeminiContents && !bridged && alone:
		parts := e.message(group, dress{snake: e.snake(res)})
		if e.body[res.Parts.Start] != '[' {
			e.insert(res.Part.Start, text("["))
			e.insert(res.Part.End, text(","), parts, text("]"))
			return
		}
		e.insert(res.Part.End, text(","), parts)
	default:
		head := "," + e.user[0]
		if bridged {
			head = "," + e.assistant[0] + string(quoted(bridge)) + e.assistant[1] + head
		}
		d := dress{snake: res != nil && e.snake(res)}
		e.insert(e.r.Turns[turn].Span.End, text(head), e.message(group, d), text(e.user[1]))
	}
}

// bridge is what the assistant is made to say between results and a message of the
// user's, for servers that refuse one right after results.
const bridge = "I will look at the images."

// lastResult is the last result of a turn, nil when it has none, and whether its
// step has one call alone.
func (e *editor) lastResult(turn int) (found *message.Result, alone bool) {
	results, calls := e.r.Results, e.r.Calls // both by turn
	behind := sort.Search(len(results), func(i int) bool { return results[i].Turn > turn })
	if behind > 0 && results[behind-1].Turn == turn {
		found = &results[behind-1]
	}
	end := turn
	for end > 0 && e.r.Turns[end-1].Role != message.Assistant {
		end--
	}
	start := end
	for start > 0 && e.r.Turns[start-1].Role == message.Assistant {
		start--
	}
	first := sort.Search(len(calls), func(i int) bool { return calls[i].Turn >= start })
	after := sort.Search(len(calls), func(i int) bool { return calls[i].Turn >= end })
	return found, found != nil && after-first == 1
}

// message is the parts of one message that shows a group: the heading, where an
// image was found at all, and the parts of each.
func (e *editor) message(group []int, d dress) []message.Segment {
	found := func(i int) bool { return e.shown[i].Picture != nil || e.shown[i].Constant }
	parts := e.parts(group, d)
	heading := e.Heading()
	if heading == "" || !slices.ContainsFunc(group, found) {
		return parts
	}
	return add(nil, e.note(heading, d), text(","), parts)
}

// parts are what a group shows, between commas: an image, behind its item's text
// where one is due, or one text.
func (e *editor) parts(group []int, d dress) []message.Segment {
	var all []message.Segment
	index := 0
	for n, i := range group {
		if n > 0 {
			all = add(all, text(","))
		}
		s := e.shown[i]
		if s.Picture == nil {
			all = add(all, e.note(s.Text, d))
			continue
		}
		index++
		if item := e.ItemText(i, s.Picture, index); item != "" {
			all = add(all, e.note(item, d), text(","))
		}
		all = add(all, e.image(s.Picture, d))
	}
	return all
}

// snake reports whether a Gemini result is written with the fields' own names.
func (e *editor) snake(res *message.Result) bool {
	before := bytes.TrimRight(e.body[res.Part.Start:max(res.Part.Start, res.Object.Start)], " \t\r\n:")
	return bytes.HasSuffix(before, []byte(`"function_response"`))
}

func (e *editor) insert(at int, pieces ...[]message.Segment) {
	e.replace(message.Span{Start: at, End: at}, pieces...)
}

func (e *editor) replace(span message.Span, pieces ...[]message.Segment) {
	e.edits = append(e.edits, message.Edit{Span: span, Segments: add(nil, pieces...)})
}

// text is a piece of JSON as it is.
func text(s string) []message.Segment {
	if s == "" {
		return nil
	}
	return []message.Segment{{Text: []byte(s)}}
}

// add puts pieces behind all; texts that touch become one. Both are used up by it.
func add(all []message.Segment, pieces ...[]message.Segment) []message.Segment {
	for _, piece := range pieces {
		for _, g := range piece {
			if n := len(all) - 1; n >= 0 && g.Data == nil && all[n].Data == nil {
				all[n].Text = append(all[n].Text, g.Text...)
				continue
			}
			all = append(all, g)
		}
	}
	return all
}

// last is the last byte before at that is no white space; 0 when there is none.
func last(body []byte, at int) byte {
	b := bytes.TrimRight(body[:at], " \t\r\n")
	if len(b) == 0 {
		return 0
	}
	return b[len(b)-1]
}

// blank reports whether a JSON string holds white space alone, or nothing.
func blank(value []byte) bool {
	for inside := value[1 : len(value)-1]; len(inside) > 0; {
		r, long := utf8.DecodeRune(inside)
		if r == '\\' {
			r, long = escaped(inside)
		}
		// Python, in which the vendor's checks are written, counts the separators too.
		const fileSeparator, unitSeparator = 0x1c, 0x1f
		if !unicode.IsSpace(r) && (r < fileSeparator || r > unitSeparator) {
			return false
		}
		inside = inside[long:]
	}
	return true
}

// escaped is the character of the escape that begins the inside of a JSON string, and
// how long that is; those that are no white space may be any other one that is none.
func escaped(inside []byte) (r rune, long int) {
	switch inside[1] {
	case 'n', 'r', 't', 'f':
		return '\n', 2
	case 'u':
		const long = len(`\u0000`)
		n, err := strconv.ParseUint(string(inside[2:long]), 16, 32)
		if err != nil {
			return utf8.RuneError, long
		}
		return rune(n), long
	}
	return utf8.RuneError, 2
}

// quoted is a JSON string, without the escapes that only HTML needs.
func quoted(s string) []byte { return written(s) }

// written is the JSON of texts, numbers and what is made of them, without the escapes
// that only HTML needs.
func written(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // such values can always be written
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
