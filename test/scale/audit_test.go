// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// auditPolicy has the API server log what the operator writes, when it has been
// written. Its Lease is written every two seconds whatever happens, and is left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    resources: [{group: coordination.k8s.io}]
  - level: Metadata
    users: ["` + operatorUser + `"]
    verbs: [create, update, patch, delete, deletecollection]
    resources: [{group: ""}, {group: visionoperator.dev}, {group: events.k8s.io}]
  - level: None
`

// write is one request of the operator that changes something: a line of the log.
type write struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	UserAgent string `json:"userAgent"`
}

// what is the kind of a write, such as "configmaps" or "visionpolicies/status".
func (w *write) what() string {
	if w.ObjectRef.Subresource == "" {
		return w.ObjectRef.Resource
	}
	return w.ObjectRef.Resource + "/" + w.ObjectRef.Subresource
}

// quiet is how long the operator must not have written to count as settled.
const quiet = 1500 * time.Millisecond

// auditEnd is where the log ends now.
func auditEnd(tb testing.TB) int64 {
	tb.Helper()
	info, err := os.Stat(suite.audit)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Size()
}

// settle waits until the operator, which is seen by its user agent, has written
// nothing for a while, and returns what it wrote since the log ended at from.
func settle(tb testing.TB, from int64) []write {
	tb.Helper()
	size, since := int64(-1), time.Now()
	for deadline := time.Now().Add(5 * time.Minute); time.Since(since) < quiet; time.Sleep(50 * time.Millisecond) {
		if now := auditEnd(tb); now != size {
			size, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			tb.Fatal("the operator does not settle")
		}
	}
	log, err := os.Open(suite.audit)
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	data, err := io.ReadAll(io.NewSectionReader(log, from, size-from))
	if err != nil {
		tb.Fatal(err)
	}
	var writes []write
	for line := range bytes.Lines(data) {
		var w write
		if err := json.Unmarshal(line, &w); err != nil {
			tb.Fatalf("reading the audit log: %v: %s", err, line)
		}
		if strings.HasPrefix(w.UserAgent, "vision-operator/") {
			writes = append(writes, w)
		}
	}
	return writes
}

// count counts writes by kind; events are what tells people of a change, not one.
func count(writes []write) map[string]int {
	counts := map[string]int{}
	for i := range writes {
		if writes[i].ObjectRef.Resource != "events" {
			counts[writes[i].what()]++
		}
	}
	return counts
}

// describe lists counts by kind.
func describe(counts map[string]int) string {
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	return strings.Join(lines, ", ")
}
