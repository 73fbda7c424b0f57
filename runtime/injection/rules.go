// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// Rules are a profile's rules of injection, with the runtime's defaults in.
type Rules struct {
	// Mode is one of router's Injection modes.
	Mode string
	// Tools and ExcludeTools are globs of vision tools' names.
	Tools, ExcludeTools []string
	// PathArguments name the argument that holds the path, in order.
	PathArguments []string
	// WaitFor and Keep are router's values.
	WaitFor, Keep string
	// Markdown says that Markdown images of humans' messages are attached.
	Markdown bool
	// Heading, Item and Unavailable are templates: see Template.
	Heading, Item, Unavailable string
	// ItemInResult says that Item is put before images in tools' results too, since
	// the policy sets it; those stand beside the call that names them already.
	ItemInResult bool
	// readsOCR says that a template asks for the text of images.
	readsOCR bool
	// ObservationPrompt is put to the vision model in place of every other; "" for none.
	ObservationPrompt string
}

// The defaults. The names are those that tools for images go by, alone and
// behind the prefixes that hosts give to tools of MCP servers.
var (
	defaultTools = []string{
		"view_image", "ViewImage", "*__view_image", "*__ViewImage", "mcp_*_view_image", "mcp_*_ViewImage",
	}
	defaultPathArguments = []string{"path", "image_path", "file_path", "absolute_path"}
)

// The default texts.
const (
	defaultHeading     = "The images you asked to see:"
	defaultItem        = "- {path} ({mime})"
	defaultUnavailable = "[image {path} is not available: {reason}]"
)

// RulesOf are the rules of a policy.
func RulesOf(i router.Injection) *Rules {
	rules := &Rules{
		Mode:  or(i.Mode, router.InjectionAuto),
		Tools: list(i.Tools, defaultTools), ExcludeTools: slices.Clone(i.ExcludeTools),
		PathArguments: list(i.PathArguments, defaultPathArguments),
		WaitFor:       or(i.WaitFor, router.WaitForAllToolCalls), Keep: or(i.Keep, router.KeepThread),
		Markdown:          i.MarkdownImages == router.MarkdownAttach,
		Heading:           or(i.Template.Heading, defaultHeading),
		Item:              or(i.Template.Item, defaultItem),
		Unavailable:       or(i.Template.Unavailable, defaultUnavailable),
		ItemInResult:      i.Template.Item != "",
		ObservationPrompt: i.ObservationPrompt,
	}
	rules.readsOCR = strings.Contains(rules.Item+rules.Unavailable, "{ocr}")
	return rules
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func list(values, otherwise []string) []string {
	if len(values) == 0 {
		return slices.Clone(otherwise)
	}
	return slices.Clone(values)
}

// Vision reports whether a tool of that name shows images.
func (rules *Rules) Vision(tool string) bool {
	return anyGlob(rules.Tools, tool) && !anyGlob(rules.ExcludeTools, tool)
}

func anyGlob(globs []string, s string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return router.Glob(glob, s) })
}
