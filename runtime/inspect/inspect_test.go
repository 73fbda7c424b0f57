// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/inspect"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
)

// pngOf is the beginning of a PNG of that size, which is all that is looked at, and
// more bytes.
func pngOf(width, height, more int) []byte {
	header := binary.BigEndian.AppendUint32([]byte("IHDR"), uint32(width))
	header = append(binary.BigEndian.AppendUint32(header, uint32(height)), 8, 2, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(header))
	return append(append(b, "\x00\x00\x00\x00IDAT"...), make([]byte, more)...)
}

func dataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// chat is a chat whose question shows one image.
func chat(url string) []byte {
	return []byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"?"},{"type":"image_url","image_url":{"url":"` + url + `","detail":"low"}}]}]}`)
}

func images(t testing.TB, d message.Dialect, body []byte) []preflight.Image {
	t.Helper()
	scanned, err := message.Scan(d, body)
	if err != nil {
		t.Fatal(err)
	}
	list, err := inspect.Images(t.Context(), scanned, body)
	if err != nil || len(list) != len(scanned.Images) {
		t.Fatalf("%d images of %d, %v", len(list), len(scanned.Images), err)
	}
	return list
}

func TestWhatTheBytesOfAnImageTell(t *testing.T) {
	data := pngOf(64, 48, 100_000) // longer than what a header is read from
	sum := sha256.Sum256(data)
	got := images(t, message.OpenAIChat, chat(dataURL("image/png", data)))[0]
	want := preflight.Image{
		ID: "messages[0].content[1]", SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(data)), Base64Bytes: int64(base64.StdEncoding.EncodedLen(len(data))),
		Source: "base64", MediaType: "image/png", Width: 64, Height: 48, Detail: "low",
	}
	if got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
}

func TestImagesThatCannotBeUsedSayWhy(t *testing.T) {
	whole := pngOf(4, 3, 0)
	for name, tc := range map[string]struct {
		url, mediaType, reason string
	}{
		"of another type than declared":       {dataURL("image/jpeg", whole), "image/png", "MediaTypeMismatch"},
		"of another name of its type":         {dataURL("image/x-png", whole), "image/png", ""},
		"no image":                            {dataURL("image/png", []byte("words")), "image/png", "NotAnImage"},
		"a header that ends early":            {dataURL("image/png", whole[:20]), "image/png", "ImageMalformed"},
		"a side of zero":                      {dataURL("image/png", pngOf(0, 3, 0)), "image/png", "ImageMalformed"},
		"no base64":                           {"data:image/png;base64,!!!!", "image/png", "BadBase64"},
		"elsewhere, where nothing is known":   {"https://example.com/a.png", "", ""},
		"bare base64, which some take":        {"iVBORw0KGgo", "", "DataNotRead"},
		"a long declared type is cut short":   {dataURL("image/"+strings.Repeat("x", 200), []byte("words")), "image/" + strings.Repeat("x", 58) + "…", "NotAnImage"},
		"a declared type of no known meaning": {dataURL("image/odd", whole), "image/png", "MediaTypeMismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			got := images(t, message.OpenAIChat, chat(tc.url))[0]
			reason := ""
			if got.Bad != nil {
				reason = got.Bad.Reason
			}
			if got.MediaType != tc.mediaType || reason != tc.reason {
				t.Errorf("type %q, reason %q", got.MediaType, reason)
			}
			if got.Bad != nil && (!strings.Contains(got.Bad.Message, got.ID) || got.Bad.RecoveryHint == "") {
				t.Errorf("%+v", got.Bad)
			}
		})
	}
}

func TestFactsStandForData(t *testing.T) {
	head := base64.StdEncoding.EncodeToString(pngOf(64, 48, 0))
	body := fmt.Sprintf(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":{"sha256":"%s","bytes":%%d,"head":"%s"}}}]}]}`, strings.Repeat("ab", 32), head)
	got := images(t, message.OpenAIChat, fmt.Appendf(nil, body, 1000))[0]
	if got.SHA256 != strings.Repeat("ab", 32) || got.Bytes != 1000 || got.Base64Bytes != 1336 || got.Width != 64 || got.Bad != nil {
		t.Errorf("%+v", got)
	}
	if got := images(t, message.OpenAIChat, fmt.Appendf(nil, body, int64(1)<<62))[0]; got.Base64Bytes != 1<<40 {
		t.Errorf("more than may be summed: %+v", got)
	}
}

