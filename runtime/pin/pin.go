// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pin keeps what conversations were shown, so that later requests show
// the same: pins, which say by a sight's key which image was found at first
// sight or why none was; the contents of those images, by their digest; and
// texts, which stood in an image's place, as they were sent.
//
// All of it is bounded, and the least recently used goes first. Pins and texts
// are in memory and, with a directory, in a journal there: an append for each,
// of some 150 bytes, where a file for each would take a block of 4 KiB and more
// time than the rest of a request. Contents are files by their digest, written
// beside their place and renamed, and read through descriptors without being
// held; without a directory, or while its disk fails, they are in memory.
//
// What is torn, truncated or of somebody else's making is absent. Nothing is
// flushed to the medium (no fsync): what is lost with a machine is looked for
// again at its path. Two processes may use one directory for a while, as when a
// container restarts: each tolerates what the other removes.
//
// What is pinned may name no path and no conversation; errors and logs hold
// nothing of images.
package pin

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// The defaults of Options.
const (
	// DefaultMemoryBytes is MaxMemoryBytes: less with a directory, where memory only
	// takes what the disk did not.
	DefaultMemoryBytes              = 32 << 20
	DefaultMemoryBytesWithDirectory = 16 << 20
	// DefaultPins is MaxPins: with recordBytes each, 16 MiB in memory.
	DefaultPins = 65_536
)

// recordBytes is what a pin counts: about what it takes in memory, and more than
// it takes in the journal. A text counts its bytes on top.
const recordBytes = 256

// maxText is the longest text that is kept: four times what an observation
// shown in an image's place may have.
const maxText = 8 << 10

// Options are what Open needs. Zero numbers mean the defaults.
type Options struct {
	// Dir is the directory, which is the store's own: made, mode 0700, when it is not
	// there. "" keeps everything in memory.
	Dir string
	// MaxMemoryBytes bounds the contents in memory, apart from those in use.
	MaxMemoryBytes int64
	// MaxDiskBytes bounds all files of the directory, in blocks of 4 KiB; 0 means
	// router.MaxPinnedBytes. The journal may take 768 bytes of it for each of
	// MaxPins, contents the rest; files that were evicted while in use come on top
	// until they are closed.
	MaxDiskBytes int64
	// MaxPins bounds pins and texts together, and with 256 bytes each their bytes.
	MaxPins int
	// Logger is told of a disk that fails, once until it works again. Nil discards.
	Logger *slog.Logger
}

// Pin is what was found at a sight.
type Pin struct {
	// SHA256 is the image's digest, 64 lower-case hexadecimal digits; "" when no image
	// was found.
	SHA256 string
	// Size is the number of its bytes, and Facts what they tell.
	Size  int64
	Facts probe.Facts
	// Reason is a CamelCase word that says why nothing is shown; "" when the image is.
	// More than 64 bytes are cut off.
	Reason string
}

// Store is safe for concurrent use. The zero value is not ready: see Open.
type Store struct {
	logger *slog.Logger
	// illContents and illRecords say that the disk failed, and that was told.
	illContents, illRecords atomic.Bool

	maxRecords     int
	maxRecordBytes int64

	writing sync.Mutex // one change of records at a time; taken before mu
	journal *journal   // nil without a directory

	mu      sync.Mutex
	closed  bool
	records *simplelru.LRU[name, *record]
	bytes   int64 // sum of the records' cost

	memory *memory
	disk   *disk // nil without a directory

	turns turns
}

