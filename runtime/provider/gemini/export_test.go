// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"io"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/lower"
)

// Version is versionOf, with what follows from it.
func Version(model string) (major, minor int, dialect lower.Dialect) {
	v := versionOf(model)
	return v.major, v.minor, v.dialect()
}

// EncodeAround is the body of a request with a text before and one after the image.
func EncodeAround(req provider.Request, before, after string) ([]byte, error) {
	slot := inlineData{MIMEType: req.Image.MediaType}
	body, err := new(encoder).encodeParts(req, slot, []part{textPart{before}, imagePart{slot}, textPart{after}})
	if err != nil {
		return nil, err
	}
	return io.ReadAll(body.Reader())
}
