// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

const probeHelp = `Say what the bytes of image files tell: type, size in pixels as stored,
orientation, animation, length and digest. Nothing is decoded, the name of a file
says nothing, and no cluster is asked.

  kubectl vision probe photo.jpg
  kubectl vision probe -o json *.png | jq -r 'select(.error) | .path'

With -o json each file is one object on a line of its own, always with these keys:
  path         as given
  mediaType    of the content; null when it is no image of a known type
  width        in pixels, as stored; null when unknown
  height       likewise. Those of image/svg+xml are a hint
  orientation  1 to 8 as in EXIF, where 5 to 8 are shown lying; null when not told
  animated     true, false, or null when the bytes do not tell
  bytes        length of the file
  sha256       of the whole file, in hexadecimal digits
  error        null, or what went wrong; the other keys hold what is known

The first 64 KiB are looked at, as the runtime does before it reads an image, and
the rest is hashed: a size or orientation that stands behind them is not known,
which is no error. What is not a regular file is an error.

The exit code is
  0  when every file is an image
  1  when one is not, or could not be read
  2  when the command line cannot work

Usage:
  kubectl vision probe FILE... [flags]

Flags:
`

// probeOptions are probe's arguments and flags.
type probeOptions struct {
	files []string
	json  bool
}

func parseProbe(args []string, stdout io.Writer) (probeOptions, error) {
	var o probeOptions
	var output string
	flags := pflag.NewFlagSet("probe", pflag.ContinueOnError)
	flags.StringVarP(&output, "output", "o", "text", "`FORMAT` to print: text or json")
	flags.Usage = func() { fmt.Fprint(stdout, probeHelp, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		if err == pflag.ErrHelp { //nolint:errorlint // pflag returns it bare
			return o, err
		}
		return o, &usageError{problem: err.Error()}
	}
	switch {
	case output != "text" && output != "json":
		return o, &usageError{problem: fmt.Sprintf("there is no output %q; the outputs are text and json", output)}
	case flags.NArg() == 0:
		return o, &usageError{problem: "FILE is missing; name the images to look at"}
	}
	o.files, o.json = flags.Args(), output == "json"
	return o, nil
}

// runProbe is the command probe.
func runProbe(args []string, stdout io.Writer) error {
	options, err := parseProbe(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	return probeFiles(options, stdout)
}

// probeFiles prints a line for each file, in their order, as soon as it is known.
func probeFiles(o probeOptions, stdout io.Writer) error {
	failed := 0
	for _, path := range o.files {
		seen := inspect(path)
		if seen.err != nil {
			failed++
		}
		print := seen.text
		if o.json {
			print = seen.line
		}
		if _, err := io.WriteString(stdout, print()); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("probing: %d of %d files failed", failed, len(o.files))
	}
	return nil
}

// inspected is what is known of a file.
type inspected struct {
	path   string
	facts  probe.Facts
	hashed bool   // whether the file was read to its end: then bytes and sha256 are
	bytes  int64  // its length
	sha256 string // in hexadecimal digits
	head   []byte // its first bytes, at most probe.MaxHeader
	err    error
}

// probeLine is the object of -o json. A nil is a null.
type probeLine struct {
	Path        string  `json:"path"`
	MediaType   *string `json:"mediaType"`
	Width       *int    `json:"width"`
	Height      *int    `json:"height"`
	Orientation *int    `json:"orientation"`
	Animated    *bool   `json:"animated"`
	Bytes       *int64  `json:"bytes"`
	SHA256      *string `json:"sha256"`
	Error       *string `json:"error"`
}

// line is one line of JSON.
func (i *inspected) line() string {
	line := probeLine{Path: i.path}
	f := i.facts
	if f.MediaType != "" {
		line.MediaType = &f.MediaType
	}
	if f.SizeKnown() {
		line.Width, line.Height = &f.Width, &f.Height
	}
	if f.Orientation > 0 {
		line.Orientation = &f.Orientation
	}
	if f.Animated != probe.Unknown {
		animated := f.Animated == probe.Yes
		line.Animated = &animated
	}
	if i.hashed {
		line.Bytes, line.SHA256 = &i.bytes, &i.sha256
	}
	if i.err != nil {
		text := i.err.Error()
		line.Error = &text
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(line) // of strings and numbers, into memory
	return b.String()
}

// text is one line for a person.
func (i *inspected) text() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	f := i.facts
	switch {
	case i.err != nil:
		add("error: %v", i.err)
	case f.SizeKnown():
		add("%s, %d x %d", f.MediaType, f.Width, f.Height)
	default:
		add("%s, size unknown", f.MediaType)
	}
	if f.Orientation > 0 {
		width, height := f.DisplaySize()
		if width != f.Width {
			add("orientation %d (shown as %d x %d)", f.Orientation, width, height)
		} else {
			add("orientation %d", f.Orientation)
		}
	}
	if f.Animated == probe.Yes {
		add("animated")
	}
	if f.Bits > 8 {
		add("%d bits", f.Bits)
	}
	if f.CMYK {
		add("CMYK")
	}
	if f.ReachWidth > 0 {
		add("frames reach %d x %d", f.ReachWidth, f.ReachHeight)
	}
	if i.hashed {
		add("%d bytes, sha256 %s", i.bytes, i.sha256)
	}
	return printable(i.path) + ": " + printable(strings.Join(parts, ", ")) + "\n"
}

// printable quotes what would move a terminal's cursor.
func printable(s string) string {
	if quoted := strconv.Quote(s); quoted[1:len(quoted)-1] != s && strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return quoted
	}
	return s
}
