// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/router"
)

const (
	first, second = "call_8fK2mQ1xA", "call_1sT9bV4cB"
	view          = "view_image"
)

// What system D's cases ask of a conversation, in every dialect; the ids are those of
// docs/behaviours.md. The state of a framework and the files are those of each dialect
// too, since POST /v1/inject takes them with any.
var dialectCases = map[string]func(*stage, []byte, string){
	"D01: an empty conversation":    nothing("NoAssistantMessage"),
	"D02: no turn of the assistant": nothing("NoAssistantMessage", says("human", "look")),
	"D04: a turn without calls":     nothing("NoVisionCalls", says("human", "look"), says("assistant", "no")),
	"D05: a turn with an empty list of calls": func(s *stage, _ []byte, _ string) {
		said := messagesOf(s.dialect, []line{says("human", "look")})[0]
		for _, turn := range map[string][]string{
			"openai-chat":        {`{"role":"assistant","content":"no","tool_calls":[]}`, `{"role":"assistant","content":"no","tool_calls":null}`},
			"openai-responses":   {`{"type":"message","role":"assistant","content":[]}`},
			"anthropic-messages": {`{"role":"assistant","content":[]}`},
			"gemini-contents":    {`{"role":"model","parts":[]}`},
			listDialect:          {`{"type":"ai","content":"no","tool_calls":[]}`, `{"type":"ai","content":"no","tool_calls":null,"additional_kwargs":{"tool_calls":[]}}`},
		}[s.dialect] {
			if a, after := s.show("[" + said + "," + turn + "]"); a.Decision.Inject || a.Decision.Reason != "NoVisionCalls" || after != "["+said+","+turn+"]" {
				s.t.Errorf("%+v: %s", a.Decision, after)
			}
		}
	},
	"D08: other tools":                   nothing("NoVisionCalls", says("human", "look"), calls(first, "ls", "a.png"), answers(first, "listed")),
	"D09: nothing called, and a human":   nothing("NoVisionCalls", says("human", "look"), says("assistant", "no"), says("human", "please")),
	"D11: one of two without an answer":  nothing("CallsUnanswered", says("human", "look"), calls(first, view, "a.png"), calls(second, "ls", "/"), answers(first, "read")),
	"D13: an answer before its call":     nothing("CallsUnanswered", says("human", "look"), answers(first, "read"), calls(first, view, "a.png")),
	"D25: a call that is open":           nothing("CallsUnanswered", says("human", "look"), calls(first, view, "a.png")),
	"D28: nothing to do, the same bytes": nothing("NoVisionCalls", says("human", "a <b> \u2028"), says("assistant", "c")),
	"D03: the newest of two": func(s *stage, a []byte, _ string) {
		s.sees([][]byte{a}, says("human", "look"), calls(first, "ls", "/"), answers(first, "listed"), calls(second, view, "a.png"), answers(second, "read"))
		s.sees([][]byte{a}, says("human", "look"), calls(first, view, "a.png"), answers(first, "read"), calls(second, view, "a.png"))
	},
	"D06: a vision tool": func(s *stage, a []byte, _ string) {
		s.sees([][]byte{a}, says("human", "look"), calls(first, view, "a.png"), answers(first, "read"))
	},
	"D07: a vision tool among others": func(s *stage, a []byte, _ string) {
		s.sees([][]byte{a}, says("human", "look"), calls(second, "ls", "/"), calls(first, view, "a.png"), answers(second, "listed"), answers(first, "read"))
	},
	"D10: two calls, both answered": two,
	"D16: two images":               two,
	"D14: no image was named": func(s *stage, _ []byte, _ string) {
		a, after := s.sees(nil, says("human", "look"), calls(first, view, ""), answers(first, "read"))
		if a.Decision.Unavailable != 1 || strings.Count(words(after), "names no file") != 1 {
			s.t.Errorf("%+v: %s", a.Decision, after)
		}
	},
	"D15: one image": one, "D26: a call with its answer": one, "D39: a file of the workspace": one, "D50: a PNG": one,
	"D18: a media type that is not known": func(s *stage, _ []byte, _ string) {
		s.use(func(d *router.Document) { d.Profiles[0].Injection.Template.Unavailable = "[{path} of {mime}]" })
		if _, after := s.sees(nil, viewOf("gone.png")...); strings.Count(words(after), "[gone.png of unknown]") != 1 {
			s.t.Errorf("%s", after)
		}
	},
	"D19: no such file":     refusedFile("gone.png", "NotFound"),
	"D40: another's folder": refusedFile("/etc/hostname", "OutsideWorkspace"),
	"D41: a way out":        refusedFile("../a.png", "OutsideWorkspace"),
	"D42: a blank path":     refusedFile(" ", "NoPath"),
	"D49: an absolute path": refusedFile("/nowhere/a.png", "OutsideWorkspace"),
	"D52: a text":           refusedFile("text.png", "NotAnImage"),
	"D54: one byte too many": func(s *stage, a []byte, _ string) {
		s.use(func(d *router.Document) { d.Profiles[0].Limits.Image.MaxBytes = int64(len(a)) - 1 })
		s.sees(nil, viewOf("a.png")...)
		s.use(func(d *router.Document) { d.Profiles[0].Limits.Image.MaxBytes = int64(len(a)) })
		s.sees([][]byte{a}, viewOf("a.png")...)
	},
	"D21: another file than was viewed": func(s *stage, a []byte, path string) {
		for _, fact := range []string{`"sha256":"` + strings.Repeat("ab", 32) + `"`, fmt.Sprintf(`"sha256":%q`, hashed(append(a, 0)))} {
			got, after := s.show(spoken(s.dialect, viewOf(path)...), fmt.Sprintf(`"viewedImages":{%q:{%s}}`, path, fact))
			if got.Decision.Injected != 0 || got.Decision.Sights[0].Reason != "Changed" || strings.Contains(after, base64Of(a)) {
				s.t.Errorf("%+v", got.Decision)
			}
		}
	},
	"D22: the file is gone, its bytes are kept": func(s *stage, a []byte, path string) {
		_, before := s.sees([][]byte{a}, viewOf(path)...)
		must(s.t, os.Remove(path))
		if _, after := s.sees([][]byte{a}, append(viewOf(path), says("assistant", "a square"))...); !strings.HasPrefix(after, strings.TrimSuffix(before, "]")) {
			s.t.Errorf("what was shown has changed: %.400s", after)
		}
	},
	"D23: malformed bytes of a state": func(s *stage, a []byte, path string) {
		for _, bad := range []string{"", "%%", base64.RawURLEncoding.EncodeToString(a), "data:image/png;base64"} {
			if got, _ := s.show(spoken(s.dialect, viewOf(path)...), fmt.Sprintf(`"viewedImages":{%q:{"base64":%q}}`, path, bad)); got.Decision.Injected != 1 {
				s.t.Errorf("%q: %+v", bad, got.Decision)
			}
		}
	},
	"D27: the client shows it": func(s *stage, a []byte, _ string) {
		got, _ := s.sees([][]byte{a}, append(viewOf("a.png"), pictured("human", a))...)
		if got.Decision.Inject || got.Decision.Reason != "AlreadyShown" {
			s.t.Errorf("%+v", got.Decision)
		}
	},
	"D29: what was there stays": func(s *stage, a []byte, _ string) {
		messages := spoken(s.dialect, viewOf("a.png")...)
		_, after := s.sees([][]byte{a}, viewOf("a.png")...)
		if rest := without(after, messages); rest == "" || s.dialect == listDialect && !strings.HasPrefix(after, strings.TrimSuffix(messages, "]")+",") {
			s.t.Errorf("%.600s", after)
		}
	},
	"D30: an interrupted call that is retried": func(s *stage, a []byte, _ string) {
		_, before := s.sees([][]byte{a}, viewOf("a.png")...)
		if got, after := s.show(before); strings.Count(after, base64Of(a)) != 1 {
			s.t.Errorf("stacked: %+v", got.Decision)
		}
		if _, again := s.sees([][]byte{a}, viewOf("a.png")...); again != before {
			s.t.Error("the retry is shown something else")
		}
	},
	"D32: a client's text that looks like ours": func(s *stage, a []byte, _ string) {
		said := says("human", "The images you asked to see: vision-image-context:1")
		if _, after := s.sees([][]byte{a}, append(viewOf("a.png"), said)...); !strings.Contains(after, messagesOf(s.dialect, []line{said})[0]) {
			s.t.Errorf("the client's message is gone: %.600s", after)
		}
	},
	"D34: at the same time": func(s *stage, a []byte, _ string) {
		_, want := s.sees([][]byte{a}, viewOf("a.png")...)
		done := make(chan string)
		for range 4 {
			go func() {
				_, after := s.show(spoken(s.dialect, viewOf("a.png")...))
				done <- after
			}()
		}
		for range 4 {
			if got := <-done; got != want {
				s.t.Error("they differ")
			}
		}
	},
	"D35: an upload": func(s *stage, a []byte, path string) {
		must(s.t, os.Remove(path))
		s.sees([][]byte{a}, viewOf("vision://"+s.upload(a, true).Reference.ID)...)
	},
	"D36: a loop": func(s *stage, a []byte, _ string) {
		lines := []line{says("human", "look")}
		before := "["
		for i := range 6 {
			id := fmt.Sprintf("call_8fK2mQ%dxA", i)
			images := [][]byte{a}
			if i == 0 {
				lines = append(lines, calls(id, view, "a.png"), answers(id, "read"))
			} else {
				lines = append(lines, calls(id, "ls", "/"), answers(id, "listed"))
			}
			_, after := s.sees(images, lines...)
			if !strings.HasPrefix(after, before) {
				s.t.Errorf("round %d: the beginning has changed", i)
			}
			if before = strings.TrimSuffix(after, "]"); strings.Contains(spoken(s.dialect, lines...), "iVBORw0KGgo") {
				s.t.Error("the history holds an image")
			}
		}
	},
	"D44: a path with a folder": func(s *stage, _ []byte, _ string) {
		must(s.t, os.Mkdir(filepath.Join(s.space, "sub"), 0o755))
		b := square(s.t, 30, 9)
		s.file("sub/b.png", b)
		s.sees([][]byte{b}, viewOf("sub/b.png")...)
	},
	"D46: two entries merge": state(`{"/x":{"size":1}}`, `{"/y":{"size":2}}`, "/x", "/y"),
	"D47: {} keeps":          state(`{"/x":{"size":1}}`, `{}`, "/x"),
	"D48b: two in one step":  state(`{}`, `{"/x":{"size":1},"/y":{"size":2}}`, "/x", "/y"),
	"D48: what is written is read as the same": func(s *stage, _ []byte, path string) {
		got, _ := s.show(spoken(s.dialect, viewOf(path)...))
		written, err := json.Marshal(got.ViewedImages)
		must(s.t, err)
		again, _ := s.show(spoken(s.dialect, viewOf(path)...), `"viewedImages":`+string(written))
		if len(got.ViewedImages) != 1 || fmt.Sprint(got.ViewedImages) != fmt.Sprint(again.ViewedImages) || again.Decision.Injected != 1 {
			s.t.Errorf("%s and %s", got.ViewedImages, again.ViewedImages)
		}
	},
	"D45: no workspace": func(s *stage, _ []byte, path string) {
		must(s.t, os.RemoveAll(s.space))
		s.sees(nil, viewOf(path)...)
	},
	"D51: a GIF": func(s *stage, _ []byte, _ string) {
		gif := append([]byte("GIF89a\x08\x00\x08\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x08\x00\x08\x00\x00\x02\x07\x84\x8f\xa9\xcb\xed\x0f\x63\x2b\x00"), ';')
		s.file("b.gif", gif)
		got, after := s.show(spoken(s.dialect, viewOf("b.gif")...))
		if s.dialect == "gemini-contents" { // whose vendor takes none
			if got.Decision.Degraded != 1 || got.Decision.Sights[0].Reason != "MediaTypeNotAccepted" {
				s.t.Errorf("%+v", got.Decision)
			}
			return
		}
		if got.Decision.Injected != 1 || strings.Count(after, base64.StdEncoding.EncodeToString(gif)) != 1 {
			s.t.Errorf("%+v", got.Decision)
		}
	},
	"D57: what was shown is kept": func(s *stage, a []byte, path string) {
		s.sees([][]byte{a}, viewOf(path)...)
		s.file("a.png", square(s.t, 40, 99))
		s.sees([][]byte{a}, append(viewOf(path), says("assistant", "yes"))...)
	},
	"D64: an image's URL stays": func(s *stage, a []byte, _ string) {
		said := says("human", "see https://example.com/a.png")
		if _, after := s.sees([][]byte{a}, append([]line{said}, viewOf("a.png")...)...); !strings.Contains(after, "https://example.com/a.png") {
			s.t.Errorf("%.400s", after)
		}
	},
	"D68: number and order": func(s *stage, a []byte, _ string) {
		_, after := s.sees([][]byte{a}, append([]line{says("human", "one"), says("assistant", "two"), says("human", "three")}, viewOf("a.png")...)...)
		if i, j, k := strings.Index(after, "one"), strings.Index(after, "two"), strings.Index(after, "three"); i < 0 || j < i || k < j {
			s.t.Errorf("%.600s", after)
		}
	},
}

