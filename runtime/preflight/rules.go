// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/tokens"
)

// rule is one bound on a request as a whole.
type rule struct {
	bound
	// total is what the request is charged as it stands; least what it would be
	// with the required images alone, the soft among them or not. A rule whose
	// least is over max without the soft refuses.
	total func(*ledger) int64
	least func(l *ledger, soft bool) int64
	// next are the optional images to shed next, nextSoft the soft ones; none when
	// nothing is left to shed.
	next, nextSoft func(*ledger) []int
	// say makes the fault of a number over the bound. alone says that the number
	// is of the required images alone.
	say func(r *rule, n int64, alone bool) *fault.Fault
	// single is set where the request holds one image, for words.
	single bool
}

// refuse is the fault of a request whose required images are over the rule.
func (r *rule) refuse(l *ledger) *fault.Fault { return r.say(r, r.least(l, false), true) }

// exceeded is why images are shed.
func (r *rule) exceeded(l *ledger) *fault.Fault { return r.say(r, r.total(l), false) }

// requestRules are the rules of a request in the order in which they shed and refuse.
func requestRules(b *bounds, single bool) []rule {
	rules := make([]rule, 0, 12)
	add := func(of []bound, r rule) {
		r.single = single
		if r.next == nil {
			r.next, r.nextSoft = (*ledger).imageToShed, (*ledger).imageToShedSoftly
		}
		for _, r.bound = range of {
			rules = append(rules, r)
		}
	}
	add(b.contents, rule{
		total: func(l *ledger) int64 { return l.all.contents }, least: func(l *ledger, soft bool) int64 { return l.standing(soft).contents },
		next: (*ledger).contentToShed, nextSoft: (*ledger).contentToShedSoftly, say: tooManyImages("distinct images"),
	})
	add(b.contentBytes, rule{
		total: func(l *ledger) int64 { return l.all.contentBytes }, least: func(l *ledger, soft bool) int64 { return l.standing(soft).contentBytes },
		next: (*ledger).contentToShed, nextSoft: (*ledger).contentToShedSoftly, say: tooManyImageBytes("of distinct images"),
	})
	add(b.images, rule{
		total: func(l *ledger) int64 { return l.all.images }, least: func(l *ledger, soft bool) int64 { return l.sent(soft).images },
		say: tooManyImages("images, each occurrence counted"),
	})
	add(b.perTurn, rule{
		total: (*ledger).crowdTotal, least: (*ledger).crowdLeast,
		next: (*ledger).crowdToShed, nextSoft: (*ledger).crowdToShedSoftly, say: tooManyInMessage,
	})
	if b.many != nil {
		add([]bound{b.many.bound}, rule{
			total: func(l *ledger) int64 { return l.all.many() }, least: func(l *ledger, soft bool) int64 { s := l.sent(soft); return s.many() },
			next: (*ledger).wideToShed, nextSoft: (*ledger).wideToShedSoftly, say: b.many.say,
		})
	}
	add(b.totalBytes, rule{
		total: func(l *ledger) int64 { return l.all.bytes }, least: func(l *ledger, soft bool) int64 { return l.sent(soft).bytes },
		say: tooManyImageBytes("of images, each occurrence counted"),
	})
	add(b.totalBase64, rule{
		total: func(l *ledger) int64 { return l.all.base64 }, least: func(l *ledger, soft bool) int64 { return l.sent(soft).base64 },
		say: tooManyImageBytes("of images as sent (base64)"),
	})
	add(b.body, rule{
		total: func(l *ledger) int64 { return l.bodyBeside() + l.all.base64 }, least: func(l *ledger, soft bool) int64 { return l.bodyBeside() + l.sent(soft).base64 },
		say: bodyTooLarge,
	})
	add(b.imageTokens, rule{
		total: func(l *ledger) int64 { return l.all.tokens }, least: func(l *ledger, soft bool) int64 { return l.standing(soft).tokens },
		say: tooManyImageTokens,
	})
	add(b.window, rule{
		total: func(l *ledger) int64 { return l.tokensBeside() + l.all.tokens }, least: func(l *ledger, soft bool) int64 { return l.sent(soft).tokens },
		say: windowExceeded,
	})
	return rules
}

// standing is what is required, the soft among it or not: what the policy's rules
// refuse for.
func (l *ledger) standing(soft bool) *sums {
	if soft {
		return &l.firm
	}
	return &l.required
}

// sent is the same for the rules of model and vendor, who count what is untouchable
// too. Where nothing is required it is left out: nobody could do without it.
func (l *ledger) sent(soft bool) sums {
	s := *l.standing(soft)
	if s.images > 0 {
		s.images, s.wide = s.images+l.own.images, s.wide+l.own.wide
		s.bytes, s.base64, s.tokens = s.bytes+l.own.bytes, s.base64+l.own.base64, s.tokens+l.own.tokens
	}
	return s
}

