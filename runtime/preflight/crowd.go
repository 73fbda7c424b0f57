// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

// This file counts the images of each turn, for vendors that limit those of one
// message.

// turnCount is what one turn holds; first is the index of its first image.
type turnCount struct {
	first          int
	kept, required int64
	crowded        bool // and so in ledger.crowded
}

// crowd counts an image of a turn, or takes it back.
func (l *ledger) crowd(e *entry, kept, required int64) {
	if l.byTurn == nil {
		return
	}
	c := &l.byTurn[e.turn]
	c.kept += kept
	c.required += required
	if c.kept > l.terms.perTurn[0].max && !c.crowded {
		c.crowded = true
		l.crowded = append(l.crowded, e.turn)
	}
}

// crowdTotal is what the oldest turn with too many images holds.
func (l *ledger) crowdTotal() int64 {
	for ; len(l.crowded) > 0; l.crowded = l.crowded[1:] {
		if n := l.byTurn[l.crowded[0]].kept; n > l.terms.perTurn[0].max {
			return n
		}
	}
	return 0
}

// crowdLeast is what the oldest turn with too many required images holds of them.
func (l *ledger) crowdLeast() int64 {
	for _, k := range l.crowded {
		if n := l.byTurn[k].required; n > l.terms.perTurn[0].max {
			return n
		}
	}
	return 0
}

// crowdToShed is the first optional image of the oldest turn with too many. It
// goes on where it was: the rule has enough optional images there, else it
// refuses.
func (l *ledger) crowdToShed() []int {
	k := l.crowded[0]
	for i := max(l.seen, l.byTurn[k].first); i < len(l.entries) && l.entries[i].turn == k; i++ {
		if l.seen = i + 1; l.entries[i].kept && !l.entries[i].required {
			return []int{i}
		}
	}
	return nil
}
