// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestInlineImagesAreReadAsTheyWereWritten(t *testing.T) {
	read := 0
	check := func(d Dialect, n int, body []byte) {
		r := mustScan(t, d, string(body))
		for k := range r.Images {
			got, err := io.ReadAll(NewReader(body, &r.Images[k]))
			if err != nil {
				t.Errorf("%s %d %s: %v", d, n, r.ID(k), err)
			}
			switch {
			case r.Images[k].Source == Inline && !bytes.Equal(got, pixels):
				t.Errorf("%s %d %s: %x, want %x", d, n, r.ID(k), got, pixels)
			case r.Images[k].Source == Inline:
				read++
			case len(got) > 0:
				t.Errorf("%s %d %s: %s gives %x", d, n, r.ID(k), r.Images[k].Source, got)
			}
		}
	}
	each(func(d Dialect, n int, body []byte) {
		check(d, n, body)
		for _, variant := range variants(body) {
			check(d, n, variant)
		}
	})
	if read < 80 {
		t.Errorf("only %d images were read", read)
	}
}

func TestReaderKeepsToTheContractOfIoReader(t *testing.T) {
	for size := range 40 {
		content := bytes.Repeat([]byte{0xFB, 0xEF, 1}, 14)[:size]
		for name, encoded := range map[string]string{
			"padded": base64.StdEncoding.EncodeToString(content), "unpadded": base64.RawStdEncoding.EncodeToString(content),
			"URL-safe": base64.URLEncoding.EncodeToString(content), "URL-safe, unpadded": base64.RawURLEncoding.EncodeToString(content),
			"escaped": strings.NewReplacer("/", `\/`, "+", `\u002b`).Replace(base64.StdEncoding.EncodeToString(content)),
		} {
			body := []byte("xx" + encoded + "yy")
			r := newReader(body, Span{2, len(body) - 2}, true)
			if err := iotest.TestReader(r, content); err != nil {
				t.Errorf("%s, %d bytes: %v", name, size, err)
			}
			var out bytes.Buffer
			n, err := newReader(body, Span{2, len(body) - 2}, true).WriteTo(&out)
			if err != nil || n != int64(size) || !bytes.Equal(out.Bytes(), content) {
				t.Errorf("%s, %d bytes: WriteTo gives %d, %v", name, size, n, err)
			}
		}
	}
}