// many counts the images where any of them is over the side that is allowed among
// many; a request without such a one has no bound here.
func (s *sums) many() int64 {
	if s.wide == 0 {
		return 0
	}
	return s.images
}

// bodyBeside is what the body has beside image data, up to the turn that has arrived.
func (l *ledger) bodyBeside() int64 {
	if l.in.BodyBytes == 0 {
		return max(0, within(l.in.TextBytes)-l.laterText)
	}
	return max(0, l.bodyText-l.laterBody)
}

// tokensBeside is what the window holds beside images, up to the turn that has
// arrived: text as estimated, what is reserved for the answer, and headroom.
func (l *ledger) tokensBeside() int64 {
	text := max(0, within(l.in.TextBytes)-l.laterText)
	return tokens.Text(text) + l.terms.reserve + l.terms.headroom
}

func tooManyImages(what string) func(*rule, int64, bool) *fault.Fault {
	return func(r *rule, n int64, alone bool) *fault.Fault {
		return fault.New(fault.BudgetExceeded, ReasonImages, "the request holds %d %s%s; %s %d%s", n, r.required(alone), what, r.named(), r.max, r.published()).
			With("image_count", n).With("max_image_count", r.max).With("limit", r.limit).With("limit_of", r.owner).
			Hint("Show fewer images at once.")
	}
}

func tooManyInMessage(r *rule, n int64, alone bool) *fault.Fault {
	return fault.New(fault.BudgetExceeded, ReasonImagesInMessage, "a message of the request holds %d %simages; %s %d%s", n, r.required(alone), r.named(), r.max, r.published()).
		With("image_count", n).With("max_image_count", r.max).With("limit", r.limit).With("limit_of", r.owner).
		Hint("Show fewer images in one message.")
}

func tooManyImageBytes(what string) func(*rule, int64, bool) *fault.Fault {
	return func(r *rule, n int64, alone bool) *fault.Fault {
		return fault.New(fault.BudgetExceeded, ReasonTotalBytes, "the request holds %s %s%s; %s %s%s", Size(n), what, r.onlyRequired(alone), r.named(), Size(r.max), r.published()).
			With("byte_count", n).With("max_byte_count", r.max).With("limit", r.limit).With("limit_of", r.owner).
			Hint("Show fewer or smaller images at once.")
	}
}

func bodyTooLarge(r *rule, n int64, alone bool) *fault.Fault {
	f := fault.New(fault.BudgetExceeded, ReasonBody, "the request as sent has %s%s; %s %s%s", Size(n), r.onlyRequired(alone), r.named(), Size(r.max), r.published()).
		With("byte_count", n).With("max_byte_count", r.max).With("limit", r.limit).With("limit_of", r.owner).
		Hint("Show fewer or smaller images at once, or shorten the conversation.")
	f.HTTPStatus = fault.StatusTooLarge
	return f
}

func tooManyImageTokens(r *rule, n int64, alone bool) *fault.Fault {
	if alone && r.single {
		return tokenFault(r, n, ReasonImageTokens, "the image costs about %d tokens; %s %d%s").Hint("Use a smaller or cropped image.")
	}
	return tokenFault(r, n, ReasonImageTokens, "the request's "+r.required(alone)+"images cost about %d tokens; %s %d%s").
		Hint("Show fewer or smaller images at once.")
}

func windowExceeded(r *rule, n int64, alone bool) *fault.Fault {
	format, hint := "the request needs about %d tokens, its answer and headroom included; %s %d%s", "Show fewer or smaller images at once"
	switch {
	case alone && r.single:
		format, hint = "the image alone costs about %d tokens; %s %d%s", "Use a smaller or cropped image"
	case alone:
		format = "the request's required images alone cost about %d tokens; %s %d%s"
	}
	return tokenFault(r, n, ReasonWindow, format).Hint("%s, or choose a model with a larger context window.", hint)
}

func tokenFault(r *rule, n int64, reason, format string) *fault.Fault {
	return fault.New(fault.BudgetExceeded, reason, format, n, r.named(), r.max, r.published()).
		With("token_count", n).With("max_token_count", r.max).With("limit", r.limit).With("limit_of", r.owner)
}

// required is a word for what the number is of, "" where nothing else could be meant.
func (r *rule) required(alone bool) string {
	if alone && !r.single {
		return "required "
	}
	return ""
}

func (r *rule) onlyRequired(alone bool) string {
	if alone && !r.single {
		return ", required ones alone"
	}
	return ""
}
