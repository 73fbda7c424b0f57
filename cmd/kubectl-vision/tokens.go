// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/visionoperator/vision-operator/runtime/tokens"
)

const tokensHelp = `Estimate what one image costs a model in input tokens, by the rule that the
vendor publishes. No image is needed, and no cluster or vendor is asked.

  kubectl vision tokens --model claude-opus-4-7 --width 3840 --height 2160
  kubectl vision tokens --model my-deployment --family gpt-4o --width 800 --height 600 --detail low
  kubectl vision tokens --model gemini-3-pro -o json | jq .total

Models that count alike form a family. --family wins over the name of the model:
it is the name of a family, or of a model that is known. Without a size the
estimate is the most that an image can cost. A detail that the family does not
have counts as its default.

With -o json one object is printed, always with these keys:
  model       as given; null when only --family is
  width       as given; null when unknown
  height      likewise
  detail      as given; null when it is not
  family      whose rule is used
  match       how: declared, exact, prefix, part, or none, which is charged with
              care; pattern: the catalog's name that fitted, or null
  confidence  of the rule: published, derived, third-party or assumed
  total       tokens and markers, what to charge; null when refused
  tokens      of the image itself; null when refused
  markers     tokens that frame it; null when refused
  upperBound  whether tokens is a bound and not the count; null when refused
  resized     {width, height} that the vendor counts; null when it does not
              matter, is unknown, or the image is refused
  basis       the rule with its numbers, in a sentence; null when refused
  note        what else to know of the family; null when nothing
  sources     where the rule is published
  reject      null, or {limit, unit, value, actual, source, message}: the limit
              of the vendor for which it refuses the image

The exit code is
  0  when there is an estimate
  1  when the vendor refuses an image of that size
  2  when the command line cannot work

Usage:
  kubectl vision tokens --model MODEL [--width PIXELS --height PIXELS] [flags]

Flags:
`

// tokensOptions are the flags of tokens.
type tokensOptions struct {
	model, family, detail string
	width, height         int // 0 when unknown
	json                  bool
}

func parseTokens(args []string, stdout io.Writer) (tokensOptions, error) {
	var o tokensOptions
	var output string
	flags := pflag.NewFlagSet("tokens", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&o.model, "model", "", "`MODEL` as it goes over the wire")
	flags.IntVar(&o.width, "width", 0, "`PIXELS` from left to right")
	flags.IntVar(&o.height, "height", 0, "`PIXELS` from top to bottom")
	flags.StringVar(&o.detail, "detail", "", "`DETAIL` that the request asks for, in the vendor's word")
	flags.StringVar(&o.family, "family", "", "`FAMILY` of the model, as models[].family of a VisionProvider says it")
	flags.StringVarP(&output, "output", "o", "text", "`FORMAT` to print: text or json")
	flags.Usage = func() { fmt.Fprint(stdout, tokensHelp, flags.FlagUsages()) }
	if err := flags.Parse(args); err != nil {
		if err == pflag.ErrHelp { //nolint:errorlint // pflag returns it bare
			return o, err
		}
		return o, &usageError{problem: err.Error()}
	}
	o.json = output == "json"
	switch {
	case flags.NArg() > 0:
		return o, &usageError{problem: fmt.Sprintf("there is an argument %q that belongs to no flag", flags.Arg(0))}
	case output != "text" && output != "json":
		return o, &usageError{problem: fmt.Sprintf("--output is %q; the outputs are text and json", output)}
	case o.model == "" && o.family == "":
		return o, &usageError{problem: "--model is missing; name a model, or a family with --family"}
	}
	return o, o.checkSize(flags)
}

// checkSize wants both sides or none.
func (o *tokensOptions) checkSize(flags *pflag.FlagSet) error {
	wide, high := flags.Changed("width"), flags.Changed("height")
	switch {
	case wide && o.width < 1:
		return &usageError{problem: fmt.Sprintf("--width is %d; a side has at least 1 pixel", o.width)}
	case high && o.height < 1:
		return &usageError{problem: fmt.Sprintf("--height is %d; a side has at least 1 pixel", o.height)}
	case wide && !high:
		return &usageError{problem: "--width is given without --height; give both, or neither when the size is unknown"}
	case high && !wide:
		return &usageError{problem: "--height is given without --width; give both, or neither when the size is unknown"}
	}
	return nil
}

