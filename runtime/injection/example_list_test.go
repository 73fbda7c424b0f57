// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"bytes"
	"fmt"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// A framework's middleware asks before each call of the model, leaves out what Remove
// names, and puts Append last; neither stays in its state.
func ExampleList_Plan() {
	messages := []byte(`[
		{"type": "human", "content": "What is on the chart?"},
		{"type": "ai", "content": "", "tool_calls": [{"name": "view_image", "args": {"path": "/data/chart.png"}, "id": "call_1"}]},
		{"type": "tool", "content": "read successfully", "tool_call_id": "call_1"}
	]`)
	list, err := injection.ReadList(messages)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := list.Plan(injection.RulesOf(router.Injection{}), []byte("the pod's key"), nil)
	shown := make([]injection.Shown, len(plan.Sights))
	for i, sight := range plan.Sights {
		fmt.Println(plan.Reason, sight.Tool, sight.Path)
		data := []byte("the bytes of the file")
		shown[i].Picture = &injection.Picture{SHA256: "of the bytes", MediaType: "image/png", Size: int64(len(data)), Data: bytes.NewReader(data)}
	}
	decision := plan.Decide(shown)
	fmt.Println(decision.Inject, decision.Remove, bytes.Count(decision.Append, []byte(`"type":"image_url"`)))
	// Output:
	// Ready view_image /data/chart.png
	// true [] 1
}
