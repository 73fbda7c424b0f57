// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router

// Injection says how images enter the conversations of a profile. Empty values
// of words mean the first one of their list; of lists and texts, the runtime's
// own defaults, which package injection holds.
type Injection struct {
	// Mode is InjectionAuto, InjectionImage, InjectionObservation or InjectionOff.
	Mode string `json:"mode,omitempty"`
	// Tools and ExcludeTools are Globs of tool names.
	Tools        []string `json:"tools,omitempty"`
	ExcludeTools []string `json:"excludeTools,omitempty"`
	// PathArguments are the arguments of a call that hold the image's path, in order.
	PathArguments []string `json:"pathArguments,omitempty"`
	// WaitFor is WaitForAllToolCalls or WaitForVisionToolCalls.
	WaitFor string `json:"waitFor,omitempty"`
	// Keep is KeepThread or KeepCurrentTurn.
	Keep string `json:"keep,omitempty"`
	// MarkdownImages is MarkdownOff or MarkdownAttach.
	MarkdownImages string `json:"markdownImages,omitempty"`
	// Template is the text around shown images.
	Template InjectionTemplate `json:"template,omitzero"`
	// ObservationPrompt is the question put to the vision model in place of every other.
	ObservationPrompt string `json:"observationPrompt,omitempty"`
}

// InjectionTemplate holds texts with variables in braces: {path}, {mime},
// {width}, {height}, {bytes}, {sha256}, {source}, {index} and {ocr}.
type InjectionTemplate struct {
	// Heading stands before the images of a message, Item before each image, and
	// Unavailable in the place of one that cannot be shown.
	Heading     string `json:"heading,omitempty"`
	Item        string `json:"item,omitempty"`
	Unavailable string `json:"unavailable,omitempty"`
}

// Values of Injection.Mode.
const (
	// InjectionAuto: an image where the model takes images, else a text observation.
	InjectionAuto = "Auto"
	// InjectionImage: only as an image; a model that takes none is refused.
	InjectionImage = "Image"
	// InjectionObservation: always as a text observation.
	InjectionObservation = "Observation"
	// InjectionOff: not at all.
	InjectionOff = "Off"
)

// Values of Injection.WaitFor.
const (
	// WaitForAllToolCalls: every call of the assistant's turn must have its answer.
	WaitForAllToolCalls = "AllToolCalls"
	// WaitForVisionToolCalls: only those of vision tools.
	WaitForVisionToolCalls = "VisionToolCalls"
)

// Values of Injection.Keep.
const (
	// KeepThread: an image stays as long as budgets allow.
	KeepThread = "Thread"
	// KeepCurrentTurn: until the next human message.
	KeepCurrentTurn = "CurrentTurn"
)

// Values of Injection.MarkdownImages.
const (
	// MarkdownOff: Markdown images in human messages stay text.
	MarkdownOff = "Off"
	// MarkdownAttach: those within the workspaces are shown beside the text.
	MarkdownAttach = "Attach"
)