// runTokens is the command tokens.
func runTokens(args []string, stdout io.Writer) error {
	options, err := parseTokens(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	return estimate(options, stdout)
}

// estimate looks the family up, estimates and prints. The error of an image that
// the vendor refuses is a *tokens.RejectError.
func estimate(o tokensOptions, stdout io.Writer) error {
	family := tokens.Find(o.model, o.family)
	if family.Match().UnknownDeclared {
		return &usageError{problem: fmt.Sprintf("--family is %q, which is neither a family nor a known model; the families are %s", o.family, familyNames())}
	}
	found, refused := family.Estimate(tokens.Image{Width: o.width, Height: o.height, Detail: o.detail})
	answer := &costed{options: o, family: family, estimate: found}
	if refused != nil && !errors.As(refused, &answer.reject) {
		return refused
	}
	print := answer.text
	if o.json {
		print = answer.object
	}
	if _, err := io.WriteString(stdout, print()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return refused
}

func familyNames() string {
	var names []string
	for _, f := range tokens.Default().Families() {
		names = append(names, f.Name())
	}
	return strings.Join(names, ", ")
}

// costed is an estimate, or the refusal in its place.
type costed struct {
	options  tokensOptions
	family   tokens.Family
	estimate tokens.Estimate
	reject   *tokens.RejectError
}

// size is the image's size for a person.
func (c *costed) size() string {
	if c.options.width == 0 {
		return "unknown size"
	}
	return fmt.Sprintf("%d x %d", c.options.width, c.options.height)
}

// matches say how a family was found.
var matches = map[tokens.How]string{
	tokens.ByDeclaration: "named by --family",
	tokens.ByName:        "the name is known",
	tokens.ByPrefix:      "the name begins with",
	tokens.ByPart:        "the name contains",
	tokens.ByDefault:     "no known name fits; charged with care",
}

// text is a line with the number and one for each of its reasons.
func (c *costed) text() string {
	var b strings.Builder
	e := c.estimate
	switch {
	case c.reject != nil:
		fmt.Fprintf(&b, "no estimate: the vendor refuses an image of %s\n", c.size())
	case e.UpperBound:
		fmt.Fprintf(&b, "at most %d tokens for an image of %s\n", e.Total(), c.size())
	default:
		fmt.Fprintf(&b, "%d tokens for an image of %s\n", e.Total(), c.size())
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	match := c.family.Match()
	how := matches[match.How]
	if match.How == tokens.ByPrefix || match.How == tokens.ByPart {
		how += fmt.Sprintf(" %q", strings.Trim(match.Pattern, "*"))
	}
	line("Family", "%s (%s)", c.family.Name(), how)
	if r := c.reject; r != nil {
		line("Refused", "%s: %d %s; the limit is %d", r.Limit, r.Actual, r.Unit, r.Value)
		line("Limit from", "%s", r.Source)
	} else {
		line("Basis", "%s", e.Basis())
		if e.Markers > 0 {
			line("Markers", "%d of the tokens frame the image", e.Markers)
		}
		if e.Resized != (tokens.Size{}) {
			line("Resized", "%d x %d", e.Resized.Width, e.Resized.Height)
		}
	}
	line("Confidence", "%s", c.family.Confidence())
	if note := c.family.Note(); note != "" {
		line("Note", "%s", note)
	}
	for _, source := range c.family.Sources() {
		line("Source", "%s", source)
	}
	w.Flush()
	return b.String()
}

// tokensObject is the object of -o json. A nil is a null.
type tokensObject struct {
	Model      *string           `json:"model"`
	Width      *int              `json:"width"`
	Height     *int              `json:"height"`
	Detail     *string           `json:"detail"`
	Family     string            `json:"family"`
	Match      matchObject       `json:"match"`
	Confidence tokens.Confidence `json:"confidence"`
	Total      *int64            `json:"total"`
	Tokens     *int64            `json:"tokens"`
	Markers    *int64            `json:"markers"`
	UpperBound *bool             `json:"upperBound"`
	Resized    *sizeObject       `json:"resized"`
	Basis      *string           `json:"basis"`
	Note       *string           `json:"note"`
	Sources    []string          `json:"sources"`
	Reject     *rejectObject     `json:"reject"`
}

type matchObject struct {
	How     tokens.How `json:"how"`
	Pattern *string    `json:"pattern"`
}

type sizeObject struct {
	Width  int64 `json:"width"`
	Height int64 `json:"height"`
}

type rejectObject struct {
	Limit   string `json:"limit"`
	Unit    string `json:"unit"`
	Value   int64  `json:"value"`
	Actual  int64  `json:"actual"`
	Source  string `json:"source"`
	Message string `json:"message"`
}

// told is a pointer to s, or nil when it says nothing.
func told[T comparable](s T) *T {
	var nothing T
	if s == nothing {
		return nil
	}
	return &s
}

// object is one object of JSON.
func (c *costed) object() string {
	o, match := c.options, c.family.Match()
	out := tokensObject{
		Model: told(o.model), Width: told(o.width), Height: told(o.height), Detail: told(o.detail),
		Family: c.family.Name(), Match: matchObject{match.How, told(match.Pattern)}, Confidence: c.family.Confidence(),
		Note: told(c.family.Note()), Sources: c.family.Sources(),
	}
	if r := c.reject; r != nil {
		out.Reject = &rejectObject{r.Limit, r.Unit, r.Value, r.Actual, r.Source, r.Error()}
		return indented(out)
	}
	e := c.estimate
	total, basis := e.Total(), e.Basis()
	out.Total, out.Tokens, out.Markers, out.UpperBound, out.Basis = &total, &e.Tokens, &e.Markers, &e.UpperBound, &basis
	if e.Resized != (tokens.Size{}) {
		out.Resized = &sizeObject{e.Resized.Width, e.Resized.Height}
	}
	return indented(out)
}

// indented is an object for people and machines. What it is given is made of
// strings, numbers and JSON alone, so that nothing can fail.
func indented(object any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	_ = encoder.Encode(object)
	return b.String()
}
