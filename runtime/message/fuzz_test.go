// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzScanChat(f *testing.F)      { fuzzScan(f, OpenAIChat) }
func FuzzScanResponses(f *testing.F) { fuzzScan(f, OpenAIResponses) }
func FuzzScanAnthropic(f *testing.F) { fuzzScan(f, AnthropicMessages) }
func FuzzScanGemini(f *testing.F)    { fuzzScan(f, GeminiContents) }

// fuzzScan holds Scan of any bytes against encoding/json: it takes nothing that
// is no JSON, calls nothing no JSON that is, and finds what the walker finds.
func fuzzScan(f *testing.F, d Dialect) {
	for _, body := range bodies[d] {
		whole := filled(body)
		f.Add(whole)
		f.Add(whole[:len(whole)/2])
		f.Add(variants(whole)["escaped"])
	}
	for _, all := range pieces[d] {
		for _, piece := range all {
			f.Add([]byte(strings.NewReplacer("M", "messages", "P", strings.NewReplacer("%", "{}", "~", "1").Replace(piece)).Replace(`{"M":[P,P],"contents":[P,P],"input":[P,P]}`)))
		}
	}
	f.Add([]byte(`{"messages":[{"content":[{"type":"image_url","image_url":[1]}]}],"contents":[],"input":[{"output":{}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Scan(d, body[:len(body):len(body)])
		if err != nil {
			if reasonOf(err) == "" || r != nil {
				t.Fatalf("%+v beside %v", r, err)
			}
			if reasonOf(err) == NotJSON && json.Valid(body) {
				t.Fatalf("%v, but it is JSON: %q", err, body)
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("it is no JSON, but a request: %q", body)
		}
		if utf8.Valid(body) { // else encoding/json changes strings, and their lengths
			agrees(t, d, r, body)
		}
		for n, s := range spans(r) {
			if s.Start < 0 || s.End > len(body) || s.Len() < 0 || s.Len() > 0 && !json.Valid(body[s.Start:s.End]) {
				t.Fatalf("span %d at %v is no value of %q", n, s, body)
			}
		}
		for n := range r.Calls {
			r.Argument(body, n, "path", "prompt")
			r.ArgumentsDigest(body, n)
		}
		for n := range r.Images {
			r.Required(n)
			if part := r.TextPart(body, n, "gone"); part != nil {
				image := r.Images[n]
				edited := append(append(append([]byte{}, body[:image.Part.Start]...), part...), body[image.Part.End:]...)
				again, err := Scan(d, edited)
				if err != nil || len(again.Images) != len(r.Images)-1 || len(again.Turns) != len(r.Turns) {
					t.Fatalf("after %s in place of image %d: %v\n%s", part, n, err, edited)
				}
			}
		}
	})
}

// spans are all that must be JSON values, or empty.
func spans(r *Request) []Span {
	out := []Span{r.ModelValue}
	for _, c := range r.Calls {
		out = append(out, c.Span, c.Arguments)
	}
	for _, a := range r.Results {
		out = append(out, a.Object, a.Content, a.Null, a.Part, a.Parts)
	}
	for _, x := range r.Texts {
		out = append(out, x.Value, x.Part)
	}
	for _, s := range r.Signatures {
		out = append(out, s.Span)
	}
	return out
}

// FuzzReader holds the decoding of base64 against encoding/base64, which takes
// the same but for the alphabets and what follows padding.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"", "QQ==", "QQ", "QQ=", "Q", "QUI=", "QUI", "QUJD", "QUJDRA", "-_-_", "+/+/", "+_", "QU\nJD", "QUI=\n", "QUI=x", "====", "QQ=\r\n=", "QUJDQUJDQUJDQUJDQUJDQUJD!", "Q=Q="} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, s string, piece int) {
		var got []byte
		r := newReader([]byte(s), Span{0, len(s)}, false)
		buf := make([]byte, 1+max(piece, 0)%40)
		var err error
		for err == nil {
			var n int
			n, err = r.Read(buf)
			got = append(got, buf[:n]...)
		}
		plain := strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "").Replace(s)
		encoding := base64.StdEncoding
		if !strings.Contains(plain, "=") {
			encoding = base64.RawStdEncoding
		}
		want, wantErr := encoding.DecodeString(plain)
		if errors.Is(err, io.EOF) != (wantErr == nil) || wantErr == nil && !bytes.Equal(got, want) {
			t.Fatalf("%q: %x, %v; want %x, %v", s, got, err, want, wantErr)
		}
		if !errors.Is(err, io.EOF) && (reasonOf(err) != BadBase64 || !bytes.HasPrefix(want, got) && len(want) > len(got)) {
			t.Fatalf("%q: %x before %v", s, got, err)
		}
	})
}
