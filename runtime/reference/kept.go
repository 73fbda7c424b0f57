// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference keeps the references of images that were looked at or
// uploaded, so that "vision://vis_…" names them afterwards.
//
// A reference's id is 64 bits of the image's digest: few enough that somebody
// may make two images with one id. The whole digest is kept beside it, and an
// id that was met with two images names neither.
package reference

import (
	"time"

	"github.com/visionoperator/vision-operator/runtime/observation"
)

// Kept is an image that can be named by its reference. As JSON it is the answer
// of POST /v1/images and of GET /v1/references/{id}.
type Kept struct {
	Reference *observation.Reference `json:"visual_reference"`
	// URI is "vision://" and the reference's id: a path for ViewImage.
	URI string `json:"uri"`
	// Uploaded says that the bytes are kept here. A reference to a file of a
	// workspace is a record alone: the file is read again, and refused when its
	// digest is another.
	Uploaded bool `json:"uploaded"`
	// CreatedAt is when the image was first looked at or uploaded.
	CreatedAt time.Time `json:"created_at"`
	// Existed says, in the answer to an upload, that the same bytes had been
	// uploaded before and are kept already.
	Existed bool `json:"-"`
}
