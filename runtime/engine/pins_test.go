// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

func TestWhatWasShownIsShownWithoutAnotherLook(t *testing.T) {
	first := square(t, 8, 1)
	for where, edit := range map[string]func(*pin.Options){"on disk": nil, "in memory": inMemory(1 << 20)} {
		for what, change := range map[string]func(*gallery){
			"stays":              func(*gallery) {},
			"changes":            func(g *gallery) { g.write("a.png", square(t, 8, 2)) },
			"is gone":            func(g *gallery) { must(t, os.Remove(filepath.Join(g.space, "a.png"))) },
			"grows over a limit": func(g *gallery) { g.limit(bytesAtMost(1)) },
		} {
			t.Run("a file that "+what+", "+where, func(t *testing.T) {
				g := newGallery(t, edit)
				g.show(sight("k", g.file("a.png", first)))
				change(g)
				for name, s := range map[string]injection.Sight{"Fresh": sight("k", "a.png"), "old": sight("k", "a.png", old), "old and weak": sight("k", "a.png", old, weak)} {
					if got := g.shows(s); got != string(first) {
						t.Errorf("%s, it shows %.40q", name, got)
					}
				}
			})
		}
	}
}

func TestD57PinsAndBytesOutliveARestartInTheDirectory(t *testing.T) {
	g := newGallery(t, nil)
	first := square(t, 8, 3)
	g.show(sight("k", g.file("a.png", first)), sight("failed", "none.png"))
	kept, err := os.ReadFile(filepath.Join(g.cache, "pinned", hashed(first)))
	if err != nil || !bytes.Equal(kept, first) {
		t.Errorf("the directory keeps %d bytes, %v", len(kept), err)
	}
	g.write("a.png", square(t, 8, 4))
	g.write("none.png", square(t, 8, 4))
	g.restart(nil, g.space)
	if got := g.show(sight("k", "a.png", old), sight("failed", "none.png", old)); got[0] != string(first) || got[1] != "NotFound" {
		t.Errorf("after a restart they show %.40q", got)
	}
}

func TestWithoutADirectoryARestartLooksAnew(t *testing.T) {
	g := newGallery(t, inMemory(1<<20))
	g.show(sight("k", g.file("a.png", square(t, 8, 5))))
	g.write("a.png", square(t, 8, 6))
	g.restart(inMemory(1<<20), g.space)
	if got := g.shows(sight("k", "a.png", old)); got != string(square(t, 8, 6)) {
		t.Errorf("it shows %.40q", got)
	}
}

func TestOnePathViewedTwiceKeepsBothPictures(t *testing.T) {
	g := newGallery(t, nil)
	first, second := square(t, 8, 7), square(t, 8, 8)
	g.show(sight("a", g.write("a.png", first)))
	g.write("a.png", second)
	for range 2 {
		got := g.conversation(loop(2), sight("a", "a.png", old), sight("b", "a.png", func(s *injection.Sight) { s.Turn = 4 }))
		if got[0] != string(first) || got[1] != string(second) {
			t.Errorf("they show %.40q", got)
		}
	}
}