func TestWhereAnImageStandsIsTold(t *testing.T) {
	png := base64.StdEncoding.EncodeToString(pngOf(4, 3, 0))
	gemini := `{"contents":[{"role":"user","parts":[{"text":"draw"}]},{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]},{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]}]}`
	list := images(t, message.GeminiContents, []byte(gemini))
	if len(list) != 2 || !list[0].Untouchable || list[0].Turn != 1 || list[1].Untouchable || list[1].Turn != 2 || list[0].SHA256 != list[1].SHA256 {
		t.Errorf("the model's own and the user's: %+v", list)
	}
	block := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}`
	for marked, reason := range map[string]string{"": "", `"is_error":true,`: "ImageInErrorResult"} {
		list := images(t, message.AnthropicMessages, []byte(`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result",`+marked+`"tool_use_id":"t","content":[`+block+`]}]}]}`))
		if len(list) != 1 || !list[0].InResult || list[0].Untouchable || (list[0].Bad != nil) != (reason != "") || reason != "" && list[0].Bad.Reason != reason {
			t.Errorf("in a result %s: %+v", marked, list)
		}
	}
	screenshot := `{"input":[{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"` + dataURL("image/png", pngOf(4, 3, 0)) + `"}}]}`
	if list := images(t, message.OpenAIResponses, []byte(screenshot)); len(list) != 1 || !list[0].Required || !list[0].InResult {
		t.Errorf("a screenshot: %+v", list)
	}
}

func TestAContextThatHasEndedEndsTheReading(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	body := chat(dataURL("image/png", pngOf(4, 3, 0)))
	scanned, err := message.Scan(message.OpenAIChat, body)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := inspect.Images(ended, scanned, body); list != nil || fault.As(err).Reason != "Canceled" {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := inspect.Images(ended, &message.Request{}, nil); list != nil || err != nil {
		t.Errorf("a request without images: %v, %v", list, err)
	}
}

// What is known of an image never depends on those before it, with which it shares
// what reading takes.
func FuzzImages(f *testing.F) {
	f.Add("image/png", pngOf(4, 3, 10))
	f.Add("image/jpeg", []byte("\xff\xd8\xff\xe0\x00\x10JFIF"))
	f.Add("image/gif", []byte("GIF89a\x08\x00\x08\x00\x00\x00\x00;"))
	f.Add("", []byte{})
	f.Fuzz(func(t *testing.T, mediaType string, data []byte) {
		if strings.ContainsAny(mediaType, `"\,;`) {
			return
		}
		body := chat(dataURL(mediaType, data))
		scanned, err := message.Scan(message.OpenAIChat, body)
		if err != nil || len(scanned.Images) != 1 || scanned.Images[0].Source != message.Inline {
			return
		}
		got := images(t, message.OpenAIChat, body)[0]
		images(t, message.OpenAIChat, chat(dataURL("image/png", pngOf(9, 9, 70_000))))
		again := images(t, message.OpenAIChat, body)[0]
		if sum := sha256.Sum256(data); got.Bytes != int64(len(data)) || got.SHA256 != hex.EncodeToString(sum[:]) || got.Width < 0 || got.Height < 0 {
			t.Errorf("%+v of %q", got, data)
		}
		if fmt.Sprint(got.Bad) != fmt.Sprint(again.Bad) {
			t.Errorf("%v, then %v", got.Bad, again.Bad)
		}
		if got.Bad, again.Bad = nil, nil; got != again {
			t.Errorf("%+v, then %+v", got, again)
		}
	})
}

// BenchmarkImages reads 30 images of 1 MiB: about the time of the hash.
func BenchmarkImages(b *testing.B) {
	url := dataURL("image/png", pngOf(640, 480, 1<<20))
	part := `{"type":"image_url","image_url":{"url":"` + url + `"}}`
	body := []byte(`{"messages":[{"role":"user","content":[` + strings.Repeat(part+",", 29) + part + `]}]}`)
	scanned, err := message.Scan(message.OpenAIChat, body)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if list, err := inspect.Images(b.Context(), scanned, body); err != nil || list[29].Bad != nil {
			b.Fatal(list, err)
		}
	}
}
