// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"testing"
)

func TestThePrimaryImageOfAContainer(t *testing.T) {
	whole := Facts{MediaType: HEIC, Width: 1000, Height: 600, Orientation: 1, Animated: No}
	with := func(change func(*Facts)) Facts { f := whole; change(&f); return f }
	base := heifForm{brand: "heic", brands: "mif1heic", primary: 49}
	form := func(change func(*heifForm)) []byte { f := base; change(&f); return f.tiles() }
	lost := func(name string) []byte { return bytes.Replace(base.tiles(), []byte(name), []byte("free"), 1) }
	huge := box("mdat", make([]byte, MaxHeader))
	tests := map[string]struct {
		in   []byte
		want Facts
	}{
		"tiles and other pictures are not the primary image": {base.tiles(), whole},
		"numbers of items may be long":                       {form(func(f *heifForm) { f.longID, f.primary = true, 70000 }), whole},
		"numbers of properties may be long":                  {form(func(f *heifForm) { f.wide = true }), whole},
		"both may be":                                        {form(func(f *heifForm) { f.longID, f.wide = true, true }), whole},
		"another item may be the primary one":                {form(func(f *heifForm) { f.primary = 7 }), with(func(f *Facts) { f.Width, f.Height = 5000, 4000 })},
		"without a primary item, the largest counts":         {lost("pitm"), with(func(f *Facts) { f.Width, f.Height, f.Orientation = 5000, 4000, 0 })},
		"without associations, the largest counts":           {lost("ipma"), with(func(f *Facts) { f.Width, f.Height, f.Orientation = 5000, 4000, 0 })},
		"a clean aperture hides nothing from the size":       {form(func(f *heifForm) { f.turns = [][]byte{clap(900, 1, 500, 1)} }), whole},
		"a brand of sequences moves":                         {form(func(f *heifForm) { f.brand = "hevc" }), with(func(f *Facts) { f.Animated = Yes })},
		"a compatible brand of sequences moves":              {form(func(f *heifForm) { f.brands = "mif1msf1" }), with(func(f *Facts) { f.Animated = Yes })},
		"an AVIF of the brand of sequences moves":            {form(func(f *heifForm) { f.brand = "avis" }), with(func(f *Facts) { f.MediaType, f.Animated = AVIF, Yes })},
		"the boxes may stand behind the pixels":              {form(func(f *heifForm) { f.before = [][]byte{box("mdat", make([]byte, 500))} }), whole},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Header(tc.in); got != tc.want || err != nil {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tc.want)
			}
		})
	}
	t.Run("boxes behind 64 KiB of pixels are unknown to Header alone", func(t *testing.T) {
		in := form(func(f *heifForm) { f.before = [][]byte{huge} })
		if got, err := Header(in); got != (Facts{MediaType: HEIC, Animated: No}) || err != nil {
			t.Errorf("Header = %+v, %v", got, err)
		}
		if got, err := Content(in); got != whole || err != nil {
			t.Errorf("Content = %+v, %v", got, err)
		}
		if got, err := Content(in[:MaxHeader]); reasonOf(err) != Truncated {
			t.Errorf("Content of a file that ends in its pixels = %+v, %v, want a truncation", got, err)
		}
	})
	t.Run("an item of absurdly many properties is not understood", func(t *testing.T) {
		many := form(func(f *heifForm) { f.turns = bytes.SplitAfter(bytes.Repeat(irot(1), 100), irot(1))[:100] })
		if got, err := Header(many); got.Orientation != 0 || err != nil {
			t.Errorf("Header = %+v, %v", got, err)
		}
	})
}

// grid is a picture of single letters, to be turned by hand.
type grid [][]byte

func (g grid) at(width, height int, from func(x, y int) (int, int)) grid {
	out := make(grid, height)
	for y := range out {
		out[y] = make([]byte, width)
		for x := range out[y] {
			fx, fy := from(x, y)
			out[y][x] = g[fy][fx]
		}
	}
	return out
}

func (g grid) quarterAgainstTheClock() grid {
	h, w := len(g), len(g[0])
	return g.at(h, w, func(x, y int) (int, int) { return w - 1 - y, x })
}

func (g grid) topAndBottomExchanged() grid {
	h, w := len(g), len(g[0])
	return g.at(w, h, func(x, y int) (int, int) { return x, h - 1 - y })
}

func (g grid) leftAndRightExchanged() grid {
	h, w := len(g), len(g[0])
	return g.at(w, h, func(x, y int) (int, int) { return w - 1 - x, y })
}

// shown is a stored picture of 2 x 3 as EXIF says that it is to be shown: where
// its row 0 and its column 0 are (Exif 2.32, 4.6.4, orientation).
var shown = map[int]string{
	1: "ab cd ef", // top, left
	2: "ba dc fe", // top, right
	3: "fe dc ba", // bottom, right
	4: "ef cd ab", // bottom, left
	5: "ace bdf",  // left, top
	6: "eca fdb",  // right, top
	7: "fdb eca",  // right, bottom
	8: "bdf ace",  // left, bottom
}

