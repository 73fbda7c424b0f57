// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// mentioned are the images of a text in short: "alt|path" or "alt|!Reason".
func mentioned(text string) []string {
	all := []string{}
	for _, m := range mentions(text) {
		if m.skip != "" {
			m.path = "!" + m.skip
		}
		all = append(all, m.alt+"|"+m.path)
	}
	return all
}

func TestImagesOfMarkdown(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"H54: the description is the prompt", "see ![what is it?](shots/a.png) please", []string{"what is it?|shots/a.png"}},
		{"H54: without one the path is told", "![](a.png)", []string{"Image from a.png|a.png"}},
		{"several of one line", "![a](a.png)![b](b.png)", []string{"a|a.png", "b|b.png"}},
		{"a link is no image", "[a](a.png) !(b.png) ! [c](c.png)", nil},
		{"a title in double quotes", `![a](a.png "the \"title\" (x)")`, []string{"a|a.png"}},
		{"a title in single quotes", `![a](a.png 'it')`, []string{"a|a.png"}},
		{"a title in parentheses", `![a](a.png (it))`, []string{"a|a.png"}},
		{"a title on the next line", "![a](a.png\n\"it\")", []string{"a|a.png"}},
		{"white space around", "![a](  a.png  )", []string{"a|a.png"}},
		{"a title without space before it", `![a](<a.png>"it")`, nil},
		{"a title that does not end", `![a](a.png "it)`, nil},
		{"parentheses in the name", "![a](shot_(1).png) ![b](b((2)).png)", []string{"a|shot_(1).png", "b|b((2)).png"}},
		{"parentheses that are escaped", `![a](shot_\(1.png)`, []string{"a|shot_(1.png"}},
		{"parentheses that do not balance", "![a](shot_(1.png)", nil},
		{"a name in angle brackets", "![a](<my shot (1.png>)", []string{"a|my shot (1.png"}},
		{"a name in angle brackets with an escape", `![a](<a\>b.png>)`, []string{"a|a>b.png"}},
		{"angle brackets over two lines", "![a](<my\nshot.png>)", nil},
		{"white space in a bare name", "![a](my shot.png)", nil},
		{"a backslash before the sign", `\![a](a.png)`, nil},
		{"a backslash before the bracket", `!\[a](a.png)`, nil},
		{"two backslashes before the sign", `\\![a](a.png)`, []string{"a|a.png"}},
		{"brackets in the description", `![a [b] \] c](a.png)`, []string{"a [b] ] c|a.png"}},
		{"an image in a link", "[![a](a.png)](https://example.com)", []string{"a|a.png"}},
		{"an image in an image's description", "![a ![b](b.png) c](a.png)", []string{"a ![b](b.png) c|a.png"}},
		{"an image as a link's address is none", "[a](![b](b.png))", nil},
		{"a link in a link is text, an image in it is not", "[a [b](b) c](![d](d.png))", []string{"d|d.png"}},
		{"a description over two lines", "![two\nlines](a.png)", []string{"two lines|a.png"}},
		{"a paragraph between ends it", "![two\n\nlines](a.png)", nil},
		{"by reference", "![a][b]\n\n[b]: a.png", nil},
		{"in a code span", "`![a](a.png)` ``x ` ![b](b.png)`` ![c](c.png)", []string{"c|c.png"}},
		{"behind backticks that do not end", "`` ![a](a.png) `", []string{"a|a.png"}},
		{"behind an escaped backtick", "\\` ![a](a.png) `", []string{"a|a.png"}},
		{"a code span within a description", "![a `]` b](a.png)", []string{"a `]` b|a.png"}},
		{"in an address in angle brackets", "<http://x/![a](a.png)>", nil},
		{"in a fenced block", "```\n![a](a.png)\n```\n![b](b.png)", []string{"b|b.png"}},
		{"in a fenced block of tildes that does not end", "~~~ text\n![a](a.png)\n```\n![b](b.png)", nil},
		{"a fence that is shorter does not end it", "````\n```\n![a](a.png)\n````\n![b](b.png)", []string{"b|b.png"}},
		{"in an indented block", "text\n\n    ![a](a.png)\n\n![b](b.png)", []string{"b|b.png"}},
		{"an indented line of a paragraph is text", "text\n    ![a](a.png)", []string{"a|a.png"}},
		{"behind a tab", "\t![a](a.png)", nil},
		{"in a quote", "> ![a](a.png)\n> ```\n> ![b](b.png)\n![c](c.png)", []string{"a|a.png", "c|c.png"}},
		{"in a list", "- ![a](a.png)\n\n  ![b](b.png)\n\n      ![c](c.png)", []string{"a|a.png", "b|b.png"}},
		{"in a list whose item was empty", "-\n  ![a](a.png)\n\n      ![b](b.png)", []string{"a|a.png"}},
		{"behind a list whose item stays empty", "-\n\n    ![a](a.png)", nil},
		{"in a numbered list", "1. one\n2. ![a](a.png)", []string{"a|a.png"}},
		{"in a heading", "# ![a](a.png)\n![b](b.png)\n---", []string{"a|a.png", "b|b.png"}},
		{"behind line feeds of Windows", "text\r\n\r\n![a](a.png)\r\n", []string{"a|a.png"}},
		{"a number other than 1 begins no list within a paragraph", "text\n2. ```\n   ![a](a.png)", []string{"a|a.png"}},
		{"quotes that are too deep are text", strings.Repeat("> ", 40) + "```\n" + strings.Repeat("> ", 40) + "![a](a.png)", []string{"a|a.png"}},
		{"a link after one that is barred", "[a [b](b)] [c](![d](d))", nil},
		{"parentheses nest so deep", "![a](" + strings.Repeat("(", 32) + strings.Repeat(")", 33), []string{"a|" + strings.Repeat("(", 32) + strings.Repeat(")", 32)}},
		{"and no deeper", "![a](" + strings.Repeat("(", 33) + strings.Repeat(")", 34), nil},
		{"bytes that are no text", "![a](\xff.png)", []string{"a|!PathMalformed"}},
		{"a sign that is encoded at the end", "![a](a%41)", []string{"a|aA"}},
		{"entities", "![a &amp; b](a&amp;b.png)", []string{"a & b|a&b.png"}},
		{"no entities", "![a](a&copy=1&;.png)", []string{"a|a&copy=1&;.png"}},
		{"percent signs of UTF-8", "![a](d%C3%A9j%c3%a0%20vu.png)", []string{"a|déjà vu.png"}},
		{"percent signs that are no UTF-8 stay", "![a](%E9%20.png) ![b](%C3.png)", []string{"a|%E9%20.png", "b|%C3.png"}},
		{"a percent sign at the end stays", "![a](100%) ![b](a%2) ![c](a%zz%)", []string{"a|100%", "b|a%2", "c|a%zz%"}},
		{"a percent sign that is encoded is decoded once", "![a](a%2520b.png)", []string{"a|a%20b.png"}},
		{"an encoded zero byte", "![a](a%00.png)", []string{"a|!PathMalformed"}},
		{"no name", "![a]() ![b](<>)", []string{"a|!PathMalformed", "b|!PathMalformed"}},
		{"remote ones are left", "![a](https://x/a.png) ![b](//x/b.png) ![c](HTTP://x) ![d](data:image/png;base64,aaaa) ![e](mailto:x)",
			[]string{"a|!RemoteImage", "b|!RemoteImage", "c|!RemoteImage", "d|!RemoteImage", "e|!RemoteImage"}},
		{"files by address are left", "![a](file:///etc/a.png)", []string{"a|!RemoteImage"}},
		{"our own references are known", "![a](vision://vis_0123456789abcdef)", []string{"a|vision://vis_0123456789abcdef"}},
		{"H58: addresses of workspaces are left, with and without a root", "![a](workspace://id/a.png) ![b](workspace://id/a.png?root=x) ![c](workspace://id/a.png?root=x%2Fy)",
			[]string{"a|!WorkspaceUnknown", "b|!WorkspaceUnknown", "c|!WorkspaceUnknown"}},
		{"names that lead out are left", "![a](../a.png) ![b](x/../../b.png) ![c](%2e%2e%2fc.png) ![d](..)", []string{"a|!PathEscapes", "b|!PathEscapes", "c|!PathEscapes", "d|!PathEscapes"}},
		{"names that lead out and back are not", "![a](x/../a.png) ![b](..a.png)", []string{"a|x/../a.png", "b|..a.png"}},
		{"absolute names are the resolver's to judge", "![a](/etc/../a.png)", []string{"a|/etc/../a.png"}},
		{"a colon in a name is no scheme", "![a](./a:b.png) ![b](a b)", []string{"a|./a:b.png"}},
		{"a drive is no scheme", `![a](C:\dir\a.png)`, []string{`a|C:\dir\a.png`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := mentioned(test.text); !slices.Equal(got, test.want) {
				t.Errorf("%q: got %q; want %q", test.text, got, test.want)
			}
		})
	}
}

