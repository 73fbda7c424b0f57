// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package thread

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	view = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"path\":\"a \\\"b\\\" }.png\"}","call_id":"call_1","name":"view_image"}`
	note = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"call_id \\ \"}]\" ","annotations":[{"a":[1,{}]}]}]}`
)

var viewed = Call{ID: "call_1", Name: "view_image", Arguments: `{"path":"a \"b\" }.png"}`, Response: "resp_1", Conversation: "conv_1"}

// reply is a response with items.
func reply(items ...string) string {
	return `{"id":"resp_1","object":"response","created_at":1.5e9, "conversation" : {"id":"conv_1"},"error":null,` +
		`"metadata":{"id":"resp_forged","output":[` + view + `]},"output":[` + strings.Join(items, " , ") + `],"usage":{"input_tokens":1}}`
}

// stream is the events of a response with items; eol ends its lines.
func stream(eol string, items ...string) string {
	var b strings.Builder
	event := func(kind, rest string) {
		b.WriteString("event: " + kind + eol + `data: {"type":"` + kind + `","sequence_number":1` + rest + `}` + eol + eol)
	}
	b.WriteString(": a comment" + eol + eol)
	event("response.created", `,"response":{"id":"resp_1","conversation":{"id":"conv_1"},"status":"in_progress","output":[]}`)
	for _, item := range items {
		event("response.output_item.added", `,"output_index":0,"item":{"type":"function_call","status":"in_progress","arguments":"","call_id":"call_added","name":"view_image"}`)
		event("response.function_call_arguments.delta", `,"delta":"{\"pa"`)
		event("response.output_item.done", `,"output_index":0,"item":`+item)
	}
	return b.String()
}

// allKnown is everything that a table knows.
func allKnown(t *Table) map[string]Call {
	all := map[string]Call{}
	for _, k := range t.calls.Values() {
		all[k.call.ID] = k.call
	}
	return all
}

// tapped is what a table knows after a reply that came in pieces of a size.
func tapped(tb testing.TB, contentType, reply string, size int) map[string]Call {
	tb.Helper()
	table := New(Options{})
	tap := table.Tap(contentType, nil)
	for piece := range slices.Chunk([]byte(reply), size) {
		if n, err := tap.Write(piece); n != len(piece) || err != nil {
			tb.Fatalf("wrote %d of %d: %v", n, len(piece), err)
		}
	}
	if err := tap.Close(); err != nil {
		tb.Fatal(err)
	}
	return allKnown(table)
}

func only(calls ...Call) map[string]Call {
	all := map[string]Call{}
	for _, c := range calls {
		all[c.ID] = c
	}
	return all
}

const (
	asJSON   = "application/json; charset=utf-8"
	asEvents = "text/event-stream; charset=utf-8"
)

