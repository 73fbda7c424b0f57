// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import "encoding/json"

// Count is a number of tokens in a reply, for what is good to know and not
// needed: whatever is no number of tokens, null included, reads as 0.
type Count int64

// maxCount is above what any model takes or writes.
const maxCount = 1 << 31

// UnmarshalJSON never fails.
func (n *Count) UnmarshalJSON(data []byte) error {
	*n = 0
	var f float64
	if json.Unmarshal(data, &f) == nil && f >= 1 && f <= maxCount {
		*n = Count(f)
	}
	return nil
}
