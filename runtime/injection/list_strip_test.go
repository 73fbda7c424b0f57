// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestHiddenMessagesLoseTheirImageData(t *testing.T) {
	const (
		text   = `{"type":"text","text":"seen"}`
		data   = `{"type":"image_url","image_url":{"url":"data:image/png;base64,YQ=="}}`
		loud   = `{"type":"image_url","image_url":"DATA:image/png;base64,YQ=="}`
		broken = `{"type":"image_url","image_url":{"url":"data:image/png;base64"}}`
		far    = `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`
		block  = `{"type":"image","source_type":"base64","mime_type":"image/png","data":"YQ=="}`
		blockV = `{"type":"image","base64":"YQ==","mime_type":"image/png"}`
		source = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YQ=="}}`
	)
	hidden := func(parts ...string) string {
		return `{"type":"human","id":"x","content":[` + strings.Join(parts, ", ") + `],"additional_kwargs":{"hide_from_ui":true,"vision_image_context":{"v":1}}}`
	}
	visible := `{"type":"human","content":[` + text + `,` + data + `]}`
	for name, c := range map[string]struct{ in, want string }{
		"D63 data in a hidden message goes, its text stays": {hidden(text, data), hidden(text)},
		"D63 in every form":                   {hidden(data, text, loud, block, blockV, source, broken), hidden(text)},
		"D63 within data":                     {`{"type":"human","data":` + hidden(text, data) + `}`, `{"type":"human","data":` + hidden(text) + `}`},
		"D63 an image alone":                  {hidden(data), hidden()},
		"D64 a URL that is fetched stays":     {hidden(text, far, data), hidden(text, far)},
		"D65 a visible message stays":         {visible, visible},
		"a hidden message of somebody else's": {strings.Replace(hidden(data), "vision_image_context", "theirs", 1), strings.Replace(hidden(data), "vision_image_context", "theirs", 1)},
		"a marker that is not hidden":         {strings.Replace(hidden(data), "true", "false", 1), strings.Replace(hidden(data), "true", "false", 1)},
		"D67 entries that are no objects":     {`1, "a", null, [` + data + `], true`, `1, "a", null, [` + data + `], true`},
		"D67 content that is no list":         {`{"type":"human","content":"data:image/png;base64,YQ==","additional_kwargs":{"hide_from_ui":true,"vision_image_context":{}}}`, ""},
		"D68 number and order":                {visible + ", 7, " + hidden(data, text) + "," + visible + "," + hidden(data), visible + ", 7, " + hidden(text) + "," + visible + "," + hidden()},
		"a message without additional_kwargs": {`{"type":"human","content":[` + data + `],"additional_kwargs":null}`, ""},
		"parts that are no objects stay":      {hidden(`"a"`, `1`, data), hidden(`"a"`, `1`)},
		"a message without anything":          {`{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.in
			}
			in := []byte(" [" + c.in + "]\n")
			edits, err := injection.StripHidden(in)
			if err != nil {
				t.Fatal(err)
			}
			_, got := spliced(t, in, edits)
			if want := " [" + c.want + "]\n"; string(got) != want || !json.Valid(got) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	if _, err := injection.StripHidden([]byte(`{"messages":[]}`)); err == nil {
		t.Error("an object is taken for a list")
	}
}

// D69: what a stream of values carries is a list too, and is stripped by the same function.
func TestD69WhatIsAppendedLeavesNoDataBehind(t *testing.T) {
	d := planned(t, twoAsks, read1, read2).Decide(shownAs(picture("a"), picture("b")))
	list := []byte("[" + human + "," + string(d.Append) + "]")
	if !bytes.Contains(list, []byte("base64,")) {
		t.Fatal("nothing to strip")
	}
	edits, err := injection.StripHidden(list)
	if err != nil {
		t.Fatal(err)
	}
	_, got := spliced(t, list, edits)
	if bytes.Contains(got, []byte("base64")) || !bytes.Contains(got, []byte("/w/b.jpg")) {
		t.Errorf("got %s", got)
	}
}

func TestD70WhatOnlyWeSetIsTakenFromClients(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"vision-image-context:1","additional_kwargs":{"custom":"keep-me","hide_from_ui":true,"vision_image_context":{"v":1}},"content":"a"}`: `{"id":"vision-image-context:1","additional_kwargs":{"custom":"keep-me"},"content":"a"}`,
		`{"additional_kwargs":{"hide_from_ui":true, "a":1, "vision_image_context":1}}`:                                                              `{"additional_kwargs":{"a":1}}`,
		`{"additional_kwargs":{"vision\u005fimage_context":{}}}`:                                                                                    `{"additional_kwargs":{}}`,
		`{"type":"human","data":{"additional_kwargs":{"hide_from_ui":true}}}`:                                                                       `{"type":"human","data":{"additional_kwargs":{}}}`,
		`{"additional_kwargs":{"custom":{"hide_from_ui":true}}}`:                                                                                    `{"additional_kwargs":{"custom":{"hide_from_ui":true}}}`,
		`{"hide_from_ui":true}, 3`: `{"hide_from_ui":true}, 3`,
	} {
		edits, err := injection.StripClient([]byte("[" + in + "]"))
		if err != nil {
			t.Fatal(err)
		}
		if _, got := spliced(t, []byte("["+in+"]"), edits); string(got) != "["+want+"]" {
			t.Errorf("got %s; want %s", got, want)
		}
	}
	if _, err := injection.StripClient([]byte(`"a"`)); err == nil {
		t.Error("a text is taken for a list")
	}
}