func TestTap(t *testing.T) {
	with := func(edit func(*Call)) Call { c := viewed; edit(&c); return c }
	bare := with(func(c *Call) { c.Response, c.Conversation = "", "" })
	huge := `{"type":"image_generation_call","result":"` + strings.Repeat("A", MaxItem) + `"}`
	for name, tc := range map[string]struct {
		contentType, reply string
		want               map[string]Call
	}{
		"a reply":                            {asJSON, reply(note, view), only(viewed)},
		"a reply without a conversation":     {asJSON, `{"output":[` + view + `],"id":"resp_1","conversation":null}`, only(with(func(c *Call) { c.Conversation = "" }))},
		"a conversation that is a name":      {asJSON, `{"output":[` + view + `],"id":"resp_1","conversation":"conv_1"}`, only(viewed)},
		"a reply without any name":           {asJSON, `{"output":[` + view + `]}`, only(bare)},
		"an empty output":                    {asJSON, reply(), only()},
		"an output that is no list":          {asJSON, `{"output":{"a":[` + view + `]}}`, only()},
		"a reply that is cut off":            {asJSON, strings.TrimSuffix(reply(view), "}"), only()},
		"a reply that is no object":          {asJSON, "[" + view + "]", only()},
		"an error":                           {asJSON, `{"error":{"message":"no","code":null}}`, only()},
		"an item that is too long":           {asJSON, reply(huge, view), only(viewed)},
		"an incomplete call":                 {asJSON, reply(strings.Replace(view, "completed", "incomplete", 1)), only()},
		"a call without a status":            {asJSON, reply(strings.Replace(view, `"status":"completed",`, "", 1)), only(viewed)},
		"a call without an id":               {asJSON, reply(strings.Replace(view, `"call_id"`, `"call"`, 1)), only()},
		"a call without a name":              {asJSON, reply(strings.Replace(view, `"name"`, `"title"`, 1)), only()},
		"a call whose id is no text":         {asJSON, reply(strings.Replace(view, `"call_1"`, `7`, 1), note), only()},
		"a call of the vendor's own servers": {asJSON, reply(`{"type":"mcp_call","call_id":"call_1","name":"view_image","arguments":"{}"}`), only()},
		"arguments that are too long": {asJSON, reply(strings.Replace(view, `{\"path`, strings.Repeat("x", maxArguments), 1)),
			only(with(func(c *Call) { c.Arguments = "" }))},
		"an id that is too long":           {asJSON, reply(strings.Replace(view, "call_1", strings.Repeat("x", maxID+1), 1)), only()},
		"a name that is too long":          {asJSON, reply(strings.Replace(view, "view_image", strings.Repeat("x", maxName+1), 1)), only()},
		"a response's id that is too long": {asJSON, strings.Replace(reply(view), `"resp_1"`, `"`+strings.Repeat("x", maxID+1)+`"`, 1), only(with(func(c *Call) { c.Response = "" }))},
		"other calls that the client answers": {asJSON, reply(
			`{"type":"custom_tool_call","call_id":"a","name":"view_image","input":"a.png","arguments":"x"}`, `{"type":"computer_call","call_id":"b","action":{}}`,
			`{"type":"local_shell_call","call_id":"c"}`, `{"type":"shell_call","call_id":"d","name":"x","arguments":"y"}`, `{"type":"apply_patch_call","call_id":"e"}`), only(
			Call{"a", "view_image", "a.png", "resp_1", "conv_1"}, Call{"b", "computer", "", "resp_1", "conv_1"}, Call{"c", "shell", "", "resp_1", "conv_1"},
			Call{"d", "shell", "", "resp_1", "conv_1"}, Call{"e", "apply_patch", "", "resp_1", "conv_1"})},

		"a stream":                               {asEvents, stream("\n", note, view), only(viewed)},
		"lines that end in CR and LF":            {asEvents, stream("\r\n", note, view), only(viewed)},
		"lines that end in CR":                   {asEvents, stream("\r", note, view), only(viewed)},
		"a byte order mark":                      {asEvents, "\ufeff" + stream("\n", view), only(viewed)},
		"a byte order mark before data":          {asEvents, "\ufeffdata: {\"type\":\"response.output_item.done\",\"item\":" + view + "}\n\n", only(bare)},
		"data without a space":                   {asEvents, strings.ReplaceAll(stream("\n", view), "data: ", "data:"), only(viewed)},
		"an event in several lines":              {asEvents, strings.ReplaceAll(stream("\n", view), ",", "\ndata: ,\ndata:"), only(viewed)},
		"an event in several lines of CR and LF": {asEvents, strings.ReplaceAll(stream("\r\n", view), ",", "\r\ndata: ,\r\ndata:"), only(viewed)},
		"a text that a line's end cuts in two":   {asEvents, strings.ReplaceAll(stream("\n", view), "view_", "view_\ndata: "), only()},
		"comments and fields between":            {asEvents, strings.ReplaceAll(stream("\n", view), "data:", ": ping\nid: 7\ndat: {\ndatax: {\nretry\ndata:"), only(viewed)},
		"an item that is too long in a stream":   {asEvents, stream("\n", huge, view), only(viewed)},
		"the end of a response tells its items": {asEvents, `data: {"type":"response.completed","response":` + reply(note, view) + "}\n\ndata: [DONE]\n\n",
			only(viewed)},
		"members in another order":   {asEvents, `data: {"item":` + view + `,"type":"response.output_item.done"}` + "\n\n", only(bare)},
		"an event that is malformed": {asEvents, "data: {\"type\":}\n\ndata: {\"item\":" + view + "\n\ndata: }{\n\n" + stream("\n", view), only(viewed)},
		"events that tell no whole item": {asEvents, `data: {"item":` + view + `,"type":"response.output_item.added"}` + "\n\n" + `data: {"item":` + view + "}\n\n" +
			`data: {"type":"response.output_item.done"}` + "\n\n", only()},
		"a response's own type is not the event's": {asEvents, `data: {"item":` + view + `,"response":{"type":"response.output_item.done"}}` + "\n\n", only()},

		"names that are long or escaped": {asJSON, `{"` + strings.Repeat("output", 9) + `":[` + view + `],"\"output":[` + view + `],"ou\u0074put":[` + view + `]}`, only()},
		"text that is no reply":          {"text/html", reply(view), only()},
		"no content type":                {"", reply(view), only()},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 64, 1 << 20, 1 << 30} {
				if size < 64 && len(tc.reply) > 1<<20 {
					continue
				}
				if diff := cmp.Diff(tc.want, tapped(t, tc.contentType, tc.reply, size)); diff != "" {
					t.Fatalf("in pieces of %d: %s", size, diff)
				}
			}
		})
	}
}

