// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/base64"
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/selection"
)

// checkModel holds a request against what the chosen model's vendor takes, as
// the provider declares it. Bytes count as they are sent: an image in base64,
// four bytes for each three, and a request with everything in it.
func checkModel(choice *selection.Choice, pic *picture, sizer provider.Sizer, req provider.Request) *fault.Fault {
	owner := "the model " + choice.Route.String()
	if bad := checkType(pic.facts.MediaType, choice.Model, owner); bad != nil {
		return bad
	}
	limits := choice.Model.Limits
	if limits == nil {
		return nil
	}
	sent := int64(base64.StdEncoding.EncodedLen(len(pic.data)))
	if limits.MaxImageBytes > 0 && sent > limits.MaxImageBytes {
		return overBytes("the image as sent (base64)", sent, "limits.maxImageBytes", owner, limits.MaxImageBytes)
	}
	if side := int64(max(pic.facts.Width, pic.facts.Height)); limits.MaxImageSide > 0 && side > limits.MaxImageSide {
		return fault.New(fault.BudgetExceeded, "ImageTooLarge", "the image is %d x %d pixels; %s declares limits.maxImageSide %d",
			pic.facts.Width, pic.facts.Height, owner, limits.MaxImageSide).
			With("width", pic.facts.Width).With("height", pic.facts.Height).With("max_side", limits.MaxImageSide).
			With("limit", "limits.maxImageSide").With("limit_of", owner).Hint("Use a smaller or cropped image.")
	}
	if sizer != nil && limits.MaxRequestBytes > 0 {
		if size := sizer.RequestBytes(req); size > limits.MaxRequestBytes {
			return overBytes("the request as sent", size, "limits.maxRequestBytes", owner, limits.MaxRequestBytes)
		}
	}
	return nil
}

// overBytes is a size over a limit, with both numbers and whose the limit is.
func overBytes(what string, size int64, limit, owner string, most int64) *fault.Fault {
	return fault.New(fault.BudgetExceeded, "TooManyBytes", "%s has %s; %s declares %s %s", what, bytesText(size), owner, limit, bytesText(most)).
		With("byte_count", size).With("max_byte_count", most).With("limit", limit).With("limit_of", owner).
		Hint("Use a smaller image, or one compressed more.")
}

// bytesText is a number of bytes for people and for machines: "20 MiB (20971520 bytes)".
func bytesText(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		switch {
		case n < unit.size:
		case n%unit.size == 0:
			return fmt.Sprintf("%d %s (%d bytes)", n/unit.size, unit.name, n)
		default:
			return fmt.Sprintf("%.1f %s (%d bytes)", float64(n)/float64(unit.size), unit.name, n)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
