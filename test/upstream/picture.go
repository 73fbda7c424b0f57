// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"image"
	_ "image/gif"  // what vendors take
	_ "image/jpeg" // what vendors take
	_ "image/png"  // what vendors take
	"net/http"
	"strings"
)

// saw notes an image at a place. It refuses it where the model takes none.
func (r *reader) saw(p place, i Image) {
	if r.textOnly != nil {
		panic(r.textOnly(p))
	}
	i.Place, i.Message, i.Result = p.text, r.message, r.inResult
	r.images = append(r.images, i)
}

// decoded are the bytes of standard base64 with padding, and nothing else.
func decoded(data string) ([]byte, bool) {
	raw, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil || strings.ContainsAny(data, "\r\n") || len(raw) == 0 {
		return nil, false
	}
	return raw, true
}

// mediaType is what the bytes are, "" when they are no image that can be shown.
func mediaType(raw []byte) string {
	sniffed := http.DetectContentType(raw)
	switch sniffed {
	case "image/webp": // nothing at hand decodes it
		return sniffed
	case "image/png", "image/jpeg", "image/gif":
		config, _, err := image.DecodeConfig(bytes.NewReader(raw))
		if err != nil || config.Width == 0 || config.Height == 0 {
			return ""
		}
		return sniffed
	}
	return ""
}

// picture is the image that bytes are.
func picture(raw []byte, mediaType string) Image {
	sum := sha256.Sum256(raw)
	return Image{SHA256: hex.EncodeToString(sum[:]), MediaType: mediaType, Bytes: len(raw)}
}

// openAIImage reads the URL of an image as OpenAI's two dialects have it.
func (r *reader) openAIImage(p place, url string) {
	param := p.text
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		r.saw(p, Image{URL: url})
		return
	}
	declared, data, ok := strings.Cut(url, ",")
	if !ok || !strings.HasPrefix(declared, "data:image/") || !strings.HasSuffix(declared, ";base64") {
		panic(invalid("invalid_image_url", param, "Invalid '"+param+"'. Expected a valid URL or a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got an invalid value."))
	}
	raw, ok := decoded(data)
	if !ok {
		panic(invalid("invalid_base64", param, "Invalid base64 image_url."))
	}
	kind := mediaType(raw)
	switch strings.TrimSuffix(strings.TrimPrefix(declared, "data:"), ";base64") {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		kind = ""
	}
	if kind == "" {
		panic(invalid("invalid_image_format", param, "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp']."))
	}
	r.saw(p, picture(raw, kind))
}
