// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"errors"
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/tokens"
)

func ExampleFamily_Estimate() {
	family := tokens.Find("us.anthropic.claude-opus-4-7-v1:0", "")
	estimate, err := family.Estimate(tokens.Image{Width: 3840, Height: 2160})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(estimate.Tokens, estimate.Confidence, estimate.UpperBound)
	fmt.Println(estimate.Basis())
	// Output:
	// 4784 published false
	// claude-high: 28 px cells of 2576x1449: 92 x 52
}

func ExampleRejectError() {
	_, err := tokens.Find("gpt-5.6-sol", "").Estimate(tokens.Image{Width: 6000, Height: 6000})
	var no *tokens.RejectError
	if errors.As(err, &no) {
		fmt.Println(no.Limit, no.Actual, "above", no.Value)
	}
	// Output:
	// patches of 32 px after resizing 35344 above 30000
}
