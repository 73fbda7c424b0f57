// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// refusal is an error in a vendor's own words. Each dialect writes of it what it has.
type refusal struct {
	status      int
	kind        string // OpenAI's and Anthropic's type, Gemini's status
	code, param string // OpenAI's
	message     string
}

// place is where a value stands: messages[0].content, or messages.0.content where dotted.
type place struct {
	text   string
	dotted bool
}

func (p place) key(name string) place {
	if p.text == "" {
		return place{name, p.dotted}
	}
	return place{p.text + "." + name, p.dotted}
}

func (p place) at(i int) place {
	if p.dotted {
		return p.key(itoa(i))
	}
	return place{p.text + "[" + itoa(i) + "]", false}
}

// words are a vendor's words for what is wrong with any value.
type words interface {
	unknown(p place, key string) *refusal
	missing(p place, key string) *refusal
	wrong(p place, want string) *refusal
}

// reader reads JSON values and panics with the vendor's refusal of what is wrong.
type reader struct {
	words
	textOnly  func(p place) *refusal // nil takes images
	images    []Image
	message   int  // the message that is read
	inResult  bool // a tool's result is read
	cacheable int  // how many marks cache_control there were
}

// object is a value that must be an object with no other members than those.
func (r *reader) object(p place, v any, members string) map[string]any {
	o, ok := v.(map[string]any)
	if !ok {
		panic(r.wrong(p, "an object"))
	}
	r.only(p, o, members)
	return o
}

// only refuses members that are not listed; those with an exclamation mark must be there.
func (r *reader) only(p place, o map[string]any, members string) {
	known := strings.Fields(strings.ReplaceAll(members, "!", ""))
	names := make([]string, 0, len(o))
	for name := range o {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(known, name) {
			panic(r.unknown(p, name))
		}
	}
	for _, name := range strings.Fields(members) {
		if name, must := strings.CutSuffix(name, "!"); must {
			if _, ok := o[name]; !ok {
				panic(r.missing(p, name))
			}
		}
	}
}

func (r *reader) list(p place, v any) []any {
	l, ok := v.([]any)
	if !ok {
		panic(r.wrong(p, "an array"))
	}
	return l
}

func (r *reader) text(p place, v any) string {
	s, ok := v.(string)
	if !ok {
		panic(r.wrong(p, "a string"))
	}
	return s
}

// oneOf is a member that must be one of those words.
func (r *reader) oneOf(p place, v any, all ...string) string {
	s := r.text(p, v)
	if !slices.Contains(all, s) {
		panic(r.wrong(p, "one of "+strings.Join(all, ", ")))
	}
	return s
}

// document reads a body: its members, and the texts of one list among them.
func (r *reader) document(body []byte, list string) (o map[string]any, raws []json.RawMessage) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		panic(r.wrong(place{}, "JSON: "+err.Error()))
	}
	o = map[string]any{}
	for name, raw := range members {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			panic(r.wrong(place{text: name}, "JSON"))
		}
		o[name] = v
	}
	if _, ok := o[list].([]any); ok {
		_ = json.Unmarshal(members[list], &raws)
	}
	return o, raws
}

// member is o[name] when it is a string, else "".
func member(o map[string]any, name string) string {
	s, _ := o[name].(string)
	return s
}

func yes(o map[string]any, name string) bool {
	b, _ := o[name].(bool)
	return b
}

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// writeJSON writes a document in one piece.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded(v))
}

// events writes a stream of server-sent events.
type events struct {
	w     http.ResponseWriter
	pause time.Duration // before each
}

func startEvents(w http.ResponseWriter, h *heard) events {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	flush(w)
	return events{w, h.pause}
}

// send writes one event; name is empty where the dialect names none.
func (e events) send(name string, v any) {
	e.raw(name, string(encoded(v)))
}

func (e events) raw(name, data string) {
	frame := "data: " + data + "\n\n"
	if name != "" {
		frame = "event: " + name + "\n" + frame
	}
	time.Sleep(e.pause)
	_, _ = e.w.Write([]byte(frame))
	flush(e.w)
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// pieces are a text in the pieces in which it is streamed.
func pieces(text string) []string {
	var all []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(7, len(runes))
		all = append(all, string(runes[:n]))
		runes = runes[n:]
	}
	return all
}
