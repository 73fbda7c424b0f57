// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// narrator tells the demo's story: numbered steps with the time each took, and
// what they found. Colour only on a terminal.
type narrator struct {
	out    io.Writer
	colour bool
	total  int
	step   int
}

func newNarrator(out *os.File, total int) *narrator {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return &narrator{out: out, colour: terminal, total: total}
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (n *narrator) paint(code, s string) string {
	if !n.colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// begin announces the next step and returns a function that ends it.
func (n *narrator) begin(title string) func(error) {
	n.step++
	started := time.Now()
	fmt.Fprintf(n.out, "\n%s %s\n", n.paint(cyan, fmt.Sprintf("[%2d/%d]", n.step, n.total)), n.paint(bold, title))
	return func(err error) {
		took := time.Since(started).Round(time.Millisecond)
		if err != nil {
			fmt.Fprintf(n.out, "        %s after %s\n", n.paint(red, "failed"), took)
			return
		}
		fmt.Fprintf(n.out, "        %s in %s\n", n.paint(green, "done"), took)
	}
}

// say prints one line of the story.
func (n *narrator) say(format string, args ...any) {
	fmt.Fprintf(n.out, "        %s\n", fmt.Sprintf(format, args...))
}

// show prints a heading and a text of several lines, indented.
func (n *narrator) show(heading, text string) {
	n.say("%s", n.paint(dim, heading))
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		fmt.Fprintf(n.out, "          | %s\n", n.tint(strings.TrimRight(line, "\n")))
	}
}

// tint colours the lines of a unified diff.
func (n *narrator) tint(line string) string {
	switch {
	case strings.HasPrefix(line, "+"):
		return n.paint(green, line)
	case strings.HasPrefix(line, "-"):
		return n.paint(red, line)
	}
	return line
}
