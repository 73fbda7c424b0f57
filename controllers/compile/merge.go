// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// FromDefault is where a field comes from that no layer sets.
const FromDefault = "default"

// Origin says where a field of an effective policy comes from.
type Origin struct {
	// Field is the field's path, such as "spec.limits.image.maxBytes".
	Field string
	// Value is what holds, for people to read: lists with commas, long texts cut.
	// It is empty where the choice is left to the runtime.
	Value string
	// From is the object whose value holds, "namespace/name", or FromDefault. A
	// field to which several objects add has an Origin for each.
	From string
}

// merge makes one effective policy of its layers, the most specific first, and
// notes where each field comes from.
type merge struct {
	layers []*layer
	// quiet merges note nothing.
	quiet   bool
	origins []Origin
}

func (m *merge) note(field, from string, value any) {
	if m.quiet {
		return
	}
	m.origins = append(m.origins, Origin{Field: field, Value: shown(value), From: from})
}

// pick is the value of the first layer that sets a field; nil when none does.
func pick[T any](m *merge, field string, get func(*layer) *T) *T {
	for _, l := range m.layers {
		if value := get(l); value != nil {
			m.note(field, l.from, *value)
			return value
		}
	}
	m.note(field, FromDefault, "")
	return nil
}

// first is the value of the first layer that sets a field, or the default.
func first[T any](m *merge, field string, def T, get func(*layer) *T) T {
	for _, l := range m.layers {
		if value := get(l); value != nil {
			m.note(field, l.from, *value)
			return *value
		}
	}
	m.note(field, FromDefault, def)
	return def
}

// firstList is the list of the first layer that has one, be it empty.
func firstList[E any](m *merge, field string, get func(*layer) []E) []E {
	list := pick(m, field, func(l *layer) *[]E {
		if list := get(l); list != nil {
			return &list
		}
		return nil
	})
	return slices.Clone(or(list, nil))
}

// firstText is the text of the first layer that has one.
func firstText(m *merge, field string, get func(*layer) string) string {
	return or(pick(m, field, func(l *layer) *string {
		if text := get(l); text != "" {
			return &text
		}
		return nil
	}), "")
}

// lowest is the least that any layer sets, or the default, where 0 is no limit;
// of equal ones that of the most specific layer. What is left of a baseline that is
// not accepted raises no default.
func lowest(m *merge, field string, def int64, get func(*layer) *int64) int64 {
	var least *int64
	from, set := FromDefault, false
	for _, l := range m.layers {
		value := get(l)
		set = set || value != nil && !l.restraint
		if value != nil && (least == nil || *value < *least) {
			least, from = value, l.from
		}
	}
	if !set && least != nil && 0 < def && def <= *least {
		least, from = nil, FromDefault
	}
	value := or(least, def)
	if value == 0 {
		m.note(field, from, "no limit")
		return value
	}
	m.note(field, from, value)
	return value
}

// denied is the word that denies where any layer says it, else the value of the
// first layer that sets one, or the default.
func denied[T comparable](m *merge, field string, denial, def T, get func(*layer) *T) T {
	for _, l := range m.layers {
		if value := get(l); value != nil && *value == denial {
			m.note(field, l.from, denial)
			return denial
		}
	}
	return first(m, field, def, get)
}

// common are the entries that every layer's list has, in the order of the first
// list; nil when no layer has one, and empty when they have none in common.
func common(m *merge, field string, get func(*layer) []string) []string {
	var shared []string
	var from []string
	for _, l := range m.layers {
		list := get(l)
		switch {
		case list == nil:
			continue
		case from == nil:
			shared = slices.Clone(list)
		default:
			shared = slices.DeleteFunc(shared, func(entry string) bool { return !slices.Contains(list, entry) })
		}
		from = append(from, l.from)
	}
	for _, f := range from {
		m.note(field, f, shared)
	}
	if from == nil {
		m.note(field, FromDefault, "")
	}
	return shared
}

// maxShown bounds the value of an Origin, in bytes.
const maxShown = 120

// shown is a value for people to read.
func shown(value any) string {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case bool:
		text = strconv.FormatBool(v)
	case []string:
		text = cmp.Or(strings.Join(v, ", "), "none")
	default:
		text = shownOther(value)
	}
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// shownOther shows words by themselves, and what has parts as JSON.
func shownOther(value any) string {
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.String:
		return v.String()
	case v.Kind() == reflect.Slice && v.Len() == 0:
		return "none"
	}
	data, _ := json.Marshal(value) // a field of the API came as JSON, and can be written as such
	return string(data)
}