func TestD71WhatAToolSaysIsItsTextAlone(t *testing.T) {
	got, err := injection.TextOf([]byte(`["a",{"type":"text","text":"b \u00e9"},{"type":"image_url","image_url":{"url":"data:image/png;base64,YQ=="}},{"type":"image","base64":"YQ=="},3]`))
	if err != nil || got != "a\nb é" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := injection.TextOf([]byte(`{`)); err == nil {
		t.Error("no JSON is taken")
	}
}

func FuzzReadList(f *testing.F) {
	for _, list := range []string{
		"[]", "[" + human + "," + twoAsks + "," + read1 + "," + read2 + "]", `[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"view_image","arguments":"{\"path\":\"a\"}"}}]},{"role":"tool","tool_call_id":"a"}]`,
		`[{"type":"ai","data":{"tool_calls":[1,{}],"content":[{}]}},{"additional_kwargs":{"hide_from_ui":true,"vision_image_context":{"v":1,"calls":["a"],"digests":[""],"mac":""}}}]`, "[\n{} , 1]",
		`[{"content":[{"type":"image_url","image_url":"data:,"}],"additional_kwargs":{"hide_from_ui":true,"vision_image_context":{}}}]`,
		"[" + ask + "," + read1 + `,{"type":"ai","content":""},` + twoAsks + "," + read1 + "," + read2 + "," + human + "]",
	} {
		f.Add([]byte(list))
	}
	rules := injection.RulesOf(router.Injection{})
	f.Fuzz(func(t *testing.T, list []byte) {
		for _, strip := range []func([]byte) ([]message.Edit, error){injection.StripHidden, injection.StripClient} {
			edits, err := strip(list)
			if (err == nil) != (json.Valid(list) && bytes.TrimLeft(list, " \t\r\n")[0] == '[') {
				t.Fatalf("%v", err)
			}
			if _, out := spliced(t, list, edits); err == nil && !json.Valid(out) {
				t.Fatalf("%s", out)
			}
		}
		_, _ = injection.TextOf(list)
		l, err := injection.ReadList(list)
		if err != nil {
			return
		}
		p := l.Plan(rules, listKey, nil)
		shown := make([]injection.Shown, len(p.Sights))
		for i := range shown {
			shown[i].Picture = picture("a")
		}
		d := p.Decide(shown)
		if !d.Inject {
			return
		}
		// What is put in is ours when it comes back.
		var stored []json.RawMessage
		if err := json.Unmarshal(list, &stored); err != nil {
			t.Fatal(err)
		}
		for _, in := range slices.Backward(d.Insert) {
			stored = slices.Insert(stored, in.Before, in.Message)
		}
		if d.Append != nil {
			stored = append(stored, d.Append)
		}
		next, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		l, err = injection.ReadList(next)
		if err != nil {
			t.Fatalf("%v in %s", err, next)
		}
		if again := l.Plan(rules, listKey, nil); again.Inject {
			t.Fatalf("%s: it is put in twice in %s", again.Reason, next)
		}
	})
}
