// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// bound is a number that something may not exceed, and whose it is.
type bound struct {
	max int64
	// limit is the limit's name, such as "limits.image.maxBytes"; owner who sets
	// it, such as "the policy"; source where it is published, "" for what is
	// configured.
	limit, owner, source string
}

// named is the bound as the middle of a sentence, before its number.
func (b *bound) named() string {
	if b.source == "" {
		return b.owner + " declares " + b.limit
	}
	return b.owner + " publishes " + b.limit
}

// published is where the number can be looked up, as the end of a sentence.
func (b *bound) published() string {
	if b.source == "" {
		return ""
	}
	return " (" + b.source + ")"
}

// Size is a number of bytes for people and for machines: "20 MiB (20971520 bytes)".
func Size(n int64) string {
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

// many is a vendor's rule of the kind "with more than 20 images, none may have
// a side of more than 2000 pixels". Its bound is the number of images.
type many struct {
	bound
	side int64
}

// say is the fault of n images with one over the side among them.
func (m *many) say(r *rule, n int64, alone bool) *fault.Fault {
	return fault.New(fault.BudgetExceeded, ReasonSideAmongMany,
		"the request holds %d %simages, one of them with a side of more than %d pixels; with more than %d images %s takes sides of at most %d%s",
		n, r.required(alone), m.side, r.max, r.owner, m.side, r.published()).
		With("image_count", n).With("max_image_count", r.max).With("max_side", m.side).With("limit", r.limit).With("limit_of", r.owner).
		Hint("Use smaller images, or show fewer of them.")
}
