// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Model is one model and what it can do.
type Model struct {
	// Name is the model's name as it goes over the wire, and the last part of a
	// route. It may hold slashes.
	//
	// Rules: unique in the list; 1 to 253 bytes without white space or control
	// characters. Example: `Qwen/Qwen3-VL-8B-Instruct`.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[^\x00-\x20\x7f]+$') && bytes(self).size() <= 253`,message="a model's name is part of a route: at most 253 bytes, without white space or control characters"
	Name string `json:"name"`

	// ImageInput says whether the model accepts images. It is stated, never
	// guessed: a wrong guess costs a failed call or a blind answer.
	//
	// Example: `true`.
	//
	// +required
	ImageInput *bool `json:"imageInput"`

	// Family is the token family by which the cost of an image is estimated: the
	// name of a family, or that of a model that counts alike. It wins over what the
	// model's own name tells.
	//
	// Rules: at most 64 of a-z, 0-9, . and -, beginning and ending with a letter
	// or digit; admission refuses a family that is not known, and names those near
	// it. Example: `openai-patch`. Default, applied by the runtime: inferred from
	// the model's name; a model whose name tells nothing is charged with care.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?$')`,message="a token family is made of a-z, 0-9, . and -, beginning and ending with a letter or digit"
	Family string `json:"family,omitempty"`

	// ContextWindowTokens is how many tokens the model's context holds, input
	// and output together. Images that a request can do without are left out when
	// they do not fit beside its text, its answer and some headroom, as estimated;
	// a request is refused only when the images that it must show exceed the window
	// by themselves.
	//
	// Rules: 1 to 100000000. Example: `400000`. Absent: unknown, and then the
	// window is not checked.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	ContextWindowTokens *int64 `json:"contextWindowTokens,omitempty"`

	// MaxOutputTokens is the most tokens that an observation may ask the model
	// for. The runtime asks for 16384 at most.
	//
	// Rules: 1 to 100000000, and no more than contextWindowTokens. Example:
	// `4096`. Absent: nothing is asked for, and the endpoint's own limit holds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	MaxOutputTokens *int64 `json:"maxOutputTokens,omitempty"`

	// ToolImages says where the model accepts an image that a tool returned:
	// InToolResult, inside the tool's result; UserMessage, in a user message
	// after it; AssistantThenUserMessage, in a user message after a short
	// assistant message, for servers that refuse a user message right there.
	//
	// Example: `UserMessage`. Default, applied by the runtime: inferred from the
	// transport and the model's name.
	//
	// +optional
	ToolImages *ToolImages `json:"toolImages,omitempty"`

	// Limits are the vendor's limits for this model, counted per part as it is
	// sent. Each stands in place of what the runtime itself knows of the vendor. A
	// policy's limits apply besides.
	//
	// Example: `{maxImageBytes: 5242880, maxImageSide: 8000}`. Absent: those that
	// the runtime knows of the vendor, if any.
	//
	// +optional
	Limits *ModelLimits `json:"limits,omitempty"`

	// Price is what the model's tokens cost, in one currency of the platform
	// team's choice. Quotas with a cost count by it.
	//
	// Example: `{inputPerMillionTokens: "1.25", outputPerMillionTokens: "10"}`.
	// Absent: the model costs nothing that a quota could count.
	//
	// +optional
	Price *ModelPrice `json:"price,omitempty"`
}

// ToolImages says where a dialect accepts the image that a tool returned.
//
// +kubebuilder:validation:Enum=InToolResult;UserMessage;AssistantThenUserMessage
type ToolImages string

// The places.
const (
	// ToolImagesInToolResult: inside the tool's result.
	ToolImagesInToolResult ToolImages = "InToolResult"
	// ToolImagesUserMessage: in a user message after the tool's result.
	ToolImagesUserMessage ToolImages = "UserMessage"
	// ToolImagesAssistantThenUser: in a user message after a short assistant message.
	ToolImagesAssistantThenUser ToolImages = "AssistantThenUserMessage"
)

// ModelLimits are a vendor's limits, counted per part as sent.
type ModelLimits struct {
	// MaxImages is the most images that one request may hold.
	//
	// Rules: 1 to 10000. Example: `100`. Absent: the vendor's
	// own, where the runtime knows it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxImages *int64 `json:"maxImages,omitempty"`

	// MaxImageBytes is the most bytes that one image may have as it is sent,
	// which for most transports is after base64.
	//
	// Rules: 1 to 1073741824 (1 GiB). Example: `5242880`. Absent: the vendor's
	// own, where the runtime knows it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	MaxImageBytes *int64 `json:"maxImageBytes,omitempty"`

	// MaxImageSide is the longest side, in pixels, that an image may have.
	//
	// Rules: 1 to 1000000. Example: `8000`. Absent: the vendor's
	// own, where the runtime knows it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	MaxImageSide *int64 `json:"maxImageSide,omitempty"`

	// MaxRequestBytes is the most bytes that the body of a request may have.
	//
	// Rules: 1 to 1073741824 (1 GiB). Example: `33554432`. Absent: the vendor's
	// own, where the runtime knows it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	MaxRequestBytes *int64 `json:"maxRequestBytes,omitempty"`

	// MediaTypes are the image types that the vendor takes for this model. Types
	// beside png, jpeg, gif and webp, which every policy accepts, are accepted for
	// this model as well. A list that names any of these four is complete: those of
	// them that it leaves out are refused for this model; a list that names none of
	// them adds to them. A policy's own list narrows what is accepted for every
	// model. An empty list is refused: a model that accepts none has imageInput: false.
	//
	// Rules: 1 to 16 types of the form image/…, in lower case, without parameters.
	// Example: `[image/png, image/jpeg, image/heic]`. Absent: png, jpeg, gif and
	// webp, without those that the vendor is known to refuse.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^image/[a-z0-9](?:[-+.a-z0-9]*[a-z0-9])?$')`,message="must be an image type in lower case, such as image/png"
	MediaTypes []string `json:"mediaTypes,omitzero"`
}

// ModelPrice is what tokens cost, in one currency of the platform team's choice.
type ModelPrice struct {
	// InputPerMillionTokens is the price of a million input tokens.
	//
	// Rules: a decimal of at most nine digits before and nine after the point,
	// as a string. Example: `"1.25"`. Absent: 0.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(?:0|[1-9][0-9]{0,8})(?:[.][0-9]{1,9})?$')`,message="must be a plain decimal such as 1.25, of at most nine digits before and nine after the point"
	InputPerMillionTokens string `json:"inputPerMillionTokens,omitempty"`

	// OutputPerMillionTokens is the price of a million output tokens.
	//
	// Rules: a decimal of at most nine digits before and nine after the point,
	// as a string. Example: `"10"`. Absent: 0.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(?:0|[1-9][0-9]{0,8})(?:[.][0-9]{1,9})?$')`,message="must be a plain decimal such as 1.25, of at most nine digits before and nine after the point"
	OutputPerMillionTokens string `json:"outputPerMillionTokens,omitempty"`
}
