// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"strings"
	"unicode/utf8"
)

// picture gathers what an object says of an image's data, in any dialect's words.
// Which of it counts is known only at the object's end: members have no order.
type picture struct {
	kind, media, detail string
	data, url           text
	hasData, hasURL     bool
	file                bool // at the vendor
	name                Span // displayName's JSON value
	sha256, head        text
	hasSHA256, hasHead  bool
	bytes               int64
	within              *picture // of an object in the place of a URL
}

// object reads members into a picture.
func (s *scan) object(p *picture) {
	for name := range s.members() {
		s.describe(p, name)
	}
}

// describe reads one member into a picture.
func (s *scan) describe(p *picture, name string) {
	switch name {
	case "type":
		p.kind = s.word()
	case "media_type", "mimeType", "mime_type", "mediaType":
		p.media = mediaType(s.word())
	case "detail":
		p.detail = strings.ToLower(s.word())
	case "data":
		p.data, p.hasData = s.optional()
	case "url", "fileUri", "file_uri":
		if s.peek() == '{' && name == "url" { // facts
			p.within = new(picture)
			s.object(p.within)
			return
		}
		p.url, p.hasURL = s.optional()
	case "file_id":
		_, p.file = s.optional()
	case "displayName", "display_name":
		p.name = s.skip()
	case "sha256":
		p.sha256, p.hasSHA256 = s.optional()
	case "head":
		p.head, p.hasHead = s.optional()
	case "bytes":
		p.bytes = s.whole()
	default:
		s.skip()
	}
}

// inline makes of an image what is in a member that holds bare base64.
func (i *Image) inline(p *picture) {
	i.MediaType = p.media
	switch {
	case !p.hasData:
		i.unknown("it has no data")
	case p.data.size == 0:
		i.unread("its data is empty")
	default:
		i.Source, i.Data, i.DataBytes, i.Escaped = Inline, p.data.Span, p.data.size, p.data.escaped
	}
}

func (i *Image) unknown(why string) { i.Source, i.Why = Unknown, why }

// unread is unknown, of what may be data all the same.
func (i *Image) unread(why string) {
	i.unknown(why)
	i.Unread = true
}

// facts makes of an image what its sender tells about it.
func (i *Image) facts(s *scanner, p *picture) {
	digest := ""
	if p.hasSHA256 && p.sha256.size == 64 {
		digest = strings.ToLower(decoded(s.b, p.sha256))
	}
	f := &Facts{SHA256: digest, Bytes: p.bytes, MediaType: p.media}
	good := digest != "" && strings.Trim(digest, "0123456789abcdef") == "" && p.bytes > 0
	if good && p.hasHead {
		f.Head, good = decodeHead(s.b, p.head)
	}
	if !good || int64(len(f.Head)) > f.Bytes {
		s.fail(BadFacts, s.i)
		return
	}
	i.Source, i.Facts, i.MediaType = AsFacts, f, f.MediaType
}

// imageURL reads the value of OpenAI's image_url: a URL, an object with one, or
// facts. It reports whether there is one.
func (s *scan) imageURL(i *Image) bool {
	switch s.peek() {
	case '"':
		s.address(i, s.str())
	case '{':
		var p picture
		s.object(&p)
		i.Detail = p.detail
		switch {
		case s.err != nil:
		case p.within != nil && p.within.hasSHA256:
			i.facts(&s.scanner, p.within)
		case p.hasSHA256:
			i.facts(&s.scanner, &p)
		case p.hasURL:
			s.address(i, p.url)
		case p.file:
			i.Source = FileID
		default:
			i.unknown("its image_url has no url")
		}
	case 'n':
		s.skip()
		return false
	default:
		s.skip()
		i.unknown("its image_url is neither text nor an object")
	}
	return true
}

// longestHead bounds the search for a data URL's comma, in bytes.
const longestHead = 256

// address tells what is behind a URL. A data URL (RFC 2397) is taken as vendors
// do: data in any case, a media type with parameters or none, and base64 last
// before the comma; what follows is not percent-decoded. White space and control
// characters before it are passed, as URL parsers do.
func (s *scan) address(i *Image, t text) {
	var buf [longestHead]byte
	head, rest := s.head(t, buf[:0])
	scheme, after, ok := strings.Cut(strings.TrimLeftFunc(string(head), func(r rune) bool { return r <= ' ' }), ":")
	scheme = strings.ToLower(scheme)
	switch {
	case t.size == 0:
		i.unknown("its URL is empty")
	case ok && (scheme == "http" || scheme == "https"):
		i.Source = Remote
	case !ok:
		i.unread("its URL is none of data, http and https")
	case scheme != "data":
		i.unknown("its URL is none of data, http and https")
	case rest < 0:
		i.unread("its data URL has no comma")
	default:
		s.dataURL(i, after[:len(after)-1], text{Span{rest, t.End}, t.escaped, t.size - len(head)})
	}
}

// dataURL reads a data URL of which head is what stands between "data:" and the comma.
func (s *scan) dataURL(i *Image, head string, data text) {
	i.MediaType = mediaType(head)
	at := strings.LastIndexByte(head, ';')
	switch {
	case at < 0 || !strings.EqualFold(strings.TrimSpace(head[at+1:]), "base64"):
		i.unread("its data URL is not base64")
	case data.size == 0:
		i.unread("its data URL is empty")
	default:
		i.Source, i.Data, i.DataBytes, i.Escaped = Inline, data.Span, data.size, data.size < data.Len()
	}
}

// head appends to buf the beginning of a string, unescaped, up to and including
// its first comma; rest is the byte of the body after that, -1 when there is no
// comma within longestHead bytes.
func (s *scan) head(t text, buf []byte) (head []byte, rest int) {
	for i := t.Start; i < t.End && len(buf) < longestHead; {
		if s.b[i] == '\\' {
			r, long, _ := unescape(s.b[i:t.End])
			buf = utf8.AppendRune(buf, r)
			i += long
		} else {
			buf = append(buf, s.b[i])
			i++
		}
		if buf[len(buf)-1] == ',' {
			return buf, i
		}
	}
	return buf, -1
}

// mediaType is a media type without parameters and in lower case.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}
