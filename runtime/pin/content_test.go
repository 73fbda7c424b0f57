// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/pin"
)

func TestContentIsWhatWasPut(t *testing.T) {
	w := newWorld(t)
	for name, s := range map[string]*pin.Store{"on disk": w.open(nil), "in memory": w.open(inMemory)} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 4096, 300_001} {
				sum := keep(t, s, some('a', n))
				if got := found(t, s, sum); got != string(some('a', n)) {
					t.Errorf("of %d bytes, %d are found", n, len(got))
				}
			}
			if _, ok := s.Content(digest([]byte("never put"))); ok {
				t.Error("what was never put is found")
			}
		})
	}
	if got := found(t, w.open(nil), digest(some('a', 4096))); got != string(some('a', 4096)) {
		t.Errorf("after a restart %d bytes are found", len(got))
	}
}

func TestContentOnDiskIsNotInMemory(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	sum := keep(t, s, some('a', 5000))
	keep(t, s, some('a', 5000))
	if memory, disk := s.Bytes(); memory != 0 || disk != 8192 {
		t.Errorf("%d bytes are in memory, %d on disk", memory, disk)
	}
	info, err := os.Stat(filepath.Join(w.dir, sum))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 5000 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(w.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v, %v", info, err)
	}
}

func TestTheLeastRecentlyUsedContentGoesFirst(t *testing.T) {
	const size = 4096
	for name, edit := range map[string]func(*pin.Options){
		"on disk":   func(o *pin.Options) { o.MaxPins, o.MaxDiskBytes = 1, 768+3*size },
		"in memory": func(o *pin.Options) { o.Dir, o.MaxMemoryBytes = "", 3*size },
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(t).open(edit)
			a, b, c := keep(t, s, some('a', size)), keep(t, s, some('b', size)), keep(t, s, some('c', size))
			reader, ok := s.Content(b)
			if !ok || found(t, s, a) == "absent" {
				t.Fatal("they are not there")
			}
			defer reader.Close()
			keep(t, s, some('d', 2*size)) // b is used before a: c and b go
			if found(t, s, a) == "absent" || found(t, s, b) != "absent" || found(t, s, c) != "absent" {
				t.Errorf("a %.1q, b %.1q, c %.1q", found(t, s, a), found(t, s, b), found(t, s, c))
			}
			if read(t, reader) != string(some('b', size)) {
				t.Error("what was open when it was evicted is not readable")
			}
			if memory, disk := s.Bytes(); memory+disk > 3*size {
				t.Errorf("%d bytes are kept", memory+disk)
			}
		})
	}
}

func TestContentLargerThanAllRoomIsReadableOnce(t *testing.T) {
	w := newWorld(t)
	s := w.open(func(o *pin.Options) { o.MaxPins, o.MaxDiskBytes, o.MaxMemoryBytes = 1, 768+8192, 1 })
	small := keep(t, s, some('s', 10))
	sum := keep(t, s, some('a', 10_000))
	if found(t, s, sum) != "absent" || found(t, s, small) == "absent" || w.warnings() != 0 {
		t.Errorf("afterwards it is %.10q, the small one %.10q; log: %s", found(t, s, sum), found(t, s, small), w.log)
	}
}

func TestASourceThatFailsLeavesNothing(t *testing.T) {
	w := newWorld(t)
	for name, s := range map[string]*pin.Store{"on disk": w.open(nil), "in memory": w.open(inMemory)} {
		for what, tc := range map[string]struct {
			from io.ReaderAt
			want error
		}{
			"ends too early": {bytes.NewReader(some('a', 10)), io.ErrUnexpectedEOF},
			"breaks":         {failingAt{fs.ErrPermission}, fs.ErrPermission},
		} {
			_, err := s.PutContent(tc.from, 100_000)
			if e, ok := errors.AsType[*pin.SourceError](err); !ok || !errors.Is(e, tc.want) {
				t.Errorf("%s, a source that %s: %v", name, what, err)
			}
		}
		if memory, disk := s.Bytes(); memory != 0 || disk != 0 {
			t.Errorf("%s, %d and %d bytes are counted", name, memory, disk)
		}
	}
	if got := files(t, w.dir); len(got) != 1 || got[0] != "journal" || w.warnings() != 0 {
		t.Errorf("there are %v; log: %s", got, w.log)
	}
}

// failingAt fails at once.
type failingAt struct{ err error }

func (f failingAt) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range found {
		names = append(names, f.Name())
	}
	return names
}

func TestManyMayPutAndReadAtOnce(t *testing.T) {
	w := newWorld(t)
	for name, s := range map[string]*pin.Store{
		"on disk":   w.open(func(o *pin.Options) { o.MaxPins, o.MaxDiskBytes = 1, 768+8*4096 }),
		"in memory": w.open(func(o *pin.Options) { o.Dir, o.MaxMemoryBytes = "", 8*4096 }),
	} {
		t.Run(name, func(t *testing.T) {
			var wait sync.WaitGroup
			for i := range 32 {
				wait.Go(func() {
					data := some(byte('a'+i%12), 4000)
					for range 20 {
						c, err := s.PutContent(bytes.NewReader(data), 4000)
						if err != nil {
							t.Error(err)
							return
						}
						if read(t, c) != string(data) {
							t.Error("another's bytes are read")
						}
						_ = c.Close()
						s.Put(fmt.Sprint(i%12), pin.Pin{SHA256: c.SHA256})
						if p, ok := s.Get(fmt.Sprint(i % 12)); ok && p.SHA256 != c.SHA256 {
							t.Error("another's pin is read")
						}
					}
				})
			}
			wait.Wait()
			if memory, disk := s.Bytes(); disk > 8*4096 || memory > 16<<20 {
				t.Errorf("%d and %d bytes are kept", memory, disk)
			}
		})
	}
	if strings.Contains(w.log.String(), "WARN") {
		t.Errorf("log: %s", w.log)
	}
}