func TestACallIsKnownOnceTheBytesThatTellItHavePassed(t *testing.T) {
	table := New(Options{})
	tap := table.Tap(asEvents, nil)
	text := stream("\n", view)
	end := strings.LastIndex(text, "}")
	_, _ = tap.Write([]byte(text[:end]))
	if _, ok := table.Find("call_1", ""); ok {
		t.Error("known before its event was whole")
	}
	_, _ = tap.Write([]byte(text[end : end+1]))
	if got, _ := table.Find("call_1", ""); got != viewed {
		t.Errorf("known is %+v", got)
	}
}

func TestATapThatIsClosedTakesNothing(t *testing.T) {
	table := New(Options{})
	tap := table.Tap(asJSON, nil)
	_, _ = tap.Write([]byte(reply(view)[:40]))
	_ = tap.Close()
	if n, err := tap.Write([]byte(reply(view)[40:])); n != len(reply(view))-40 || err != nil || table.Len() != 0 {
		t.Errorf("wrote %d, %v; %d calls are known", n, err, table.Len())
	}
}

func TestAReplyOfVeryManyCallsIsBounded(t *testing.T) {
	items := make([]string, 300)
	for i := range items {
		items[i] = fmt.Sprintf(`{"type":"computer_call","call_id":"call_%d"}`, i)
	}
	if got := tapped(t, asJSON, reply(items...), 1<<20); len(got) != maxPending {
		t.Errorf("%d calls of one reply are known", len(got))
	}
	for i := range items {
		items[i] = fmt.Sprintf(`{"type":"function_call","name":"n","call_id":"call_%d","arguments":%q}`, i, strings.Repeat("x", maxArguments))
	}
	if got := len(tapped(t, asJSON, reply(items...), 1<<20)); got != pendingBytes/maxArguments-1 {
		t.Errorf("%d long calls of one reply are known", got)
	}
}

