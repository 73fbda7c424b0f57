// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"io"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
)

func TestARequestAsksThatReasoningOfAnotherConversationBeLeftOut(t *testing.T) {
	const asked = `{"prefix_mismatch_behavior":"drop_block"}`
	for name, tc := range map[string]struct{ body, want string }{
		"it says nothing of thinking":           {`{ "model":"m"}`, `{"thinking":{"type":"adaptive","block_binding":` + asked + `}, "model":"m"}`},
		"it is empty":                           {`{}`, `{"thinking":{"type":"adaptive","block_binding":` + asked + `}}`},
		"its thinking is null":                  {`{"thinking":null}`, `{"thinking":{"type":"adaptive","block_binding":` + asked + `}}`},
		"it thinks adaptively":                  {`{"thinking":{"type":"adaptive"}}`, `{"thinking":{"block_binding":` + asked + `,"type":"adaptive"}}`},
		"it has a budget for thinking":          {`{"thinking":{"type":"enabled","budget_tokens":9}}`, `{"thinking":{"block_binding":` + asked + `,"type":"enabled","budget_tokens":9}}`},
		"it asked for the error":                {`{"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}}`, `{"thinking":{"type":"adaptive","block_binding":` + asked + `}}`},
		"its binding says something else":       {`{"thinking":{"type":"adaptive","block_binding":{"x":1}}}`, `{"thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block","x":1}}}`},
		"its binding is null":                   {`{"thinking":{"type":"adaptive","block_binding":null}}`, `{"thinking":{"type":"adaptive","block_binding":` + asked + `}}`},
		"it turned thinking off":                {`{"thinking":{"type":"disabled"}}`, ""},
		"it asked for it already":               {`{"thinking":{"type":"adaptive","block_binding":` + asked + `}}`, ""},
		"what it says of thinking is no object": {`{"thinking":true}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			edits, ok := injection.LetDrop([]byte(tc.body))
			if ok != (tc.want != "") {
				t.Fatalf("ok = %t", ok)
			}
			if !ok {
				return
			}
			spliced, err := message.Splice([]byte(tc.body), edits)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(spliced.Reader())
			if err != nil || string(got) != tc.want {
				t.Errorf("%s, %v; want %s", got, err, tc.want)
			}
		})
	}
}
