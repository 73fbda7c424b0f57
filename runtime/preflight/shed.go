// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import "github.com/visionoperator/vision-operator/runtime/fault"

// This file says what goes first when a request holds too much. What is optional
// goes before what is soft, and of each what is older before what is newer.

// contentToShed is the optional content whose newest occurrence is the oldest:
// all its occurrences. A content is required when any occurrence is.
func (l *ledger) contentToShed() []int {
	return l.oldestContent(&l.oldContents, func(c *content) bool { return c.count.firm == 0 && c.count.untouchable == 0 })
}

// contentToShedSoftly is the content, of those that are required softly alone, whose
// newest occurrence is the oldest: all its occurrences that may go.
func (l *ledger) contentToShedSoftly() []int {
	return l.oldestContent(&l.softContents, func(c *content) bool { return c.count.firm > 0 && c.count.required == 0 })
}

// oldestContent takes the first of a queue of contents that may still go.
func (l *ledger) oldestContent(q *queue, may func(*content) bool) []int {
	for {
		head, ok := q.first()
		if !ok {
			return nil
		}
		q.pop()
		newest, kept := l.newest(head.id)
		switch c := &l.contents[head.id]; {
		case !kept || !may(c):
		case newest != head.place:
			q.push(newest, head.id)
		default:
			var gone []int
			for _, i := range c.kept {
				if e := &l.entries[i]; e.kept && !e.Untouchable {
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
			return l.oldest(&l.oldImages, (*entry).optional)
		}
		l.oldDuplicates.pop()
		e := &l.entries[head.id]
		if newest, _ := l.newest(e.content); e.optional() && newest != head.id {
			return []int{head.id}
		}
	}
}

// imageToShedSoftly is the oldest soft image.
func (l *ledger) imageToShedSoftly() []int { return l.oldest(&l.softImages, (*entry).soft) }

// wideToShed is the oldest optional image over the side that the vendor allows
// among many. Where one that stays is over it too, only fewer images help.
func (l *ledger) wideToShed() []int {
	if l.firm.wide+l.own.wide > 0 {
		return l.imageToShed()
	}
	return l.oldest(&l.oldWide, (*entry).optional)
}

// wideToShedSoftly is the same of the soft.
func (l *ledger) wideToShedSoftly() []int {
	if l.required.wide+l.own.wide > 0 {
		return l.imageToShedSoftly()
	}
	return l.oldest(&l.softWide, (*entry).soft)
}

// oldest takes the first of a queue of images that may still go.
func (l *ledger) oldest(q *queue, may func(*entry) bool) []int {
	for {
		head, ok := q.first()
		if !ok {
			return nil
		}
		q.pop()
		if may(&l.entries[head.id]) {
			return []int{head.id}
		}
	}
}

// signedStep is how many images go at once of those before signed reasoning.
const signedStep = 4

// step goes on from what has just gone. Where a signed turn follows any of it, more
// such go, the oldest first, until a step of them has gone.
func (l *ledger) step(gone []int, why *fault.Fault) {
	n := 0
	for _, i := range gone {
		if l.entries[i].turn < l.signed {
			n++
		}
	}
	if n == 0 {
		return
	}
	for n < signedStep {
		head, ok := l.oldImages.first()
		if !ok {
			return
		}
		e := &l.entries[head.id]
		if e.optional() && e.turn >= l.signed {
			return
		}
		l.oldImages.pop()
		if e.optional() {
			l.drop(head.id, why)
			n++
		}
	}
}
