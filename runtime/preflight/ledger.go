// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// most bounds a single number that comes from outside, so that sums of a
// request's images stay far within 64 bits: 2^40 bytes or tokens.
const most = 1 << 40

// within is n, bounded to what can be summed.
func within(n int64) int64 { return min(max(n, 0), most) }

// sums are what a set of images is charged. Contents are charged once, the
// others for every occurrence.
type sums struct {
	contents, contentBytes        int64
	images, bytes, base64, tokens int64
	wide                          int64 // images over the vendor's side among many
}

// entry is one image on its way through the checks.
type entry struct {
	*Image
	turn, content       int
	bytes, base64, cost int64
	estimate            tokens.Estimate
	wide                bool
	kept                bool
	// firm is required for now, whether softly or not; holds are what keeps it so.
	firm  bool
	holds int
	// against is what an image check found; shed why a request rule left the
	// image out, at whatever turn.
	against, shed *fault.Fault
}

// required says that the request is refused rather than sent without the image.
func (e *entry) required() bool { return e.firm && !e.Soft }

// soft says that the image is required, but goes before it is refused for.
func (e *entry) soft() bool { return e.kept && e.firm && e.Soft }

// optional says that the image is there and may go.
func (e *entry) optional() bool { return e.kept && !e.firm && !e.Untouchable }

// content is what occurrences of the same bytes share.
type content struct {
	bytes int64
	kept  []int // occurrences in message order; those at the end are kept ones
	count struct{ kept, firm, required, untouchable int64 }
}

// ledger is what a request is charged, as its turns arrive.
type ledger struct {
	in       *Input
	terms    *terms
	entries  []entry
	contents []content

	// all are the sums of what is kept. Of it, firm are those of what is required,
	// softly or not; required leaves the soft out; own are the untouchable, of which
	// each occurrence counts alone.
	all, firm, required, own sums

	fresh   fresh
	leaving map[int][]int // the images of which a turn is Until
	blocked []int         // the required that an image check speaks against
	// signed is the newest signed turn that has arrived; -1 before there is one.
	signed int
	// laterText and laterBody are the bytes of turns that have not arrived.
	// bodyText is what the whole body has beside image data.
	laterText, laterBody, bodyText int64

	// byTurn is what each turn holds where that is limited, and crowded the turns
	// that have held too much, the oldest first.
	byTurn  []turnCount
	crowded []int

	// What may go, in the order in which it goes. Entries may be out of date:
	// each is looked at again before it is used.
	oldContents, oldDuplicates, oldImages, oldWide queue
	softContents, softImages, softWide             queue
}

// newLedger looks at each image by itself; nothing has arrived yet.
func newLedger(in *Input, t *terms) *ledger {
	l := &ledger{in: in, terms: t, signed: -1, entries: make([]entry, len(in.Images))}
	byHash := make(map[string]int, len(in.Images))
	turn, sent := 0, int64(0)
	for i := range in.Images {
		img := &in.Images[i]
		turn = min(max(turn, img.Turn), max(len(in.Turns)-1, 0))
		e := &l.entries[i]
		*e = entry{Image: img, turn: turn, bytes: within(img.Bytes), base64: within(img.Base64Bytes)}
		e.against = t.judge(e)
		sent += e.base64
		e.wide = t.many != nil && int64(max(img.Width, img.Height)) > t.many.side
		at, known := byHash[img.SHA256]
		if !known || img.SHA256 == "" {
			at = len(l.contents)
			l.contents = append(l.contents, content{})
			byHash[img.SHA256] = at
		}
		e.content = at
		if img.Until > 0 {
			if l.leaving == nil {
				l.leaving = map[int][]int{}
			}
			l.leaving[img.Until] = append(l.leaving[img.Until], i)
		}
	}
	for i := range in.Turns {
		l.laterText += within(in.Turns[i].TextBytes)
		l.laterBody += within(in.Turns[i].BodyBytes)
	}
	if len(t.perTurn) > 0 {
		l.byTurn = make([]turnCount, max(len(in.Turns), 1))
	}
	l.bodyText = max(0, within(in.BodyBytes)-sent)
	return l
}

