// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package review_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/review"
	"github.com/visionoperator/vision-operator/test/measure"
)

// history is a conversation of 100 messages with 30 different images of size
// bytes, in Anthropic's dialect.
func history(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"model":"claude-opus-4-7","max_tokens":1000,"messages":[`)
	r := rand.New(rand.NewPCG(1, 2))
	image := pngOf(640, 480)
	for len(image) < size {
		image = append(image, byte(r.Uint32()))
	}
	images := 0
	for i := range 100 {
		if i > 0 {
			b.WriteByte(',')
		}
		switch {
		case i%2 == 1:
			fmt.Fprintf(&b, `{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"shot","input":{}}]}`, i)
		case images < 30:
			images++
			image[len(image)-1] = byte(i)
			fmt.Fprintf(&b, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%s"}}]}]}`,
				i-1, base64.StdEncoding.EncodeToString(image))
		default:
			fmt.Fprintf(&b, `{"role":"user","content":[{"type":"text","text":"%s"}]}`, strings.Repeat("Number ", 100))
		}
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// BenchmarkReview reviews 100 messages with 30 images of 1 MiB, in each form,
// from bytes to verdict and patch. The smaller images show what does not depend
// on their size; the hash alone is the floor.
func BenchmarkReview(b *testing.B) {
	doc := document()
	for i := range doc.Profiles {
		doc.Profiles[i].Limits.Request.MaxTotalImageBytes = 64 << 20
	}
	granted := grants(doc)
	query := url.Values{"path": {"/v1/messages"}, "patchTypes": {"ByteRanges"}}
	for _, size := range []struct {
		name  string
		bytes int
	}{{"images of 1 KiB", 1 << 10}, {"images of 1 MiB", 1 << 20}} {
		body := history(size.bytes)
		enveloped := fmt.Appendf(nil, `{"request":{"uid":"1","path":"/v1/messages","body":%s}}`, body)
		forms := map[string]func() (*review.Request, error){
			"raw":      func() (*review.Request, error) { return review.ReadQuery(query, body) },
			"envelope": func() (*review.Request, error) { return review.ReadEnvelope(enveloped) },
		}
		for name, read := range forms {
			b.Run(size.name+"/"+name, func(b *testing.B) {
				measure.PerMiB(b, len(body), func() {
					req, err := read()
					if err != nil {
						b.Fatal(err)
					}
					got, err := review.Review(context.Background(), req, granted)
					if err != nil || !got.Allowed || len(got.Decisions) != 30 || !got.Degraded() {
						b.Fatal(got, err)
					}
				})
			})
		}
		raw := make([]byte, size.bytes*30)
		b.Run(size.name+"/the hash alone", func(b *testing.B) { measure.PerMiB(b, len(body), func() { sha256.Sum256(raw) }) })
	}
}
