// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package downscale

import (
	"bytes"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/image/draw"

	"github.com/visionoperator/vision-operator/runtime/probe"
)

// TestCopiesOfTheTestImagesOfGoLookLikeThem makes small copies of every image that
// comes with Go and x/image, and holds them against x/image's own scaling.
func TestCopiesOfTheTestImagesOfGoLookLikeThem(t *testing.T) {
	seen := map[string]int{}
	for _, dir := range corpusDirs(t) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(filepath.Join(dir, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			facts, err := probe.Content(data)
			whole, _, bad := image.Decode(bytes.NewReader(data))
			if err != nil || bad != nil || !Decodes(facts) || whole.Bounds().Dx() != facts.Width {
				continue
			}
			seen[facts.MediaType]++
			t.Run(file.Name(), func(t *testing.T) { alike(t, data, whole) })
		}
	}
	for _, kind := range []string{probe.PNG, probe.JPEG, probe.GIF, probe.WebP} {
		if seen[kind] == 0 {
			t.Errorf("no %s was seen: %v", kind, seen)
		}
	}
}

// alike compares a copy as PNG with x/image's.
func alike(t *testing.T, data []byte, whole image.Image) {
	copied, err := Image(data, Limits{MaxSide: 50, MediaTypes: []string{"image/png"}}, plenty)
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, copied)
	want := image.NewRGBA(m.Bounds())
	draw.CatmullRom.Scale(want, want.Rect, whole, whole.Bounds(), draw.Src, nil)
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			r, g, b, a := m.At(x, y).RGBA()
			wr, wg, wb, wa := want.At(x, y).RGBA()
			for i, d := range []int{int(r) - int(wr), int(g) - int(wg), int(b) - int(wb), int(a) - int(wa)} {
				if d /= 257; d < -3 || d > 3 {
					t.Fatalf("at %d, %d: sample %d differs by %d", x, y, i, d)
				}
			}
		}
	}
}

func corpusDirs(t *testing.T) []string {
	t.Helper()
	ask := func(args ...string) string {
		out, err := exec.Command("go", args...).Output()
		if err != nil {
			t.Fatalf("asking go %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	return []string{
		filepath.Join(ask("env", "GOROOT"), "src/image/testdata"),
		filepath.Join(ask("list", "-m", "-f", "{{.Dir}}", "golang.org/x/image"), "testdata"),
	}
}
