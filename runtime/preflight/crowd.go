// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

// This file counts the images of each turn, for vendors that limit those of one
// message. The untouchable do not count: the assistant's messages are not those
// that such a limit is about.

// turnCount is what one turn holds. next and nextSoft are how far its images have
// been searched for an optional and for a soft one; what was passed is neither any
// more when the turn holds too much again.
type turnCount struct {
	next, nextSoft       int
	kept, firm, required int64
	crowded              bool // and so in ledger.crowded
}

// crowd counts an image of a turn as kept and as firm, or takes it back.
func (l *ledger) crowd(e *entry, kept, firm int64) {
	if l.byTurn == nil {
		return
	}
	c := &l.byTurn[e.turn]
	c.kept += kept
	c.firm += firm
	if !e.Soft {
		c.required += firm
	}
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
func (l *ledger) crowdLeast(soft bool) int64 {
	for _, k := range l.crowded {
		if n := l.byTurn[k].least(soft); n > l.terms.perTurn[0].max {
			return n
		}
	}
	return 0
}

func (c *turnCount) least(soft bool) int64 {
	if soft {
		return c.firm
	}
	return c.required
}

// crowdToShed is the first optional image of the oldest turn with too many that
// has one.
func (l *ledger) crowdToShed() []int {
	for _, k := range l.crowded {
		c := &l.byTurn[k]
		if c.kept <= l.terms.perTurn[0].max || c.kept == c.firm {
			continue
		}
		return l.firstOf(k, &c.next, (*entry).optional)
	}
	return nil
}

// crowdToShedSoftly is the first soft image of the oldest turn with too many
// required ones.
func (l *ledger) crowdToShedSoftly() []int {
	for _, k := range l.crowded {
		if c := &l.byTurn[k]; c.firm > l.terms.perTurn[0].max {
			return l.firstOf(k, &c.nextSoft, (*entry).soft)
		}
	}
	return nil
}

// firstOf goes on through the images of a turn to the next one that may go.
func (l *ledger) firstOf(turn int, next *int, may func(*entry) bool) []int {
	for ; *next < len(l.entries) && l.entries[*next].turn == turn; *next++ {
		if i := *next; may(&l.entries[i]) {
			return []int{i}
		}
	}
	return nil
}
