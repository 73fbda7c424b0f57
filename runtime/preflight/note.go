// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

// The reasons of decisions, besides those that Image.Bad brings along. A reason
// never changes its meaning.
const (
	// ReasonMediaType: a type that the policy, the model or the vendor does not take.
	ReasonMediaType = "MediaTypeNotAccepted"
	// ReasonSource: a way of giving the image, such as a URL, that the vendor does not take.
	ReasonSource = "SourceNotAccepted"
	// ReasonAnimated: an animation where the vendor takes stills only.
	ReasonAnimated = "AnimationNotAccepted"
	// ReasonBytes: more bytes in one image than a limit allows.
	ReasonBytes = "TooManyBytes"
	// ReasonPixels: more pixels in one image than a limit allows.
	ReasonPixels = "TooManyPixels"
	// ReasonSide: a longer side than a limit allows.
	ReasonSide = "ImageTooLarge"
	// ReasonSideAmongMany: a longer side than the vendor allows among many images.
	ReasonSideAmongMany = "ImageTooLargeAmongMany"
	// ReasonTokens: the model's family of token rules rejects an image of that size.
	ReasonTokens = "ImageCostsTooMuch"
	// ReasonBlind: the model takes no images.
	ReasonBlind = "ModelLacksImageInput"
	// ReasonImages: more images in one request than a limit allows.
	ReasonImages = "TooManyImages"
	// ReasonImagesInMessage: more images in one message than a limit allows.
	ReasonImagesInMessage = "TooManyImagesInMessage"
	// ReasonTotalBytes: more image bytes in one request than a limit allows.
	ReasonTotalBytes = "TooManyImageBytes"
	// ReasonBody: a longer request than a limit allows.
	ReasonBody = "RequestTooLarge"
	// ReasonImageTokens: more tokens in the images of a request than a limit allows.
	ReasonImageTokens = "TooManyImageTokens"
	// ReasonWindow: more tokens than the model's context window has.
	ReasonWindow = "ContextWindowExceeded"
	// ReasonPaths: more different paths than are opened for one request; see ProbePaths.
	ReasonPaths = "TooManyPaths"
)

// notes are constant, number-free texts: an image that is left out keeps its
// note for the rest of the conversation, byte for byte.
var notes = map[string]string{
	ReasonMediaType:       "its type is not accepted",
	ReasonSource:          "it is given in a way that is not accepted",
	ReasonAnimated:        "animations are not accepted",
	ReasonBytes:           "it has too many bytes",
	ReasonPixels:          "it has too many pixels",
	ReasonSide:            "it is too large",
	ReasonSideAmongMany:   "it is too large for a request with many images",
	ReasonTokens:          "it would cost too many tokens",
	ReasonBlind:           "this model cannot look at images",
	ReasonImages:          "the request may hold no more images; newer ones are kept",
	ReasonImagesInMessage: "its message may hold no more images; later ones of it are kept",
	ReasonTotalBytes:      "the request may hold no more bytes of images; newer ones are kept",
	ReasonBody:            "the request would be too long; newer images are kept",
	ReasonImageTokens:     "the request's images would cost too many tokens; newer ones are kept",
	ReasonWindow:          "the model's context window is too small for it; newer images are kept",
	ReasonPaths:           "too many image files are named; newer ones are looked at",
}

// Note is the text that stands in an image's place when it is left out. It
// depends on the reason alone: no number, no name, no path.
func Note(reason string) string {
	if words, ok := notes[reason]; ok {
		return "[image left out: " + words + "]"
	}
	return "[image left out: it cannot be used]"
}
