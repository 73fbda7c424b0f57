// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/router"
)

var update = flag.Bool("update", false, "write the edited bodies of testdata anew")

// given is plan.json of a folder: what is shown for each sight that Find finds in
// body.json. want.json is the body as it goes to the vendor.
type given struct {
	Place     string           `json:"place"`
	Injection router.Injection `json:"injection"`
	Shown     []struct {
		Picture     string  `json:"picture"`
		Text        string  `json:"text"`
		Constant    bool    `json:"constant"`
		Unavailable *string `json:"unavailable"`
	} `json:"shown"`
}

// picture is an image by its name in plan.json; only its bytes' length and digest count.
func picture(name string) *injection.Picture {
	data := []byte("picture " + name + "\x00\xff")
	sum := sha256.Sum256(data)
	return &injection.Picture{
		SHA256: hex.EncodeToString(sum[:]), MediaType: "image/png", Width: 64, Height: 48,
		Size: int64(len(data)), Data: bytes.NewReader(data),
	}
}

func (g *given) shown(t *testing.T, p *injection.Plan) []injection.Shown {
	t.Helper()
	if len(g.Shown) != len(p.Sights) {
		t.Fatalf("%d sights, but %d are told: %+v, %+v", len(p.Sights), len(g.Shown), p.Sights, p.Skips)
	}
	shown := make([]injection.Shown, len(g.Shown))
	for i, s := range g.Shown {
		shown[i] = injection.Shown{Text: s.Text, Constant: s.Constant}
		if s.Picture != "" {
			shown[i].Picture = picture(s.Picture)
		}
		if s.Unavailable != nil {
			shown[i].Text = p.Unavailable(i, *s.Unavailable)
		}
	}
	return shown
}

func scanned(t *testing.T, d message.Dialect, body []byte) *message.Request {
	t.Helper()
	r, err := message.Scan(d, body)
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return r
}

func spliced(t *testing.T, body []byte, edits []message.Edit) (*message.Spliced, []byte) {
	t.Helper()
	s, err := message.Splice(body, edits)
	if err != nil {
		t.Fatalf("%v: %+v", err, edits)
	}
	out, err := io.ReadAll(s.Reader())
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

// eachGolden calls do for each folder of testdata.
func eachGolden(t *testing.T, do func(t *testing.T, folder string, d message.Dialect, body []byte, g *given)) {
	files, err := filepath.Glob("testdata/*/*/body.json")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d bodies, %v", len(files), err)
	}
	for _, file := range files {
		folder := filepath.Dir(file)
		t.Run(strings.TrimPrefix(folder, "testdata/"), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := os.ReadFile(filepath.Join(folder, "plan.json"))
			if err != nil {
				t.Fatal(err)
			}
			var g given
			d := json.NewDecoder(bytes.NewReader(plan))
			d.DisallowUnknownFields()
			if err := d.Decode(&g); err != nil {
				t.Fatal(err)
			}
			do(t, folder, message.Dialect(filepath.Base(filepath.Dir(folder))), body, &g)
		})
	}
}

func TestBodiesAreEditedAsInTheFolders(t *testing.T) {
	eachGolden(t, func(t *testing.T, folder string, d message.Dialect, body []byte, g *given) {
		r := scanned(t, d, body)
		p := injection.Find(r, body, injection.RulesOf(g.Injection), g.Place, nil)
		_, got := spliced(t, body, p.Edits(r, body, g.shown(t, p)))
		file := filepath.Join(folder, "want.json")
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("got %s", got)
		}
	})
}

