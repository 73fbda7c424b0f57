// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"fmt"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/provider"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

func TestTheListOfModelsIsReadPageByPageAndKeepsThoseThatGenerate(t *testing.T) {
	wire.Lists(t, []provider.Listed{
		{Name: "gemini-3-pro", ContextWindowTokens: 1048576, MaxOutputTokens: 65536},
		{Name: "tunedModels/mine"},
	}, exchangetest.Page{URI: "/v1beta/models?pageSize=1000", Body: `{"models":[
			{"name":"models/gemini-3-pro","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["countTokens","generateContent"]},
			{"name":"models/embedding-001","inputTokenLimit":2048,"supportedGenerationMethods":["embedContent"]}
		],"nextPageToken":"a&b="}`,
	}, exchangetest.Page{URI: "/v1beta/models?pageSize=1000&pageToken=a%26b%3D", Body: `{"models":[
			{"name":"tunedModels/mine","supportedGenerationMethods":["generateContent"]},{"name":"models/silent"},{"supportedGenerationMethods":["generateContent"]}
		]}`,
	})
}

func TestListsOfModelsThatDoNotEnd(t *testing.T) {
	wire.Pages(t, func(n int) string {
		return fmt.Sprintf(`{"models":[{"name":"models/m%d","supportedGenerationMethods":["generateContent"]}],"nextPageToken":"t%d"}`, n, n)
	})
}

func FuzzList(f *testing.F) {
	wire.FuzzList(f, `{"models":[{"name":"models/a","inputTokenLimit":1,"supportedGenerationMethods":["generateContent"]}],"nextPageToken":"x"}`, `{"models":null}`)
}
