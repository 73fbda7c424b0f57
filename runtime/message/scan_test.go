// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func mustScan(t *testing.T, d Dialect, body string) *Request {
	t.Helper()
	r, err := Scan(d, []byte(body))
	if err != nil {
		t.Fatalf("%s: %v\n%s", d, err, body)
	}
	return r
}

// agrees holds what Scan says of a body against the walker, and against what the
// doc comments promise of spans.
func agrees(t *testing.T, d Dialect, r *Request, body []byte) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var root map[string]any
	if err := decoder.Decode(&root); err != nil {
		t.Fatalf("%s: Scan takes what is no JSON: %v\n%s", d, err, body)
	}
	got := seenBy(r, body)
	want, decided := walk(d, root)
	if !decided {
		return
	}
	byID := func(a, b seen) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if diff := cmp.Diff(want, got); diff != "" && len(got)+len(want) > 0 {
		t.Fatalf("%s (-walker +Scan)\n%s\n%s", d, diff, body)
	}
	hears(t, d, r, body, root)
	last := Span{}
	for n, i := range r.Images {
		if i.Part.Start < last.End || i.Part.End > len(body) || i.Part.Len() <= 0 {
			t.Fatalf("image %d at %v after %v of %d bytes", n, i.Part, last, len(body))
		}
		last = i.Part
		if !json.Valid(body[i.Part.Start:i.Part.End]) || body[i.Part.Start] != '{' {
			t.Fatalf("image %d is no object: %q", n, body[i.Part.Start:i.Part.End])
		}
		if (i.Source == Inline) != (i.Data.Len() > 0) || i.Data.Len() > 0 && (i.Data.Start <= i.Part.Start || i.Data.End >= i.Part.End) {
			t.Fatalf("image %d: %s data at %v of %v", n, i.Source, i.Data, i.Part)
		}
		if (i.Source == Unknown) != (i.Why != "") || (i.Source == AsFacts) != (i.Facts != nil) {
			t.Fatalf("image %d: source %q, why %q, facts %v", n, i.Source, i.Why, i.Facts)
		}
		turn := r.Turns[i.Turn]
		if i.Part.Start < turn.Span.Start || i.Part.End > turn.Span.End {
			t.Fatalf("image %d at %v is not within its turn %v", n, i.Part, turn.Span)
		}
	}
	end := 0
	for n, turn := range r.Turns {
		if turn.Span.Start < end || turn.Span.End > len(body) || !json.Valid(body[turn.Span.Start:turn.Span.End]) {
			t.Fatalf("turn %d at %v", n, turn.Span)
		}
		end = turn.Span.End
	}
}

func TestScanAgreesWithAWalkerOverTheDecodedBody(t *testing.T) {
	images := map[Dialect]int{}
	each(func(d Dialect, n int, body []byte) {
		r := mustScan(t, d, string(body))
		agrees(t, d, r, body)
		images[d] += len(r.Images)
	})
	for d, want := range map[Dialect]int{OpenAIChat: 16, OpenAIResponses: 8, AnthropicMessages: 15, GeminiContents: 16} {
		if images[d] != want {
			t.Errorf("%s: %d images, want %d", d, images[d], want)
		}
	}
}

func TestTheSameJSONWrittenOtherwiseIsTheSameRequest(t *testing.T) {
	each(func(d Dialect, n int, body []byte) {
		want := mustScan(t, d, string(body))
		for name, variant := range variants(body) {
			r := mustScan(t, d, string(variant))
			agrees(t, d, r, variant)
			if r.TextBytes != want.TextBytes || r.MaxOutputTokens != want.MaxOutputTokens || r.Model != want.Model || len(r.Turns) != len(want.Turns) || r.OtherMedia != want.OtherMedia {
				t.Errorf("%s %d %s: %d bytes of text, %d tokens, %q, %d turns; want %d, %d, %q, %d", d, n, name,
					r.TextBytes, r.MaxOutputTokens, r.Model, len(r.Turns), want.TextBytes, want.MaxOutputTokens, want.Model, len(want.Turns))
			}
			if diff := cmp.Diff(seenBy(want, body), seenBy(r, variant)); diff != "" {
				t.Errorf("%s %d %s:\n%s", d, n, name, diff)
			}
		}
	})
}

