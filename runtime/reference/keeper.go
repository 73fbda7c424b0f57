// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/store"
)

// Options are what Open needs.
type Options struct {
	// Dir is the cache directory: records lie in "references" below it, the
	// bytes of uploads in "uploads". "" keeps records in memory, and no uploads.
	Dir string
	// MaxReferenceBytes bounds the records and MaxUploadBytes the uploads, each
	// counted by store.Size. Zero means the constant of that name in router.
	MaxReferenceBytes, MaxUploadBytes int64
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger is told of a disk that fails, without content. Nil discards.
	Logger *slog.Logger
}

// Keeper is safe for concurrent use. What it keeps is bounded; the least
// recently used goes first.
type Keeper struct {
	now    func() time.Time
	logger *slog.Logger
	ill    atomic.Bool // the disk failed, and that was told

	maxReferenceBytes, maxUploadBytes int64

	records *store.Store // by id; nil without a directory
	uploads *store.Store // by sha256; nil without a directory

	// These are taken in this order, and mu is never held while files are
	// read or written.
	uploading sync.Mutex // bytes come, with their record, or go
	mirroring sync.Mutex // records on disk are made what those in memory are

	mu    sync.Mutex
	known *simplelru.LRU[string, *record] // by id
	bytes int64                           // sum of the records' sizes
}

// Open opens the keeper and reads what an earlier one left in the directory.
func Open(o Options) (*Keeper, error) {
	k := &Keeper{
		now: o.Now, logger: o.Logger,
		maxReferenceBytes: cmp.Or(o.MaxReferenceBytes, router.MaxReferenceBytes),
		maxUploadBytes:    cmp.Or(o.MaxUploadBytes, router.MaxUploadBytes),
	}
	if k.now == nil {
		k.now = time.Now
	}
	if k.logger == nil {
		k.logger = slog.New(slog.DiscardHandler)
	}
	// The size only has to be above all: add evicts by its own rules.
	k.known, _ = simplelru.NewLRU(math.MaxInt, func(_ string, r *record) { k.bytes -= r.size() })
	if o.Dir == "" {
		return k, nil
	}
	var err error
	if k.records, err = k.open(o.Dir, "references", k.maxReferenceBytes+recordsInMotion); err == nil {
		k.uploads, err = k.open(o.Dir, "uploads", k.maxUploadBytes)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening references: %w", err), k.Close())
	}
	k.load()
	return k, nil
}

// recordsInMotion is what the directory may hold above the bound for a moment: 256
// records of a block each. Memory evicts, and the directory follows, one change
// after the other; had it no room for those on their way, it would evict by an
// order of its own what memory still knows.
const recordsInMotion = 1 << 20

func (k *Keeper) open(dir, below string, maxBytes int64) (*store.Store, error) {
	return store.Open(store.Options{Dir: filepath.Join(dir, below), MaxBytes: maxBytes, MaxEntries: math.MaxInt, Now: k.now})
}