func TestMarkdownIsAttachedWhereThePolicySaysSo(t *testing.T) {
	everywhere(t, func(t *testing.T, d message.Dialect, place string) {
		talk := []turn{asks("see ![a](a.png), ![b](https://x/b.png)"), says("![c](c.png)"), asks("![d](d.png)")}
		p := found(t, d, place, router.Injection{MarkdownImages: router.MarkdownAttach}, talk...)
		if got := told(p); !slices.Equal(got, []string{"a.png Wanted", "d.png Wanted", "!RemoteImage"}) {
			t.Fatalf("got %q", got)
		}
		for i, s := range p.Sights {
			if s.Kind != Markdown || s.Call != -1 || s.Result != -1 || s.Text != i || !s.Weak || s.Fresh != (i == 1) || s.Tool != "" {
				t.Errorf("got %+v", s)
			}
			if !strings.HasSuffix(s.ID, "#0") {
				t.Errorf("its ID is %q", s.ID)
			}
		}
		t.Run("H55: where it is off, Markdown stays what it is", func(t *testing.T) {
			for _, off := range []router.Injection{{}, {MarkdownImages: router.MarkdownOff}, {Mode: router.InjectionOff, MarkdownImages: router.MarkdownAttach}} {
				if p := found(t, d, place, off, talk...); len(told(p)) != 0 {
					t.Errorf("%+v: got %q", off, told(p))
				}
			}
		})
	})
}