// A tap holds no more than an item, whatever passes, and little behind one.
func TestATapHoldsLittle(t *testing.T) {
	table := New(Options{})
	for contentType, head := range map[string]string{asJSON: `{"id":"r","output":["`, asEvents: `data: {"item":"`} {
		within := table.Tap(contentType, nil).(*tap)
		_, _ = within.Write([]byte(head))
		for range 64 {
			_, _ = within.Write([]byte(strings.Repeat("A", 64<<10)))
			if cap(within.scan.buf) > 3*MaxItem/2 {
				t.Fatalf("%s: %d bytes are held", contentType, cap(within.scan.buf))
			}
		}
		if within.scan.buf != nil {
			t.Errorf("%s: %d bytes of what is too long are held", contentType, cap(within.scan.buf))
		}
		behind := table.Tap(contentType, nil).(*tap)
		_, _ = behind.Write([]byte(head + strings.Repeat("A", MaxItem/2) + `"`))
		if held := cap(behind.scan.buf); held > smallBuffer {
			t.Errorf("%s: %d bytes are held behind an item", contentType, held)
		}
	}
}

// expect reads a whole reply with encoding/json: what a tap of it must know.
func expect(reply []byte) (map[string]Call, bool) {
	var r struct {
		ID           json.RawMessage
		Conversation json.RawMessage
		Output       json.RawMessage
	}
	var items []json.RawMessage
	if json.Unmarshal(reply, &r) != nil {
		return nil, false
	}
	_ = json.Unmarshal(r.Output, &items)
	all := map[string]Call{}
	for _, item := range items {
		if c, ok := callOf(item); ok {
			all[c.ID] = c
		}
	}
	return all, true
}

func FuzzTap(f *testing.F) {
	for _, text := range []string{
		reply(note, view), stream("\n", note, view), stream("\r\n", view), stream("\r", view), "\ufeff" + stream("\n", view), "\xef\xbbdata: {}\n\n",
		`data: {"type":"response.completed","response":` + reply(view) + "}\n\ndata: [DONE]\n\n", `{"output":[1,"a",{},[],null,-1.5e3,true]}`,
		`{"output":[{"type":"computer_call","call_id":"\ud800"}]}`, "{", `{"output":[`, `{"output":[]]`, `{"a":1,}`, `{"id":"` + strings.Repeat("x", 300) + `"}`,
		"data:\ndata\ndata: {\n\n", `{"output" 1}`, `{"output":1"x"}`,
	} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = max(size, 1)
		for _, contentType := range []string{asJSON, asEvents} {
			whole, pieces := tapped(t, contentType, text, len(text)+1), tapped(t, contentType, text, size)
			if diff := cmp.Diff(whole, pieces); diff != "" {
				t.Fatalf("in pieces of %d: %s", size, diff)
			}
			for id, c := range whole {
				if id == "" || c.Name == "" || c.ID != id || len(id) > maxID || len(c.Name) > maxName || len(c.Arguments) > maxArguments {
					t.Fatalf("out of bounds: %+v", c)
				}
			}
			if contentType != asJSON || strings.Count(strings.ToLower(text), "output") != 1 || !strings.Contains(text, `"output"`) {
				continue // a name may be repeated or, for encoding/json, in other letters
			}
			want, ok := expect([]byte(text))
			if ok && !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(whole))) {
				t.Fatalf("known is %v, want %v", whole, want)
			}
		}
	})
}

// BenchmarkTap reads streams of text deltas, as most of a reply is, and a reply
// with a generated image of 4 MiB.
func BenchmarkTap(b *testing.B) {
	delta := `event: response.output_text.delta` + "\n" +
		`data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":" some words","logprobs":[]}` + "\n\n"
	for name, tc := range map[string]struct{ contentType, text string }{
		"deltas": {asEvents, strings.Repeat(delta, 1000)},
		"image":  {asJSON, reply(`{"type":"image_generation_call","result":"`+strings.Repeat("A", 4<<20)+`"}`, view)},
		"call":   {asEvents, stream("\n", view)},
	} {
		b.Run(name, func(b *testing.B) {
			table := New(Options{})
			pieces := slices.Collect(slices.Chunk([]byte(tc.text), 4096))
			b.SetBytes(int64(len(tc.text)))
			b.ReportAllocs()
			for b.Loop() {
				tap := table.Tap(tc.contentType, nil)
				for _, piece := range pieces {
					_, _ = tap.Write(piece)
				}
				_ = tap.Close()
			}
		})
	}
}
