// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"math/rand/v2"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
)

// What a scanned request says is required is what a review says, at every
// length of the conversation.
func TestLabelsAreThoseOfTheScannedRequest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	roles := []message.Role{message.System, message.User, message.User, message.Assistant, message.Assistant, message.Tool, message.Nobody}
	labels := map[bool]int{}
	for range 3000 {
		scanned := &message.Request{}
		in := preflight.Input{Limits: defaults(), Candidate: seeing()}
		for k := range 1 + r.IntN(8) {
			turn := message.Turn{Role: roles[r.IntN(len(roles))]}
			turn.ToolResults = turn.Role == message.Tool || turn.Role == message.User && r.IntN(2) == 0
			scanned.Turns = append(scanned.Turns, turn)
			in.Turns = append(in.Turns, preflight.Turn{Kind: preflight.KindOf(turn)})
			for range r.IntN(3) {
				result := turn.ToolResults || turn.Role == message.User && r.IntN(2) == 0
				scanned.Images = append(scanned.Images, message.Image{Turn: k, InToolResult: result})
				in.Images = append(in.Images, preflight.Image{Turn: k, InResult: result, SHA256: "same"})
			}
		}
		for i, d := range preflight.Review(in).Decisions {
			if want := scanned.Required(i); d.Required != want {
				t.Fatalf("image %d of turn %d of %+v: required %t; the request says %t", i, scanned.Images[i].Turn, scanned.Turns, d.Required, want)
			}
			labels[d.Required]++
		}
	}
	if labels[true] < 500 || labels[false] < 500 {
		t.Errorf("labels are %v", labels)
	}
}
