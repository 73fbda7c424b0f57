// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// errNoRoom is a content that is larger than all room, or than what contents that
// are being written leave of it.
var errNoRoom = errors.New("there is no room for it")

// disk is contents as files, named by their digests.
type disk struct {
	root *os.Root
	most int64
	// create and remove touch the disk; tests make them fail.
	create func(root *os.Root, name string) (newFile, error)
	remove func(root *os.Root, name string) error

	mu    sync.Mutex
	files *simplelru.LRU[string, kept] // by digest
	bytes int64                        // sum of the files' blocks, and of those being written
}

// kept is a file that is known.
type kept struct {
	size  int64 // in blocks
	whole bool  // this process has held it against its digest
}

func newDisk(root *os.Root, most int64) *disk {
	d := &disk{root: root, most: most, create: create, remove: (*os.Root).Remove}
	// The size only has to be above all: reserve evicts by its own rules.
	d.files, _ = simplelru.NewLRU(math.MaxInt, func(_ string, f kept) { d.bytes -= f.size })
	return d
}

// blocks is what a file takes of a volume: whole blocks of 4 KiB.
func blocks(size int64) int64 {
	const block = 4096
	return (size + block - 1) / block * block
}

// survey takes stock of the directory, oldest first, and removes what a writer
// that died left unfinished. What is not the store's is left alone.
func (d *disk) survey() error {
	dir, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	var found []fs.FileInfo
	for _, name := range names {
		temp := strings.HasPrefix(name, tempPrefix)
		if !temp && !IsDigest(name) {
			continue
		}
		info, err := d.root.Lstat(name)
		switch {
		case err != nil || info.IsDir(): // gone meanwhile, or not ours
		case temp || !info.Mode().IsRegular():
			_ = d.remove(d.root, name) // what stays is never opened
		default:
			found = append(found, info)
		}
	}
	slices.SortFunc(found, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, info := range found {
		d.note(info.Name(), kept{size: blocks(info.Size())})
	}
	_ = d.shrink(0) // what cannot be removed stays counted, and leaves the less room
	return nil
}

// note counts a file. It is called with the lock held.
func (d *disk) note(sum string, f kept) {
	d.files.Remove(sum)
	d.files.Add(sum, f)
	d.bytes += f.size
}

// shrink evicts until that many more bytes fit. It is called with the lock held.
func (d *disk) shrink(more int64) error {
	for d.bytes+more > d.most {
		sum, _, ok := d.files.GetOldest()
		if !ok {
			return errNoRoom
		}
		if err := d.remove(d.root, sum); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return bare("removing a kept image", err)
		}
		d.files.Remove(sum)
	}
	return nil
}

// reserve makes room for a file of so many blocks, and counts it.
func (d *disk) reserve(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size > d.most { // it would drive out all others in vain
		return errNoRoom
	}
	if err := d.shrink(size); err != nil {
		return err
	}
	d.bytes += size
	return nil
}

// add writes size bytes of a source and opens them. The error is a *SourceError,
// errNoRoom, or the disk's.
func (d *disk) add(from io.ReaderAt, size int64) (*Content, error) {
	taken := blocks(size)
	if err := d.reserve(taken); err != nil {
		return nil, err
	}
	temp := newTempName()
	c, err := d.write(temp, from, size)
	if err != nil {
		_ = d.remove(d.root, temp) // perhaps never made; what stays, the next Open removes
	}
	d.mu.Lock()
	d.bytes -= taken // reserved; what was placed is counted by its name
	d.mu.Unlock()
	return c, err
}

// write writes a file, opens it before anybody may evict it, and gives it its name.
func (d *disk) write(temp string, from io.ReaderAt, size int64) (*Content, error) {
	sum, err := d.fill(temp, from, size)
	if err != nil {
		return nil, err
	}
	file, err := d.root.Open(temp)
	if err != nil {
		return nil, bare("opening an image that was shown", err)
	}
	if err := d.place(temp, sum, blocks(size)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Content{ReaderAt: io.NewSectionReader(file, 0, size), SHA256: sum, Size: size, file: file}, nil
}

// fill writes a file, and returns the digest of what it wrote.
func (d *disk) fill(temp string, from io.ReaderAt, size int64) (sum string, err error) {
	const doing = "writing an image that was shown"
	file, err := d.create(d.root, temp)
	if err != nil {
		return "", bare(doing, err)
	}
	source := &source{from: io.NewSectionReader(from, 0, size)}
	digest := sha256.New()
	n, err := io.CopyBuffer(io.MultiWriter(file, digest), source, make([]byte, min(max(size, 1), 256<<10)))
	err = errors.Join(err, file.Close()) // a quota may be told at the close
	switch {
	case source.err != nil:
		return "", &SourceError{source.err}
	case err != nil:
		return "", bare(doing, err)
	case n < size:
		return "", &SourceError{io.ErrUnexpectedEOF}
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// source remembers that reading failed, not writing.
type source struct {
	from io.Reader
	err  error
}

// Read reads, but for the end as the reader below does.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// place gives a file its name. One that is there already is written over: it may
// be torn.
func (d *disk) place(temp, sum string, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.root.Rename(temp, sum); err != nil {
		return bare("naming an image that was shown", err)
	}
	d.note(sum, kept{size: size, whole: true})
	return nil
}

// open opens a file and, the first time, holds it against its digest.
func (d *disk) open(sum string) (*Content, error) {
	d.mu.Lock()
	known, ok := d.files.Get(sum) // used just now
	d.mu.Unlock()
	info, err := d.root.Lstat(sum) // what is no file is never opened: it could block
	if err == nil && !info.Mode().IsRegular() {
		return nil, errTorn
	}
	file, err := d.root.Open(sum)
	if errors.Is(err, fs.ErrNotExist) {
		d.forget(sum)
	}
	if err != nil {
		return nil, bare("opening a kept image", err)
	}
	if info, err = file.Stat(); err != nil {
		return nil, errors.Join(errTorn, file.Close())
	}
	size := info.Size()
	if !ok || !known.whole || known.size != blocks(size) {
		if !whole(file, size, sum) {
			d.drop(sum, info)
			return nil, errors.Join(errTorn, file.Close())
		}
		d.adopt(sum, blocks(size))
	}
	return &Content{ReaderAt: io.NewSectionReader(file, 0, size), SHA256: sum, Size: size, file: file}, nil
}

// errTorn is a file that does not hold what its name says.
var errTorn = errors.New("opening a kept image: it is not whole")

func whole(file io.ReaderAt, size int64, sum string) bool {
	digest := sha256.New()
	n, err := io.Copy(digest, io.NewSectionReader(file, 0, size))
	return err == nil && n == size && hex.EncodeToString(digest.Sum(nil)) == sum
}

// adopt counts a file that was found whole, perhaps of another process.
func (d *disk) adopt(sum string, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(sum, kept{size: size, whole: true})
	_ = d.shrink(0) // what cannot be removed stays counted, and leaves the less room
}

func (d *disk) forget(sum string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.root.Lstat(sum); errors.Is(err, fs.ErrNotExist) {
		d.files.Remove(sum)
	}
}

// drop removes a file that is not whole, unless another has taken its place.
func (d *disk) drop(sum string, torn fs.FileInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if info, err := d.root.Lstat(sum); err == nil && os.SameFile(info, torn) {
		_ = d.remove(d.root, sum) // what stays is never found whole
	}
	d.files.Remove(sum)
}

func (d *disk) used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

func (d *disk) close() error { return d.root.Close() }
