// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// put is what an edited body holds more than the client's: images, and pieces of text
// (in Gemini's function responses, media of text/plain).
type put struct{ images, texts int }

// The cases of system D on content, on the wires: for each dialect at its own place.
// A string result that becomes an array of parts counts as one text.
func TestContentIsBuiltInEveryDialect(t *testing.T) {
	jpeg := picture("b")
	jpeg.MediaType = "image/jpeg"
	bare := picture("a")
	bare.MediaType = ""
	gone := injection.Shown{Text: "gone"}
	for name, c := range map[string]struct {
		shown []injection.Shown
		want  map[message.Dialect]put
	}{
		"D14 nothing was viewed: one text":        {[]injection.Shown{gone}, map[message.Dialect]put{message.OpenAIChat: {0, 1}, message.OpenAIResponses: {0, 2}, message.AnthropicMessages: {0, 2}, message.GeminiContents: {0, 1}}},
		"D15 one image":                           {shownAs(picture("a")), map[message.Dialect]put{message.OpenAIChat: {1, 2}, message.OpenAIResponses: {1, 1}, message.AnthropicMessages: {1, 1}, message.GeminiContents: {1, 0}}},
		"D16 a PNG and a JPEG":                    {shownAs(picture("a"), jpeg), map[message.Dialect]put{message.OpenAIChat: {2, 3}, message.OpenAIResponses: {2, 2}, message.AnthropicMessages: {2, 2}, message.GeminiContents: {2, 0}}},
		"D18 a media type that is missing":        {shownAs(bare), map[message.Dialect]put{message.OpenAIChat: {0, 1}, message.OpenAIResponses: {0, 2}, message.AnthropicMessages: {0, 2}, message.GeminiContents: {0, 1}}},
		"D19 a read that fails beside a good one": {[]injection.Shown{gone, {Picture: jpeg}}, map[message.Dialect]put{message.OpenAIChat: {1, 3}, message.OpenAIResponses: {1, 3}, message.AnthropicMessages: {1, 3}, message.GeminiContents: {1, 1}}},
		"D28 nothing to do: the same bytes":       {make([]injection.Shown, 1), map[message.Dialect]put{message.OpenAIChat: {}, message.OpenAIResponses: {}, message.AnthropicMessages: {}, message.GeminiContents: {}}},
	} {
		for _, w := range talks {
			t.Run(name+" "+string(w.dialect), func(t *testing.T) {
				said := []string{w.human(`"look"`)}
				for _, id := range []string{"call_1_abcdefg", "call_2_abcdefg"}[:len(c.shown)] {
					said = append(said, w.call(id, "/w/"+id+".png"))
				}
				for _, id := range []string{"call_1_abcdefg", "call_2_abcdefg"}[:len(c.shown)] {
					said = append(said, w.result(id, `"read"`))
				}
				body := []byte(w.head + strings.Join(said, ",") + w.tail)
				r := scanned(t, w.dialect, body)
				p := injection.Find(r, body, injection.RulesOf(router.Injection{}), injection.Place(w.dialect, "m", nil), nil)
				if len(p.Sights) != len(c.shown) {
					t.Fatalf("%d sights, %+v", len(p.Sights), p.Skips)
				}
				before := bytes.Clone(body)
				s, edited := spliced(t, body, p.Edits(r, body, c.shown))
				texts := func(b []byte) int {
					return bytes.Count(b, []byte(`"text":`)) + bytes.Count(b, []byte(`"text/plain"`))
				}
				got := put{len(scanned(t, w.dialect, edited).Images), texts(edited) - texts(body)}
				if got != c.want[w.dialect] {
					t.Errorf("%+v; want %+v in %s", got, c.want[w.dialect], edited)
				}
				if s.Changed() != (c.want[w.dialect] != put{}) || !bytes.Equal(body, before) {
					t.Errorf("changed: %v; the body: %s", s.Changed(), body)
				}
				// D29: nothing of what was said is moved or lost.
				for _, g := range s.Ranges() {
					if g.Deleted != 0 {
						t.Errorf("%d bytes of the client's are lost at %d", g.Deleted, g.Offset)
					}
				}
			})
		}
	}
}

func BenchmarkEdits(b *testing.B) {
	for _, w := range talks {
		b.Run(string(w.dialect), func(b *testing.B) {
			said := []string{w.human(`"` + strings.Repeat("see ", 16<<10) + `"`)}
			for _, id := range []string{"call_1_abcdefg", "call_2_abcdefg", "call_3_abcdefg"} {
				said = append(said, w.call(id, "/w/"+id+".png"), w.result(id, `"read"`))
			}
			body := []byte(w.head + strings.Join(said, ",") + w.tail)
			r, err := message.Scan(w.dialect, body)
			if err != nil {
				b.Fatal(err)
			}
			p := injection.Find(r, body, injection.RulesOf(router.Injection{}), injection.Place(w.dialect, "m", nil), nil)
			shown := shownAs(picture("a"), picture("b"), picture("c"))
			b.ReportAllocs()
			for b.Loop() {
				if len(p.Edits(r, body, shown)) == 0 {
					b.Fatal("no edits")
				}
			}
		})
	}
}
