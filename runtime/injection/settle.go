// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"slices"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// Settle marks the sights whose image the conversation shows already: a part of
// the same bytes stands between the call, or at the human's text, and the
// assistant's next turn. images are the digests of r.Images, and sights those of
// p.Sights, "" where one is not known. A sight that is Old, but has a digest, is
// settled too: what the client shows itself needs no text in its place.
func (p *Plan) Settle(r *message.Request, images, sights []string) {
	at := map[string][]int{} // turns, ascending as images are
	for i, digest := range images {
		if digest != "" {
			at[digest] = append(at[digest], r.Images[i].Turn)
		}
	}
	for i := range p.Sights {
		s := &p.Sights[i]
		if s.State != Wanted && s.State != Old || sights[i] == "" {
			continue
		}
		turns := at[sights[i]]
		from, _ := slices.BinarySearch(turns, p.since(r, s))
		if from == len(turns) {
			continue
		}
		if end, ok := p.turns.next(s.Turn); !ok || turns[from] < end {
			s.State = ShownInConversation
		}
	}
}

// since is the first turn at which a sight's image would count as shown.
func (p *Plan) since(r *message.Request, s *Sight) int {
	switch {
	case s.Kind == Markdown:
		return s.Turn
	case s.Call >= 0:
		return r.Calls[s.Call].Turn
	}
	i, _ := slices.BinarySearch(p.turns.assistants, s.Turn)
	if i == 0 {
		return 0
	}
	return p.turns.assistants[i-1]
}
