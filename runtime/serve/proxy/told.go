// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strconv"

	"github.com/visionoperator/vision-operator/runtime/engine"
)

// The headers that a reply gets beside the upstream's.
const (
	// HeaderRoute is the model's route, in the policy's words.
	HeaderRoute = "X-Vision-Route"
	// HeaderInjection says what was done for images, as a dictionary of RFC 8941:
	// form, and of the counts injected, observed, degraded, unavailable and skipped
	// those that are not 0; history=not_visible where the vendor keeps the
	// conversation, and signatures=dropped where signed reasoning was left out. It
	// is not there where there was nothing to do.
	HeaderInjection = "X-Vision-Injection"
)

// tell adds what was decided.
func tell(h http.Header, record *engine.Record) {
	if record == nil {
		return
	}
	delete(h, HeaderRoute) // which the upstream cannot know
	delete(h, HeaderInjection)
	if record.Route != "" {
		h[HeaderRoute] = []string{record.Route}
	}
	if told := summary(record); told != "" {
		h[HeaderInjection] = []string{told}
	}
}

// summary is the value of HeaderInjection.
func summary(record *engine.Record) string {
	skipped := 0
	for _, n := range record.Skipped {
		skipped += n
	}
	var told []byte
	for _, count := range [...]struct {
		name string
		n    int
	}{
		{"injected", record.Injected}, {"observed", record.Observed}, {"degraded", record.Degraded},
		{"unavailable", record.Unavailable}, {"skipped", skipped},
	} {
		if count.n > 0 {
			told = append(append(told, ", "...), count.name...)
			told = strconv.AppendInt(append(told, '='), int64(count.n), 10)
		}
	}
	if record.HistoryNotVisible {
		told = append(told, ", history=not_visible"...)
	}
	if record.SignaturesDropped {
		told = append(told, ", signatures=dropped"...)
	}
	if told == nil {
		return ""
	}
	return "form=" + lower(record.Form) + string(told)
}

// lower is a word of the router's as a token of the header.
func lower(word string) string {
	if word == "" {
		return "none"
	}
	return string(word[0]|0x20) + word[1:]
}
