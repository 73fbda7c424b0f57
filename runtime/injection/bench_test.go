// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// BenchmarkFind reads conversations of 50 exchanges with the model: without tools,
// with shells, with 10 views of images, and with a Markdown image in each.
func BenchmarkFind(b *testing.B) {
	filler := strings.Repeat("some text that is as long as a paragraph is. ", 100)
	for name, of := range map[string]func(n int) []turn{
		"text":   func(int) []turn { return []turn{asks(filler), says(filler)} },
		"shells": func(n int) []turn { return shellOf(n, filler) },
		"views": func(n int) []turn {
			if n%5 != 0 {
				return shellOf(n, filler)
			}
			id := fmt.Sprintf("call_%08d", n)
			return []turn{makes(view(id, "a.png")), gets(seen(id))}
		},
		"Markdown": func(int) []turn { return []turn{asks(filler + "![a](a.png)"), says(filler)} },
	} {
		talk := []turn{asks("go")}
		for n := range 50 {
			talk = append(talk, of(n)...)
		}
		for _, d := range []message.Dialect{message.OpenAIChat, message.AnthropicMessages} {
			body := bodyOf(b, d, talk)
			r, err := message.Scan(d, body)
			if err != nil {
				b.Fatal(err)
			}
			rules := RulesOf(router.Injection{MarkdownImages: router.MarkdownAttach})
			b.Run(name+"/"+string(d), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					Find(r, body, rules, places(d)[0], nil)
				}
			})
		}
	}
}

func shellOf(n int, text string) []turn {
	id := fmt.Sprintf("call_%08d", n)
	return []turn{makes(other(id)), gets(got{id: id, tool: "shell", text: text})}
}

func BenchmarkMarkdown(b *testing.B) {
	text := strings.Repeat("- a `line` of [text](b) with ![an image](a.png) in it\n\n> and a quote\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		mentions(text)
	}
}