// Close ends the use of the directory; what is kept there stays.
func (k *Keeper) Close() error {
	var errs []error
	for _, s := range []*store.Store{k.records, k.uploads} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Remember keeps the reference of an image that was looked at in a workspace.
// It writes nothing when the same image at the same path is known already; a
// new path takes the place of the one before. A disk that fails is logged.
func (k *Keeper) Remember(ref *observation.Reference) {
	if !sound(ref) {
		return
	}
	k.mu.Lock()
	old, _ := k.known.Get(ref.ID) // nil when unknown
	next := k.seen(old, ref)
	if next == nil {
		k.mu.Unlock()
		return
	}
	gone := k.add(next)
	k.mu.Unlock()
	k.mirror(append(gone, next)...)
	k.sweep(append(gone, old)...)
}

// seen is the record after an image was looked at, or nil when it stays as it is.
func (k *Keeper) seen(old *record, ref *observation.Reference) *record {
	_, isURI, _ := ParseURI(ref.Path)
	switch {
	case old != nil && old.Ambiguous:
		return nil
	case old != nil && old.Reference.SHA256 != ref.SHA256:
		return newRecord(old.Kept, true) // both ids are out with callers: from here on it names neither
	case isURI:
		return nil // it came from here, and may have been evicted meanwhile
	case old == nil:
		return newRecord(k.keep(ref, ref.Path, false), false)
	case old.Uploaded || old.Reference.Path == ref.Path:
		return nil
	}
	kept := k.keep(ref, ref.Path, false)
	kept.CreatedAt = old.CreatedAt
	return newRecord(kept, false)
}

// keep is a new reference, kept from now on.
func (k *Keeper) keep(ref *observation.Reference, path string, uploaded bool) Kept {
	ref = clone(ref)
	ref.Path = path
	return Kept{Reference: ref, URI: URI(ref.ID), Uploaded: uploaded, CreatedAt: k.now().UTC().Truncate(time.Second)}
}

// TakesUploads tells whether there is a directory in which uploads are kept.
func (k *Keeper) TakesUploads() bool { return k.uploads != nil }

// Upload keeps an image's bytes with its reference, whose path becomes its
// URI. The reference is that of the data; data is not changed and not held.
func (k *Keeper) Upload(ref *observation.Reference, data []byte) (*Kept, *fault.Fault) {
	switch {
	case k.uploads == nil:
		return nil, noUploads()
	case !sound(ref) || ref.ByteCount != int64(len(data)):
		return nil, fault.As(errors.New("keeping upload: its reference is that of something else"))
	}
	k.uploading.Lock()
	next, existed, gone, bad := k.upload(ref, data)
	k.uploading.Unlock()
	if bad != nil {
		return nil, bad
	}
	k.mirror(append(gone, next)...)
	k.sweep(gone...)
	kept := next.hand()
	kept.Existed = existed
	return kept, nil
}

// upload writes the bytes and adds their record. It is called with uploading held.
func (k *Keeper) upload(ref *observation.Reference, data []byte) (next *record, existed bool, gone []*record, bad *fault.Fault) {
	k.mu.Lock()
	_, free := k.claim(ref)
	k.mu.Unlock()
	if !free {
		return nil, false, nil, conflict(ref.ID)
	}
	there := k.uploads.Has(ref.SHA256)
	if err := k.uploads.Put(ref.SHA256, data); err != nil {
		return nil, false, nil, k.notWritten(ref, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	old, free := k.claim(ref)
	if !free { // since a moment ago; the bytes, which nothing names, go by their age
		return nil, false, nil, conflict(ref.ID)
	}
	kept := k.keep(ref, URI(ref.ID), true)
	if old != nil {
		existed, kept.CreatedAt = there && old.Uploaded, old.CreatedAt
	}
	next = newRecord(kept, false)
	return next, existed, k.add(next), nil
}

// claim returns what is known of an image, or nil, and whether its id may name
// it. It is called with the lock held.
func (k *Keeper) claim(ref *observation.Reference) (old *record, free bool) {
	old, known := k.known.Get(ref.ID)
	return old, !known || !old.Ambiguous && old.Reference.SHA256 == ref.SHA256
}

func (k *Keeper) notWritten(ref *observation.Reference, err error) *fault.Fault {
	reason := store.IO
	if e, ok := errors.AsType[*store.Error](err); ok {
		reason = e.Reason
	}
	if reason == store.TooLarge {
		return uploadTooLarge(ref.ByteCount, k.maxUploadBytes)
	}
	k.failed(err)
	return uploadFailed(err, reason)
}

// Find returns what is kept of an image. It does not find what was evicted,
// nor an id that names two images; Unknown is the fault for that.
func (k *Keeper) Find(id string) (*Kept, bool) {
	k.mu.Lock()
	r, known := k.known.Get(id)
	k.mu.Unlock()
	if !known || r.Ambiguous || r.Uploaded && k.forget(&r.Kept) {
		return nil, false
	}
	return r.hand(), true
}

// Bytes returns the bytes of an upload, whose digest is that of its reference.
// The error is a *fault.Fault: that of Unknown when they are gone.
func (k *Keeper) Bytes(kept *Kept) ([]byte, error) {
	id, sha := kept.Reference.ID, kept.Reference.SHA256
	switch {
	case !kept.Uploaded:
		return nil, notUploaded(id)
	case k.uploads == nil:
		return nil, Unknown(id)
	}
	data, _, err := k.uploads.Get(sha)
	if err == nil {
		if digest := sha256.Sum256(data); hex.EncodeToString(digest[:]) == sha {
			return data, nil
		}
		if err = k.uploads.Delete(sha); err == nil {
			err = fs.ErrNotExist
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		k.forget(kept)
		return nil, Unknown(id)
	}
	k.failed(err)
	return nil, unreadable(id, err)
}
