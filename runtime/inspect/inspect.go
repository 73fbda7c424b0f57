// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect gathers the facts about the images of a scanned model request
// that package preflight judges: contents, types, sides, what cannot be used. It
// is pure, and copies no image.
package inspect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
	"sync"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/vendors"
)

// Images gathers the facts about every image of a body, in the order of
// scanned.Images; body is what was scanned. Inline data is decoded once, in pieces:
// all of it is hashed, and the header is read from its beginning. Of an image that
// is elsewhere only what is declared is known. One of the assistant's own turns is
// untouchable. The error is a *fault.Fault, and only when the context has ended;
// what is wrong with an image stands in its Bad.
func Images(ctx context.Context, scanned *message.Request, body []byte) ([]preflight.Image, error) {
	return images(ctx, scanned, body, true)
}

// Heads gathers what the beginnings of inline data tell, and hashes nothing: a
// sixteenth of the work for a large image. Their contents have no names, so that
// each occurrence counts as one of its own, and data that is damaged behind its
// beginning is not noticed. What preflight admits of them whole, it admits of
// Images too: equal contents only make a request smaller.
func Heads(ctx context.Context, scanned *message.Request, body []byte) ([]preflight.Image, error) {
	return images(ctx, scanned, body, false)
}

func images(ctx context.Context, scanned *message.Request, body []byte, whole bool) ([]preflight.Image, error) {
	if len(scanned.Images) == 0 {
		return nil, nil
	}
	images := make([]preflight.Image, len(scanned.Images))
	l := looks.Get().(*look)
	defer looks.Put(l)
	for i := range scanned.Images {
		if err := ctx.Err(); err != nil {
			return nil, fault.New(fault.ImageReadFailed, "Canceled", "the request ended before its images could be read").Because(err)
		}
		from := &scanned.Images[i]
		image := preflight.Image{
			ID: scanned.ID(i), MediaType: canonical(from.MediaType), Detail: from.Detail, Turn: from.Turn,
			InResult: from.InToolResult, Required: from.Fixed, Base64Bytes: int64(from.DataBytes),
			Untouchable: scanned.Turns[from.Turn].Role == message.Assistant,
		}
		switch from.Source {
		case message.Inline:
			image.Source = vendors.SourceBase64
			l.inline(&image, body, from, whole)
		case message.AsFacts:
			image.Source = vendors.SourceBase64
			told(&image, from.Facts)
		case message.Remote:
			image.Source = vendors.SourceURL
		case message.FileID:
			image.Source = vendors.SourceFile
		case message.Unknown:
			if from.Unread {
				image.Bad = fault.New(fault.InvalidToolInput, "DataNotRead", "the image %s is given in a form that cannot be looked at: %s", image.ID, from.Why).
					Hint("Give a data URL as data:image/png;base64,…, or the address of the image.")
			}
		}
		if from.InError && scanned.Dialect == message.AnthropicMessages && image.Bad == nil {
			image.Bad = fault.New(fault.InvalidToolInput, "ImageInErrorResult", "the image %s stands in a tool's result that is marked as an error, in which the vendor takes text alone", image.ID).
				Hint("Leave is_error out, or the image.")
		}
		images[i] = image
	}
	return images, nil
}

// canonical is the type that a declared one is another name of, or what is
// declared, which may be any text and is cut short: limits list types by one
// name each.
func canonical(declared string) string {
	if declared == "" {
		return ""
	}
	for _, known := range probe.MediaTypes() {
		if declared == known || known != probe.HEIC && known != probe.HEIF && (probe.Facts{MediaType: known}).Agrees(declared) {
			return known
		}
	}
	return clip(declared)
}

// look is what reading images takes; it is used for one after the other.
type look struct {
	head [probe.MaxHeader]byte
	hash hash.Hash
	sum  [sha256.Size]byte
}

var looks = sync.Pool{New: func() any { return &look{hash: sha256.New()} }}