// Open opens the store and takes over what an earlier one left in the directory.
// A directory that cannot be used is logged, and everything kept in memory: the
// error is for bounds that leave room for nothing.
func Open(o Options) (*Store, error) {
	o.MaxMemoryBytes = cmp.Or(o.MaxMemoryBytes, defaultMemory(o.Dir))
	o.MaxDiskBytes = cmp.Or(o.MaxDiskBytes, router.MaxPinnedBytes)
	o.MaxPins = cmp.Or(o.MaxPins, DefaultPins)
	records := int64(o.MaxPins) * recordBytes
	contents := o.MaxDiskBytes - journalShare*records
	if o.MaxMemoryBytes < 0 || o.MaxPins < 0 || o.Dir != "" && contents <= 0 {
		return nil, fmt.Errorf("opening pins: bounds of %d bytes of memory, %d of disk and %d pins leave no room", o.MaxMemoryBytes, o.MaxDiskBytes, o.MaxPins)
	}
	s := &Store{
		logger: o.Logger, maxRecords: o.MaxPins, maxRecordBytes: records, memory: newMemory(o.MaxMemoryBytes),
		turns: turns{of: map[string]*turn{}},
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	// The size only has to be above all: add evicts by its own rules.
	s.records, _ = simplelru.NewLRU(math.MaxInt, func(_ name, r *record) { s.bytes -= r.cost() })
	if o.Dir != "" {
		if err := s.attach(o.Dir, contents); err != nil {
			s.failed(&s.illContents, err)
		}
	}
	return s, nil
}

func defaultMemory(dir string) int64 {
	if dir == "" {
		return DefaultMemoryBytes
	}
	return DefaultMemoryBytesWithDirectory
}

// attach takes the directory into use.
func (s *Store) attach(dir string, contents int64) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return bare("making the directory of pins", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return bare("opening the directory of pins", err)
	}
	d := newDisk(root, contents)
	if err := d.survey(); err != nil {
		return errors.Join(bare("listing the directory of pins", err), root.Close())
	}
	s.disk = d
	s.journal = &journal{root: root, create: create, most: 2 * s.maxRecordBytes}
	s.journal.replay(func(n name, r *record) { s.add(n, r) })
	// The file of an earlier process is left alone: one that still ends may append to it.
	s.rewrite()
	return nil
}

// rewrite writes the journal anew. It is called with writing held, or before the
// store is used.
func (s *Store) rewrite() {
	if err := s.journal.rewrite(s.snapshot()); err != nil {
		s.failed(&s.illRecords, err)
		return
	}
	s.illRecords.Store(false)
}

// Get returns the pin of a sight.
func (s *Store) Get(key string) (Pin, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records.Get(nameOf(kindPin, key))
	if !ok {
		return Pin{}, false
	}
	return r.pin(), true
}

// Put pins what was found at a sight, in the place of what was pinned there.
func (s *Store) Put(key string, p Pin) { s.put(nameOf(kindPin, key), newPin(p)) }

// Text returns a text as it was kept.
func (s *Store) Text(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.records.Get(nameOf(kindText, key))
	if !ok {
		return "", false
	}
	return r.text, true
}

// PutText keeps a text of at most 8 KiB, in the place of the one before; a longer
// one is not kept.
func (s *Store) PutText(key, text string) {
	if len(text) <= maxText {
		s.put(nameOf(kindText, key), &record{kind: kindText, text: text})
	}
}

func (s *Store) put(n name, r *record) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	closed := s.closed
	if old, ok := s.records.Peek(n); closed || ok && old.equal(r) {
		s.mu.Unlock()
		return
	}
	s.add(n, r)
	s.mu.Unlock()
	if s.journal == nil {
		return
	}
	switch err := s.journal.append(n, r); {
	case errors.Is(err, errRewrite):
		s.rewrite()
	case err != nil:
		s.failed(&s.illRecords, err)
	}
}

// add makes a record known, and forgets the least recently used ones for it. It
// is called with the lock held, or before the store is used.
func (s *Store) add(n name, r *record) {
	s.records.Remove(n)
	s.records.Add(n, r)
	s.bytes += r.cost()
	for s.bytes > s.maxRecordBytes || s.records.Len() > s.maxRecords {
		if _, _, ok := s.records.RemoveOldest(); !ok {
			return
		}
	}
}

// snapshot is all records, the least recently used first.
func (s *Store) snapshot() []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]entry, 0, s.records.Len())
	for _, n := range s.records.Keys() {
		if r, ok := s.records.Peek(n); ok {
			all = append(all, entry{n, r})
		}
	}
	return all
}

// Len is the number of pins and texts.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records.Len()
}

// Close ends the use of the directory; its files stay. Contents that are open
// stay readable; later calls keep nothing.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed || s.disk == nil {
		return nil
	}
	if s.journal.file == nil {
		s.rewrite() // the last chance of what waits for the disk to work again
	}
	return errors.Join(s.journal.close(), s.disk.close())
}

// failed logs the first failure of the disk, and the next one only after it
// worked again: ill is that of the part that failed.
func (s *Store) failed(ill *atomic.Bool, err error) {
	told := s.illContents.Load() || s.illRecords.Load()
	if !ill.Swap(true) && !told {
		s.logger.Warn("keeping shown images on disk failed; they are kept in memory", "error", err)
	}
}

// bare says what was being done, and what the system said without its path.
func bare(doing string, err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	if linkError, ok := errors.AsType[*os.LinkError](err); ok {
		err = linkError.Err
	}
	return fmt.Errorf("%s: %w", doing, err)
}