// replay lets the turns arrive one by one and sheds at each what a request that
// ended there would have shed. It returns the refusal of the last.
func (l *ledger) replay() (refusal *fault.Fault) {
	turns := l.in.Turns
	if len(turns) == 0 {
		turns = []Turn{{}}
	}
	next := 0
	for k := range turns {
		l.laterText -= min(within(turns[k].TextBytes), l.laterText)
		l.laterBody -= min(within(turns[k].BodyBytes), l.laterBody)
		if turns[k].Signed {
			l.signed = k
		}
		for _, i := range l.fresh.begin(turns[k].Kind) {
			l.release(i)
		}
		for _, i := range l.leaving[k] {
			l.leave(i)
		}
		if l.byTurn != nil {
			l.byTurn[k].next, l.byTurn[k].nextSoft = next, next
		}
		for ; next < len(l.entries) && l.entries[next].turn == k; next++ {
			l.arrive(next, turns[k].Kind)
		}
		refusal = l.settle()
	}
	return refusal
}

// settle brings what has arrived within every rule. Where what is required is
// over one by itself, nothing is shed. Else each rule sheds what is optional, and
// then each what is soft.
func (l *ledger) settle() *fault.Fault {
	for ; len(l.blocked) > 0; l.blocked = l.blocked[1:] {
		if e := &l.entries[l.blocked[0]]; e.required() {
			return e.against
		}
	}
	over := false
	for i := range l.terms.rules {
		over = over || l.terms.rules[i].total(l) > l.terms.rules[i].max
	}
	if !over {
		return nil
	}
	for i := range l.terms.rules {
		if r := &l.terms.rules[i]; r.least(l, false) > r.max {
			return r.refuse(l)
		}
	}
	for i := range l.terms.rules {
		l.enforce(&l.terms.rules[i])
	}
	for i := range l.terms.rules {
		l.enforceSoftly(&l.terms.rules[i])
	}
	return nil
}

// enforce sheds what is optional until the rule is met or nothing of it is left.
func (l *ledger) enforce(r *rule) {
	var why *fault.Fault
	for r.total(l) > r.max {
		gone := r.next(l)
		if len(gone) == 0 {
			return
		}
		if why == nil {
			why = r.exceeded(l)
		}
		for _, i := range gone {
			l.drop(i, why)
		}
		l.step(gone, why)
	}
}

// enforceSoftly sheds what is soft until the rule would not refuse if that were
// required. Without any it does not: see settle.
func (l *ledger) enforceSoftly(r *rule) {
	var why *fault.Fault
	for r.least(l, true) > r.max {
		gone := r.nextSoft(l)
		if len(gone) == 0 {
			return
		}
		if why == nil {
			why = r.exceeded(l)
		}
		for _, i := range gone {
			l.drop(i, why)
		}
	}
}

// arrive adds an image of the turn that arrives.
func (l *ledger) arrive(i int, kind Kind) {
	e := &l.entries[i]
	if !e.Untouchable {
		if e.holds = l.fresh.take(i, kind, e.InResult); e.Required {
			e.holds++ // which nothing releases
		}
	}
	e.firm = e.holds > 0
	if e.against != nil {
		if e.required() {
			l.blocked = append(l.blocked, i)
		}
		return
	}
	c := &l.contents[e.content]
	if newest, ok := l.newest(e.content); ok && l.entries[newest].optional() {
		l.oldDuplicates.push(newest, newest)
	}
	if e.bytes > c.bytes {
		l.learn(c, e.bytes)
	}
	e.kept, c.kept = true, append(c.kept, i)
	l.all.charge(e, c, &c.count.kept, 1)
	switch {
	case e.Untouchable:
		l.own.charge(e, c, &c.count.untouchable, 1)
	case e.firm:
		l.crowd(e, 1, 0)
		l.require(i, 1)
	default:
		l.crowd(e, 1, 0)
		l.offer(i)
	}
}

