// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// The most that a state of viewed images may hold.
const (
	// MaxViewed is the most images.
	MaxViewed = 1_000
	// MaxViewedWord is the most bytes of a path, an id or a media type.
	MaxViewedWord = 4_096
	// MaxViewedData is the most bytes of one image's base64, as older states have it.
	MaxViewedData = 28 << 20
	// MaxViewedSize is the most that an image's recorded size may be, in bytes.
	MaxViewedSize = 1 << 40
)

// ClearMember is what an update says to empty the state before its images are added:
// {"$clear": true}. Nothing else empties it.
const ClearMember = "$clear"

// Viewed is the state of the images that a conversation's tools have viewed, by
// path. It holds what is known of them, and is written without their data.
type Viewed map[string]ViewedImage

// ViewedImage is what is known of one image.
type ViewedImage struct {
	// MIMEType is that of the bytes; "" when it is not known.
	MIMEType string `json:"mime_type,omitempty"`
	// Size is the number of bytes, 0 when it is not known.
	Size int64 `json:"size,omitempty"`
	// SHA256 is of the bytes, in lower-case hexadecimal; "" when it is not known.
	SHA256 string `json:"sha256,omitempty"`
	// Width and Height are in stored pixels, 0 when not known.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// CallID is the call that viewed it.
	CallID string `json:"call_id,omitempty"`

	data string // base64 that an older state holds; never written
}

// Data are the bytes that an older state holds in its member base64; not ok when it
// holds none, or anything but standard base64 with padding. A data URL is none.
func (v ViewedImage) Data() (raw []byte, ok bool) { return strict(v.data) }

// Of is what the state tells of a sight. An entry that names the call which viewed it
// is about that call alone: the same path may be viewed anew, with other bytes. One
// that names none is about the newest view, and so about a Fresh sight.
func (v Viewed) Of(s *Sight) (image ViewedImage, known bool) {
	image, known = v[s.Path]
	if !known || image.CallID != s.CallID && (image.CallID != "" || !s.Fresh) {
		return ViewedImage{}, false
	}
	return image, true
}

// ViewedUpdate is a change of the state.
type ViewedUpdate struct {
	// Clear says that what was viewed before is forgotten.
	Clear  bool
	Images Viewed
}

// ReadViewed reads an update, or a state, which is an update of nothing:
//
//	{"<path>": {"mime_type"?, "size"?, "sha256"?, "width"?, "height"?, "call_id"?, "base64"?}, "$clear"?: true}
//
// null and {} change nothing. An error is a *ViewedError.
func ReadViewed(data []byte) (ViewedUpdate, error) {
	u := ViewedUpdate{Images: Viewed{}}
	start := skipSpace(data, 0)
	switch {
	case !json.Valid(data):
		return ViewedUpdate{}, &ViewedError{Problem: "it is not JSON"}
	case data[start] == 'n':
		return u, nil
	case data[start] != '{':
		return ViewedUpdate{}, &ViewedError{Problem: "it is no object"}
	}
	for path, m := range membersOf(data, message.Span{Start: start, End: len(data)}) {
		at := strconv.Quote(path)
		if path == ClearMember {
			if kindOf(data, m.value) != 't' || u.Clear {
				return ViewedUpdate{}, &ViewedError{ClearMember, "it may be true, once, and nothing else"}
			}
			u.Clear = true
			continue
		}
		if _, twice := u.Images[path]; twice {
			return ViewedUpdate{}, &ViewedError{at, "the path is there twice"}
		}
		if path == "" || len(path) > MaxViewedWord || !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
			return ViewedUpdate{}, &ViewedError{"", fmt.Sprintf("a path is empty, longer than %d bytes, or no text", MaxViewedWord)}
		}
		if len(u.Images) == MaxViewed {
			return ViewedUpdate{}, &ViewedError{"", fmt.Sprintf("there are more than %d images", MaxViewed)}
		}
		image, err := viewedImage(data, m.value, path)
		if err != nil {
			return ViewedUpdate{}, err
		}
		u.Images[path] = image
	}
	return u, nil
}

