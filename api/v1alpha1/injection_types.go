// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Injection says how images enter a conversation.
type Injection struct {
	// Mode is the form in which an image is shown to the model: Auto, as an image
	// where the model takes images, else as a text observation; Image, only as an
	// image; Observation, always as text; Off, not at all.
	//
	// Example: `Observation`. Default, applied by the compiler: `Auto`.
	//
	// +optional
	Mode *InjectionMode `json:"mode,omitempty"`

	// Tools are globs of the names of the tools whose calls show images. An empty
	// list is refused: mode: Off says that.
	//
	// Rules: 1 to 32 different globs. Example: `[view_image, "mcp_*_view_image"]`.
	// Default, applied by the runtime: `view_image`, `ViewImage`, and both behind
	// the prefixes `*__` and `mcp_*_`.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^[!-~]+$')`,message="a tool glob is 1 to 128 printable ASCII characters without white space"
	Tools []string `json:"tools,omitzero"`

	// ExcludeTools are globs of tool names that are left alone although tools matches them.
	//
	// Rules: at most 32 different globs. Example: `["mcp_browser_*"]`. Default: none.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^[!-~]+$')`,message="a tool glob is 1 to 128 printable ASCII characters without white space"
	ExcludeTools []string `json:"excludeTools,omitempty"`

	// PathArguments are the arguments of such a tool's call that hold the image's
	// path; the first that is there counts. An empty list is refused: no path
	// would be found.
	//
	// Rules: 1 to 16 different names, in order. Example: `[file]`. Default, applied by
	// the runtime: `path`, `image_path`, `file_path`, `absolute_path`.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^[!-~]+$')`,message="an argument's name is 1 to 128 printable ASCII characters without white space"
	// +kubebuilder:validation:XValidation:rule=`self.all(a, self.exists_one(b, a == b))`,message="an argument must not be named twice"
	PathArguments []string `json:"pathArguments,omitzero"`

	// WaitFor says which tool calls of an assistant message must have their
	// results before its images are shown: AllToolCalls, or VisionToolCalls, only
	// those of vision tools.
	//
	// Example: `VisionToolCalls`. Default, applied by the compiler: `AllToolCalls`.
	//
	// +optional
	WaitFor *WaitFor `json:"waitFor,omitempty"`

	// Keep says how long an image stays in the conversation: Thread, as long as
	// budgets allow; CurrentTurn, until the next human message, after which a
	// constant text stands in for it. CurrentTurn changes the conversation's
	// prefix and so costs the provider's prompt cache.
	//
	// Example: `CurrentTurn`. Default, applied by the compiler: `Thread`.
	//
	// +optional
	Keep *Keep `json:"keep,omitempty"`

	// MarkdownImages says what becomes of Markdown images in human messages,
	// ![alt](path): Attach, those within the workspaces are shown beside the
	// text; Off, they stay text. Remote ones are never fetched.
	//
	// Example: `Attach`. Default, applied by the compiler: `Off`.
	//
	// +optional
	MarkdownImages *MarkdownImages `json:"markdownImages,omitempty"`

	// Template is the text around shown images.
	//
	// Example: `{heading: "Images that your tools read:"}`.
	//
	// +optional
	Template *InjectionTemplate `json:"template,omitempty"`

	// ObservationPrompt is the question that is put to the vision model about every
	// image that is shown as text, in place of any other.
	//
	// Rules: 1 to 4096 characters. Example: `Describe the image for a reader who
	// cannot see it.`. Default, applied by the runtime: the prompt of the call that
	// names the image, else one of its own, with the text of the image's message.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	ObservationPrompt string `json:"observationPrompt,omitempty"`
}

// InjectionMode says in what form an image is shown.
//
// +kubebuilder:validation:Enum=Auto;Image;Observation;Off
type InjectionMode string

// The modes.
const (
	// InjectionAuto: an image where the model takes images, else a text observation.
	InjectionAuto InjectionMode = "Auto"
	// InjectionImage: only as an image.
	InjectionImage InjectionMode = "Image"
	// InjectionObservation: always as a text observation.
	InjectionObservation InjectionMode = "Observation"
	// InjectionOff: not at all.
	InjectionOff InjectionMode = "Off"
)

// WaitFor says which tool calls must have answers first.
//
// +kubebuilder:validation:Enum=AllToolCalls;VisionToolCalls
type WaitFor string

// The values.
const (
	// WaitForAllToolCalls: every call of the assistant's message.
	WaitForAllToolCalls WaitFor = "AllToolCalls"
	// WaitForVisionToolCalls: only the calls of vision tools.
	WaitForVisionToolCalls WaitFor = "VisionToolCalls"
)

// Keep says how long an image stays in a conversation.
//
// +kubebuilder:validation:Enum=Thread;CurrentTurn
type Keep string

// The values.
const (
	// KeepThread: as long as budgets allow.
	KeepThread Keep = "Thread"
	// KeepCurrentTurn: until the next human message.
	KeepCurrentTurn Keep = "CurrentTurn"
)

// MarkdownImages says what becomes of Markdown image links in human messages.
//
// +kubebuilder:validation:Enum=Attach;Off
type MarkdownImages string

// The values.
const (
	// MarkdownImagesAttach: those within the workspaces are shown beside the text.
	MarkdownImagesAttach MarkdownImages = "Attach"
	// MarkdownImagesOff: they stay text.
	MarkdownImagesOff MarkdownImages = "Off"
)

// InjectionTemplate is the text around shown images. Item and unavailable may hold
// variables: {path}, {mime}, {width}, {height}, {bytes} and {sha256} of the image;
// {ocr}, the text that a result of ViewImage says is in it; {source}, the tool that
// was called, or Markdown; {index}, which counts the images of one message from 1;
// and {reason}, why an image cannot be shown.
type InjectionTemplate struct {
	// Heading is the text before the images.
	//
	// Rules: 1 to 4096 characters. Example: `Images that your tools read:`.
	// Default, applied by the runtime: a heading of its own.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Heading string `json:"heading,omitempty"`

	// Item is the text before each image.
	//
	// Rules: 1 to 4096 characters. Example: `{path}, {width}x{height} pixels:`.
	// Default, applied by the runtime: the path and the media type; none within a
	// tool's result.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Item string `json:"item,omitempty"`

	// Unavailable is the text in place of an image that cannot be shown.
	//
	// Rules: 1 to 4096 characters. Example: `{path} is not shown: {reason}`. Default,
	// applied by the runtime: the path and the reason.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Unavailable string `json:"unavailable,omitempty"`
}