// onlyElsewhere are cases that another test carries: of a part below every dialect.
var onlyElsewhere = map[string]string{"D58": "runtime/engine/pins_test.go"}

// absentEverywhere and absentFromWires name the concept that a case is about and that
// every dialect, or every vendor's, is without.
var (
	absentEverywhere = map[string]string{
		"D37": "threads of users", "D59": "a factory of tools", "D60": "a factory of tools", "D61": "middleware to register",
	}
	absentFromWires = map[string]string{
		"D63": "hidden messages", "D65": "hidden messages", "D67": "entries that are no objects", "D69": "streams of a state's values", "D70": "markers that clients could send",
		"D71": "a tool's content that is turned into text",
	}
)

func TestTheCasesOfConversationsInEveryDialect(t *testing.T) {
	for _, d := range allDialects() {
		for _, name := range slices.Sorted(maps.Keys(dialectCases)) {
			t.Run(name+"/"+d, func(t *testing.T) {
				s := newStage(t, d, nil)
				data := square(t, 40, 7)
				path := s.file("a.png", data)
				s.file("text.png", []byte("no image at all"))
				dialectCases[name](s, data, path)
			})
		}
	}
}

// Every case of system D is run in each dialect, or the concept is named that it lacks.
func TestEveryCaseOfConversationsIsRunOrNamesWhatADialectLacks(t *testing.T) {
	document, err := os.ReadFile("../../docs/behaviours.md")
	must(t, err)
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (D[0-9]{2}b?) \|`).FindAllStringSubmatch(string(document), -1) {
		ids[m[1]] = true
	}
	if len(ids) < 50 {
		t.Fatalf("only %d cases were read", len(ids))
	}
	run := map[string]bool{}
	for name := range dialectCases {
		id, _, _ := strings.Cut(name, ":")
		run[id] = true
	}
	for _, d := range allDialects() {
		absent := 0
		for id := range ids {
			lacks, elsewhere := absentEverywhere[id], onlyElsewhere[id]
			if lacks == "" && d != listDialect {
				lacks = absentFromWires[id]
			} else if lacks == "" && absentFromWires[id] != "" {
				elsewhere = "runtime/injection/list_strip_test.go"
			}
			if lacks != "" {
				absent++
			}
			if run[id] == (lacks+elsewhere != "") {
				t.Errorf("%s in %s: run %v, lacks %q, elsewhere %q", id, d, run[id], lacks, elsewhere)
			}
		}
		if absent > 10 {
			t.Errorf("%d cases do not apply to %s", absent, d)
		}
	}
}

func viewOf(path string) []line {
	return []line{says("human", "look"), calls(first, view, path), answers(first, "read")}
}

func one(s *stage, a []byte, path string) {
	got, after := s.sees([][]byte{a}, viewOf(path)...)
	if got.Decision.Injected != 1 || got.Decision.Sights[0].SHA256 != hashed(a) || !strings.Contains(string(got.ViewedImages[path]), `"mime_type":"image/png"`) {
		s.t.Errorf("%+v, %s: %.400s", got.Decision, got.ViewedImages, after)
	}
}

func two(s *stage, a []byte, _ string) {
	b := square(s.t, 30, 9)
	s.file("b.png", b)
	s.sees([][]byte{a, b}, says("human", "look"), calls(first, view, "a.png"), calls(second, view, "b.png"), answers(first, "read"), answers(second, "read"))
}

// nothing is a conversation that stays as it is, for a reason.
func nothing(reason string, lines ...line) func(*stage, []byte, string) {
	return func(s *stage, _ []byte, _ string) {
		messages := spoken(s.dialect, lines...)
		a, after := s.show(messages)
		if a.Decision.Inject || a.Decision.Reason != reason || after != messages || len(a.ViewedImages) != 0 {
			s.t.Errorf("%+v: %s", a.Decision, after)
		}
	}
}

// refusedFile is a path of which the model is told in one text that it has no image.
func refusedFile(path, reason string) func(*stage, []byte, string) {
	return func(s *stage, _ []byte, _ string) {
		a, after := s.sees(nil, viewOf(path)...)
		if a.Decision.Unavailable != 1 || a.Decision.Sights[0].Reason != reason || strings.Count(words(after), "is not available") != 1 {
			s.t.Errorf("%+v: %s", a.Decision, after)
		}
	}
}

// plain is a text as Gemini's results of functions hold it.
var plain = regexp.MustCompile(`"mimeType":"text/plain","data":"([^"]+)"`)

