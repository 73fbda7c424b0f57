// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"math"
	"strconv"
)

// panRule is Gemma 3's rule: a fixed number of tokens, and as many for each crop
// when pan and scan is on (detail pan_and_scan; servers leave it off). Known from
// the released image processor.
type panRule struct {
	Tokens int64 `json:"tokens"`
	// MaxCrops bounds the crops, MinCrop their sides in pixels. An image whose
	// aspect is below MinAspect is not cropped.
	MaxCrops  int64   `json:"maxCrops"`
	MinCrop   int64   `json:"minCrop"`
	MinAspect decimal `json:"minAspect"`
}

// panAndScan is the detail that turns crops on.
const panAndScan = "pan_and_scan"

func (r panRule) check() string {
	if r.Tokens <= 0 || r.MaxCrops < 2 || r.MinCrop <= 0 || r.MinAspect < 1000 {
		return "numbers out of range"
	}
	return ""
}

func (r panRule) sized(detail string) bool { return detail == panAndScan }

func (r panRule) measure(s Size, detail string) (count, refusal) {
	c := count{tokens: r.Tokens}
	if detail == panAndScan {
		c.parts = r.crops(s)
		c.tokens += c.parts * r.Tokens
	}
	return c, accepted
}

// crops is 0, or the long side in whole short sides (to the nearest), at least 2,
// no more than MaxCrops or than MinCrop fits; 0 when a crop would be too small.
func (r panRule) crops(s Size) int64 {
	long, short := s.long(), s.short()
	if long*1000 < int64(r.MinAspect)*short {
		return 0
	}
	n := min((2*long+short)/(2*short), long/r.MinCrop)
	n = min(max(n, 2), r.MaxCrops)
	if min(ceilDiv(long, n), short) < r.MinCrop {
		return 0
	}
	return n
}

func (r panRule) most(detail string) int64 {
	if detail == panAndScan {
		return (r.MaxCrops + 1) * r.Tokens
	}
	return r.Tokens
}

func (r panRule) max() int64 { return r.most(panAndScan) }

func (r panRule) basis(e Estimate) string {
	if e.count.parts == 0 {
		return fmt.Sprintf("%d tokens whatever the size", e.Tokens)
	}
	return fmt.Sprintf("(1 + %d crops) x %d", e.count.parts, r.Tokens)
}

// softRule is Gemma 4's rule: scale the image, up or down, to a budget of soft
// tokens of a fixed side, and cut both sides to whole ones.
//
// Known from the released image processor, which computes in float64; so does
// this. A side that would be cut to nothing is one token, and the other is then no
// longer than the budget.
type softRule struct {
	// Cell is the side of a soft token in pixels.
	Cell int64 `json:"cell"`
	// Budgets are the numbers of soft tokens that a server may be set to; Budget is
	// the default. A detail that is one of them, in digits, asks for it.
	Budgets []int64 `json:"budgets"`
	Budget  int64   `json:"budget"`

	byDetail map[string]int64
}

func (r softRule) check() string {
	for _, n := range append([]int64{r.Budget}, r.Budgets...) {
		if n <= 0 || n > 1<<20 {
			return "numbers out of range"
		}
	}
	if r.Cell <= 0 {
		return "numbers out of range"
	}
	return ""
}

func (r softRule) prepared() rule {
	r.byDetail = make(map[string]int64, len(r.Budgets))
	for _, n := range r.Budgets {
		r.byDetail[strconv.FormatInt(n, 10)] = n
	}
	return r
}

func (r softRule) sized(string) bool { return true }

func (r softRule) budget(detail string) int64 {
	if n, ok := r.byDetail[detail]; ok {
		return n
	}
	return r.Budget
}

func (r softRule) measure(s Size, detail string) (count, refusal) {
	budget := r.budget(detail)
	cell := float64(r.Cell)
	factor := math.Sqrt(float64(budget*r.Cell*r.Cell) / float64(s.Width*s.Height))
	cols := int64(math.Floor(float64(s.Width) * factor / cell))
	rows := int64(math.Floor(float64(s.Height) * factor / cell))
	switch {
	case cols < 1:
		cols, rows = 1, min(rows, budget)
	case rows < 1:
		cols, rows = min(cols, budget), 1
	}
	return grid(Size{Width: cols * r.Cell, Height: rows * r.Cell}, cols, rows, 1), accepted
}

func (r softRule) most(detail string) int64 { return r.budget(detail) }

func (r softRule) max() int64 {
	most := r.Budget
	for _, n := range r.Budgets {
		most = max(most, n)
	}
	return most
}

func (r softRule) basis(e Estimate) string {
	return fmt.Sprintf("%d px soft tokens of %s: %d x %d", r.Cell, e.Resized, e.count.cols, e.count.rows)
}
