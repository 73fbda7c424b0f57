// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Limits bound images and requests. A limit counts as the lowest of every
// layer that sets it; the built-in value counts only where no layer does.
type Limits struct {
	// Image bounds each image.
	//
	// Example: `{maxBytes: 5242880, mediaTypes: [image/png]}`.
	//
	// +optional
	Image *ImageLimits `json:"image,omitempty"`

	// Request bounds what one request may hold.
	//
	// Example: `{maxDistinctImages: 4}`.
	//
	// +optional
	Request *RequestLimits `json:"request,omitempty"`
}

// ImageLimits bound each image.
type ImageLimits struct {
	// MaxBytes is the most bytes that an image file may have.
	//
	// Rules: 1 to 1073741824 (1 GiB). Example: `5242880`.
	// Default, applied by the compiler: `20971520` (20 MiB).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	MaxBytes *int64 `json:"maxBytes,omitempty"`

	// MaxPixels is the most pixels, width times height, that an image may
	// have. It is read from the image's header, before anything is decoded.
	//
	// Rules: 1 to 1000000000. Example: `12000000`.
	// Default, applied by the compiler: `50000000`.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MaxPixels *int64 `json:"maxPixels,omitempty"`

	// MediaTypes are the image types that are accepted, by their content and
	// never by a file's name. The list narrows: a type that the chosen model does
	// not take stays refused. An empty list is refused: it would accept nothing.
	//
	// Rules: 1 to 16 types of the form image/…, in lower case, without parameters.
	// Example: `[image/png, image/jpeg]`. Default, applied by the runtime: png,
	// jpeg, gif and webp, and what the chosen model's own limits list.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule=`self.matches('^image/[a-z0-9](?:[-+.a-z0-9]*[a-z0-9])?$')`,message="must be an image type in lower case, such as image/png"
	MediaTypes []string `json:"mediaTypes,omitzero"`

	// OnOversize says what becomes of an image that is larger than a limit, the
	// policy's or the model's: Refuse, an error with the numbers; Downscale, a
	// smaller copy is sent, and said so. Only what has not been sent yet is
	// downscaled; a type that the runtime cannot decode is refused all the same.
	//
	// Example: `Downscale`. Default, applied by the compiler: `Refuse`.
	//
	// +optional
	OnOversize *OnOversize `json:"onOversize,omitempty"`
}

// OnOversize says what becomes of an image over a limit.
//
// +kubebuilder:validation:Enum=Refuse;Downscale
type OnOversize string

// The values.
const (
	// OnOversizeRefuse: an error with the numbers.
	OnOversizeRefuse OnOversize = "Refuse"
	// OnOversizeDownscale: a smaller copy is sent, where one can be made.
	OnOversizeDownscale OnOversize = "Downscale"
)

// RequestLimits bound one request.
type RequestLimits struct {
	// MaxDistinctImages is the most images with different content that one
	// request may hold. The same bytes at two paths count once.
	//
	// Rules: 1 to 1000. Example: `4`.
	// Default, applied by the compiler: `8`.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxDistinctImages *int64 `json:"maxDistinctImages,omitempty"`

	// MaxTotalImageBytes is the most bytes that the different images of one
	// request may have together, as files, before base64.
	//
	// Rules: 1 to 1073741824 (1 GiB). Example: `10485760`.
	// Default, applied by the compiler: `20971520` (20 MiB).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	MaxTotalImageBytes *int64 `json:"maxTotalImageBytes,omitempty"`

	// MaxProbedPaths is the most paths whose files are opened for one request.
	//
	// Rules: 1 to 1000. Example: `8`.
	// Default, applied by the compiler: `16`.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxProbedPaths *int64 `json:"maxProbedPaths,omitempty"`

	// MaxImageTokens is the most tokens that the images of one request may
	// cost, as estimated by the model's token family. Every occurrence of an image
	// counts. Images that the request can do without are left out first; those that
	// it must show are refused when they exceed it by themselves.
	//
	// Rules: 1 to 100000000. Example: `8000`.
	// Absent: no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000000
	MaxImageTokens *int64 `json:"maxImageTokens,omitempty"`

	// MaxBodyBytes is the most bytes that the body of a request to the runtime
	// may have. Calls of the tool are held to 1 MiB besides: they name the image.
	//
	// Rules: 1 to 1073741824 (1 GiB). Example: `33554432`.
	// Default, applied by the compiler: `67108864` (64 MiB).
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741824
	MaxBodyBytes *int64 `json:"maxBodyBytes,omitempty"`
}

