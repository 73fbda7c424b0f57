// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"fmt"
	"strconv"
	"strings"
)

// decimal is a number with at most three digits after the point, in thousandths:
// 1.62 is 1620. A binary fraction would round 1.2 x 2500 up to 3001.
type decimal int64

// UnmarshalJSON reads a plain decimal exactly.
func (d *decimal) UnmarshalJSON(b []byte) error {
	whole, fraction, _ := strings.Cut(string(b), ".")
	if len(fraction) > 3 || len(whole) > 9 {
		return fmt.Errorf("reading the decimal %s: want at most three digits after the point", b)
	}
	n, err := strconv.ParseUint(whole+(fraction + "000")[:3], 10, 63)
	if err != nil {
		return fmt.Errorf("reading the decimal %s: %w", b, err)
	}
	*d = decimal(n)
	return nil
}

// timesUp is n times the decimal, rounded up.
func (d decimal) timesUp(n int64) int64 { return ceilDiv(n*int64(d), 1000) }

// String is the shortest plain form, such as 1.62.
func (d decimal) String() string {
	s := fmt.Sprintf("%d.%03d", d/1000, d%1000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
