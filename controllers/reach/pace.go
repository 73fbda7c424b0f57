// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"sync"
	"time"
)

// pace lets its callers pass one by one, a gap apart at least.
type pace struct {
	gap  time.Duration
	mu   sync.Mutex
	next time.Time // when the next may pass
}

// wait returns when the caller may pass, or with the error of a context that ended.
func (p *pace) wait(ctx context.Context) error {
	timer := time.NewTimer(time.Until(p.reserve(time.Now())))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve takes the next place, now or later.
func (p *pace) reserve(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(p.gap)
	return at
}
