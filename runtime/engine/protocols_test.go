// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestTheTransportsThatTheRouterNamesAreTheOnesSpoken(t *testing.T) {
	for _, transport := range []string{
		router.TransportOpenAIChatCompletions, router.TransportOpenAIResponses,
		router.TransportAnthropicMessages, router.TransportGeminiGenerateContent,
	} {
		if _, spoken := protocols[transport]; spoken != router.Speaks(transport) {
			t.Errorf("%s is spoken: %t; router.Speaks says %t", transport, spoken, router.Speaks(transport))
		}
	}
}