// inline fills in what the data of an image tells; of one in plain base64 that need
// not be read whole, its beginning.
func (l *look) inline(image *preflight.Image, body []byte, from *message.Image, whole bool) {
	data := message.NewReader(body, from)
	if size, plain := plainSize(body, from); plain && !whole && size > int64(len(l.head)) {
		if _, err := io.ReadFull(data, l.head[:]); err != nil {
			image.Bad = notBase64(image, err)
			return
		}
		image.Bytes = size
		probed(image, l.head[:], size)
		return
	}
	n, err := io.ReadFull(data, l.head[:])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	l.hash.Reset()
	l.hash.Write(l.head[:n])
	size := int64(n)
	if err == nil {
		var rest int64
		rest, err = data.WriteTo(l.hash)
		size += rest
	}
	if err != nil {
		image.Bad = notBase64(image, err)
		return
	}
	image.Bytes = size
	image.SHA256 = hex.EncodeToString(l.hash.Sum(l.sum[:0]))
	probed(image, l.head[:n], size)
}

// plainSize is how many bytes data stands for, when it is base64 in one piece, as
// encoders write it: no escapes, groups of four with padding.
func plainSize(body []byte, from *message.Image) (size int64, plain bool) {
	data := body[from.Data.Start:from.Data.End]
	if from.Escaped || len(data)%4 != 0 || len(data) == 0 {
		return 0, false
	}
	padding := len(data) - len(bytes.TrimRight(data[len(data)-2:], "=")) - (len(data) - 2)
	return int64(len(data)/4*3 - padding), true
}

func notBase64(image *preflight.Image, err error) *fault.Fault {
	return fault.New(fault.InvalidToolInput, string(message.BadBase64), "the data of the image %s is not base64", image.ID).
		Because(err).Hint("Send the image in base64.")
}

// told fills in what the sender tells of an image in place of its data.
func told(image *preflight.Image, facts *message.Facts) {
	image.SHA256, image.Bytes = facts.SHA256, facts.Bytes
	// As far as it may be summed: what is told may be far beyond what any limit allows.
	image.Base64Bytes = min(vendors.Base64Length(facts.Bytes), 1<<40)
	if len(facts.Head) > 0 {
		probed(image, facts.Head, facts.Bytes)
	}
}

// probed fills in what the first bytes of an image of size bytes tell.
func probed(image *preflight.Image, head []byte, size int64) {
	declared := image.MediaType
	facts, err := probe.Head(head, size)
	if facts.MediaType != "" {
		image.MediaType = facts.MediaType
	}
	image.Width, image.Height, image.Orientation = facts.Width, facts.Height, facts.Orientation
	image.Animated = facts.Animated == probe.Yes
	switch bad, _ := errors.AsType[*probe.Error](err); {
	case err == nil && !facts.Agrees(declared):
		image.Bad = fault.New(fault.InvalidToolInput, "MediaTypeMismatch", "the image %s is declared as %s and is %s", image.ID, clip(declared), facts.MediaType).
			With("mime", facts.MediaType).Hint("Declare the type that the image has.")
	case err == nil:
	case bad == nil || bad.Reason == probe.NotAnImage:
		image.Bad = fault.New(fault.InvalidToolInput, "NotAnImage", "the image %s is not of a known type", image.ID).Because(err).
			Hint("Send an image: PNG, JPEG, GIF or WebP.")
	case bad.Reason == probe.ZeroSize:
		image.Bad = malformedImage(image, "has a side of zero pixels", err)
	default:
		image.Bad = malformedImage(image, "has a header that is broken or incomplete", err)
	}
}

func malformedImage(image *preflight.Image, what string, err error) *fault.Fault {
	return fault.New(fault.InvalidToolInput, "ImageMalformed", "the image %s begins as %s and %s", image.ID, image.MediaType, what).
		With("mime", image.MediaType).Because(err).Hint("Send the whole image.")
}

// clip bounds a sender's text.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
