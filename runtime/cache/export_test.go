// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

// Waiting is how many requests wait for the call of a key.
func (c *Cache) Waiting(key Key) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil {
		return f.waiting
	}
	return 0
}

// EntryName is entryName.
var EntryName = entryName
