// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a directory with the log of who uses it.
type world struct {
	t   testing.TB
	dir string
	log *bytes.Buffer
}

func newWorld(t testing.TB) *world {
	return &world{t: t, dir: filepath.Join(t.TempDir(), "pinned"), log: &bytes.Buffer{}}
}

func (w *world) open(edit func(*pin.Options)) *pin.Store {
	w.t.Helper()
	o := pin.Options{Dir: w.dir, MaxDiskBytes: 1 << 20, MaxPins: 100, Logger: slog.New(slog.NewTextHandler(w.log, nil))}
	if edit != nil {
		edit(&o)
	}
	s, err := pin.Open(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// inMemory is a store without a directory.
func inMemory(o *pin.Options) { o.Dir = "" }

func (w *world) warnings() int { return strings.Count(w.log.String(), "level=WARN") }

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func keep(t testing.TB, s *pin.Store, data []byte) string {
	t.Helper()
	c, err := s.PutContent(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := read(t, c); got != string(data) || c.SHA256 != digest(data) || c.Size != int64(len(data)) {
		t.Fatalf("%d bytes are kept as %d of %d, %s", len(data), len(got), c.Size, c.SHA256)
	}
	return c.SHA256
}

func read(t testing.TB, c *pin.Content) string {
	t.Helper()
	data, err := io.ReadAll(io.NewSectionReader(c, 0, c.Size+1))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// found is what is kept under a digest, or "absent".
func found(t testing.TB, s *pin.Store, sum string) string {
	t.Helper()
	c, ok := s.Content(sum)
	if !ok {
		return "absent"
	}
	defer c.Close()
	return read(t, c)
}

func some(shade byte, n int) []byte { return bytes.Repeat([]byte{shade}, n) }

var square = pin.Pin{
	SHA256: digest([]byte("a")), Size: 1 << 40,
	Facts: probe.Facts{
		MediaType: probe.GIF, Width: 1<<31 - 1, Height: 1 << 31, ReachWidth: 7, ReachHeight: 9, Orientation: 8, Animated: probe.Yes, Bits: 16, CMYK: true,
	},
}

func TestAPinIsWhatWasPut(t *testing.T) {
	for name, p := range map[string]pin.Pin{
		"an image":                   square,
		"a failure":                  {Reason: "NotFound"},
		"an image that is gone":      {SHA256: square.SHA256, Size: 3, Reason: "Changed"},
		"a failure of a known image": {SHA256: square.SHA256, Facts: square.Facts, Reason: "TooManyPixels"},
		"nothing":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, s := range []*pin.Store{w.open(nil), w.open(inMemory)} {
				if got, ok := s.Get("k"); ok {
					t.Errorf("before, there is %+v", got)
				}
				s.Put("k", p)
				if got, ok := s.Get("k"); !ok || got != p {
					t.Errorf("got %+v, %v; want %+v", got, ok, p)
				}
				if _, ok := s.Get("other"); ok {
					t.Error("another key has it too")
				}
			}
			if got, ok := w.open(nil).Get("k"); !ok || got != p {
				t.Errorf("after a restart: %+v, %v; want %+v", got, ok, p)
			}
		})
	}
}

func TestWhatIsNoDigestIsNotPinnedAsOne(t *testing.T) {
	s := newWorld(t).open(inMemory)
	for _, sum := range []string{"zz", strings.ToUpper(square.SHA256), square.SHA256[1:], strings.Repeat("g", 64), "../../etc/passwd"} {
		s.Put("k", pin.Pin{SHA256: sum})
		if got, _ := s.Get("k"); got.SHA256 != "" {
			t.Errorf("%q is pinned as %q", sum, got.SHA256)
		}
		if _, ok := s.Content(sum); ok {
			t.Errorf("%q has content", sum)
		}
	}
}

func TestLongReasonsAreCutOff(t *testing.T) {
	w := newWorld(t)
	w.open(nil).Put("k", pin.Pin{Reason: strings.Repeat("R", 1000)})
	if got, _ := w.open(nil).Get("k"); got.Reason != strings.Repeat("R", 64) {
		t.Errorf("got %d bytes", len(got.Reason))
	}
}

func TestTheLastPinOfAKeyStands(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	s.Put("k", square)
	s.Put("k", pin.Pin{Reason: "Changed"})
	for name, s := range map[string]*pin.Store{"now": s, "after a restart": w.open(nil)} {
		if got, _ := s.Get("k"); got != (pin.Pin{Reason: "Changed"}) || s.Len() != 1 {
			t.Errorf("%s: %+v of %d", name, got, s.Len())
		}
	}
}

func TestATextIsKeptApartFromPins(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	text := "A \"square\"\n\x00 of grey, \u2713"
	s.PutText("k", text)
	s.PutText("empty", "")
	s.PutText("long", strings.Repeat("x", 8<<10+1))
	s.PutText("longest", strings.Repeat("x", 8<<10))
	for name, s := range map[string]*pin.Store{"now": s, "after a restart": w.open(nil)} {
		if got, ok := s.Text("k"); !ok || got != text {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
		if got, ok := s.Text("empty"); !ok || got != "" {
			t.Errorf("%s, the empty one: %q, %v", name, got, ok)
		}
		if _, ok := s.Text("long"); ok {
			t.Errorf("%s, one that is too long is kept", name)
		}
		if got, ok := s.Text("longest"); !ok || len(got) != 8<<10 {
			t.Errorf("%s, the longest has %d bytes", name, len(got))
		}
		if _, ok := s.Get("k"); ok {
			t.Errorf("%s, the text is a pin", name)
		}
	}
}

func TestTheLeastRecentlyUsedPinGoesFirst(t *testing.T) {
	s := newWorld(t).open(func(o *pin.Options) { o.MaxPins = 3 })
	for _, key := range []string{"a", "b", "c"} {
		s.Put(key, square)
	}
	s.Get("a")
	s.Put("d", square)
	for key, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if _, ok := s.Get(key); ok != want {
			t.Errorf("%s is there: %v, want %v", key, ok, want)
		}
	}
	s.PutText("t", strings.Repeat("x", 200)) // counts 456 of 768 bytes
	if s.Len() != 2 {
		t.Errorf("beside a text of 456 bytes there are %d", s.Len()-1)
	}
}

func TestTheJournalStaysWithinItsShare(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	for i := range 5000 {
		s.Put(fmt.Sprint(i), square)
		s.Put("same", pin.Pin{SHA256: digest([]byte(fmt.Sprint(i)))})
	}
	info, err := os.Stat(filepath.Join(w.dir, "journal"))
	if err != nil || info.Size() > 2*100*256 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	next := w.open(nil)
	if _, ok := next.Get("4999"); !ok || next.Len() != 100 || s.Len() != 100 {
		t.Errorf("after a restart there are %d pins of %d", next.Len(), s.Len())
	}
}

func TestBoundsThatLeaveNoRoomAreRefused(t *testing.T) {
	for name, o := range map[string]pin.Options{
		"pins that take the whole disk": {Dir: t.TempDir(), MaxDiskBytes: 768 * 10, MaxPins: 10},
		"memory below zero":             {MaxMemoryBytes: -1},
		"pins below zero":               {MaxPins: -1},
	} {
		if s, err := pin.Open(o); err == nil {
			_ = s.Close()
			t.Errorf("%s are taken", name)
		}
	}
	s, err := pin.Open(pin.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	_ = s.Close()
}

func TestOneAtATimeLooksAtAKey(t *testing.T) {
	s := newWorld(t).open(inMemory)
	var looked int
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			done, err := s.Lock(t.Context(), "k")
			if err != nil {
				t.Error(err)
				return
			}
			defer done()
			if _, ok := s.Get("k"); !ok {
				looked++ // guarded by the lock itself
				s.Put("k", square)
			}
		})
	}
	wait.Wait()
	if looked != 1 {
		t.Errorf("%d looked", looked)
	}
	done, _ := s.Lock(t.Context(), "k")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Lock(ended, "k"); err == nil {
		t.Error("a turn that is taken was given away")
	}
	other, err := s.Lock(t.Context(), "other")
	if err != nil {
		t.Errorf("another key: %v", err)
	}
	other()
	done()
	again, err := s.Lock(t.Context(), "k")
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	again()
	if s.Turns() != 0 {
		t.Errorf("%d keys are left over", s.Turns())
	}
}

func TestAStoreThatIsClosedKeepsNothing(t *testing.T) {
	w := newWorld(t)
	s := w.open(nil)
	sum := keep(t, s, []byte("some bytes"))
	c, _ := s.Content(sum)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.Put("k", square)
	if _, ok := s.Get("k"); ok {
		t.Error("a pin was kept")
	}
	if read(t, c) != "some bytes" {
		t.Error("a content that was open is not readable any more")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if found(t, s, sum) != "absent" || found(t, w.open(nil), sum) != "some bytes" {
		t.Error("its file is not as it was")
	}
}
