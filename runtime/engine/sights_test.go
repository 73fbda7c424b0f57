// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/probe"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestAFileIsShownOrRefusedByItsContentAndThePolicy(t *testing.T) {
	picture := square(t, 8, 1)
	outside := filepath.Join(t.TempDir(), "out.png")
	must(t, os.WriteFile(outside, picture, 0o600))
	for name, tc := range map[string]struct {
		lay   func(*gallery) string
		limit func(*router.Limits)
		want  string
	}{
		"D19 a file that is not there": {lay: func(g *gallery) string { return "none.png" }, want: "NotFound"},
		"D19 a directory":              {lay: func(g *gallery) string { return g.space }, want: "NotRegular"},
		"D19 a FIFO": {lay: func(g *gallery) string {
			must(t, syscall.Mkfifo(filepath.Join(g.space, "f.png"), 0o600))
			return "f.png"
		}, want: "NotRegular"},
		"D21 a file of 21 MiB":                    {lay: func(g *gallery) string { return g.sparse("a.png", picture, 21<<20) }, want: "TooManyBytes"},
		"D39, D50 a PNG of the workspace":         {lay: func(g *gallery) string { return g.file("a.png", picture) }, want: string(picture)},
		"D39 a path relative to the workspace":    {lay: func(g *gallery) string { g.file("a.png", picture); return " ./a.png" }, want: string(picture)},
		"D40, D41, D49 a file outside":            {lay: func(g *gallery) string { return outside }, want: "OutsideWorkspace"},
		"D41 a way out by dots":                   {lay: func(g *gallery) string { return "../x/out.png" }, want: "OutsideWorkspace"},
		"D41 a link that leads out":               {lay: func(g *gallery) string { must(t, os.Symlink(outside, filepath.Join(g.space, "l"))); return "l" }, want: "OutsideWorkspace"},
		"D42 a blank path":                        {lay: func(g *gallery) string { return " " }, want: "Blank"},
		"D51 a GIF":                               {lay: func(g *gallery) string { return g.file("a", stillGIF(t, 1)) }, want: string(stillGIF(t, 1))},
		"D52 a text named .png":                   {lay: func(g *gallery) string { return g.file("a.png", []byte("some text")) }, want: "NotAnImage"},
		"D52 an empty file":                       {lay: func(g *gallery) string { return g.file("a.png", nil) }, want: "NotAnImage"},
		"a PNG named .txt":                        {lay: func(g *gallery) string { return g.file("a.txt", picture) }, want: string(picture)},
		"a PNG that is cut":                       {lay: func(g *gallery) string { return g.file("a.png", picture[:20]) }, want: "ImageMalformed"},
		"D54 a file of one byte over the limit":   {lay: func(g *gallery) string { return g.file("a.png", picture) }, limit: bytesAtMost(len(picture) - 1), want: "TooManyBytes"},
		"D54 a file of as many bytes as may be":   {lay: func(g *gallery) string { return g.file("a.png", picture) }, limit: bytesAtMost(len(picture)), want: string(picture)},
		"H06 a sparse file of one over the limit": {lay: func(g *gallery) string { return g.sparse("a.png", picture, 20<<20+1) }, want: "TooManyBytes"},
		"a PNG of too many pixels":                {lay: func(g *gallery) string { return g.file("a.png", pngHeader(100_000, 100_000)) }, want: "TooManyPixels"},
		"a JPEG that tells too many pixels late":  {lay: func(g *gallery) string { return g.file("a.jpg", farJPEG(50_000, 50_000)) }, want: "TooManyPixels"},
		"a JPEG that tells its pixels late":       {lay: func(g *gallery) string { return g.file("a.jpg", farJPEG(50, 60)) }, want: string(farJPEG(50, 60))},
		"a type that the policy does not list": {
			lay: func(g *gallery) string { return g.file("a.png", picture) }, limit: func(l *router.Limits) { l.Image.MediaTypes = []string{probe.JPEG} }, want: "MediaTypeNotAccepted",
		},
		"one that ViewImage would downscale": {
			lay: func(g *gallery) string { return g.file("a.png", picture) },
			limit: func(l *router.Limits) {
				bytesAtMost(len(picture) - 1)(l)
				l.Image.OnOversize = router.OversizeDownscale
			}, want: "TooManyBytes",
		},
		"a reference that is none":      {lay: func(g *gallery) string { return "vision://x" }, want: "ReferenceMalformed"},
		"a reference that is not known": {lay: func(g *gallery) string { return "vision://vis_0123456789abcdef" }, want: "ReferenceUnknown"},
	} {
		for where, edit := range map[string]func(*pin.Options){"on disk": nil, "in memory": inMemory(1 << 20)} {
			t.Run(name+", "+where, func(t *testing.T) {
				g := newGallery(t, edit)
				if tc.limit != nil {
					g.limit(tc.limit)
				}
				path := tc.lay(g)
				for range 2 {
					if got := g.shows(sight("k", path)); got != tc.want {
						t.Errorf("it shows %.60q, want %.60q", got, tc.want)
					}
				}
			})
		}
	}
}