func TestRotationAndMirrorAreAnOrientation(t *testing.T) {
	stored := grid{[]byte("ab"), []byte("cd"), []byte("ef")}
	turn := func(quarters byte, g grid) grid {
		for range quarters {
			g = g.quarterAgainstTheClock()
		}
		return g
	}
	for quarters := range byte(4) {
		for axis := range byte(3) {
			for _, mirrorFirst := range []bool{false, true} {
				want, turns := stored, [][]byte{irot(quarters)}
				mirror := func() {
					switch axis {
					case 0:
						want = want.topAndBottomExchanged()
					case 1:
						want = want.leftAndRightExchanged()
					}
				}
				switch {
				case axis == 2: // no mirror at all
					want = turn(quarters, want)
				case mirrorFirst:
					mirror()
					want, turns = turn(quarters, want), [][]byte{imir(axis), irot(quarters)}
				default:
					want, turns = turn(quarters, want), [][]byte{irot(quarters), imir(axis)}
					mirror()
				}
				got, err := Header(heifForm{brand: "heic", primary: 49, turns: turns}.tiles())
				text := string(bytes.Join(want, []byte(" ")))
				if err != nil || shown[got.Orientation] != text {
					t.Errorf("%d quarters, axis %d, mirror first %t: orientation %d shows %q, want %q (%v)",
						quarters, axis, mirrorFirst, got.Orientation, shown[got.Orientation], text, err)
				}
			}
		}
	}
}

func TestNamedTypes(t *testing.T) {
	ico := func(width, height int) Facts {
		return Facts{MediaType: ICO, Width: width, Height: height, Animated: No}
	}
	svg := func(width, height int) Facts { return size(SVG, width, height) }
	gap := edit(icoOf([2]byte{1, 1}), 18, 3)
	tests := map[string]struct {
		in     []byte
		want   Facts
		reason Reason
	}{
		"an icon is as large as its largest picture":   {icoOf([2]byte{16, 16}, [2]byte{48, 32}, [2]byte{32, 32}), ico(48, 32), ""},
		"a side of 0 in an icon is 256":                {icoOf([2]byte{16, 16}, [2]byte{0, 0}), ico(256, 256), ""},
		"an icon whose directory is cut is truncated":  {icoOf([2]byte{16, 16}, [2]byte{0, 0})[:30], Facts{MediaType: ICO}, Truncated},
		"an icon whose picture overlaps it is not one": {gap, Facts{}, NotAnImage},
		"four bytes are not an icon":                   {[]byte{0, 0, 1, 0}, Facts{}, NotAnImage},
		"a drawing suggests its size":                  {svgOf(`width="640" height="480px"`), svg(640, 480), ""},
		"a drawing's size is rounded up":               {svgOf(`height='1e2' width='0.5'`), svg(1, 100), ""},
		"a view box suggests a size":                   {svgOf(`viewBox="-10 -10, 300.2 200" width="100%"`), svg(301, 200), ""},
		"other units suggest nothing":                  {svgOf(`width="10cm" height="10cm"`), svg(0, 0), ""},
		"an entity suggests nothing":                   {svgOf(`width="&w;" height="5"`), svg(0, 0), ""},
		"an absurd length suggests nothing":            {svgOf(`width="1e300" height="5"`), svg(0, 0), ""},
		"a negative length suggests nothing":           {svgOf(`width="-5" height="5"`), svg(0, 0), ""},
		"a namespace may have a prefix":                {[]byte("<s:svg xmlns:s='x' width='3' height='4'/>"), svg(3, 4), ""},
		"an empty tag suggests nothing":                {[]byte("  <svg>"), svg(0, 0), ""},
		"a tag without an end suggests nothing":        {[]byte("<svg width='3' height='4'"), svg(0, 0), ""},
		"a page that holds a drawing is not one":       {[]byte("<html><svg width='3' height='4'/></html>"), Facts{}, NotAnImage},
		"a comment alone is not a drawing":             {[]byte("<!-- <svg> "), Facts{}, NotAnImage},
		"a name that begins as svg is not svg":         {[]byte("<svgx width='3'>"), Facts{}, NotAnImage},
		"a bare JPEG XL is named":                      {[]byte("\xff\x0a\xfa\x1f"), size(JXL, 0, 0), ""},
		"a JPEG XL in boxes is named":                  {[]byte("\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a"), size(JXL, 0, 0), ""},
		"a JPEG 2000 is named":                         {[]byte("\x00\x00\x00\x0cjP  \x0d\x0a\x87\x0a"), Facts{MediaType: JP2, Animated: No}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Header(tc.in)
			if got != tc.want || reasonOf(err) != tc.reason {
				t.Errorf("got %+v, %v\nwant %+v, %q", got, err, tc.want, tc.reason)
			}
		})
	}
}