func TestMarkdownIsFoundBehindEscapesOfJSON(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"\u0021\u005ba](\ud83d\ude00.png)"}]}]}`)
	p := foundIn(t, message.OpenAIChat, router.ToolImagesUserMessage, router.Injection{MarkdownImages: router.MarkdownAttach}, body, nil)
	if len(p.Sights) != 1 || p.Sights[0].Path != "😀.png" || !strings.HasPrefix(p.Sights[0].ID, "messages[0].content[1]") {
		t.Errorf("got %+v", p.Sights)
	}
}

func TestOfOneTextSoManyImagesAreLookedAt(t *testing.T) {
	p := found(t, message.OpenAIChat, router.ToolImagesUserMessage, router.Injection{MarkdownImages: router.MarkdownAttach}, asks(strings.Repeat("![a](a.png)\n", maxPictures+9)))
	if len(p.Sights) != maxPictures || len(p.Skips) != 1 || p.Skips[0].Reason != SkipTooMany || !strings.HasSuffix(p.Skips[0].ID, "#64") {
		t.Errorf("%d sights, skips %v", len(p.Sights), p.Skips)
	}
	p = found(t, message.OpenAIChat, router.ToolImagesUserMessage, router.Injection{MarkdownImages: router.MarkdownAttach}, asks("![a](a.png)"+strings.Repeat(" ", maxMarkdownText)))
	if got := told(p); !slices.Equal(got, []string{"!TextTooLong"}) {
		t.Errorf("got %q", got)
	}
}

// hostile are texts that cost much time where a search goes back over and over.
func hostile(size int) map[string]string {
	all := map[string]string{}
	for _, unit := range []string{
		"![", "[", "]", "![](", "![](<", "![](a \"", "![](a '", "![](a (", "![a](x(", "`", "``` ` `` ", "`a``b", "<a:", "\\", "&", "&amp", "> ", "- ", "1. ", "\t", " ", "![a](b) ", "#", "*", "\n", "- \n", ">\n",
		"![a](%", "[![", "](", "![](a\\", "(", ")",
	} {
		all[unit] = strings.Repeat(unit, size/len(unit))
	}
	var runs strings.Builder
	for n := 1; runs.Len() < size; n++ {
		runs.WriteString(strings.Repeat("`", n) + " ")
	}
	all["ever longer runs of backticks"] = runs.String()
	all["deep brackets"] = strings.Repeat("![", size/6) + strings.Repeat("](a)", size/6)
	all["deep lists and blank lines"] = strings.Repeat("- ", size/4) + "\n" + strings.Repeat("\n", size/2)
	return all
}

// TestHostileMarkdownIsReadInLinearTime ends by the test's own timeout where it is
// not: a megabyte squared takes hours.
func TestHostileMarkdownIsReadInLinearTime(t *testing.T) {
	for name, text := range hostile(1 << 20) {
		t.Run(name, func(t *testing.T) {
			for _, m := range mentions(text) {
				if m.path == "" && m.skip == "" {
					t.Error("an image without a path")
				}
			}
		})
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, text := range hostile(64) {
		f.Add(text)
	}
	f.Add("![a](<b c> 'd') `x` > ![e](%C3%A9 (f))\n\n- 1. ```\n\t![g](h)\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range mentions(text) {
			if m.skip == "" && (m.path == "" || len(m.path) > MaxPath || !utf8.ValidString(m.path) || strings.ContainsRune(m.path, 0)) {
				t.Errorf("%q has path %q", text, m.path)
			}
			if m.alt == "" || len(m.alt) > MaxPath+len("Image from ") {
				t.Errorf("%q has description %q", text, m.alt)
			}
		}
	})
}
