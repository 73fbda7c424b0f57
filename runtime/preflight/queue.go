// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

// queue gives out the lowest first: what stands earliest in the conversation.
type queue struct{ items []queued }

// queued is a thing to be given out, at its place in the order.
type queued struct{ place, id int }

// push adds an item.
func (q *queue) push(place, id int) {
	q.items = append(q.items, queued{place, id})
	for i := len(q.items) - 1; i > 0; {
		parent := (i - 1) / 2
		if q.items[parent].place <= q.items[i].place {
			return
		}
		q.items[parent], q.items[i] = q.items[i], q.items[parent]
		i = parent
	}
}

// first is the item that pop would give; false when there is none.
func (q *queue) first() (queued, bool) {
	if len(q.items) == 0 {
		return queued{}, false
	}
	return q.items[0], true
}

// pop drops the first item.
func (q *queue) pop() {
	last := len(q.items) - 1
	q.items[0] = q.items[last]
	q.items = q.items[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.items[child].place < q.items[least].place {
				least = child
			}
		}
		if least == i {
			return
		}
		q.items[least], q.items[i] = q.items[i], q.items[least]
		i = least
	}
}