func bytesAtMost(n int) func(*router.Limits) {
	return func(l *router.Limits) { l.Image.MaxBytes = int64(n) }
}

func TestD35AnUploadIsShownWithoutAnyWorkspace(t *testing.T) {
	g := newGallery(t, nil)
	g.restart(nil) // D45: and no path is in one
	picture := square(t, 8, 2)
	kept, err := g.engine.Upload(t.Context(), bytes.NewReader(picture), int64(len(picture)))
	must(t, err)
	if got := g.shows(sight("k", kept.URI)); got != string(picture) {
		t.Errorf("it shows %.40q", got)
	}
	if got := g.shows(sight("D45", g.file("a.png", picture))); got != "OutsideWorkspace" {
		t.Errorf("D45: a path without a workspace shows %.40q", got)
	}
	g.limit(bytesAtMost(len(picture) - 1))
	if got := g.shows(sight("later", kept.URI)); got != "TooManyBytes" {
		t.Errorf("over a limit that came later, it shows %.40q", got)
	}
}

func TestD44ASecondWorkspaceIsReadToo(t *testing.T) {
	g := newGallery(t, nil)
	second := t.TempDir()
	g.restart(nil, g.space, second)
	path := filepath.Join(second, "a.png")
	must(t, os.WriteFile(path, square(t, 8, 3), 0o600))
	if got := g.shows(sight("k", path)); got != string(square(t, 8, 3)) {
		t.Errorf("it shows %.40q", got)
	}
}

func TestAReferenceToAFileShowsThatImageAlone(t *testing.T) {
	g := newGallery(t, nil)
	path := g.file("a.png", square(t, 8, 4))
	result, err := g.engine.View(t.Context(), engine.Request{Path: path, Prompt: "What is it?"})
	must(t, err)
	uri := "vision://" + result.VisualReference.ID
	if got := g.shows(sight("first", uri)); got != string(square(t, 8, 4)) {
		t.Errorf("it shows %.40q", got)
	}
	g.write("a.png", square(t, 8, 5))
	if got := g.shows(sight("second", uri)); got != "Changed" {
		t.Errorf("of another image, it shows %.40q", got)
	}
}

func TestD22BytesThatAreKeptAreShownWithoutTheFile(t *testing.T) {
	g := newGallery(t, nil)
	picture := square(t, 8, 6)
	g.show(sight("first", g.file("a.png", picture)))
	must(t, os.Remove(filepath.Join(g.space, "a.png")))
	if got := g.shows(sight("second", "a.png", told(hashed(picture)))); got != string(picture) {
		t.Errorf("it shows %.40q", got)
	}
	if got := g.shows(sight("third", "a.png")); got != "NotFound" {
		t.Errorf("without the digest, it shows %.40q", got)
	}
}

func TestATextThatIsKeptUnderATellableDigestIsNoImage(t *testing.T) {
	g := newGallery(t, nil)
	text := []byte("some text, not an image")
	c, err := g.pins.PutContent(bytes.NewReader(text), int64(len(text)))
	must(t, err)
	must(t, c.Close())
	if got := g.shows(sight("k", "a.png", told(hashed(text)))); got != "NotAnImage" {
		t.Errorf("it shows %.40q", got)
	}
}

func TestATellingResultShowsWhatItTells(t *testing.T) {
	first, second := square(t, 8, 7), square(t, 8, 8)
	g := newGallery(t, nil)
	path := g.file("a.png", first)
	if got := g.shows(sight("D23", path, told("malformed"))); got != string(first) {
		t.Errorf("D23: a malformed digest shows %.40q", got)
	}
	if got := g.shows(sight("k", path, told(hashed(first)))); got != string(first) {
		t.Errorf("the digest of the file shows %.40q", got)
	}
	g.write("a.png", second)
	if got := g.shows(sight("other", path, told(hashed([]byte("gone"))))); got != "Changed" {
		t.Errorf("a digest that the file has not shows %.40q", got)
	}
	if got := g.shows(sight("k", path, old, told(hashed(second)))); got != string(second) {
		t.Errorf("another digest than that of the pin shows %.40q", got)
	}
	if got := g.shows(sight("k", path, old, told(hashed(second)))); got != string(second) {
		t.Errorf("and then %.40q", got)
	}
}