// words are messages with such texts behind them.
func words(messages string) string {
	all := messages
	for _, m := range plain.FindAllStringSubmatch(messages, -1) {
		text, _ := base64.StdEncoding.DecodeString(m[1])
		all += string(text)
	}
	return all
}

// state is a state and an update of it, and the paths that there are then.
func state(before, update string, want ...string) func(*stage, []byte, string) {
	return func(s *stage, _ []byte, path string) {
		a, _ := s.show(spoken(s.dialect, viewOf(path)...), `"viewedImages":[`+before+","+update+"]")
		if got := slices.Sorted(maps.Keys(a.ViewedImages)); !slices.Equal(got, slices.Sorted(slices.Values(append(want, path)))) {
			s.t.Errorf("%v; want %v and %s", got, want, path)
		}
		cleared, _ := s.show(spoken(s.dialect, viewOf(path)...), `"viewedImages":[`+before+","+update+`,{"$clear":true}]`)
		if got := slices.Sorted(maps.Keys(cleared.ViewedImages)); !slices.Equal(got, slices.Sorted(slices.Values([]string{injection.ClearMember, path}))) {
			s.t.Errorf("after a clear: %v", got)
		}
	}
}

// without is what is left of after when the bytes of before are taken from it in
// their order; "" where they are not all there.
func without(after, before string) string {
	var rest strings.Builder
	for i := range len(after) {
		if before != "" && after[i] == before[0] {
			before = before[1:]
		} else {
			rest.WriteByte(after[i])
		}
	}
	if before != "" {
		return ""
	}
	return rest.String()
}