func TestEveryTruncationIsAnErrorAndNoPanic(t *testing.T) {
	each(func(d Dialect, n int, body []byte) {
		body = bytes.TrimSpace(body)
		for i := range body {
			// The capacity ends there as well: a read past the end would panic.
			if _, err := Scan(d, body[:i:i]); reasonOf(err) != NotJSON {
				t.Fatalf("%s %d cut at %d: %v", d, n, i, err)
			}
		}
	})
}

// reasonOf is the reason of an *Error, "" of anything else.
func reasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func TestWhatIsNoRequestIsRefusedWithItsPlace(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	for _, c := range []struct {
		name   string
		d      Dialect
		body   string
		reason Reason
		path   string
		offset int
	}{
		{"an unknown dialect", "soap", `{}`, UnknownDialect, "", 0},
		{"nothing", OpenAIChat, ``, NotJSON, "", 0},
		{"white space alone", OpenAIChat, " \n", NotJSON, "", 2},
		{"an array", OpenAIChat, `[]`, NotAnObject, "", 0},
		{"a text", OpenAIChat, `"messages"`, NotAnObject, "", 0},
		{"a word", OpenAIChat, `messages`, NotJSON, "", 0},
		{"a byte order mark", OpenAIChat, "\ufeff{}", NotJSON, "", 0},
		{"a zero byte", OpenAIChat, "\x00", NotJSON, "", 0},
		{"something after the object", OpenAIChat, `{"messages":[]} x`, NotJSON, "", 16},
		{"two objects", OpenAIChat, `{"messages":[]}{}`, NotJSON, "", 15},
		{"a comma too many", OpenAIChat, `{"messages":[],}`, NotJSON, "", 15},
		{"a comma too many in a list", OpenAIChat, `{"messages":[{},]}`, NotJSON, "messages[1]", 16},
		{"a comma missing", OpenAIChat, `{"messages":[] "a":1}`, NotJSON, "", 15},
		{"a colon missing", OpenAIChat, `{"messages" []}`, NotJSON, "", 12},
		{"a name without quotes", OpenAIChat, `{messages:[]}`, NotJSON, "", 1},
		{"brackets that do not match", OpenAIChat, `{"a":[1}`, NotJSON, "", 7},
		{"a bad number", OpenAIChat, `{"a":01}`, NotJSON, "", 6},
		{"a bad literal", OpenAIChat, `{"a":nul}`, NotJSON, "", 5},
		{"a bad escape", OpenAIChat, `{"a":"\x"}`, NotJSON, "", 6},
		{"a bad unicode escape", OpenAIChat, `{"a":"\u12g4"}`, NotJSON, "", 6},
		{"a line break in a text", OpenAIChat, "{\"a\":\"0123456789\n\"}", NotJSON, "", 16},
		{"a control character in a long text", OpenAIChat, `{"a":"` + strings.Repeat("x", 100) + "\x1f" + `"}`, NotJSON, "", 106},
		{"no messages", OpenAIChat, `{"model":"m"}`, Missing, "messages", 13},
		{"no input", OpenAIResponses, `{"model":"m","input":null}`, Missing, "input", 26},
		{"no messages for Anthropic", AnthropicMessages, `{}`, Missing, "messages", 2},
		{"no contents", GeminiContents, `{}`, Missing, "contents", 2},
		{"no contents in what is counted", GeminiContents, `{"generateContentRequest":{"generateContentRequest":{"contents":[]}}}`, Missing, "contents", 69},
		{"messages that are an object", OpenAIChat, `{"messages":{}}`, WrongType, "messages", 12},
		{"messages that are null", AnthropicMessages, `{"messages":null}`, WrongType, "messages", 12},
		{"a message that is a text", OpenAIChat, `{"messages":[{},"x"]}`, WrongType, "messages[1]", 16},
		{"content that is a number", OpenAIChat, `{"messages":[{"content":5}]}`, WrongType, "messages[0].content", 24},
		{"a block that is a text", AnthropicMessages, `{"messages":[{"content":[{},"x"]}]}`, WrongType, "messages[0].content[1]", 28},
		{"an input that is an object", OpenAIResponses, `{"input":{}}`, WrongType, "input", 9},
		{"an output that is a number", OpenAIResponses, `{"input":[{"output":-1}]}`, WrongType, "input[0].output", 20},
		{"a part of Gemini's that is a text", GeminiContents, `{"contents":[{"parts":"x"}]}`, WrongType, "contents[0].parts", 22},
		{"an image within an image", AnthropicMessages, `{"messages":[{"content":[{"type":"image","content":[{"type":"image"}]}]}]}`, WrongType, "messages[0].content[0]", 25},
		{"an image that is a function's response too", GeminiContents, `{"contents":{"parts":{"functionResponse":{"parts":{"inlineData":{}}},"inlineData":{}}}}`, WrongType, "contents.parts", 21},
		{"messages twice", OpenAIChat, `{"messages":[],"messages":[]}`, DuplicateMember, "messages", 15},
		{"messages twice, once in disguise", OpenAIChat, `{"messages":[],"mess\u0061ges":[]}`, DuplicateMember, "messages", 15},
		{"two spellings of one member", GeminiContents, `{"contents":[{"parts":[{"inlineData":{},"inline_data":{}}]}]}`, DuplicateMember, "contents[0].parts[0].inline_data", 40},
		{"models that are one to who reads without case", OpenAIChat, `{"model":"a","Model":"b","messages":[]}`, DuplicateMember, "model", 13},
		{"models that are one to who reads without case, the other way around", OpenAIResponses, `{"MODEL":"a","input":[],"model":"b"}`, DuplicateMember, "model", 24},
		{"two capital spellings", OpenAIChat, `{"Messages":[],"MESSAGES":[],"messages":[]}`, DuplicateMember, "messages", 15},
		{"messages with a long s", OpenAIChat, `{"messages":[],"meſſages":[]}`, DuplicateMember, "messages", 15},
		{"a name in capitals within a part", OpenAIChat, `{"messages":[{"content":[{"type":"text","text":"a","Type":"image_url"}]}]}`, DuplicateMember, "messages[0].content[0].type", 51},
		{"two of one content", AnthropicMessages, `{"messages":[{"content":"a","content":"b"}]}`, DuplicateMember, "messages[0].content", 28},
		{"too deep where nothing is read", OpenAIChat, `{"a":` + deep + `}`, TooDeep, "", 5 + MaxDepth - 1},
		{"too deep where all is read", AnthropicMessages, `{"messages":[{"content":` + strings.Repeat(`[{"content":`, 200), TooDeep, "", -1},
		{"facts without a size", OpenAIChat, `{"messages":[{"content":[{"image_url":{"sha256":"` + digest + `"}}]}]}`, BadFacts, "messages[0].content[0].image_url", 115},
		{"facts with a short digest", GeminiContents, `{"contents":{"parts":{"inlineData":{"sha256":"ab","bytes":1}}}}`, BadFacts, "contents.parts.inlineData", 60},
		{"facts with a head that is longer than the image", GeminiContents, `{"contents":{"parts":{"inlineData":{"sha256":"` + digest + `","bytes":1,"head":"QUJD"}}}}`, BadFacts, "contents.parts.inlineData", -1},
		{"facts with a head that is no base64", AnthropicMessages, `{"messages":[{"content":[{"source":{"type":"facts","sha256":"` + digest + `","bytes":9,"head":"Q"}}]}]}`, BadFacts, "messages[0].content[0].source", -1},
		{"facts without a digest", AnthropicMessages, `{"messages":[{"content":[{"source":{"type":"facts","bytes":9}}]}]}`, BadFacts, "messages[0].content[0].source", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Scan(c.d, []byte(c.body))
			e, ok := errors.AsType[*Error](err)
			if !ok || r != nil || e.Reason != c.reason || c.reason != TooDeep && e.Path != c.path || c.offset >= 0 && e.Offset != c.offset {
				t.Fatalf("got %+v, %v; want %s at %q, byte %d", r, err, c.reason, c.path, c.offset)
			}
			if (c.path != "" && !strings.Contains(err.Error(), c.path)) || sentences[c.reason] == "" {
				t.Errorf("the message does not say it: %v", err)
			}
		})
	}
}

