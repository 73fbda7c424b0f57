// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/store"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// open opens a store of 1 MiB and 100 entries, with a clock that stands still.
func open(t testing.TB, dir string) *store.Store {
	t.Helper()
	return openWithin(t, dir, 1<<20, 100)
}

func openWithin(t testing.TB, dir string, maxBytes int64, maxEntries int) *store.Store {
	t.Helper()
	s, err := store.Open(store.Options{Dir: dir, MaxBytes: maxBytes, MaxEntries: maxEntries, Now: func() time.Time { return start }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(t testing.TB, s *store.Store, name, data string) {
	t.Helper()
	if err := s.Put(name, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// get returns what is stored, or "" for nothing.
func get(t testing.TB, s *store.Store, name string) string {
	t.Helper()
	data, _, err := s.Get(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func reasonOf(err error) store.Reason {
	if e, ok := errors.AsType[*store.Error](err); ok {
		return e.Reason
	}
	return ""
}

// files lists what lies in a directory.
func files(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestAValueIsThereAgainAlsoAfterARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, dir)
	put(t, s, "x-1_y", "value")
	put(t, s, "empty", "")
	for name, s := range map[string]*store.Store{"the one that wrote": s, "another": open(t, dir)} {
		data, stored, err := s.Get("x-1_y")
		if err != nil || string(data) != "value" || !stored.Equal(start) {
			t.Errorf("%s: %q of %v, %v", name, data, stored, err)
		}
		if data, _, err := s.Get("empty"); err != nil || len(data) != 0 {
			t.Errorf("%s: an empty value became %q, %v", name, data, err)
		}
		if s.Len() != 2 || s.Bytes() != 2*store.Size(5) || !s.Has("empty") || s.Has("other") {
			t.Errorf("%s: %d entries of %d bytes", name, s.Len(), s.Bytes())
		}
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700 | fs.ModeDir, filepath.Join(dir, "empty"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode(), want, err)
		}
	}
}

func TestAFileThatIsTooLargeForAnEntryDrivesOutNoOther(t *testing.T) {
	dir := t.TempDir()
	put(t, open(t, dir), "a", "value")
	big := filepath.Join(dir, "big")
	if err := errors.Join(os.WriteFile(big, nil, 0o600), os.Truncate(big, 1<<40)); err != nil { // sparse, and newer
		t.Fatal(err)
	}
	s := open(t, dir)
	if get(t, s, "a") != "value" || s.Len() != 1 || !slices.Equal(files(t, dir), []string{"a"}) {
		t.Errorf("a is %q, there are %v", get(t, s, "a"), files(t, dir))
	}
}

func TestASecondValueTakesThePlaceOfTheFirst(t *testing.T) {
	dir := t.TempDir()
	s := openWithin(t, dir, 2*store.Size(0), 2)
	put(t, s, "a", "1")
	put(t, s, "b", "1")
	put(t, s, "a", "2")
	if get(t, s, "a") != "2" || get(t, s, "b") != "1" || s.Len() != 2 || s.Bytes() != 2*store.Size(1) {
		t.Errorf("a is %q, b is %q, %d entries of %d bytes", get(t, s, "a"), get(t, s, "b"), s.Len(), s.Bytes())
	}
	if err := s.Delete("a"); err != nil || s.Has("a") || s.Len() != 1 || !slices.Equal(files(t, dir), []string{"b"}) {
		t.Errorf("after a is removed: %v, %v", files(t, dir), err)
	}
	if err := s.Delete("a"); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
}

func TestOnlyPlainNamesAreTaken(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{"a", "0", "_", "-", strings.Repeat("z", 128)} {
		put(t, s, name, "x")
	}
	for _, name := range []string{"", ".", "..", "a/b", "../a", "a.b", "A", "ä", "a\x00", " a", ".tmp-x", strings.Repeat("z", 129)} {
		_, _, err := s.Get(name)
		for _, err := range []error{err, s.Put(name, nil), s.Delete(name)} {
			if reasonOf(err) != store.BadName || s.Has(name) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if s.Len() != 5 {
		t.Errorf("%d entries", s.Len())
	}
}

func TestTheLeastRecentlyUsedGoesFirst(t *testing.T) {
	for name, s := range map[string]*store.Store{
		"at the bound of entries": openWithin(t, t.TempDir(), 1<<20, 3),
		"at the bound of bytes":   openWithin(t, t.TempDir(), 3*store.Size(1)+4095, 100),
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []string{"a", "b", "c"} {
				put(t, s, n, n)
			}
			get(t, s, "a")
			put(t, s, "b", "b")
			s.Has("c")
			put(t, s, "d", "d")
			if want := []string{"a", "b", "d"}; !slices.Equal(s.Names(), want) || get(t, s, "c") != "" {
				t.Errorf("kept %v, want %v", s.Names(), want)
			}
		})
	}
}

func TestAfterARestartTheOldestFileGoesFirst(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i, name := range []string{"c", "a", "b"} {
		put(t, s, name, name)
		at := start.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := open(t, dir).Names(), []string{"c", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("in the order %v, want %v", got, want)
	}
	smaller := openWithin(t, dir, 1<<20, 2)
	if want := []string{"a", "b"}; !slices.Equal(smaller.Names(), want) || !slices.Equal(files(t, dir), want) {
		t.Errorf("a smaller store keeps %v, and the files %v", smaller.Names(), files(t, dir))
	}
}

func TestLimitsThatFallEvictAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i := range 10 {
		put(t, s, fmt.Sprint("n", i), "x")
	}
	s.SetLimits(1<<20, 6)
	s.SetLimits(4*store.Size(1), 6)
	if want := []string{"n6", "n7", "n8", "n9"}; !slices.Equal(s.Names(), want) || !slices.Equal(files(t, dir), want) {
		t.Errorf("kept %v, and the files %v", s.Names(), files(t, dir))
	}
	if err := s.Put("large", make([]byte, 4*store.Size(1))); reasonOf(err) != store.TooLarge || s.Len() != 4 {
		t.Errorf("a value over the bound: %v, %d entries stay", err, s.Len())
	}
	s.SetLimits(0, 0)
	if s.Len() != 0 || s.Bytes() != 0 || len(files(t, dir)) != 0 {
		t.Errorf("bounds of zero keep %v", files(t, dir))
	}
	if err := s.Put("a", nil); reasonOf(err) != store.TooLarge {
		t.Errorf("storing into an empty store: %v", err)
	}
}

func TestWhatIsNotOursIsLeftAloneOrRemoved(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	whole := append(store.Header("link", start, []byte("theirs")), "theirs"...)
	for path, data := range map[string][]byte{
		outside: whole, dir + "/.tmp-LEFT": []byte("half"), dir + "/README.md": []byte("x"), dir + "/foreign": []byte("x"),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{os.Mkdir(dir+"/below", 0o700), os.Symlink(outside, dir+"/link")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir)
	if got, want := files(t, dir), []string{"README.md", "below", "foreign"}; !slices.Equal(got, want) {
		t.Errorf("opening leaves %v, want %v", got, want)
	}
	if err := os.Symlink(outside, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "foreign", "below"} {
		if _, _, err := s.Get(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, want := files(t, dir), []string{"README.md", "below"}; !slices.Equal(got, want) || s.Len() != 0 {
		t.Errorf("reading leaves %v, want %v", got, want)
	}
	if err := s.Delete("below"); err != nil || !slices.Contains(files(t, dir), "below") {
		t.Errorf("a directory was removed: %v", err)
	}
	if err := os.Symlink(outside, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "link", "ours")
	if theirs, err := os.ReadFile(outside); err != nil || !bytes.Equal(theirs, whole) || get(t, s, "link") != "ours" {
		t.Errorf("writing to the name of a link: %q, %v", theirs, err)
	}
}

func TestAStoreInADirectoryBelowIsAnother(t *testing.T) {
	dir := t.TempDir()
	above, below := open(t, dir), open(t, filepath.Join(dir, "below"))
	put(t, above, "a", "above")
	put(t, below, "a", "below")
	above.SetLimits(0, 0)
	if get(t, above, "a") != "" || get(t, below, "a") != "below" || get(t, open(t, dir+"/below"), "a") != "below" {
		t.Error("the stores share their entries")
	}
}

func TestAStoreThatCannotBeOpenedSaysWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]store.Options{
		"without a directory":          {MaxBytes: 1, MaxEntries: 1},
		"without a bound of bytes":     {Dir: t.TempDir(), MaxEntries: 1},
		"without a bound of entries":   {Dir: t.TempDir(), MaxBytes: 1},
		"at a file":                    {Dir: file, MaxBytes: 1, MaxEntries: 1},
		"below a file":                 {Dir: file + "/below", MaxBytes: 1, MaxEntries: 1},
		"at a name no directory takes": {Dir: "a\x00", MaxBytes: 1, MaxEntries: 1},
	} {
		if s, err := store.Open(o); err == nil || s != nil || !strings.HasPrefix(err.Error(), "opening store") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAClosedStoreHoldsNothing(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "a", "x")
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, _, err := s.Get("a")
	for doing, err := range map[string]error{"reading": err, "writing": s.Put("a", nil), "removing": s.Delete("a")} {
		if reasonOf(err) != store.Closed || !strings.HasPrefix(err.Error(), doing+" entry \"a\": ") {
			t.Errorf("%s: %v", doing, err)
		}
	}
	s.SetLimits(1, 1)
	if s.Has("a") || s.Len() != 0 || s.Bytes() != 0 {
		t.Error("a closed store tells of entries")
	}
}

func TestLimitsAreNeverRaisedAboveTheCeiling(t *testing.T) {
	s, err := store.Open(store.Options{Dir: t.TempDir(), MaxBytes: 1 << 30, MaxEntries: 100, Ceiling: 2 * store.Size(100)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.SetLimits(1<<30, 100)
	for _, name := range []string{"a", "b", "c"} {
		if err := s.Put(name, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Names(); len(got) != 2 || got[0] != "b" {
		t.Errorf("kept %v; want the last two", got)
	}
}
