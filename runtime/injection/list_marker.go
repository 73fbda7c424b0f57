// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// What a message of ours is known by: its id begins with IDPrefix, and its
// additional_kwargs have HiddenMember true and a marker under MarkerMember.
const (
	IDPrefix     = "vision-image-context:"
	HiddenMember = "hide_from_ui"
	MarkerMember = "vision_image_context"
)

// marker tells whose message it is, and what it shows.
type marker struct {
	Version int `json:"v"`
	// Calls are the ids of the turn's calls of vision tools, in order, and Digests
	// the sha256 of the image shown for each; "" where none is.
	Calls   []string `json:"calls"`
	Digests []string `json:"digests"`
	// MAC is HMAC-SHA256 over both and over the message's texts, in hexadecimal.
	MAC string `json:"mac"`
}

// signed is what the HMAC is over: the calls, the digests and the texts of the
// message, unambiguous, since it is JSON.
func (m *marker) signed(texts []string) []byte {
	return written([]any{"vision-image-context/v1", m.Calls, m.Digests, texts})
}

// sign makes the marker's MAC.
func (m *marker) sign(key []byte, texts []string) {
	h := hmac.New(sha256.New, key)
	h.Write(m.signed(texts))
	m.MAC = hex.EncodeToString(h.Sum(nil))
}

// trusted reports whether the marker was made with key for a message of those texts.
func (m *marker) trusted(key []byte, texts []string) bool {
	if len(key) == 0 || m.Version != 1 || len(m.Calls) != len(m.Digests) {
		return false
	}
	want := *m
	want.sign(key, texts)
	return hmac.Equal([]byte(want.MAC), []byte(m.MAC))
}

// id is the id of the message that has the marker: the same for the same calls and images.
func (m *marker) id() string {
	sum := sha256.Sum256(m.signed(nil))
	return IDPrefix + hex.EncodeToString(sum[:16])
}

// oursMessage is a message that was made by whoever holds the key.
type oursMessage struct {
	at     int
	marker marker
	// whole says that it holds the images it was made with; those of a stored one may
	// have been taken out (see StripHidden).
	whole bool
}

// shows reports whether it was made with an image.
func (o *oursMessage) shows() bool {
	return slices.ContainsFunc(o.marker.Digests, func(d string) bool { return d != "" })
}

// textsOf are the texts of a content's parts, in order.
func textsOf(b []byte, content message.Span) []string {
	var texts []string
	for _, part := range partsOf(b, content) {
		if v := memberOf(b, part, "text"); kindOf(b, v) == '"' {
			texts = append(texts, stringOf(b, v))
		}
	}
	return texts
}

// ours finds the messages that were made with key. One that holds other images than
// its marker tells is none: somebody has moved the marker.
func (l *List) ours(key []byte) []oursMessage {
	var found []oursMessage
	for i := range l.messages {
		m := &l.messages[i]
		value := memberOf(l.body, m.extra, MarkerMember)
		const most = 1 << 20 // a marker has some hundred bytes for each call
		if kindOf(l.body, value) != '{' || value.Len() > most {
			continue
		}
		o := oursMessage{at: i}
		if json.Unmarshal(l.body[value.Start:value.End], &o.marker) != nil || m.id != o.marker.id() ||
			!o.marker.trusted(key, textsOf(l.body, m.content)) {
			continue
		}
		want := slices.DeleteFunc(slices.Clone(o.marker.Digests), func(d string) bool { return d == "" })
		holds := digestsOf(l.body, m.content)
		o.whole = slices.Equal(holds, want)
		if o.whole || len(holds) == 0 {
			found = append(found, o)
		}
	}
	return found
}
