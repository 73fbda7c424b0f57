// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"context"
	"sync"
)

// turns are the keys at which somebody looks now.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	taken   chan struct{} // of one place
	waiting int           // with the one who has it; guarded by turns.mu
}

// Lock waits until nobody else looks at the sight of a key, so that equal sights
// at the same time are looked at once: whoever comes later finds the pin. The
// error is that of the context. done is called once.
func (s *Store) Lock(ctx context.Context, key string) (done func(), err error) {
	s.turns.mu.Lock()
	t := s.turns.of[key]
	if t == nil {
		t = &turn{taken: make(chan struct{}, 1)}
		s.turns.of[key] = t
	}
	t.waiting++
	s.turns.mu.Unlock()
	leave := func() {
		s.turns.mu.Lock()
		defer s.turns.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(s.turns.of, key)
		}
	}
	select {
	case t.taken <- struct{}{}:
		return func() { <-t.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
