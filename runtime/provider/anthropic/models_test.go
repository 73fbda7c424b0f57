// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"fmt"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

func TestTheListOfModelsIsReadPageByPage(t *testing.T) {
	wire.Lists(t, []provider.Listed{
		{Name: "claude-opus-5", ImageInput: provider.Yes, ContextWindowTokens: 1000000, MaxOutputTokens: 128000},
		{Name: "claude-blind", ImageInput: provider.No},
		{Name: "imitation"},
		{Name: "other"},
	}, exchangetest.Page{URI: "/v1/models?limit=1000", Body: `{"data":[
			{"type":"model","id":"claude-opus-5","max_input_tokens":1000000,"max_tokens":128000,"capabilities":{"batch":{"supported":true},"image_input":{"supported":true}}},
			{"type":"model","id":"claude-blind","max_input_tokens":null,"max_tokens":null,"capabilities":{"image_input":{"supported":false}}}
		],"has_more":true,"first_id":"claude-opus-5","last_id":"a&b"}`,
	}, exchangetest.Page{URI: "/v1/models?limit=1000&after_id=a%26b", Body: `{"data":[{"id":"imitation"},{"id":"other","capabilities":null},{"id":""}],"has_more":false,"last_id":"other"}`})
}

func TestListsOfModelsThatDoNotEnd(t *testing.T) {
	wire.Pages(t, func(n int) string {
		return fmt.Sprintf(`{"data":[{"id":"m%d"}],"has_more":true,"last_id":"m%d"}`, n, n)
	})
}

func FuzzList(f *testing.F) {
	wire.FuzzList(f, `{"data":[{"id":"a","max_tokens":1,"capabilities":{"image_input":{"supported":true}}}],"has_more":true,"last_id":"a"}`, `{"data":null}`)
}
