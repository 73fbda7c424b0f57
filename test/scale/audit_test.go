// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/test/envtest"
)

// quiet is how long the operator must not have written to count as settled.
const quiet = 1500 * time.Millisecond

// writesSince reads what the operator wrote since an earlier call, and where to
// go on. Its Lease is written every two seconds whatever happens, and is left out.
func writesSince(tb testing.TB, from int64) ([]envtest.Write, int64) {
	tb.Helper()
	writes, next, err := suite.cluster.WritesSince(from)
	if err != nil {
		tb.Fatal(err)
	}
	return slices.DeleteFunc(writes, func(w envtest.Write) bool { return w.Resource == "leases" }), next
}

// mark is the place in the log where what was written up to now ends.
func mark(tb testing.TB) int64 {
	tb.Helper()
	_, next := writesSince(tb, 0)
	return next
}

// settle waits until the operator has written nothing for a while, and returns
// what it wrote since a mark.
func settle(tb testing.TB, from int64) []envtest.Write {
	tb.Helper()
	var all []envtest.Write
	since := time.Now()
	for deadline := time.Now().Add(5 * time.Minute); time.Since(since) < quiet; time.Sleep(50 * time.Millisecond) {
		var more []envtest.Write
		if more, from = writesSince(tb, from); len(more) > 0 {
			all, since = append(all, more...), time.Now()
		}
		if time.Now().After(deadline) {
			tb.Fatal("the operator does not settle")
		}
	}
	return all
}

// count counts writes by resource. Events are left out: they tell people of a change.
func count(writes []envtest.Write) map[string]int {
	counts := map[string]int{}
	for _, w := range writes {
		if w.Resource != "events" {
			counts[w.Resource]++
		}
	}
	return counts
}

// total is how many writes were counted.
func total(counts map[string]int) int {
	sum := 0
	for _, c := range counts {
		sum += c
	}
	return sum
}

// list names counts by resource.
func list(counts map[string]int) string {
	var lines []string
	for _, resource := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s %d", resource, counts[resource]))
	}
	return strings.Join(lines, ", ")
}
