// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observation

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxObservation is the most that all a model said may take, in bytes, as JSON
// and as Text: 128 KiB, some 30,000 tokens, less than the hosts of tools cut
// answers off at. A page of 500 lines of text, each with its box, takes half.
//
// What a caller gets is that, and what is not the model's: the caller's own
// path and prompt, the names of the models that were considered, and no more
// than maxFrame of the rest.
const MaxObservation = 128 << 10

// maxFrame is the most that the rest of an observation takes: its names and
// constants, and the notes of what was left out.
const maxFrame = 8 << 10

// Bounds of the parts of one observation, so that no part fills it alone. Texts
// are in bytes.
const (
	maxSummary       = 16 << 10
	maxEntries       = 500 // of each list
	maxText          = 8 << 10
	maxKeys          = 32 // of each object in a list
	maxDepth         = 4  // of the values in such an object
	maxUncertainties = 50
	maxUncertainty   = 1 << 10
)

// cutter normalises values and remembers, per field, what it had to leave out.
type cutter struct {
	room         int // bytes that are left
	texts, items map[string]int
}

// fits takes the room that a value needs, if it is there.
func (c *cutter) fits(value any) bool {
	size := weight(value)
	if size > c.room {
		return false
	}
	c.room -= size
	return true
}

// weight is how many bytes a value takes in a list, as JSON that escapes for
// HTML or as Text, whichever is more.
func weight(value any) int {
	const comma = 2 // Text joins strings by two
	data, err := json.Marshal(value)
	if err != nil {
		return math.MaxInt // no value that JSON gave us
	}
	size := max(len(data), len(Quote(value)))
	if text, ok := value.(string); ok {
		size = max(size, len(indent(Printable(text))))
	}
	return size + comma
}

// summary cuts the summary, which is kept whatever else there is, and takes its
// room: it is the first.
func (c *cutter) summary(text string) string {
	text = c.text("summary", text, maxSummary)
	c.fits(text)
	return text
}

func (c *cutter) cutText(field string) {
	if c.texts == nil {
		c.texts = map[string]int{}
	}
	c.texts[field]++
}

func (c *cutter) leftOut(field string, n int) {
	if c.items == nil {
		c.items = map[string]int{}
	}
	c.items[field] += n
}

// notes says what was left out, in a fixed order.
func (c *cutter) notes() []string {
	var notes []string
	for _, field := range slices.Sorted(maps.Keys(c.items)) {
		notes = append(notes, fmt.Sprintf("%s: left out %d values of an over-long reply", field, c.items[field]))
	}
	for _, field := range slices.Sorted(maps.Keys(c.texts)) {
		notes = append(notes, fmt.Sprintf("%s: cut %d over-long texts", field, c.texts[field]))
	}
	return notes
}

// text cuts s to at most limit bytes, at a rune.
func (c *cutter) text(field, s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	c.cutText(field)
	const mark = "…"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// entries reads a list of objects: an array's objects and strings, one object,
// or one string, which becomes an object with that string at key. Anything
// else, and whatever is empty, is nothing.
func (c *cutter) entries(field string, value any, key string) []map[string]any {
	items, isArray := value.([]any)
	if !isArray {
		items = []any{value}
	}
	var entries []map[string]any
	for _, item := range items {
		entry := asEntry(item, key)
		if len(entry) == 0 {
			continue
		}
		if len(entries) == maxEntries {
			c.leftOut(field, 1)
			continue
		}
		if entry = c.object(field, entry, 0); len(entry) == 0 {
			continue
		}
		if !c.fits(entry) {
			c.leftOut(field, 1)
			continue
		}
		entries = append(entries, entry)
	}
	return entries
}

func asEntry(item any, key string) map[string]any {
	switch item := item.(type) {
	case map[string]any:
		return item
	case string:
		if text := strings.TrimSpace(item); text != "" {
			return map[string]any{key: text}
		}
	}
	return nil
}

// object keeps the known part of an entry: no nulls, which strict schemas make
// models send for what they leave out, and no more than the bounds allow.
func (c *cutter) object(field string, in map[string]any, depth int) map[string]any {
	out := make(map[string]any, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if len(out) == maxKeys || len(key) > maxText {
			c.leftOut(field, 1)
			continue
		}
		if value := c.value(field, in[key], depth+1); value != nil {
			out[key] = value
		}
	}
	return out
}

// value bounds any value of an entry; nil means that it is left out.
func (c *cutter) value(field string, value any, depth int) any {
	switch value := value.(type) {
	case string:
		return c.text(field, value, maxText)
	case map[string]any:
		if depth == maxDepth {
			c.leftOut(field, 1)
			return nil
		}
		return c.object(field, value, depth)
	case []any:
		if depth == maxDepth {
			c.leftOut(field, 1)
			return nil
		}
		return c.array(field, value, depth)
	}
	return value // a number, a boolean, or nil
}

func (c *cutter) array(field string, in []any, depth int) []any {
	out := make([]any, 0, min(len(in), maxEntries))
	for i, item := range in {
		if i == maxEntries {
			c.leftOut(field, len(in)-i)
			break
		}
		if value := c.value(field, item, depth+1); value != nil {
			out = append(out, value)
		}
	}
	return out
}

// uncertainties reads a list of strings: an array or a single value, of strings
// or of objects that hold one under a usual key. It is never nil.
func (c *cutter) uncertainties(value any) []string {
	items, isArray := value.([]any)
	if !isArray {
		items = []any{value}
	}
	list := []string{}
	for _, item := range items {
		text := asText(item)
		if text == "" {
			continue
		}
		if len(list) == maxUncertainties {
			c.leftOut("uncertainties", 1)
			continue
		}
		text = c.text("uncertainties", text, maxUncertainty)
		if !c.fits(text) {
			c.leftOut("uncertainties", 1)
			continue
		}
		list = append(list, text)
	}
	return list
}

// asText returns a string, or the first usual text of an object, trimmed.
func asText(item any) string {
	switch item := item.(type) {
	case string:
		return strings.TrimSpace(item)
	case map[string]any:
		for _, key := range []string{"text", "description", "summary", "message"} {
			if text, _ := item[key].(string); strings.TrimSpace(text) != "" {
				return strings.TrimSpace(text)
			}
		}
	}
	return ""
}
