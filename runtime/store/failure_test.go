// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/store"
)

// damage writes other bytes into the file of an entry, and tells whether the
// store then still answers with it.
func damage(t *testing.T, s *store.Store, path string, file []byte) bool {
	t.Helper()
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	data, _, err := s.Get("a")
	if err == nil {
		return true
	}
	if _, statErr := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || data != nil || !errors.Is(statErr, fs.ErrNotExist) || s.Len() != 0 {
		t.Errorf("%q is answered by %v and leaves %v", file, err, statErr)
	}
	return false
}

func TestATornFileIsAbsentAndRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	s := open(t, dir)
	put(t, s, "a", "some value")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if damage(t, s, path, whole[:n]) {
			t.Errorf("cut to %d bytes, it is still a value", n)
		}
		flipped := bytes.Clone(whole)
		flipped[n] ^= 0x40
		if damage(t, s, path, flipped) {
			t.Errorf("with byte %d changed, it is still a value", n)
		}
	}
	for name, file := range map[string][]byte{
		"longer":             append(bytes.Clone(whole), 0),
		"of a later version": bytes.Replace(whole, []byte("/1\r\n"), []byte("/2\r\n"), 1),
		"of another name":    append(store.Header("b", start, []byte("some value")), "some value"...),
		"larger than bounds": make([]byte, 1<<20+1),
	} {
		if damage(t, s, path, file) {
			t.Errorf("a file that is %s is still a value", name)
		}
	}
	if !damage(t, s, path, whole) {
		t.Error("the whole file is no value: the damage above proves nothing")
	}
}

func TestAFileThatTellsAnEnormousSizeIsNotRead(t *testing.T) {
	dir := t.TempDir()
	s := openWithin(t, dir, math.MaxInt64, math.MaxInt) // as before a policy is known
	path := filepath.Join(dir, "a")
	for name, start := range map[string][]byte{"of zeros": nil, "that begins as another": store.Header("a", start, []byte("x"))} {
		if err := errors.Join(os.WriteFile(path, start, 0o600), os.Truncate(path, 1<<40)); err != nil {
			t.Fatal(err)
		}
		if get(t, s, "a") != "" || len(files(t, dir)) != 0 {
			t.Errorf("a file %s is a value", name)
		}
	}
}

func TestADiskThatFailsBreaksNoReads(t *testing.T) {
	for name, tc := range map[string]struct {
		fails func(*store.Store)
		want  store.Reason
	}{
		"full before the header": {func(s *store.Store) { s.FailWrites(0, syscall.ENOSPC) }, store.Full},
		"full in the header":     {func(s *store.Store) { s.FailWrites(10, syscall.ENOSPC) }, store.Full},
		"full in the data":       {func(s *store.Store) { s.FailWrites(store.HeaderSize+2, syscall.ENOSPC) }, store.Full},
		"over its quota":         {func(s *store.Store) { s.FailWrites(0, syscall.EDQUOT) }, store.Full},
		"broken":                 {func(s *store.Store) { s.FailWrites(0, syscall.EIO) }, store.IO},
		"read-only":              {func(s *store.Store) { s.BeReadOnly(syscall.EROFS) }, store.ReadOnly},
		"not permitted":          {func(s *store.Store) { s.BeReadOnly(&fs.PathError{Op: "openat", Path: dirName, Err: syscall.EACCES}) }, store.ReadOnly},
	} {
		t.Run("a disk that is "+name, func(t *testing.T) {
			dir := t.TempDir()
			s := openWithin(t, dir, 3*store.Size(1), 3)
			put(t, s, "a", "old")
			put(t, s, "b", "b")
			tc.fails(s)
			for _, name := range []string{"a", "c"} {
				err := s.Put(name, []byte("new value"))
				if reasonOf(err) != tc.want || errors.Unwrap(err) == nil || strings.Contains(err.Error(), dirName) {
					t.Errorf("storing %s: %v, want %s", name, err, tc.want)
				}
			}
			if get(t, s, "a") != "old" || get(t, s, "b") != "b" || s.Len() != 2 || s.Bytes() != 2*store.Size(1) {
				t.Errorf("afterwards a is %q, b is %q, and %d bytes are counted", get(t, s, "a"), get(t, s, "b"), s.Bytes())
			}
			if got := files(t, dir); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("afterwards there are %v", got)
			}
		})
	}
}

const dirName = "/some/where"

func TestWhatCannotBeEvictedStaysCounted(t *testing.T) {
	s := openWithin(t, t.TempDir(), 1<<20, 2)
	put(t, s, "a", "a")
	put(t, s, "b", "b")
	s.BeReadOnly(syscall.EROFS)
	if err := s.Put("c", nil); reasonOf(err) != store.ReadOnly {
		t.Errorf("storing without room: %v", err)
	}
	s.SetLimits(1<<20, 1)
	if err := s.Delete("a"); reasonOf(err) != store.ReadOnly {
		t.Errorf("removing: %v", err)
	}
	if s.Len() != 2 || get(t, s, "a") != "a" || get(t, s, "b") != "b" {
		t.Errorf("%d entries are known", s.Len())
	}
}

func TestADirectoryThatVanishesIsMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	s := open(t, dir)
	put(t, s, "a", "a")
	put(t, s, "b", "b")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if get(t, s, "a") != "" || s.Has("a") || s.Has("b") {
		t.Error("there is a value without its directory")
	}
	put(t, s, "c", "c")
	if get(t, s, "c") != "c" || s.Len() != 1 || s.Bytes() != store.Size(1) {
		t.Errorf("in the new directory: %v", s.Names())
	}
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("d", nil); reasonOf(err) != store.IO || get(t, s, "c") != "" {
		t.Errorf("with a file in the directory's place: %v", err)
	}
}

func TestTwoStoresMayUseOneDirectory(t *testing.T) {
	dir := t.TempDir()
	one, other := open(t, dir), open(t, dir)
	put(t, one, "a", "one")
	if get(t, other, "a") != "one" || other.Len() != 1 {
		t.Error("what one wrote is not found by the other")
	}
	if err := other.Delete("a"); err != nil || get(t, one, "a") != "" || one.Len() != 0 {
		t.Errorf("what the other removed is still known: %v, %v", one.Names(), err)
	}
	once := sync.Once{}
	one.BeforeRename(func() { once.Do(func() { open(t, dir) }) }) // it removes what it takes for left over
	put(t, one, "b", "one")
	if get(t, other, "b") != "one" {
		t.Error("a value was lost to a store that opened meanwhile")
	}
}

func TestManyAtOnceAgree(t *testing.T) {
	dir := t.TempDir()
	stores := []*store.Store{openWithin(t, dir, 6*store.Size(1), 6), openWithin(t, dir, 6*store.Size(1), 6)}
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			s := stores[worker%2]
			for i := range 60 {
				name := fmt.Sprint("n", (worker+i)%10)
				if data, _, err := s.Get(name); err == nil && string(data) != name || err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is %q, %v", name, data, err)
				}
				if err := s.Put(name, []byte(name)); err != nil {
					t.Error(err)
				}
				if i%20 == 19 {
					_ = s.Delete(name)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		if s.Len() > 6 || s.Bytes() > 6*store.Size(1) {
			t.Errorf("%d entries of %d bytes", s.Len(), s.Bytes())
		}
	}
	last := open(t, dir)
	for _, name := range last.Names() {
		if get(t, last, name) != name {
			t.Errorf("%s is damaged", name)
		}
	}
	if strings.Contains(fmt.Sprint(files(t, dir)), "tmp") {
		t.Errorf("left over: %v", files(t, dir))
	}
}
