// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"context"
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/review"
)

// A gateway asks about a request that goes on after a screenshot, to a model
// that takes text alone: the screenshot has to go, and the rest may be sent.
func ExampleReview() {
	req, err := review.ReadEnvelope(filled([]byte(`{"request": {"uid": "7", "path": "/v1/chat/completions", "patchTypes": ["ByteRanges"], "body":
{"model": "lab/text-1", "messages": [
  {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,@png:640x480@"}}]},
  {"role": "assistant", "content": "A dialog: the disk is full."},
  {"role": "user", "content": "What should I do?"}]}}}`)))
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := review.Review(context.Background(), req, grants(document()))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.Allowed, got.Decisions[0].ID, got.Decisions[0].Outcome, got.Decisions[0].Reason)
	fmt.Println(string(got.Patch))
	// Output:
	// true messages[0].content[0] degraded ModelLacksImageInput
	// [{"offset":69,"length":125,"text":"{\"type\":\"text\",\"text\":\"[image left out: this model cannot look at images]\"}"}]
}