func TestNestingUpToTheBoundIsTaken(t *testing.T) {
	deep := strings.Repeat(`[`, MaxDepth-1) + strings.Repeat(`]`, MaxDepth-1)
	mustScan(t, OpenAIChat, `{"messages":[],"a":`+deep+`}`)
	objects := strings.Repeat(`{"a":`, MaxDepth-1) + `1` + strings.Repeat(`}`, MaxDepth-1)
	mustScan(t, OpenAIChat, `{"messages":[],"a":`+objects+`}`)
}

func TestScalarsAreTakenAsJSONHasThem(t *testing.T) {
	for _, v := range []string{
		"0", "-0", "1.5", "-1e9", "1E+9", "1e-9", "true", "false", "null", `""`, `"\ud83d\ude00\ud83d"`, "[]", "{}", "[1,[2,{}],{\"a\":[]}]", " [ ] ",
		"-", "1.", ".5", "1e", "+1", "00", "tru", "truex", "NaN", `"\ud83"`, "[1,]", "[,]", `{"a"}`, `{"a":}`, `{,}`, `{1:2}`, "'a'", "[1 2]", `{"a":1 "b":2}`, "\"\x7f\"", "\"\t\"",
	} {
		body := `{"messages":[],"x":` + v + `}`
		_, err := Scan(OpenAIChat, []byte(body))
		if want := json.Valid([]byte(body)); (err == nil) != want {
			t.Errorf("%s: valid is %v, Scan says %v", v, want, err)
		}
	}
}

