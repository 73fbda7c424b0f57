// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import "time"

// What is known in memory leads; the directory follows it.

// settling is how long bytes may lie there before their record: another process
// over the same directory writes the one right after the other.
const settling = time.Minute

// load reads the records of an earlier keeper, the oldest first, and removes
// what cannot be used: records of uploads without their bytes, and bytes
// without their record.
func (k *Keeper) load() {
	used := map[string]bool{}
	for _, id := range k.records.Names() {
		data, _, err := k.records.Get(id)
		r, ok := decodeRecord(id, data)
		if err != nil || !ok {
			k.discard(k.records.Delete(id))
			continue
		}
		sha := r.Reference.SHA256
		if used[sha] = r.holds(sha); used[sha] && !k.uploads.Has(sha) {
			k.discard(k.records.Delete(id))
			continue
		}
		k.add(r)
	}
	for _, sha := range k.uploads.Names() {
		if !used[sha] && !k.settles(sha) {
			k.discard(k.uploads.Delete(sha))
		}
	}
}

// settles reports whether bytes came just now, so that their record may still come.
func (k *Keeper) settles(sha256 string) bool {
	_, stored, err := k.uploads.Get(sha256)
	age := k.now().Sub(stored)
	return err == nil && age >= 0 && age < settling
}

// add makes a record known and returns those that had to go, the least
// recently used. It is called with the lock held.
func (k *Keeper) add(r *record) (gone []*record) {
	k.known.Remove(r.Reference.ID)
	k.known.Add(r.Reference.ID, r)
	k.bytes += r.size()
	for k.bytes > k.maxReferenceBytes {
		_, oldest, ok := k.known.RemoveOldest()
		if !ok {
			break
		}
		gone = append(gone, oldest)
	}
	return gone
}

// forget drops an upload whose bytes are gone, and reports whether they are.
func (k *Keeper) forget(kept *Kept) (gone bool) {
	sha := kept.Reference.SHA256
	if k.uploads.Has(sha) {
		return false
	}
	k.uploading.Lock() // while they come, they are on disk before their record is known
	defer k.uploading.Unlock()
	if k.uploads.Has(sha) {
		return false
	}
	k.mu.Lock()
	r, _ := k.known.Peek(kept.Reference.ID)
	drop := r.holds(sha)
	if drop {
		k.known.Remove(kept.Reference.ID)
	}
	k.mu.Unlock()
	if drop {
		k.mirror(r)
	}
	return true
}

// mirror makes the records on disk what they are in memory. What changes
// meanwhile is mirrored again by whoever changes it.
func (k *Keeper) mirror(changed ...*record) {
	if k.records == nil {
		return
	}
	k.mirroring.Lock()
	defer k.mirroring.Unlock()
	for _, c := range changed {
		k.mu.Lock()
		r, known := k.known.Peek(c.Reference.ID)
		k.mu.Unlock()
		if !known {
			k.discard(k.records.Delete(c.Reference.ID))
			continue
		}
		if err := k.records.Put(c.Reference.ID, r.data); err != nil {
			k.failed(err)
			continue
		}
		k.ill.Store(false)
	}
}

// sweep removes the bytes of uploads that nothing names any more.
func (k *Keeper) sweep(dropped ...*record) {
	for _, d := range dropped {
		if d == nil || !d.Uploaded || k.uploads == nil {
			continue
		}
		k.uploading.Lock()
		k.mu.Lock()
		r, _ := k.known.Peek(d.Reference.ID)
		named := r.holds(d.Reference.SHA256)
		k.mu.Unlock()
		if !named {
			k.discard(k.uploads.Delete(d.Reference.SHA256))
		}
		k.uploading.Unlock()
	}
}

// discard takes note of a removal that failed.
func (k *Keeper) discard(err error) {
	if err != nil {
		k.failed(err)
	}
}

// failed logs the first failure of the disk, and the next one only after a
// record could be written.
func (k *Keeper) failed(err error) {
	if !k.ill.Swap(true) {
		k.logger.Warn("keeping references on disk failed", "error", err)
	}
}