func TestFactsAreThoseOfTheWholeImage(t *testing.T) {
	g := newGallery(t, nil)
	for name, tc := range map[string]struct {
		data []byte
		want probe.Facts
	}{
		"a still GIF":                     {stillGIF(t, 1), probe.Facts{MediaType: probe.GIF, Width: 400, Height: 400, Animated: probe.No}},
		"a GIF that moves":                {stillGIF(t, 2), probe.Facts{MediaType: probe.GIF, Width: 400, Height: 400, Animated: probe.Yes}},
		"a JPEG that tells its size late": {farJPEG(50, 60), probe.Facts{MediaType: probe.JPEG, Width: 50, Height: 60, Animated: probe.No}},
	} {
		path := g.file(strings.ReplaceAll(name, " ", "-"), tc.data)
		for range 2 { // by itself, and by the pin
			found, release, bad := g.engine.Resolve(t.Context(), &injection.Plan{Sights: []injection.Sight{sight(name, path)}}, loop(1))
			if bad != nil {
				t.Fatal(bad)
			}
			got := found[0].Facts
			if got.MediaType != tc.want.MediaType || got.Width != tc.want.Width || got.Height != tc.want.Height || got.Animated != tc.want.Animated {
				t.Errorf("%s: %+v", name, got)
			}
			release()
		}
	}
}

func TestH61TheSameBytesAtTwoPathsAreKeptOnce(t *testing.T) {
	g := newGallery(t, nil)
	picture := square(t, 8, 9)
	got := g.show(sight("a", g.file("a.png", picture)), sight("b", g.file("b.png", picture)))
	if !slices.Equal(got, []string{string(picture), string(picture)}) {
		t.Errorf("they show %.40q", got)
	}
	if _, disk := g.pins.Bytes(); disk != 4096 {
		t.Errorf("%d bytes are kept", disk)
	}
}

func TestOnlyWantedSightsAreLookedAt(t *testing.T) {
	g := newGallery(t, nil)
	picture := square(t, 8, 10)
	path := g.file("a.png", picture)
	g.show(sight("pinned", path))
	for state, want := range map[injection.State]string{
		injection.ShownByTool: "", injection.ErrorResult: "", injection.NoPath: "", injection.ShownInConversation: "",
		injection.Old: hashed(picture),
	} {
		for _, key := range []string{"pinned", "new"} {
			s := sight(key, path, func(s *injection.Sight) { s.State = state })
			found, release, bad := g.engine.Resolve(t.Context(), &injection.Plan{Sights: []injection.Sight{s}}, loop(1))
			if bad != nil {
				t.Fatal(bad)
			}
			release()
			if key == "new" {
				want = ""
			}
			if f := found[0]; f.Picture != nil || f.Reason != "" || f.SHA256 != want {
				t.Errorf("%s, %s: %+v", state, key, f)
			}
		}
	}
	if g.pins.Len() != 1 {
		t.Errorf("there are %d pins", g.pins.Len())
	}
}

func TestH64The17thPathIsNotProbed(t *testing.T) {
	for name, tc := range map[string]struct {
		turn func(i int) int
		want string // of the first one
	}{
		"of one after the other": {func(i int) int { return 2 * (i + 1) }, "TooManyPaths"},
		"of one turn":            {func(int) int { return 2 }, "TooManyPaths"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGallery(t, nil)
			var sights []injection.Sight
			for i := range 17 {
				path := g.file(fmt.Sprint(i, ".png"), square(t, 8, byte(i)))
				sights = append(sights, sight(fmt.Sprint(i), path, func(s *injection.Sight) { s.Turn = tc.turn(i); s.Fresh = s.Turn == tc.turn(16) }))
			}
			sights = append(sights, sight("again", " ./16.png", func(s *injection.Sight) { s.Turn = tc.turn(16) }))
			for range 2 {
				got := g.conversation(loop(17), sights...)
				for i, shows := range got {
					want := string(square(t, 8, byte(min(i, 16))))
					if i == 0 {
						want = tc.want
					}
					if shows != want {
						t.Errorf("sight %d shows %.40q", i, shows)
					}
				}
			}
			if g.pins.Len() != 18 {
				t.Errorf("there are %d pins", g.pins.Len())
			}
		})
	}
}

func TestWhoCallsNoMoreIsToldSo(t *testing.T) {
	g := newGallery(t, nil)
	free, err := g.engine.HoldWhole(t.Context())
	must(t, err)
	path := g.file("a.jpg", farJPEG(50, 60))
	plan := &injection.Plan{Sights: []injection.Sight{sight("k", path)}}
	found, release, bad := g.engine.Resolve(canceled(t), plan, loop(1))
	if bad == nil || bad.Reason != "Canceled" || release != nil || len(found) != 0 {
		t.Errorf("got %v, %v", found, bad)
	}
	free()
	if got := g.shows(sight("k", path)); got != string(farJPEG(50, 60)) {
		t.Errorf("the next one shows %.40q", got)
	}
}
