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

// Decide makes the message that shows the sights, one Shown for each. An image that
// cannot be shown, since it is not the one that was viewed or cannot be read, is one
// text, and so is a Shown without anything.
func (p *ListPlan) Decide(shown []Shown) Decision {
	read := slices.Clone(shown)
	for i := range read {
		read[i].Picture = inMemory(read[i].Picture)
	}
	d, segments := p.Compose(read)
	if d.Inject {
		whole, err := message.Splice(nil, []message.Edit{{Segments: segments}})
		if err == nil { // pieces of ours are well formed, and memory can be read
			d.Append, _ = io.ReadAll(whole.Reader())
		}
	}
	return d
}

// Compose is Decide for a message that need not be held: in the place of Append are
// the message's pieces, which read the pictures when they are written. A picture is
// taken to be readable.
func (p *ListPlan) Compose(shown []Shown) (Decision, []message.Segment) {
	d := Decision{Reason: p.Reason, Remove: p.Remove}
	if !p.Inject || len(shown) != len(p.Sights) {
		return d, nil
	}
	there := p.Standing()
	m := marker{Version: 1}
	var blocks []block
	index, resolvable, speaks := 0, false, false
	for i := range p.Sights {
		s := shown[i]
		m.Calls, m.Digests = append(m.Calls, p.Sights[i].CallID), append(m.Digests, "")
		if standing := p.Sights[i].State == ShownByTool || p.Sights[i].State == ShownInConversation; standing ||
			s.Picture != nil && slices.Contains(there, s.Picture.SHA256) {
			continue
		}
		speaks = true
		bad := p.unfit(i, s.Picture)
		switch {
		case s.Picture == nil && s.Text != "":
			resolvable = resolvable || s.Constant
			blocks = append(blocks, block{text: s.Text})
		case bad != "":
			blocks = append(blocks, block{text: p.Unavailable(i, bad)})
		default:
			index++
			resolvable = true
			m.Digests[i] = s.Picture.SHA256
			if item := p.ItemText(i, s.Picture, index); item != "" {
				blocks = append(blocks, block{text: item})
			}
			blocks = append(blocks, block{picture: s.Picture})
		}
	}
	if !speaks {
		d.Reason = ListShown
		return d, nil
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
	d.Inject = true
	return d, p.write(blocks, &m)
}

// unfit is why a picture cannot be shown; "" when it can.
func (p *ListPlan) unfit(i int, picture *Picture) (reason string) {
	if picture == nil {
		return "it was not found"
	}
	viewed := p.viewed[p.Sights[i].Path]
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

// Standing are the digests of the images in messages after the newest one of the
// assistant's: what is among them is not shown again.
func (p *ListPlan) Standing() []string {
	if !p.looked {
		p.standing, p.looked = p.shownAfter(), true
	}
	return p.standing
}

// shownAfter are the digests of the images in messages after the newest one of the
// assistant's, but for our own, which are replaced.
func (p *ListPlan) shownAfter() []string {
	l := p.list
	var digests []string
	for i := l.ai + 1; i < len(l.messages); i++ {
		if !slices.ContainsFunc(p.ours, func(o oursMessage) bool { return o.at == i }) {
			digests = append(digests, digestsOf(l.body, l.messages[i].content)...)
		}
	}
	return slices.DeleteFunc(digests, func(d string) bool { return d == "" })
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

// write writes the message in the form of the assistant's newest one.
func (p *ListPlan) write(blocks []block, m *marker) []message.Segment {
	f := listFields{Type: "human", Content: []any{}, ID: m.id(), Extra: listMarked{true, m}}
	var whole []byte
	switch p.list.messages[p.list.ai].form {
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