func TestTextIsCountedAsTheModelReadsIt(t *testing.T) {
	image := `"data:image/png;base64,` + strings.Repeat("A", 4000) + `"`
	for _, c := range []struct {
		name string
		d    Dialect
		body string
		want int64
	}{
		{"a text", OpenAIChat, `{"messages":[{"role":"user","content":"12345"}]}`, 5},
		{"parts that are bare texts, as some servers take them", OpenAIChat, `{"messages":[{"role":"user","content":["123",{"type":"text","text":"45"}]}]}`, 5},
		{"a search result with its source", AnthropicMessages, `{"messages":[{"role":"user","content":[{"type":"search_result","source":"12345","title":"67","content":[{"type":"text","text":"89"}]}]}]}`, 9},
		{"a name in capitals is not known", OpenAIChat, `{"messages":[{"role":"user","Content":"123"}],"Tools":[1,2]}`, 0},
		{"escapes count as what they stand for", OpenAIChat, `{"messages":[{"role":"user","content":"\u00e9\n\ud83d\ude00\/\ud83dx\ude00"}]}`, 2 + 1 + 4 + 1 + 3 + 1 + 3},
		{"parts, and no image", OpenAIChat, `{"messages":[{"role":"user","content":[{"type":"text","text":"123"},{"type":"image_url","image_url":` + image + `}]}]}`, 3},
		{"no audio and no documents", OpenAIChat, `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":` + image + `}},{"type":"file","file":{"file_data":` + image + `}}]}]}`, 0},
		{"calls, compact", OpenAIChat, `{"messages":[{"role":"assistant","content":null,"tool_calls": [ {"a" : "\u0062"} ]}]}`, int64(len(`[{"a":"b"}]`))},
		{"tools", OpenAIChat, `{"messages":[],"tools": [ 1, 2 ]}`, 5},
		{"a part that is not known", OpenAIChat, `{"messages":[{"content":[{"type":"poem","lines":["a"]}]}]}`, 5},
		{"members that are not known are no text", OpenAIChat, `{"messages":[{"role":"user","content":"1","x":"long"}],"y":"long"}`, 1},
		{"instructions and input", OpenAIResponses, `{"instructions":"12","input":"345"}`, 5},
		{"a call and its output", OpenAIResponses, `{"input":[{"type":"function_call","call_id":"c","name":"ab","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"123"}]}`, 7},
		{"no generated image, no sealed reasoning", OpenAIResponses, `{"input":[{"type":"image_generation_call","result":` + image + `},{"type":"reasoning","encrypted_content":` + image + `}]}`, 0},
		{"no screenshot", OpenAIResponses, `{"input":[{"type":"computer_call_output","output":{"type":"computer_screenshot","image_url":` + image + `}}]}`, 0},
		{"system, thoughts, calls and results", AnthropicMessages, `{"system":"1","messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"23","signature":"xxx"},{"type":"tool_use","id":"xxx","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"456"}]}]}`, 9},
		{"a document of text", AnthropicMessages, `{"messages":[{"content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"12345"}}]}]}`, 5},
		{"no document of pages", AnthropicMessages, `{"messages":[{"content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":` + image + `}}]}]}`, 0},
		{"a function's call and response", GeminiContents, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":` + image + `}]},{"parts":[{"functionResponse":{"name":"f","response":{"a":1}}}]}]}`, 12 + 1 + 7},
		{"no inline data of any type", GeminiContents, `{"contents":[{"parts":[{"inlineData":{"mimeType":"audio/wav","data":` + image + `}},{"inlineData":{"mimeType":"image/png","data":` + image + `}},{"text":"1"}]}]}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := mustScan(t, c.d, c.body).TextBytes; got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
}

func TestTurnsShareTheText(t *testing.T) {
	r := mustScan(t, OpenAIChat, `{"tools":[1],"messages":[{"role":"user","content":"12"},{"role":"assistant","content":[{"type":"text","text":"345"}]},{"role":"tool"}]}`)
	if r.TextBytes != 8 || r.Turns[0].TextBytes != 2 || r.Turns[1].TextBytes != 3 || r.Turns[2].TextBytes != 0 {
		t.Errorf("%d bytes of text, in turns %+v", r.TextBytes, r.Turns)
	}
}

func TestTheRequestsOwnNumbersAreRead(t *testing.T) {
	type numbers struct {
		Model      string
		Max        int64
		OtherMedia int
		Stateful   bool
	}
	want := map[Dialect][]numbers{
		OpenAIChat:        {{"gpt-5.1", 1024, 2, false}, {"", 7, 0, false}, {}, {}},
		OpenAIResponses:   {{"gpt-5.1", 2048, 2, false}, {"gpt-5.1", 0, 0, false}, {"gpt-5.1", 0, 0, true}, {"", 0, 0, true}, {}},
		AnthropicMessages: {{"claude-opus-4-5", 4096, 1, false}, {"", 1, 0, false}, {}, {}},
		GeminiContents:    {{"", 512, 2, false}, {"", 1000, 0, false}, {}, {}, {Model: "models/m"}, {}},
	}
	each(func(d Dialect, n int, body []byte) {
		r := mustScan(t, d, string(body))
		if got := (numbers{r.Model, r.MaxOutputTokens, r.OtherMedia, r.Stateful}); got != want[d][n] {
			t.Errorf("%s %d: %+v, want %+v", d, n, got, want[d][n])
		}
		if value := string(body[r.ModelValue.Start:r.ModelValue.End]); r.Model != "" && value != `"`+r.Model+`"` {
			t.Errorf("%s %d: the model's value is %q", d, n, value)
		}
	})
	for body, want := range map[string]int64{`-5`: 0, `"x"`: 0, `1.5`: 0, `2e2`: 200, `1e30`: 0, `[1]`: 0, `9223372036854775807`: 1<<63 - 1} {
		if got := mustScan(t, AnthropicMessages, `{"messages":[],"max_tokens":`+body+`}`).MaxOutputTokens; got != want {
			t.Errorf("max_tokens %s: %d, want %d", body, got, want)
		}
	}
}

func TestSpecialFindsTheFirstByteThatMattersAtEveryPlace(t *testing.T) {
	for _, length := range []int{1, 7, 8, 9, 31, 32, 33, 64, 71} {
		for at := range length {
			for _, c := range []byte{0, 1, 0x1F, '\\'} {
				b := bytes.Repeat([]byte{0xFF}, length)
				for i := range b {
					b[i] = []byte{' ', '!', 0x7F, 0x80, 0xFF, '[', ']', 0xDC}[i%8]
				}
				if got := special(b); got != length {
					t.Fatalf("%d bytes: %d in %q", length, got, b)
				}
				b[at] = c
				if got := special(b); got != at {
					t.Fatalf("%#x at %d of %d: %d", c, at, length, got)
				}
			}
		}
	}
}

func TestTurnsSayWhoSpeaks(t *testing.T) {
	for d, want := range map[Dialect]string{
		OpenAIChat:        "system user assistant tool* tool* user",
		OpenAIResponses:   "user assistant assistant assistant assistant tool* tool* tool* tool* assistant assistant assistant",
		AnthropicMessages: "system user assistant user*",
		GeminiContents:    "system user assistant user* tool*",
	} {
		var got []string
		for _, turn := range mustScan(t, d, string(filled(bodies[d][0]))).Turns {
			word := string(turn.Role)
			if turn.ToolResults {
				word += "*"
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", d, got, want)
		}
	}
	r := mustScan(t, OpenAIChat, bodies[OpenAIChat][1])
	if r.Turns[0].Role != Tool || r.Turns[1].Role != Nobody || r.Turns[2].Role != Nobody {
		t.Errorf("turns are %v", r.Turns)
	}
}

func TestABodyOfTinyPartsIsBounded(t *testing.T) {
	images := func(n int) string {
		return `{"messages":[{"role":"user","content":[{"type":"image"}` + strings.Repeat(`,{"type":"image"}`, n-1) + `]}]}`
	}
	turns := func(n int) string { return `{"messages":[{}` + strings.Repeat(`,{}`, n-1) + `]}` }
	for name, body := range map[string]func(int) string{"images": images, "turns": turns} {
		most := map[string]int{"images": MaxImages, "turns": MaxTurns}[name]
		mustScan(t, AnthropicMessages, body(most))
		if _, err := Scan(AnthropicMessages, []byte(body(most+1))); reasonOf(err) != TooMany {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestScanDoesNotAllocateByTheSizeOfImages(t *testing.T) {
	for _, d := range Dialects() {
		allocated := func(size int) float64 {
			body := history(d, 100, strings.Repeat("QUJD", size))
			return testing.AllocsPerRun(5, func() {
				if _, err := Scan(d, body); err != nil {
					t.Error(err)
				}
			})
		}
		if small, large := allocated(1), allocated(20_000); large != small {
			t.Errorf("%s: %v allocations with large images, %v with small ones", d, large, small)
		}
	}
}

func TestAnErrorIsARefusalWithItsPlace(t *testing.T) {
	_, err := Scan(OpenAIChat, []byte(`{"messages":[5]}`))
	e, _ := errors.AsType[*Error](err)
	f := e.Fault()
	if f.Status() != 400 || f.Reason != "WrongType" || f.Details["field"] != "messages[0]" || f.Details["offset"] != 13 || f.Retryable || !errors.Is(f, err) {
		t.Errorf("%+v", f)
	}
	if e = (&Error{Reason: BadBase64, Offset: 7}); e.Error() != "decoding an image (byte 7): the data is not base64" || e.Fault().Details["field"] != nil {
		t.Errorf("%v, %+v", e, e.Fault())
	}
}

func TestErrorsHoldNoByteOfTheBody(t *testing.T) {
	secret := "c2VjcmV0"
	for _, body := range []string{`{"messages":["` + secret + `"]}`, `{"messages":[{"content":[{"source":{"type":"facts","sha256":"` + secret + `"}}]}]}`, `{"` + secret + `":tru}`} {
		_, err := Scan(AnthropicMessages, []byte(body))
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) || !utf8.ValidString(err.Error()) {
			t.Errorf("%v", err)
		}
	}
}
