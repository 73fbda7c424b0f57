// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/observation"
	choosing "github.com/visionoperator/vision-operator/runtime/selection"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
)

// largest is the largest result that there can be, if filler is the character
// that grows most.
func largest(t *testing.T, filler string) *observation.Result {
	t.Helper()
	ref := observation.NewReference(strings.Repeat(filler, tool.MaxPath), strings.Repeat("ab", 32), "image/png", 1<<40, 1<<20, 1<<20)
	model := strings.Repeat("<", 253) // names of models are printable
	s := &observation.Selection{
		SelectedMode: observation.ModeNative, SelectionReason: observation.ReasonTransportUnsupported,
		VisionProvider: strings.Repeat("p", 63), VisionModel: model, VisionModelRef: longest, PrimaryProvider: strings.Repeat("p", 63), PrimaryModel: model,
	}
	for range choosing.MaxCandidates {
		s.Candidates = append(s.Candidates, observation.Candidate{
			Provider: strings.Repeat("p", 63), Model: model, ModelRef: longest[:128] + model, Reason: observation.ReasonTransportUnsupported,
		})
	}
	var texts []string
	for i := range 450 {
		texts = append(texts, fmt.Sprintf(`"%d%s"`, i, strings.Repeat("<", 300)))
	}
	seen, err := observation.Parse(`{"type":"visual_observation","schema":"visual_observation.v1","summary":"s","ocr":[`+strings.Join(texts, ",")+`]}`,
		ref, strings.Repeat(filler, tool.MaxPrompt), observation.GeneratedBy{Mode: observation.ModeNative, Provider: s.VisionProvider, Model: model})
	if err != nil {
		t.Fatal(err)
	}
	return &observation.Result{VisualReference: ref, Observation: seen, VisionSelection: s}
}

func TestNoResultIsLargerThanIsSaid(t *testing.T) {
	for _, filler := range []string{"a", "<", `"`, "\x01", "\x7f", "😀", "\u2028"} {
		result := largest(t, filler)
		data, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		blind := *result
		blind.Observation = nil
		for name, size := range map[string]int{
			"JSON": len(data), "text": len(observation.Text(result)), "text without an observation": len(observation.Text(&blind)),
		} {
			if size > tool.MaxResult {
				t.Errorf("filled with %q: %d bytes of %s; want at most %d", filler, size, name, tool.MaxResult)
			}
		}
		if filler == "<" && len(data) < tool.MaxResult*6/10 {
			t.Errorf("the largest result has %d bytes: MaxResult says far too much", len(data))
		}
	}
}