func TestFoldersHoldNothingElse(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*/*")
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, file := range files {
		if strings.HasPrefix(file, "testdata/fuzz/") {
			continue
		}
		if !slices.Contains([]string{"body.json", "plan.json", "want.json"}, filepath.Base(file)) {
			t.Errorf("%s is read by nothing", file)
		}
		count[filepath.Dir(file)]++
	}
	for folder, n := range count {
		if n != 3 {
			t.Errorf("%s holds %d files", folder, n)
		}
	}
}

// What was put in is found again, each image once, and where it belongs; and what was
// taken away from the client's body by ranges gives it back.
func TestEachImageStandsOnceAtItsCall(t *testing.T) {
	pictures := 0
	eachGolden(t, func(t *testing.T, _ string, d message.Dialect, body []byte, g *given) {
		before := scanned(t, d, body)
		p := injection.Find(before, body, injection.RulesOf(g.Injection), g.Place, nil)
		shown := g.shown(t, p)
		s, edited := spliced(t, body, p.Edits(before, body, shown))
		if !json.Valid(edited) || int64(len(edited)) != s.Len() {
			t.Fatalf("not JSON, or not as long as told: %s", edited)
		}
		if got := restored(body, edited, s.Ranges()); !bytes.Equal(got, body) {
			t.Errorf("without the ranges: %s", got)
		}
		after := scanned(t, d, edited)
		var want, got []string
		for i, sight := range p.Sights {
			if shown[i].Picture != nil {
				want = append(want, shown[i].Picture.SHA256+" at "+whose(before, g.Place, sight))
				pictures++
			}
		}
		for i := len(before.Images); i < len(after.Images); i++ {
			got = append(got, digest(t, edited, &after.Images[i])+" at "+where(after, g.Place, i))
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(before.Images) == 0 && !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s\nin %s", strings.Join(got, "\n"), strings.Join(want, "\n"), edited)
		}
		if len(after.Calls) != len(before.Calls) || len(after.Results) != len(before.Results) {
			t.Errorf("calls or results were added: %s", edited)
		}
		for i := range before.Results {
			if before.Results[i].Call != after.Results[i].Call {
				t.Errorf("result %d answers call %d, not %d", i, after.Results[i].Call, before.Results[i].Call)
			}
		}
	})
	if pictures < 100 {
		t.Errorf("%d pictures", pictures)
	}
}

// whose tells to what a sight's image belongs, in words that where has too.
func whose(r *message.Request, place string, s injection.Sight) string {
	switch {
	case s.Kind == injection.Markdown:
		return "a human"
	case place == router.ToolImagesInToolResult && r.Results[s.Result].CallID != "":
		return r.Results[s.Result].CallID
	case place == router.ToolImagesInToolResult:
		return r.Calls[s.Call].Name
	}
	return "the step of assistant turn " + nth(r, s.Turn)
}

func where(r *message.Request, place string, image int) string {
	i := r.Images[image]
	switch {
	case place != router.ToolImagesInToolResult && nth(r, i.Turn) != "0":
		return "the step of assistant turn " + nth(r, i.Turn)
	case i.Result >= 0 && r.Results[i.Result].CallID != "":
		return r.Results[i.Result].CallID
	case i.Result >= 0:
		return r.Results[i.Result].Name
	case r.Turns[i.Turn].Role == message.User:
		return "a human"
	}
	return "nobody"
}

// nth counts the assistant's turns before a turn; a run of them, such as calls side by
// side or a bridge behind results, counts by its calls' turns alone.
func nth(r *message.Request, turn int) string {
	n := 0
	for i := range r.Calls {
		if c := r.Calls[i].Turn; c < turn && (i == 0 || r.Calls[i-1].Turn != c) {
			n++
		}
	}
	return string(rune('0' + n))
}

func digest(t *testing.T, body []byte, i *message.Image) string {
	t.Helper()
	if i.Source != message.Inline || i.MediaType != "image/png" {
		t.Errorf("the image is %s (%s), %s", i.Source, i.Why, i.MediaType)
	}
	h := sha256.New()
	if _, err := io.Copy(h, message.NewReader(body, i)); err != nil {
		t.Error(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// restored takes the inserted bytes out of an edited body, and the deleted ones back in.
func restored(body, edited []byte, ranges []message.Range) []byte {
	var out []byte
	at, from := int64(0), int64(0)
	for _, r := range ranges {
		kept := r.Offset - at
		out = append(out, edited[from:from+kept]...)
		from += kept + r.Inserted
		out = append(out, body[r.Offset:r.Offset+r.Deleted]...)
		at = r.Offset + r.Deleted
	}
	return append(out, edited[from:]...)
}
