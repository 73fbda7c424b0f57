// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package thread remembers the calls of conversations that a vendor keeps. A
// request that goes on with such a conversation brings a tool's result and not
// the call; what the call was has been told by the reply that passed before. A
// Tap reads replies of the Responses API as they pass, and a Table keeps, for a
// day and within bounds, what they call. It does no I/O and logs nothing.
package thread

import (
	"cmp"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// The defaults of Options.
const (
	DefaultEntries = 8192
	DefaultBytes   = 4 << 20
	DefaultTTL     = 24 * time.Hour
)

// Bounds of one call, in bytes. The arguments of one that has more are not
// kept: no path to an image is as long.
const (
	maxID        = 256
	maxName      = 256
	maxArguments = 64 << 10
	// overhead is what an entry costs beside its texts: about what it takes.
	overhead = 256
)

// Options are what New needs; zero values mean the defaults.
type Options struct {
	// MaxEntries bounds the calls, and apart from them what is marked.
	MaxEntries int
	// MaxBytes bounds the texts of calls, with 256 bytes on top for each.
	MaxBytes int64
	// TTL is how long after it has passed a call is known.
	TTL time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Call is a call that a reply made.
type Call struct {
	// ID is what the result will name, Name the tool's name.
	ID, Name string
	// Arguments is a JSON text, or whatever else the model wrote for a custom tool;
	// "" where there are none or too many.
	Arguments string
	// Response and Conversation are the vendor's names of the reply that made the
	// call, and of the conversation it belongs to; "" where the reply has not told.
	Response, Conversation string
}

func (c *Call) size() int64 {
	return overhead + int64(len(c.ID)+len(c.Name)+len(c.Arguments)+len(c.Response)+len(c.Conversation))
}

// Table is safe for concurrent use. Whatever is over its bounds goes, oldest first.
type Table struct {
	o Options

	mu    sync.Mutex
	calls *simplelru.LRU[string, known]
	bytes int64 // sum of sizes
	added *simplelru.LRU[[sha256.Size]byte, time.Time]
}

type known struct {
	call  Call
	since time.Time
	// shared says that another thread has made a call of the same ID.
	shared bool
}

// scope names the thread that a call belongs to, as requests go on from it: the
// conversation or, where the reply tells of none, the reply.
func (c *Call) scope() string { return cmp.Or(c.Conversation, c.Response) }

// in is the key of a call whose ID a newer one of another thread has taken.
func in(callID, scope string) string { return callID + "\x00" + scope }

// New returns an empty Table.
func New(o Options) *Table {
	o.MaxEntries = max(cmp.Or(o.MaxEntries, DefaultEntries), 1)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultBytes)
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	if o.Now == nil {
		o.Now = time.Now
	}
	t := &Table{o: o}
	// A size above zero never fails.
	t.calls, _ = simplelru.NewLRU(o.MaxEntries, func(_ string, k known) { t.bytes -= k.call.size() })
	t.added, _ = simplelru.NewLRU[[sha256.Size]byte, time.Time](o.MaxEntries, nil)
	return t
}

// Find returns the call of an ID, if a reply that passed has made it. previous is
// the reply or the conversation that the request goes on from. Servers that count
// their calls give several threads the same IDs; then the call is that of previous,
// and not known where previous tells none of them.
func (t *Table) Find(callID, previous string) (Call, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.peek(callID)
	if !ok || !k.shared || previous != "" && (k.call.Response == previous || k.call.Conversation == previous) {
		return k.call, ok
	}
	k, ok = t.peek(in(callID, previous))
	return k.call, ok
}

func (t *Table) peek(key string) (known, bool) {
	k, ok := t.calls.Peek(key)
	if ok && !t.fresh(k.since) {
		t.calls.Remove(key)
		ok = false
	}
	if !ok {
		return known{}, false
	}
	return k, true
}

// MarkAdded remembers under a name that something was added to a conversation
// that the vendor keeps. The name says what, and to which: a call's ID alone
// where nothing else can bring the call again.
func (t *Table) MarkAdded(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := sha256.Sum256([]byte(name))
	t.added.Add(key, t.o.Now()) // as the newest, in place of what was
}

// Added says whether MarkAdded was called for a name.
func (t *Table) Added(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := sha256.Sum256([]byte(name))
	since, ok := t.added.Peek(key)
	if ok && !t.fresh(since) {
		t.added.Remove(key)
		ok = false
	}
	return ok
}

// Len tells how many calls are known, expired ones included.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls.Len()
}

// Bytes is what they count.
func (t *Table) Bytes() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes
}

// fresh says whether what is known since a moment still is. After a clock that
// went back, how old it is cannot be told.
func (t *Table) fresh(since time.Time) bool {
	age := t.o.Now().Sub(since)
	return age >= 0 && age < t.o.TTL
}

// remember takes calls in, and lets those go that have expired.
func (t *Table) remember(calls []Call) {
	if len(calls) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Now()
	for {
		_, oldest, ok := t.calls.GetOldest()
		if !ok || t.fresh(oldest.since) {
			break
		}
		t.calls.RemoveOldest()
	}
	for _, call := range calls {
		before, ok := t.calls.Peek(call.ID)
		other := ok && before.call.scope() != call.scope()
		if other {
			t.put(in(call.ID, before.call.scope()), before)
		}
		t.put(call.ID, known{call, now, ok && before.shared || other})
	}
	for t.bytes > t.o.MaxBytes {
		if _, _, ok := t.calls.RemoveOldest(); !ok {
			return
		}
	}
}

// put makes what is known under a key the newest.
func (t *Table) put(key string, k known) {
	t.calls.Remove(key)
	t.bytes += k.call.size()
	t.calls.Add(key, k)
}