// viewedImage reads what is said of one image.
func viewedImage(b []byte, v message.Span, path string) (image ViewedImage, err error) {
	if kindOf(b, v) != '{' {
		return image, &ViewedError{strconv.Quote(path), "it is no object"}
	}
	seen := map[string]bool{}
	for name, m := range membersOf(b, v) {
		at := strconv.Quote(path) + "." + name
		if seen[name] {
			return image, &ViewedError{at, "it is there twice"}
		}
		seen[name] = true
		var problem string
		switch name {
		case "mime_type":
			image.MIMEType, problem = viewedWord(b, m.value, MaxViewedWord)
		case "call_id":
			image.CallID, problem = viewedWord(b, m.value, MaxViewedWord)
		case "base64":
			image.data, problem = viewedWord(b, m.value, MaxViewedData)
		case "sha256":
			if image.SHA256, problem = viewedWord(b, m.value, MaxViewedWord); problem == "" && !isDigest(image.SHA256) {
				problem = "it is not 64 lower-case hexadecimal digits"
			}
		case "size":
			image.Size, problem = viewedNumber(b, m.value, MaxViewedSize)
		case "width":
			image.Width, problem = viewedSide(b, m.value)
		case "height":
			image.Height, problem = viewedSide(b, m.value)
		default:
			const most = 200 // a name that is not known may be anything
			at, problem = strconv.Quote(path)+"."+strconv.Quote(name[:min(len(name), most)]), "the member is not known"
		}
		if problem != "" {
			return image, &ViewedError{at, problem}
		}
	}
	return image, nil
}

func isDigest(s string) bool {
	raw, err := hex.DecodeString(s)
	return s == "" || err == nil && len(raw) == 32 && strings.ToLower(s) == s
}

func viewedWord(b []byte, v message.Span, most int) (word, problem string) {
	switch {
	case kindOf(b, v) == 'n':
		return "", ""
	case kindOf(b, v) != '"':
		return "", "it is no text"
	case v.Len() > most+2:
		return "", fmt.Sprintf("it is longer than %d bytes", most)
	}
	return stringOf(b, v), ""
}

func viewedNumber(b []byte, v message.Span, most int64) (n int64, problem string) {
	if kindOf(b, v) == 'n' {
		return 0, ""
	}
	n, err := strconv.ParseInt(string(b[v.Start:v.End]), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Sprintf("it is no whole number from 0 to %d", most)
	}
	return n, ""
}

func viewedSide(b []byte, v message.Span) (side int, problem string) {
	const most = 1<<31 - 1
	n, problem := viewedNumber(b, v, most)
	return int(n), problem
}

// Merge is the state after an update: what was there and what is new, the new one
// where a path is in both. An update that holds nothing changes nothing. Neither map
// is changed, and the result is not nil. The error is a *ViewedError: the state would
// hold more than MaxViewed images.
func (v Viewed) Merge(u ViewedUpdate) (Viewed, error) {
	merged := Viewed{}
	if !u.Clear {
		maps.Copy(merged, v)
	}
	maps.Copy(merged, u.Images)
	if len(merged) > MaxViewed {
		return nil, &ViewedError{"", fmt.Sprintf("there would be more than %d images", MaxViewed)}
	}
	return merged, nil
}

// ViewedError says what is wrong with a state of viewed images. It holds no data of images.
type ViewedError struct {
	// At is the place, such as "/a.png".size; "" for the whole.
	At string
	// Problem is a clause.
	Problem string
}

// Error gives the place and the problem.
func (e *ViewedError) Error() string {
	if e.At == "" {
		return "reading viewed images: " + e.Problem
	}
	return "reading viewed images at " + e.At + ": " + e.Problem
}
