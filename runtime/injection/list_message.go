// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"bytes"
	"io"
	"slices"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// The most bytes that an image of a list may have; limits of policies are lower.
const maxListImage = 64 << 20

// Decide makes the messages that show the sights, one Shown for each. An image that
// cannot be shown, since it is not the one that was viewed or cannot be read, is one
// text, and so is a Shown without anything.
func (p *ListPlan) Decide(shown []Shown) Decision {
	read := slices.Clone(shown)
	for i := range read {
		read[i].Picture = inMemory(read[i].Picture)
	}
	d, composed := p.Compose(read)
	for _, c := range composed {
		whole, err := message.Splice(nil, []message.Edit{{Segments: c.Pieces}})
		if err != nil {
			continue // pieces of ours are well formed
		}
		data, _ := io.ReadAll(whole.Reader()) // memory can be read
		if c.Last {
			d.Append = data
		} else {
			d.Insert = append(d.Insert, Insertion{c.Before, data})
		}
	}
	return d
}

// Composed is a message that need not be held: its pieces read the pictures when they
// are written.
type Composed struct {
	// Before is that of an Insertion. Last says that the message is what is appended.
	Before int
	Last   bool
	Pieces []message.Segment
}

// Compose is Decide for messages that need not be held: they stand beside the
// Decision, in their order. A picture is taken to be readable.
func (p *ListPlan) Compose(shown []Shown) (d Decision, composed []Composed) {
	d = Decision{Reason: p.Reason, Remove: p.Remove}
	if !p.Inject || len(shown) != len(p.Sights) {
		return d, nil
	}
	if d.Reason == Ready {
		d.Reason = ListShown // unless one speaks
	}
	for i := range p.steps {
		s := &p.steps[i]
		if !s.ready {
			continue
		}
		if blocks, m := p.blocks(s, shown); len(blocks) > 0 {
			composed = append(composed, Composed{s.end, s.end == len(p.list.messages), p.write(s, blocks, m)})
			d.Inject, d.Reason = true, Ready
		}
	}
	return d, composed
}

// blocks are what a step's message holds, with its marker; none where every image of
// it is there already.
func (p *ListPlan) blocks(s *listStep, shown []Shown) (blocks []block, m *marker) {
	there := p.shownBehind(s)
	m = &marker{Version: 1}
	index, resolvable := 0, false
	for i := s.sights.Start; i < s.sights.End; i++ {
		show := shown[i]
		m.Calls, m.Digests = append(m.Calls, p.Sights[i].CallID), append(m.Digests, "")
		if standing := p.Sights[i].State == ShownByTool || p.Sights[i].State == ShownInConversation; standing ||
			show.Picture != nil && slices.Contains(there, show.Picture.SHA256) {
			continue
		}
		bad := p.unfit(i, show.Picture)
		switch {
		case show.Picture == nil && show.Text != "":
			resolvable = resolvable || show.Constant
			blocks = append(blocks, block{text: show.Text})
		case bad != "":
			blocks = append(blocks, block{text: p.Unavailable(i, bad)})
		default:
			index++
			resolvable = true
			m.Digests[i-s.sights.Start] = show.Picture.SHA256
			if item := p.ItemText(i, show.Picture, index); item != "" {
				blocks = append(blocks, block{text: item})
			}
			blocks = append(blocks, block{picture: show.Picture})
		}
	}
	if heading := p.Heading(); resolvable && heading != "" {
		blocks = slices.Insert(blocks, 0, block{text: heading})
	}
	var texts []string
	for _, b := range blocks {
		if b.picture == nil {
			texts = append(texts, b.text)
		}
	}
	m.sign(p.key, texts)
	return blocks, m
}

// unfit is why a picture cannot be shown; "" when it can.
func (p *ListPlan) unfit(i int, picture *Picture) (reason string) {
	if picture == nil {
		return "it was not found"
	}
	viewed, _ := p.viewed.Of(&p.Sights[i])
	switch {
	case viewed.SHA256 != "" && viewed.SHA256 != picture.SHA256 || viewed.Size > 0 && viewed.Size != picture.Size:
		return "it has changed since it was viewed"
	case picture.MediaType == "":
		return "its media type is " + unknown
	case picture.Size <= 0 || picture.Size > maxListImage || picture.Data == nil:
		return "it cannot be read"
	}
	return ""
}

// inMemory is a picture whose data is read already; one that cannot be read has none.
func inMemory(picture *Picture) *Picture {
	if picture == nil || picture.Size <= 0 || picture.Size > maxListImage || picture.Data == nil {
		return picture
	}
	read := *picture
	data := make([]byte, picture.Size)
	if n, _ := picture.Data.ReadAt(data, 0); n < len(data) {
		read.Data = nil
	} else {
		read.Data = bytes.NewReader(data)
	}
	return &read
}

// Standing are the digests of the images in messages behind a sight's call and before
// the assistant's next message: what is among them is not shown again.
func (p *ListPlan) Standing(sight int) []string {
	for i := range p.steps {
		if s := &p.steps[i]; sight >= s.sights.Start && sight < s.sights.End {
			return p.shownBehind(s)
		}
	}
	return nil
}

// shownBehind are the digests of the images in a step's messages, but for our own,
// which are replaced.
func (p *ListPlan) shownBehind(s *listStep) []string {
	if s.looked {
		return s.standing
	}
	for i := s.ai + 1; i < s.end; i++ {
		if _, is := p.oursAt(i); !is {
			s.standing = append(s.standing, digestsOf(p.list.body, p.list.messages[i].content)...)
		}
	}
	s.standing, s.looked = slices.DeleteFunc(s.standing, func(d string) bool { return d == "" }), true
	return s.standing
}

// block is a part of the message: an image, or a text.
type block struct {
	text    string
	picture *Picture
}

// segments are the block's JSON.
func (b block) segments() []message.Segment {
	if b.picture == nil {
		return text(string(written(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", b.text})))
	}
	head := written("data:" + b.picture.MediaType + ";base64,")
	return add(nil, text(`{"type":"image_url","image_url":{"url":`+string(head[:len(head)-1])),
		[]message.Segment{{Data: b.picture.Data, Size: b.picture.Size}}, text(`"}}`))
}

// listFields are the members of a message in every form, without its content's parts.
type listFields struct {
	Type    string     `json:"type,omitempty"`
	Role    string     `json:"role,omitempty"`
	Content []any      `json:"content"`
	ID      string     `json:"id"`
	Extra   listMarked `json:"additional_kwargs"`
}

type listMarked struct {
	Hidden bool    `json:"hide_from_ui"`
	Marker *marker `json:"vision_image_context"`
}

// write writes the message in the form of the assistant's that it stands behind.
func (p *ListPlan) write(s *listStep, blocks []block, m *marker) []message.Segment {
	f := listFields{Type: "human", Content: []any{}, ID: m.id(), Extra: listMarked{true, m}}
	var whole []byte
	switch p.list.messages[s.ai].form {
	case roleWise:
		f.Type, f.Role = "", "user"
		whole = written(f)
	case nested:
		whole = written(struct {
			Type string     `json:"type"`
			Data listFields `json:"data"`
		}{"human", f})
	default:
		whole = written(f)
	}
	const content = `"content":[` // what stands before it is ours, and fixed
	at := bytes.Index(whole, []byte(content)) + len(content)
	all := text(string(whole[:at]))
	for i, b := range blocks {
		if i > 0 {
			all = add(all, text(","))
		}
		all = add(all, b.segments())
	}
	return add(all, text(string(whole[at:])))
}