// Quota bounds what is spent in a window of time.
//
// +kubebuilder:validation:XValidation:rule=`has(self.observations) || has(self.imageTokens) || has(self.cost)`,message="a quota must bound at least one of observations, imageTokens and cost"
type Quota struct {
	// Scope is who shares the quota: Pod, each pod has its own; Policy, all pods
	// that the policy serves; Namespace, all pods of the namespace.
	//
	// Example: `Namespace`.
	//
	// +required
	Scope QuotaScope `json:"scope"`

	// Window is the time in which the quota may be spent.
	//
	// Rules: 1s to 744h (31 days). Example: `24h`.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule=`!self.matches('^(?:[0-9]{1,5}(?:h|m|s|ms)){1,4}$') || (duration(self) >= duration('1s') && duration(self) <= duration('744h'))`,message="must be between 1s and 744h"
	Window Duration `json:"window"`

	// Observations is the most observations that are made in a window. Answers
	// from the cache are not counted.
	//
	// Rules: 1 to 1000000000. Example: `500`. Absent: not bounded.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Observations *int64 `json:"observations,omitempty"`

	// ImageTokens is the most tokens that images may cost in a window.
	//
	// Rules: 1 to 1000000000000. Example: `1000000`. Absent: not bounded.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000000
	ImageTokens *int64 `json:"imageTokens,omitempty"`

	// Cost is the most that may be spent in a window, in the currency of the
	// models' prices. Models without a price cost nothing.
	//
	// Rules: a decimal above 0 of at most nine digits before and nine after the
	// point, as a string. Example: `"25.00"`. Absent: not bounded.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=19
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(?:0|[1-9][0-9]{0,8})(?:[.][0-9]{1,9})?$') && self.matches('[1-9]')`,message="must be a plain decimal above 0 such as 25.00, of at most nine digits before and nine after the point"
	Cost string `json:"cost,omitempty"`

	// Mode says whether the quota refuses: Enforce, a spent quota refuses; Shadow,
	// it is only counted and reported.
	//
	// Example: `Shadow`. Default, applied by the compiler: `Enforce`.
	//
	// +optional
	Mode *QuotaMode `json:"mode,omitempty"`

	// OnStoreFailure says what happens while the store of a shared quota's
	// counters cannot be reached: Allow or Deny.
	//
	// Example: `Deny`. Default, applied by the compiler: `Allow`.
	//
	// +optional
	OnStoreFailure *OnStoreFailure `json:"onStoreFailure,omitempty"`
}

// QuotaScope is who shares a quota.
//
// +kubebuilder:validation:Enum=Pod;Policy;Namespace
type QuotaScope string

// The scopes.
const (
	// QuotaScopePod: each pod has a quota of its own.
	QuotaScopePod QuotaScope = "Pod"
	// QuotaScopePolicy: all pods that the policy serves share it.
	QuotaScopePolicy QuotaScope = "Policy"
	// QuotaScopeNamespace: all pods of the namespace share it.
	QuotaScopeNamespace QuotaScope = "Namespace"
)

// QuotaMode says whether a quota refuses or only counts.
//
// +kubebuilder:validation:Enum=Enforce;Shadow
type QuotaMode string

// The modes.
const (
	// QuotaModeEnforce: a spent quota refuses.
	QuotaModeEnforce QuotaMode = "Enforce"
	// QuotaModeShadow: what would be refused is counted and reported, and let through.
	QuotaModeShadow QuotaMode = "Shadow"
)

// OnStoreFailure says what happens while the store of counters cannot be reached.
//
// +kubebuilder:validation:Enum=Allow;Deny
type OnStoreFailure string

// The values.
const (
	// OnStoreFailureAllow: calls go on uncounted.
	OnStoreFailureAllow OnStoreFailure = "Allow"
	// OnStoreFailureDeny: calls are refused.
	OnStoreFailureDeny OnStoreFailure = "Deny"
)
