// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

// This file says what goes first when a request holds too much. All of it is
// optional, and what is older goes before what is newer.

// contentToShed is the optional content whose newest occurrence is the oldest:
// all its occurrences. A content is required when any occurrence is.
func (l *ledger) contentToShed() []int {
	for {
		head, ok := l.oldContents.first()
		if !ok {
			return nil
		}
		l.oldContents.pop()
		newest, kept := l.newest(head.id)
		switch c := &l.contents[head.id]; {
		case !kept || c.count.required > 0:
		case newest != head.place:
			l.oldContents.push(newest, head.id)
		default:
			var gone []int
			for _, i := range c.kept {
				if l.entries[i].kept {
					gone = append(gone, i)
				}
			}
			return gone
		}
	}
}

// imageToShed is the oldest optional duplicate, which shows nothing that does
// not stand in a later place too; else the oldest optional image.
func (l *ledger) imageToShed() []int {
	for {
		head, ok := l.oldDuplicates.first()
		if !ok {
			return l.oldest(&l.oldImages)
		}
		l.oldDuplicates.pop()
		e := &l.entries[head.id]
		if newest, _ := l.newest(e.content); e.kept && !e.required && newest != head.id {
			return []int{head.id}
		}
	}
}

// wideToShed is the oldest optional image over the side that the vendor allows
// among many. Where a required one is over it too, only fewer images help.
func (l *ledger) wideToShed() []int {
	if l.required.wide > 0 {
		return l.imageToShed()
	}
	return l.oldest(&l.oldWide)
}

// oldest takes the first of a queue of optional images that is still kept.
func (l *ledger) oldest(q *queue) []int {
	for {
		head, ok := q.first()
		if !ok {
			return nil
		}
		q.pop()
		if e := &l.entries[head.id]; e.kept && !e.required {
			return []int{head.id}
		}
	}
}
