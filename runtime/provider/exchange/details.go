// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"encoding/json"
	"strings"
	"time"
)

// readDetails reads the details of an error as Google writes them: the reason of
// its ErrorInfo as a word, and the delay of its RetryInfo, which no header gives.
// Details of another shape say nothing. Source: google/rpc/error_details.proto.
func readDetails(raw json.RawMessage) (reason string, wait time.Duration) {
	var details Array[struct {
		Reason     said `json:"reason"`
		RetryDelay said `json:"retryDelay"`
	}]
	if len(raw) == 0 || json.Unmarshal(raw, &details) != nil {
		return "", 0
	}
	for _, d := range details {
		if word := d.Reason.word(); word != "" && reason == "" {
			reason = word
		}
		// A duration in protobuf's JSON is seconds: "45.837906927s".
		delay := string(d.RetryDelay)
		if parsed, err := time.ParseDuration(delay); err == nil && strings.HasSuffix(delay, "s") {
			wait = min(max(wait, parsed), maxRetryAfter)
		}
	}
	return reason, wait
}

// refusesKey reports whether the error is Google's refusal of a credential,
// which comes with status 400.
func (e *StatusError) refusesKey() bool { return e.Type == "api_key_invalid" }
