// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// images is n images, edited by edit where it is not nil.
func images(n int, edit func(i int, image *Image)) []Image {
	out := make([]Image, n)
	for i := range out {
		out[i] = Image{Width: 640, Height: 480, Bytes: 1000, MediaType: "image/png"}
		if edit != nil {
			edit(i, &out[i])
		}
	}
	return out
}

func one(image Image) Request { return Request{Images: []Image{image}} }

// brief is the findings in short: limit@image=actual or word, with ~ for advice.
func brief(findings []Finding) string {
	var out []string
	for _, f := range findings {
		mark, actual := "", f.Word
		if f.Advice() {
			mark = "~"
		}
		if actual == "" {
			actual = fmt.Sprint(f.Actual)
		}
		out = append(out, fmt.Sprintf("%s%s>%d@%d=%s", mark, f.Limit.Name, f.Limit.Value, f.Image, actual))
	}
	return strings.Join(out, " ")
}

func TestARequestIsComparedWithTheVendorsLimits(t *testing.T) {
	anthropic := Find("AnthropicMessages", "api.anthropic.com", "claude-opus-4-7", "")
	bedrock := Find("AnthropicMessages", "bedrock-runtime.us-east-1.amazonaws.com", "anthropic.claude-opus-4-7", "")
	converse := Find("", "bedrock-runtime.us-east-1.amazonaws.com", "meta.llama4-maverick", "")
	openai := Find("OpenAIResponses", "api.openai.com", "gpt-6-astra", "")
	deepseek := Find("OpenAIChatCompletions", "api.deepseek.com", "deepseek-flash", "")
	side := func(at, side int) func(int, *Image) {
		return func(i int, image *Image) {
			if i == at {
				image.Height = side
			}
		}
	}
	for _, c := range []struct {
		name   string
		limits Limits
		req    Request
		want   string
	}{
		{"20 images of which one has 2001 px", anthropic, Request{Images: images(20, side(3, 2001))}, ""},
		{"21 images of which one in history has 2001 px", anthropic, Request{Images: images(21, side(3, 2001))}, "maxSide>2000@3=2001"},
		{"21 images of 2000 px", anthropic, Request{Images: images(21, side(3, 2000))}, ""},
		{"a side of exactly 8000 px", anthropic, one(Image{Width: 8000, Height: 1}), ""},
		{"a side of one more", anthropic, one(Image{Width: 8001, Height: 1}), "maxSide>8000@0=8001"},
		{"a side past both rules", anthropic, Request{Images: images(21, side(20, 9000))}, "maxSide>8000@20=9000 maxSide>2000@20=9000"},
		{"7,864,320 bytes are 10,485,760 in base64", anthropic, one(Image{Bytes: 7_864_320}), ""},
		{"one byte more is past it", anthropic, one(Image{Bytes: 7_864_321}), "maxImageBase64Bytes>10485760@0=10485764"},
		{"the length in base64 counts where it is known", anthropic, one(Image{Bytes: 1, Base64Bytes: 10_485_761}), "maxImageBase64Bytes>10485760@0=10485761"},
		{"half of it on Bedrock", bedrock, one(Image{Bytes: 3_932_160}), ""},
		{"and a byte", bedrock, one(Image{Bytes: 3_932_161}), "maxImageBase64Bytes>5242880@0=5242884"},
		{"an address is refused on Bedrock", bedrock, one(Image{Source: SourceURL}), "sources>0@0=url"},
		{"an address is accepted by Anthropic, and its bytes do not count", anthropic, one(Image{Source: SourceURL, Bytes: 1 << 30}), ""},
		{"101 images for a window of 200,000", anthropic, Request{Images: images(101, nil), WindowTokens: 200_000}, "maxImages>100@-1=101"},
		{"101 images for a larger window", anthropic, Request{Images: images(101, nil), WindowTokens: 1_000_000}, ""},
		{"101 images for an unknown window", anthropic, Request{Images: images(101, nil)}, ""},
		{"601 images", anthropic, Request{Images: images(601, nil), WindowTokens: 1_000_000}, "maxImages>600@-1=601"},
		{"a body at the limit", anthropic, Request{BodyBytes: 32_000_000}, ""},
		{"a body past it", anthropic, Request{BodyBytes: 32_000_001}, "maxRequestBytes>32000000@-1=32000001"},
		{"a type that is not taken", anthropic, one(Image{MediaType: "image/bmp"}), "mediaTypes>0@0=image/bmp"},
		{"another name of a type", anthropic, one(Image{MediaType: "image/JPG"}), ""},
		{"an unknown type", anthropic, one(Image{}), ""},
		{"an animation of which one frame is seen", anthropic, one(Image{MediaType: "image/webp", Animated: true}), "~animation>0@0=image/webp"},
		{"an animated GIF is refused by OpenAI", openai, one(Image{MediaType: "image/gif", Animated: true}), "animation>0@0=image/gif"},
		{"another animation is not known to be", openai, one(Image{MediaType: "image/webp", Animated: true}), ""},
		{"the bytes behind an address do not count", deepseek, one(Image{Source: SourceURL, Bytes: 1 << 40}), ""},
		{"a still GIF is not", openai, one(Image{MediaType: "image/gif"}), ""},
		{"1501 images", openai, Request{Images: images(1501, nil)}, "maxImages>1500@-1=1501"},
		{"14 images with one of 4097 px", deepseek, Request{Images: images(14, side(0, 4097))}, ""},
		{"15 images with one of 4097 px", deepseek, Request{Images: images(15, side(0, 4097))}, "maxSide>4096@0=4097"},
		{"a total of image bytes", deepseek, Request{Images: images(3, func(_ int, i *Image) { i.Bytes = 30 << 20 })}, "maxTotalImageBytes>67108864@-1=94371840"},
		{"20 images in each of two messages", converse, Request{Images: images(40, func(n int, i *Image) { i.Message = n / 20 })}, ""},
		{"21 images in one message", converse, Request{Images: images(22, func(n int, i *Image) { i.Message = n / 21 })}, "maxImagesPerMessage>20@-1=21"},
		{"3.75 MB before base64", converse, one(Image{Bytes: 3_750_001}), "maxImageBytes>3750000@0=3750001"},
		{"an area beyond 2^32", Find("", "api.groq.com", "x", ""), one(Image{Width: 1 << 17, Height: 1 << 17}), "maxPixels>33177600@0=17179869184"},
		{"an area that would overflow", Find("", "api.groq.com", "x", ""), one(Image{Width: math.MaxInt, Height: math.MaxInt}), "maxPixels>33177600@0=4611686014132420609"},
		{"a total in base64", Find("", "api.fireworks.ai", "x", ""), Request{Images: images(2, func(_ int, i *Image) { i.Bytes = 3_750_001; i.MediaType = "" })}, "maxTotalBase64Bytes>10000000@-1=10000008"},
		{"a total that would overflow", Find("", "api.fireworks.ai", "x", ""), Request{Images: images(3, func(_ int, i *Image) { i.Base64Bytes = math.MaxInt64; i.MediaType = "" })}, "maxTotalBase64Bytes>10000000@-1=9223372036854775807"},
		{"an inline request between two figures of Gemini's", Find("", "generativelanguage.googleapis.com", "gemini-3-pro", ""), Request{BodyBytes: 23_000_000}, "~maxRequestBytes>20000000@-1=23000000"},
		{"no limits", Limits{}, Request{Images: images(9999, nil), BodyBytes: 1 << 60}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := brief(c.limits.Check(c.req)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAFindingNamesLimitValueActualAndSource(t *testing.T) {
	anthropic := Find("AnthropicMessages", "api.anthropic.com", "claude-opus-4-7", "")
	const page = " (https://platform.claude.com/docs/en/build-with-claude/vision)"
	many := images(21, nil)
	many[2].Width = 2001
	for _, c := range []struct {
		req  Request
		want string
	}{
		{Request{Images: many}, "image 3 has a longest side of 2001 px, above the limit of 2000 px for anthropic in requests of 21 images or more" + page},
		{Request{BodyBytes: 32_000_001}, "the request has a body of 32000001 bytes, above the limit of 32000000 bytes for anthropic" + page},
		{one(Image{MediaType: "image/bmp"}), `image 1 has the type "image/bmp"; anthropic accepts image/png, image/jpeg, image/gif, image/webp` + page},
		{one(Image{MediaType: "image/gif", Animated: true}), "image 1 is animated (image/gif), of which anthropic shows the first frame alone" + page},
	} {
		if got := anthropic.Check(c.req); len(got) != 1 || got[0].String() != c.want {
			t.Errorf("got %v, want %q", got, c.want)
		}
	}
	if got := Find("", "api.openai.com", "gpt-4o", "").Check(one(Image{MediaType: "image/gif", Animated: true})); len(got) != 1 ||
		!strings.HasPrefix(got[0].String(), "image 1 is animated (image/gif), which openai refuses (https://") {
		t.Errorf("got %v", got)
	}
}

func TestADeclarationReplacesTheTable(t *testing.T) {
	base := Find("AnthropicMessages", "api.anthropic.com", "claude-opus-4-7", "")
	got := base.With(Declaration{MaxImages: 3, MaxImageBytes: 400, MaxImageSide: 5000, MaxRequestBytes: 900, MediaTypes: []string{"image/png"}})
	req := Request{BodyBytes: 901, Images: images(4, func(i int, image *Image) {
		if i == 3 {
			*image = Image{Width: 5001, Height: 1, Bytes: 301, MediaType: "image/gif"}
		} else {
			image.Bytes = 300
		}
	})}
	want := "maxImages>3@-1=4 maxImageBase64Bytes>400@3=404 maxSide>5000@3=5001 maxRequestBytes>900@-1=901 mediaTypes>0@3=image/gif"
	if found := brief(got.Check(req)); found != want {
		t.Errorf("got %q, want %q", found, want)
	}
	if many := brief(got.With(Declaration{MaxImages: 50}).Check(Request{Images: images(21, func(i int, image *Image) { image.Width, image.Bytes = 2000+i/20, 1 })})); many != "maxSide>2000@20=2001" {
		t.Errorf("the rule for many images gives %q", many)
	}
	if l, ok := got.Get(MaxSide); !ok || l.Value != 2000 {
		t.Errorf("the first limit of the side is %+v", l)
	}
	if found := brief(base.Check(req)); found != "" {
		t.Errorf("the table itself changed: %q", found)
	}
	none := Limits{}.With(Declaration{MaxImages: 1, Source: "spec.models[0].limits"}).Check(Request{Images: images(2, nil)})
	if len(none) != 1 || none[0].String() != "the request has a number of 2 images, above the limit of 1 images for this provider (spec.models[0].limits)" {
		t.Errorf("got %v", none)
	}
	if same := base.With(Declaration{}); !slices.EqualFunc(same.All(), base.All(), func(a, b Limit) bool { return a.String() == b.String() }) {
		t.Error("declaring nothing changes the limits")
	}
}

func TestBase64LengthIsThatOfTheStandardEncoding(t *testing.T) {
	for n, want := range map[int64]int64{-1: 0, 0: 0, 7_864_320: 10_485_760, 7_864_321: 10_485_764, math.MaxInt64/4*3 + 1: math.MaxInt64, math.MaxInt64: math.MaxInt64} {
		if got := Base64Length(n); got != want {
			t.Errorf("%d bytes are %d in base64, want %d", n, got, want)
		}
	}
	for n := range 100 {
		if got, want := Base64Length(int64(n)), base64.StdEncoding.EncodedLen(n); got != int64(want) {
			t.Errorf("%d bytes are %d in base64, want %d", n, got, want)
		}
	}
	if got := Base64Length(math.MaxInt64 / 4 * 3); got <= 0 || got%4 != 0 {
		t.Errorf("the largest length is %d", got)
	}
}

func BenchmarkCheck(b *testing.B) {
	limits := Find("AnthropicMessages", "api.anthropic.com", "claude-opus-4-7", "")
	req := Request{Images: images(100, nil), BodyBytes: 1 << 20}
	b.ReportAllocs()
	for b.Loop() {
		if len(limits.Check(req)) != 0 {
			b.Fatal("findings")
		}
	}
}