func TestLineBreaksWithinDataAreTaken(t *testing.T) {
	body := `{"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD\nREVG\r\nRw==\n"}}]}]}`
	r := mustScan(t, AnthropicMessages, body)
	got, err := io.ReadAll(NewReader([]byte(body), &r.Images[0]))
	if err != nil || string(got) != "ABCDEFG" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestDamagedDataIsAnErrorAtItsByte(t *testing.T) {
	for data, want := range map[string]struct {
		offset int
		before string
	}{
		"QUJDRE!GQUJD":     {6, "ABC"},
		"QUJDR":            {5, "ABC"},
		"QQ=":              {2, ""},
		"QQ===":            {2, ""},
		"QUI=QUJD":         {3, ""},
		"Q===":             {1, ""},
		"=":                {0, ""},
		"QUJD QUJD":        {4, "ABC"},
		"QUJD%2BAA":        {4, "ABC"},
		`QUJD\u00e9AA`:     {4, "ABC"},
		`QUJD\\AAA`:        {4, "ABC"},
		"data:;base64,QUI": {4, "u\xabZ"},
	} {
		got, err := io.ReadAll(newReader([]byte(data), Span{0, len(data)}, true))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Reason != BadBase64 || e.Offset != want.offset || string(got) != want.before {
			t.Errorf("%q: %q, %v; want %q and byte %d", data, got, err, want.before, want.offset)
		}
	}
}

func TestAWriterThatFailsEndsTheCopy(t *testing.T) {
	r := newReader([]byte("QUJD"), Span{0, 4}, false)
	if _, err := r.WriteTo(iotest.TruncateWriter(failing{}, 0)); err != nil {
		t.Errorf("truncating: %v", err)
	}
	if _, err := newReader([]byte("QUJD"), Span{0, 4}, false).WriteTo(failing{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("failing: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestFactsAreKept(t *testing.T) {
	facts := 0
	each(func(d Dialect, n int, body []byte) {
		for _, i := range mustScan(t, d, string(body)).Images {
			if i.Source != AsFacts {
				continue
			}
			facts++
			f := i.Facts
			if f.SHA256 != strings.ToLower(digest) || f.Bytes != 63 || f.MediaType != "image/png" || i.MediaType != "image/png" || string(f.Head) != "\x89PNG\r\n\x1a\n" {
				t.Errorf("%s %d: %+v", d, n, f)
			}
		}
	})
	if facts != 5 {
		t.Errorf("%d images told facts, want 5", facts)
	}
}

func TestTheHeadOfFactsIsBounded(t *testing.T) {
	body := func(n int) string {
		return fmt.Sprintf(`{"contents":{"parts":{"inlineData":{"sha256":%q,"bytes":99999,"head":%q}}}}`, digest, base64.StdEncoding.EncodeToString(make([]byte, n)))
	}
	if got := len(mustScan(t, GeminiContents, body(MaxHead)).Images[0].Facts.Head); got != MaxHead {
		t.Errorf("a head of %d bytes", got)
	}
	for _, n := range []int{MaxHead + 1, MaxHead + 3, 2 * MaxHead} {
		if _, err := Scan(GeminiContents, []byte(body(n))); reasonOf(err) != BadFacts {
			t.Errorf("a head of %d bytes: %v", n, err)
		}
	}
}

func TestMalformedDataURLsAreUnknownAndSaidToBe(t *testing.T) {
	for url, want := range map[string]string{
		"":                                 "its URL is empty",
		"data:image/png;base64":            "its data URL has no comma",
		"data:image/png;base64,":           "its data URL is empty",
		"data:image/png,QUJD":              "its data URL is not base64",
		"data:image/png;base64;x=1,QUJD":   "its data URL is not base64",
		"data:,QUJD":                       "its data URL is not base64",
		"file:///etc/passwd":               "its URL is none of data, http and https",
		"QUJD":                             "its URL is none of data, http and https",
		"/a.png":                           "its URL is none of data, http and https",
		"data:" + strings.Repeat("x", 300): "its data URL has no comma",
	} {
		r := mustScan(t, OpenAIChat, fmt.Sprintf(`{"messages":[{"content":[{"type":"image_url","image_url":{"url":%q}}]}]}`, url))
		if i := r.Images[0]; i.Source != Unknown || i.Why != want || i.Data != (Span{}) || i.Unread != (url != "" && !strings.HasPrefix(url, "file:")) {
			t.Errorf("%q: %+v", url, i)
		}
	}
	for url, media := range map[string]string{
		"data:;base64,QUJD": "", "data:image/PNG;base64,QUJD": "image/png", "DATA:image/png;charset=utf-8;name=\\\"a\\\";Base64,QUJD": "image/png",
		`\t \u0001data:image/png;base64,QUJD`: "image/png",
		"data: image/jpeg ; base64 ,QUJD":     "image/jpeg", "data:application/pdf;base64,QUJD": "application/pdf",
	} {
		body := `{"messages":[{"content":[{"type":"image_url","image_url":"` + url + `"}]}]}`
		i := mustScan(t, OpenAIChat, body).Images[0]
		if i.Source != Inline || i.MediaType != media || body[i.Data.Start:i.Data.End] != "QUJD" {
			t.Errorf("%q: %+v", url, i)
		}
	}
}

func TestReadingDoesNotAllocateByTheSizeOfTheImage(t *testing.T) {
	allocated := func(size int) float64 {
		body := []byte(base64.StdEncoding.EncodeToString(make([]byte, size)))
		hash := sha256.New()
		return testing.AllocsPerRun(20, func() {
			_, _ = newReader(body, Span{0, len(body)}, false).WriteTo(hash)
		})
	}
	if small, large := allocated(100), allocated(1<<20); large > small+1 {
		t.Errorf("%v allocations for a large image, %v for a small one", large, small)
	}
}