// learn corrects the size of a content that an earlier occurrence did not tell.
func (l *ledger) learn(c *content, bytes int64) {
	more := bytes - c.bytes
	l.all.learn(c.count.kept, more)
	l.firm.learn(c.count.firm, more)
	l.required.learn(c.count.required, more)
	c.bytes = bytes
}

// release takes one hold of an image away; without any it is optional.
func (l *ledger) release(i int) {
	e := &l.entries[i]
	if e.holds--; e.holds > 0 {
		return
	}
	if e.kept {
		l.require(i, -1)
		e.firm = false
		l.offer(i)
	}
	e.firm = false
}

// require adds an image to what is required, or with -1 takes it away.
func (l *ledger) require(i int, sign int64) {
	e, c := &l.entries[i], &l.contents[l.entries[i].content]
	l.crowd(e, 0, sign)
	l.firm.charge(e, c, &c.count.firm, sign)
	if !e.Soft {
		l.required.charge(e, c, &c.count.required, sign)
	} else if sign > 0 {
		l.softImages.push(i, i)
		if e.wide {
			l.softWide.push(i, i)
		}
		l.offerContent(e.content)
	}
}

// offer queues an optional image that is kept for shedding.
func (l *ledger) offer(i int) {
	e := &l.entries[i]
	l.oldImages.push(i, i)
	if e.wide {
		l.oldWide.push(i, i)
	}
	if newest, _ := l.newest(e.content); newest != i {
		l.oldDuplicates.push(i, i)
	}
	l.offerContent(e.content)
}

// offerContent queues a content for shedding, when it may go whole.
func (l *ledger) offerContent(of int) {
	newest, kept := l.newest(of)
	switch c := &l.contents[of]; {
	case !kept || c.count.required > 0:
	case c.count.firm > 0:
		l.softContents.push(newest, of)
	case c.count.untouchable == 0:
		l.oldContents.push(newest, of)
	}
}

// drop leaves an image that is optional or soft out, for good.
func (l *ledger) drop(i int, why *fault.Fault) {
	e := &l.entries[i]
	c := &l.contents[e.content]
	soft := e.soft()
	if soft {
		l.require(i, -1)
		e.firm = false
	}
	e.kept, e.shed = false, why
	l.crowd(e, -1, 0)
	l.all.charge(e, c, &c.count.kept, -1)
	if soft { // older occurrences of the content may go whole now
		l.offerContent(e.content)
	}
}

// leave takes an image away that stands in the conversation no more. What was shed
// for it stays shed.
func (l *ledger) leave(i int) {
	e := &l.entries[i]
	if !e.kept || e.Untouchable {
		e.firm = false
		return
	}
	if e.firm && !e.Soft {
		l.require(i, -1)
		e.firm = false
	}
	l.drop(i, nil)
	l.offerContent(e.content) // other occurrences of it may go whole now
}

// charge adds an occurrence, or with -1 takes it back; count is how many of its
// content the sums hold, which is charged with the first of them.
func (s *sums) charge(e *entry, c *content, count *int64, sign int64) {
	s.images += sign
	s.bytes += sign * e.bytes
	s.base64 += sign * e.base64
	s.tokens += sign * e.cost
	if e.wide {
		s.wide += sign
	}
	before := *count
	*count += sign
	if before == 0 || *count == 0 {
		s.contents += sign
		s.contentBytes += sign * c.bytes
	}
}

// learn adds to the bytes of a content of which the sums hold count.
func (s *sums) learn(count, more int64) {
	if count > 0 {
		s.contentBytes += more
	}
}

// newest is the last occurrence of a content that is kept.
func (l *ledger) newest(of int) (int, bool) {
	c := &l.contents[of]
	for len(c.kept) > 0 {
		if last := c.kept[len(c.kept)-1]; l.entries[last].kept {
			return last, true
		}
		c.kept = c.kept[:len(c.kept)-1]
	}
	return 0, false
}
