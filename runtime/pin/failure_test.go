// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/pin"
)

func TestATornContentIsAbsentAndRemoved(t *testing.T) {
	data := []byte("some bytes of an image")
	for name, file := range map[string][]byte{
		"cut":     data[:5],
		"longer":  append(bytes.Clone(data), 0),
		"changed": []byte("Some bytes of an image"),
		"empty":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sum := keep(t, w.open(nil), data)
			path := filepath.Join(w.dir, sum)
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			s := w.open(nil)
			if got := found(t, s, sum); got != "absent" {
				t.Errorf("it is found as %q", got)
			}
			if _, disk := s.Bytes(); disk != 0 || len(files(t, w.dir)) != 1 {
				t.Errorf("%d bytes are counted; there are %v", disk, files(t, w.dir))
			}
			if keep(t, s, data); found(t, s, sum) != string(data) {
				t.Error("it cannot be put again")
			}
		})
	}
}

func TestWhatIsNoFileIsNeverOpened(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	fifo, link, dir := digest([]byte("fifo")), digest([]byte("link")), digest([]byte("dir"))
	secret := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(w.dir, fifo), 0o600),
		os.WriteFile(secret, []byte("link"), 0o600), os.Symlink(secret, filepath.Join(w.dir, link)),
		os.Mkdir(filepath.Join(w.dir, dir), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*pin.Store{s, w.open(nil)} {
		for _, sum := range []string{fifo, link, dir} {
			if got := found(t, s, sum); got != "absent" {
				t.Errorf("it is found as %q", got)
			}
		}
	}
}

func TestOpeningRemovesWhatWritersLeftAndLeavesTheRest(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	sum := keep(t, s, []byte("some bytes"))
	for _, name := range []string{".tmp-ABC", "README", strings.ToUpper(sum)} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.open(nil)
	if got := strings.Join(files(t, w.dir), " "); strings.Contains(got, ".tmp") || !strings.Contains(got, "README") || len(files(t, w.dir)) != 4 {
		t.Errorf("there are %s", got)
	}
}

func TestOpeningWithLessRoomEvicts(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	for i := range 8 {
		keep(t, s, some(byte(i), 4096))
	}
	small := w.open(func(o *pin.Options) { o.MaxPins, o.MaxDiskBytes = 1, 768+2*4096 })
	if _, disk := small.Bytes(); disk != 2*4096 || len(files(t, w.dir)) != 3 {
		t.Errorf("%d bytes are counted; there are %v", disk, files(t, w.dir))
	}
}

func TestWhatFollowsATornRecordIsAbsent(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	s.Put("a", square)
	s.Put("b", square)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(w.dir, "journal")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := len(pin.Magic) + len(pin.Record("a", square))
	for at := range whole {
		for damage, file := range map[string][]byte{"cut": whole[:at], "changed": changed(whole, at)} {
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			s := w.open(nil)
			_, a := s.Get("a")
			_, b := s.Get("b")
			if a != (at >= first) || b {
				t.Fatalf("%s at %d, a is there: %v, b: %v", damage, at, a, b)
			}
			s.Put("c", square)
			next := w.open(nil)
			if _, ok := next.Get("c"); !ok {
				t.Fatalf("%s at %d, a later pin is lost", damage, at)
			}
			_, _ = s.Close(), next.Close()
		}
	}
}

func changed(whole []byte, at int) []byte {
	file := bytes.Clone(whole)
	file[at] ^= 0x40
	return file
}

func TestADiskThatFailsLetsMemoryGoOnWithOneWarning(t *testing.T) {
	for name, fails := range map[string]func(*pin.Store){
		"is full":                  func(s *pin.Store) { s.FailWrites(0, syscall.ENOSPC) },
		"is full within a file":    func(s *pin.Store) { s.FailWrites(3, syscall.ENOSPC) },
		"is broken":                func(s *pin.Store) { s.FailWrites(0, syscall.EIO) },
		"is read-only all at once": func(s *pin.Store) { s.BeReadOnly(syscall.EROFS) },
		"may not be written any more": func(s *pin.Store) {
			s.BeReadOnly(&os.PathError{Op: "openat", Path: "/some/where", Err: syscall.EACCES})
		},
	} {
		t.Run("a disk that "+name, func(t *testing.T) {
			w := newWorld(t)
			s := w.open(nil)
			before := keep(t, s, []byte("before"))
			s.Put("before", square)
			fails(s)
			var sums []string
			for i := range 5 {
				sums = append(sums, keep(t, s, some(byte('0'+i), 100)))
				s.Put(fmt.Sprint(i), square)
			}
			for i, sum := range append(sums, before) {
				if found(t, s, sum) == "absent" {
					t.Errorf("content %d is absent", i)
				}
			}
			for _, key := range []string{"before", "0", "4"} {
				if _, ok := s.Get(key); !ok {
					t.Errorf("pin %s is absent", key)
				}
			}
			if w.warnings() != 1 || strings.Contains(w.log.String(), "/some/where") || strings.Contains(w.log.String(), w.dir) {
				t.Errorf("log: %s", w.log)
			}
		})
	}
}

func TestADiskThatWorksAgainIsUsedAgain(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	s.FailWrites(3, syscall.ENOSPC)
	s.Put("a", square)
	keep(t, s, []byte("some bytes"))
	s.FailWrites(0, nil)
	for i := range 80 {
		s.Put(fmt.Sprint(i), square)
	}
	sum := keep(t, s, []byte("other bytes"))
	if _, disk := s.Bytes(); disk != 4096 {
		t.Errorf("%d bytes are on disk", disk)
	}
	s.FailWrites(0, syscall.ENOSPC)
	keep(t, s, []byte("third bytes"))
	if w.warnings() != 2 {
		t.Errorf("log: %s", w.log)
	}
	next := w.open(nil)
	if _, ok := next.Get("a"); !ok || next.Len() != 81 || found(t, next, sum) != "other bytes" {
		t.Errorf("after a restart there are %d pins", next.Len())
	}
}

func TestAClosingStoreWritesWhatWaits(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	s.FailWrites(3, syscall.ENOSPC)
	s.Put("a", square)
	s.FailWrites(0, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.open(nil).Get("a"); !ok {
		t.Error("it is lost")
	}
}

func TestADirectoryThatCannotBeUsedIsToldAndMemoryIsUsed(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.open(nil)
	sum := keep(t, s, []byte("some bytes"))
	s.Put("k", square)
	if _, ok := s.Get("k"); !ok || found(t, s, sum) != "some bytes" || w.warnings() != 1 || strings.Contains(w.log.String(), w.dir) {
		t.Errorf("log: %s", w.log)
	}
}

func TestTwoProcessesMayUseOneDirectoryForAWhile(t *testing.T) {
	w := newWorld(t)
	old := w.open(nil)
	sum := keep(t, old, []byte("some bytes"))
	next := w.open(nil)
	later := keep(t, old, []byte("later bytes"))
	if found(t, next, sum) == "absent" || found(t, next, later) == "absent" {
		t.Error("the next one does not find what the old one wrote")
	}
	if err := os.Remove(filepath.Join(w.dir, sum)); err != nil {
		t.Fatal(err)
	}
	if found(t, old, sum) != "absent" {
		t.Error("what the other removed is found")
	}
	if _, disk := old.Bytes(); disk != 4096 {
		t.Errorf("the old one counts %d bytes", disk)
	}
	next.Put("k", square)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.open(nil).Get("k"); !ok {
		t.Error("the old one took a pin of the next one with it")
	}
}
