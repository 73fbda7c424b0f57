// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"net/http"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/store"
)

// Unknown is the answer for an id that Find does not find: it was never kept
// here, it was evicted, it names two images, or it is no id at all.
func Unknown(id string) *fault.Fault {
	if !observation.IsReferenceID(id) {
		return fault.New(fault.InvalidToolInput, "ReferenceMalformed", "this is not the reference of an image").
			Hint("Give it as it was answered: vis_ and 16 hexadecimal digits, as a path with vision:// before it.")
	}
	return fault.New(fault.InvalidToolInput, "ReferenceUnknown", "no image is kept for the reference %s", id).
		With("reference", id).
		Hint("Upload the image again, or give the path of its file; references are kept for a limited time.")
}

// conflict is an image whose id is that of another one.
func conflict(id string) *fault.Fault {
	return fault.New(fault.InvalidToolInput, "ReferenceConflict", "the reference %s would name two different images", id).
		With("reference", id).
		Hint("Give the path of its file in a workspace, or save the image anew, so that its bytes differ, and upload that.")
}

// noUploads is an upload to a runtime that has no place for it.
func noUploads() *fault.Fault {
	return fault.New(fault.VisionAdapterUnavailable, "UploadsUnavailable", "the runtime was started without a cache directory, so it keeps no uploads").
		Hint("Give the path of a file in a workspace, or ask the platform team to start the runtime with a cache directory.")
}

func uploadTooLarge(size, most int64) *fault.Fault {
	f := fault.New(fault.BudgetExceeded, "TooManyBytes", "the image has %d bytes; the runtime keeps uploads of %d bytes altogether", size, most).
		With("byte_count", size).With("max_byte_count", most).Hint("Use a smaller image, or one compressed more.")
	f.HTTPStatus = http.StatusRequestEntityTooLarge
	return f
}

// uploadFailed is an image that could not be written; what the store says
// names no path and nothing of the image.
func uploadFailed(err error, reason store.Reason) *fault.Fault {
	f := fault.New(fault.VisionAdapterUnavailable, "UploadFailed", "the image could not be written to the cache directory").
		With("store_reason", string(reason)).Because(err).
		Hint("Give the path of a file in a workspace, or ask the platform team to look at the cache directory.")
	f.Retryable = true
	return f
}

// notUploaded is a reference whose bytes are in a workspace, not here.
func notUploaded(id string) *fault.Fault {
	return fault.New(fault.ImageReadFailed, "NotUploaded", "the image of the reference %s was not uploaded", id).
		Hint("Give the path of its file.")
}

// unreadable is an upload that is there and cannot be read.
func unreadable(id string, err error) *fault.Fault {
	f := fault.New(fault.ImageReadFailed, "IO", "the image of the reference %s could not be read from the cache directory", id).
		Because(err).Hint("Call again, or upload the image again.")
	f.Retryable = true
	return f
}