func TestEvictedBytesAreReadAgainOrGoneForGood(t *testing.T) {
	first, other := square(t, 8, 9), square(t, 8, 10)
	for name, tc := range map[string]struct {
		change func(*gallery)
		want   string
	}{
		"that is the same":       {func(*gallery) {}, string(first)},
		"that was written alike": {func(g *gallery) { g.write("a.png", first) }, string(first)},
		"that has other bytes":   {func(g *gallery) { g.write("a.png", other) }, "Changed"},
		"that has another size":  {func(g *gallery) { g.write("a.png", append(bytes.Clone(first), 0)) }, "Changed"},
		"D21 that grew enormous": {func(g *gallery) { g.sparse("a.png", first, 21<<20) }, "Changed"},
		"that is gone":           {func(g *gallery) { must(t, os.Remove(filepath.Join(g.space, "a.png"))) }, "Changed"},
		"under lower limits":     {func(g *gallery) { g.limit(bytesAtMost(1)) }, string(first)},
	} {
		for where, edit := range map[string]func(*pin.Options){"on disk": tight(1), "in memory": inMemory(4096)} {
			t.Run("a file "+name+", "+where, func(t *testing.T) {
				g := newGallery(t, edit)
				g.show(sight("k", g.file("a.png", first)))
				g.evict()
				tc.change(g)
				if got := g.shows(sight("k", "a.png", old)); got != tc.want {
					t.Fatalf("it shows %.40q", got)
				}
				if _, read := g.pins.Content(hashed(append(bytes.Clone(first), 0))); read {
					t.Error("a file of another size was read")
				}
				g.use(nil)
				g.write("a.png", first)
				for _, s := range []injection.Sight{sight("k", "a.png", old), sight("k", "a.png")} {
					if got := g.shows(s); got != tc.want {
						t.Errorf("with the old bytes back, it shows %.40q", got)
					}
				}
			})
		}
	}
}

// evict makes other bytes take all the room.
func (g *gallery) evict() {
	g.t.Helper()
	data := bytes.Repeat([]byte{'x'}, 4096)
	c, err := g.pins.PutContent(bytes.NewReader(data), 4096)
	must(g.t, err)
	must(g.t, c.Close())
}

func TestEvictedBytesOfAPathThatMayNotBeProbedAreGoneForGood(t *testing.T) {
	g := newGallery(t, tight(1))
	g.show(sight("k", g.file("a.png", square(t, 8, 11))))
	g.evict()
	g.limit(func(l *router.Limits) { l.Request.MaxProbedPaths = 1 })
	path := g.file("b.png", square(t, 8, 12))
	for range 2 {
		got := g.conversation(loop(2), sight("k", "a.png", old), sight("b", path, func(s *injection.Sight) { s.Turn = 4 }))
		if got[0] != "TooManyPaths" || got[1] != string(square(t, 8, 12)) {
			t.Errorf("they show %.40q", got)
		}
		g.use(nil)
	}
}

func TestAFailureHoldsOnceTheAssistantHasAnswered(t *testing.T) {
	g := newGallery(t, nil)
	if got := g.shows(sight("k", "a.png")); got != "NotFound" {
		t.Fatalf("it shows %.40q", got)
	}
	g.write("a.png", square(t, 8, 13))
	if got := g.shows(sight("k", "a.png", old)); got != "NotFound" {
		t.Errorf("once answered, it shows %.40q", got)
	}
	for _, s := range []injection.Sight{sight("k", "a.png"), sight("k", "a.png", old)} {
		if got := g.shows(s); got != string(square(t, 8, 13)) {
			t.Errorf("where the agent repeats an interrupted turn, it shows %.40q", got)
		}
	}
}

func TestAWeakKeyIsLookedAtAnewWhileItIsFresh(t *testing.T) {
	g := newGallery(t, nil)
	first, second := square(t, 8, 14), square(t, 8, 15)
	g.show(sight("k", g.write("a.png", first), weak))
	g.write("a.png", second)
	for _, s := range []injection.Sight{sight("k", "a.png", weak), sight("k", "a.png", weak, old)} {
		if got := g.shows(s); got != string(second) {
			t.Errorf("it shows %.40q", got)
		}
	}
	must(t, os.Remove(filepath.Join(g.space, "a.png")))
	if got := g.shows(sight("k", "a.png", weak, old)); got != string(second) {
		t.Errorf("answered, it shows %.40q", got)
	}
	for _, s := range []injection.Sight{sight("k", "a.png", weak), sight("k", "a.png", weak, old)} {
		if got := g.shows(s); got != "NotFound" {
			t.Errorf("another conversation's image is shown for a missing file: %.40q", got)
		}
	}
}

