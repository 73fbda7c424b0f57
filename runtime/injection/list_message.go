// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// The most bytes that an image of a list may have; limits of policies are lower.
const maxListImage = 64 << 20

// Decide makes the message that shows the sights, one Shown for each. An image that
// cannot be shown, since it is not the one that was viewed or cannot be read, is one
// text, and so is a Shown without anything.
func (p *ListPlan) Decide(shown []Shown) Decision {
	d := Decision{Reason: p.Reason, Remove: p.Remove}
	if !p.Inject || len(shown) != len(p.Sights) {
		return d
	}
	there := p.list.shownAfter()
	m := marker{Version: 1}
	var blocks []block
	index, resolvable, speaks := 0, false, false
	for i := range p.Sights {
		s := shown[i]
		m.Calls, m.Digests = append(m.Calls, p.Sights[i].CallID), append(m.Digests, "")
		if p.Sights[i].State == ShownByTool || s.Picture != nil && slices.Contains(there, s.Picture.SHA256) {
			continue
		}
		speaks = true
		url, bad := p.url(i, s.Picture)
		switch {
		case s.Picture == nil && s.Text != "":
			resolvable = resolvable || s.Constant
			blocks = append(blocks, textBlock(s.Text))
		case url == "":
			blocks = append(blocks, textBlock(p.Unavailable(i, bad)))
		default:
			index++
			resolvable = true
			m.Digests[i] = s.Picture.SHA256
			if item := p.ItemText(i, s.Picture, index); item != "" {
				blocks = append(blocks, textBlock(item))
			}
			blocks = append(blocks, imageBlock(url))
		}
	}
	if !speaks {
		d.Reason = ListShown
		return d
	}
	if heading := p.Heading(); resolvable && heading != "" {
		blocks = slices.Insert(blocks, 0, textBlock(heading))
	}
	var texts []string
	for _, b := range blocks {
		if b.Text != nil {
			texts = append(texts, *b.Text)
		}
	}
	m.sign(p.key, texts)
	d.Inject, d.Append = true, p.write(blocks, &m)
	return d
}

// url is a picture's data URL; "" and the reason when there is none.
func (p *ListPlan) url(i int, picture *Picture) (url, reason string) {
	if picture == nil {
		return "", "it was not found"
	}
	viewed := p.viewed[p.Sights[i].Path]
	switch {
	case viewed.SHA256 != "" && viewed.SHA256 != picture.SHA256 || viewed.Size > 0 && viewed.Size != picture.Size:
		return "", "it has changed since it was viewed"
	case picture.MediaType == "":
		return "", "its media type is " + unknown
	case picture.Size <= 0 || picture.Size > maxListImage || picture.Data == nil:
		return "", "it cannot be read"
	}
	var b strings.Builder
	b.Grow(base64.StdEncoding.EncodedLen(int(picture.Size)) + 64)
	b.WriteString("data:" + picture.MediaType + ";base64,")
	w := base64.NewEncoder(base64.StdEncoding, &b)
	if n, err := io.Copy(w, io.NewSectionReader(picture.Data, 0, picture.Size)); err != nil || n != picture.Size {
		return "", "it cannot be read"
	}
	_ = w.Close() // a Builder takes everything
	return b.String(), ""
}

// shownAfter are the digests of the images in messages after the newest one of the assistant's.
func (l *List) shownAfter() []string {
	var digests []string
	for i := l.ai + 1; i < len(l.messages); i++ {
		if kindOf(l.body, memberOf(l.body, l.messages[i].extra, MarkerMember)) != '{' {
			digests = append(digests, digestsOf(l.body, l.messages[i].content)...)
		}
	}
	return slices.DeleteFunc(digests, func(d string) bool { return d == "" })
}

// block is a part of the message.
type block struct {
	Type     string    `json:"type"`
	Text     *string   `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

func textBlock(s string) block    { return block{Type: "text", Text: &s} }
func imageBlock(url string) block { return block{Type: "image_url", ImageURL: &imageURL{url}} }

// listFields are the members of a message in every form.
type listFields struct {
	Type    string     `json:"type,omitempty"`
	Role    string     `json:"role,omitempty"`
	Content []block    `json:"content"`
	ID      string     `json:"id"`
	Extra   listMarked `json:"additional_kwargs"`
}

type listMarked struct {
	Hidden bool    `json:"hide_from_ui"`
	Marker *marker `json:"vision_image_context"`
}

// write writes the message in the form of the assistant's newest one.
func (p *ListPlan) write(blocks []block, m *marker) json.RawMessage {
	f := listFields{Type: "human", Content: blocks, ID: m.id(), Extra: listMarked{true, m}}
	switch p.list.messages[p.list.ai].form {
	case roleWise:
		f.Type, f.Role = "", "user"
		return written(f)
	case nested:
		return written(struct {
			Type string     `json:"type"`
			Data listFields `json:"data"`
		}{"human", f})
	}
	return written(f)
}