func TestD34EqualSightsAtTheSameTimeReadTheFileOnce(t *testing.T) {
	g := newGallery(t, nil)
	path := g.write("a.png", square(t, 8, 0))
	stop := make(chan struct{})
	var writing, wait sync.WaitGroup
	writing.Go(func() { // whoever reads it twice sees two images
		for shade := byte(0); ; shade++ {
			select {
			case <-stop:
				return
			default:
				g.write("a.png", square(t, 8, shade))
			}
		}
	})
	seen := make([]string, 64)
	for i := range seen {
		wait.Go(func() {
			found, release, bad := g.engine.Resolve(t.Context(), &injection.Plan{Sights: []injection.Sight{sight("k", path)}}, loop(1))
			if bad != nil {
				t.Error(bad)
				return
			}
			defer release()
			seen[i] = found[0].SHA256 + found[0].Reason
		})
	}
	wait.Wait()
	close(stop)
	writing.Wait()
	for i, s := range seen {
		if s != seen[0] || len(s) != 64 {
			t.Fatalf("sight %d shows %q, the first %q", i, s, seen[0])
		}
	}
}

func TestD58ADirectoryThatCannotBeWrittenIsNotTold(t *testing.T) {
	g := newGallery(t, nil)
	must(t, os.RemoveAll(filepath.Join(g.cache, "pinned")))
	must(t, os.WriteFile(filepath.Join(g.cache, "pinned"), nil, 0o600))
	g.restart(nil, g.space)
	first := square(t, 8, 16)
	path := g.file("a.png", first)
	for range 2 {
		if got := g.shows(sight("k", path)); got != string(first) {
			t.Errorf("it shows %.40q", got)
		}
	}
	if n := strings.Count(g.log.String(), "level=WARN"); n != 1 || strings.Contains(g.log.String(), g.cache) {
		t.Errorf("log: %s", g.log)
	}
}

func TestAPictureIsReadableUntilRelease(t *testing.T) {
	for where, edit := range map[string]func(*pin.Options){"on disk": tight(1), "in memory": inMemory(4096)} {
		t.Run(where, func(t *testing.T) {
			g := newGallery(t, edit)
			first := square(t, 8, 17)
			path := g.file("a.png", first)
			found, release, bad := g.engine.Resolve(t.Context(), &injection.Plan{Sights: []injection.Sight{sight("k", path), sight("same", path)}}, loop(1))
			if bad != nil {
				t.Fatal(bad)
			}
			g.evict()
			must(t, os.Remove(path))
			for _, f := range found {
				if got := g.shown(&f); got != string(first) {
					t.Errorf("it shows %.40q", got)
				}
			}
			release()
			if _, err := found[0].Picture.Data.ReadAt(make([]byte, 1), 0); where == "on disk" && !errors.Is(err, os.ErrClosed) {
				t.Errorf("after release it reads, %v", err)
			}
		})
	}
}

// BenchmarkResolvePinned finds what a sight shows that was shown before.
func BenchmarkResolvePinned(b *testing.B) {
	for where, dir := range map[string]string{"disk": b.TempDir(), "memory": ""} {
		b.Run(where, func(b *testing.B) {
			space := b.TempDir()
			path := filepath.Join(space, "a.png")
			set, err := workspace.Open([]string{space})
			if err := errors.Join(err, os.WriteFile(path, append(pngHeader(1024, 768), make([]byte, 1<<20)...), 0o600)); err != nil {
				b.Fatal(err)
			}
			defer set.Close()
			pins, err := pin.Open(pin.Options{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			defer pins.Close()
			e := engine.New(engine.Options{Profile: "policy/p", Workspaces: set, Pins: pins})
			defer e.Close()
			if err := e.Use((&rig{upstream: newUpstream(b, seen)}).document()); err != nil {
				b.Fatal(err)
			}
			plan := &injection.Plan{Sights: []injection.Sight{sight("k", path, old)}}
			r := loop(1)
			b.ReportAllocs()
			for b.Loop() {
				found, release, bad := e.Resolve(b.Context(), plan, r)
				if bad != nil || found[0].Picture == nil {
					b.Fatal(bad, found)
				}
				release()
			}
		})
	}
}
