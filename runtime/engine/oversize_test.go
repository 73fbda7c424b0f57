// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"image"
	"image/jpeg"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// downscaling has oversized images downscaled; limits are edited.
func downscaling(edit func(*router.Limits, *router.Model)) func(*router.Document) {
	return ofSee(func(d *router.Document, m *router.Model) {
		d.Profiles[0].Limits.Image.OnOversize = router.OversizeDownscale
		m.Limits = &router.ModelLimits{}
		edit(&d.Profiles[0].Limits, m)
	})
}

// photo is a JPEG of noise, which compresses badly.
func photo(t *testing.T, width, height int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	state := uint32(1)
	for i := range m.Pix {
		state = state*1664525 + 1013904223
		m.Pix[i] = byte(state>>24) | byte(i%4/3*255)
	}
	var out bytes.Buffer
	must(t, jpeg.Encode(&out, m, nil))
	return out.Bytes()
}

var dataURL = regexp.MustCompile(`data:(image/[a-z]+);base64,([A-Za-z0-9+/=]+)`)

// sent is the image of the last request.
func (r *rig) sent() (mediaType string, data []byte) {
	r.t.Helper()
	found := dataURL.FindSubmatch(*r.upstream.last.Load())
	if found == nil {
		r.t.Fatal("no image was sent")
	}
	data, err := base64.StdEncoding.DecodeString(string(found[2]))
	must(r.t, err)
	return string(found[1]), data
}

// wantSent holds what was sent against what the result says of it.
func (r *rig) wantSent(got *observation.ImageSent, size string) {
	r.t.Helper()
	mediaType, data := r.sent()
	sum := sha256.Sum256(data)
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	must(r.t, err)
	want := observation.ImageSent{Width: config.Width, Height: config.Height, ByteCount: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), MIME: mediaType}
	if got == nil || *got != want {
		r.t.Fatalf("the result says %+v was sent; it was %+v", got, want)
	}
	if told := fmt.Sprintf("%s %dx%d", got.MIME, got.Width, got.Height); size != "" && told != size {
		r.t.Errorf("%s was sent, want %s", told, size)
	}
}

func TestASmallerCopyIsSentOfAnImageOverALimit(t *testing.T) {
	big := photo(t, 400, 200)
	for name, tc := range map[string]struct {
		edit func(*router.Limits, *router.Model)
		size string // of what is sent; "" does not matter
		most int    // bytes
	}{
		"the policy's pixels": {func(l *router.Limits, _ *router.Model) { l.Image.MaxPixels = 20_000 }, "image/jpeg 200x100", 0},
		"the policy's bytes":  {func(l *router.Limits, _ *router.Model) { l.Image.MaxBytes = int64(len(big)) / 2 }, "", len(big) / 2},
		"the bytes of all":    {func(l *router.Limits, _ *router.Model) { l.Request.MaxTotalImageBytes = int64(len(big)) - 1 }, "", len(big) - 1},
		"the model's side":    {func(_ *router.Limits, m *router.Model) { m.Limits.MaxImageSide = 100 }, "image/jpeg 100x50", 0},
		"the model's bytes":   {func(_ *router.Limits, m *router.Model) { m.Limits.MaxImageBytes = 8000 }, "", 6000},
		"the model's request": {func(_ *router.Limits, m *router.Model) { m.Limits.MaxRequestBytes = 20_000 }, "", 15_000},
		"a type that is taken": {func(l *router.Limits, m *router.Model) {
			m.Limits.MaxImageSide, l.Image.MediaTypes = 100, []string{"image/jpeg", "image/png"}
		}, "image/jpeg 100x50", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(downscaling(tc.edit))
			path := r.file("a.jpg", big)
			got := r.view(engine.Request{Path: path, Prompt: "what"})
			r.wantSent(got.Observation.ImageSent, tc.size)
			if n := int(got.Observation.ImageSent.ByteCount); tc.most > 0 && n > tc.most {
				t.Errorf("%d bytes were sent, of %d", n, tc.most)
			}
			sum := sha256.Sum256(big)
			if ref := got.VisualReference; ref.SHA256 != hex.EncodeToString(sum[:]) || ref.ByteCount != int64(len(big)) || *ref.Size != (observation.Size{Width: 400, Height: 200}) {
				t.Errorf("the reference is %+v", ref)
			}
			if text := observation.Text(got); !strings.Contains(text, "Image sent: a smaller copy of ") || !strings.Contains(text, got.Observation.ImageSent.SHA256) {
				t.Errorf("the text does not say so:\n%s", text)
			}
			again := r.view(engine.Request{Path: path, Prompt: "what"})
			if !again.Cached || *again.Observation.ImageSent != *got.Observation.ImageSent {
				t.Errorf("cached %t: %+v", again.Cached, again.Observation.ImageSent)
			}
			r.wantCalls(1)
		})
	}
}

func TestWhatIsWithinTheLimitsIsSentAsItIs(t *testing.T) {
	r := newRig(t)
	data := photo(t, 400, 200)
	r.use(downscaling(func(l *router.Limits, m *router.Model) {
		l.Image.MaxPixels, l.Image.MaxBytes = 80_000, int64(len(data))
		m.Limits.MaxImageSide = 400
	}))
	got := r.view(engine.Request{Path: r.file("a.jpg", data), Prompt: "what"})
	if _, sent := r.sent(); got.Observation.ImageSent != nil || !bytes.Equal(sent, data) {
		t.Errorf("a copy was sent: %+v", got.Observation.ImageSent)
	}
	if strings.Contains(observation.Text(got), "Image sent") {
		t.Error("the text tells of a copy")
	}
}

func TestAnotherCopyIsAnotherQuestion(t *testing.T) {
	r := newRig(t)
	req := engine.Request{Path: r.file("a.jpg", photo(t, 400, 200)), Prompt: "what"}
	for i, side := range []int64{100, 50, 1000, 100} {
		r.use(downscaling(func(_ *router.Limits, m *router.Model) { m.Limits.MaxImageSide = side }))
		if got := r.view(req); got.Cached != (i == 3) {
			t.Errorf("side %d: cached %t", side, got.Cached)
		}
	}
	r.wantCalls(3)
}

func TestEachFallbackGetsACopyOfItsOwn(t *testing.T) {
	r := newRig(t)
	r.use(downscaling(func(_ *router.Limits, m *router.Model) { m.Limits.MaxImageSide = 100 }))
	r.use(func(d *router.Document) {
		downscaling(func(_ *router.Limits, m *router.Model) { m.Limits.MaxImageSide = 100 })(d)
		d.Providers[0].Models[2].Limits = &router.ModelLimits{MaxImageSide: 60}
		d.Profiles[0].FallbackModels = []string{"models@default/see-too"}
	})
	r.upstream.answerWith(onlyAnswers(r.upstream, "see-too"))
	got := r.view(engine.Request{Path: r.file("a.jpg", photo(t, 400, 200)), Prompt: "what"})
	r.wantSent(got.Observation.ImageSent, "image/jpeg 60x30")
}

func TestAnUploadMayBeLargerWhereItIsDownscaled(t *testing.T) {
	r := newRig(t)
	data := photo(t, 400, 200)
	r.use(downscaling(func(l *router.Limits, _ *router.Model) { l.Image.MaxBytes = int64(len(data)) / 2 }))
	if most := r.engine.MaxImageBytes(); most != int64(len(data))/2*4 {
		t.Errorf("at most %d bytes are taken of an upload", most)
	}
	kept, err := r.engine.Upload(background, bytes.NewReader(data), int64(len(data)))
	must(t, err)
	got := r.view(engine.Request{Path: kept.URI, Prompt: "what"})
	r.wantSent(got.Observation.ImageSent, "")
	if got.VisualReference.ByteCount != int64(len(data)) {
		t.Errorf("the reference is %+v", got.VisualReference)
	}
}

func TestWhatCannotBeDownscaledIsRefused(t *testing.T) {
	side := func(l *router.Limits, m *router.Model) { m.Limits.MaxImageSide = 7 }
	for name, tc := range map[string]struct {
		edit    func(*router.Limits, *router.Model)
		data    []byte
		reason  string
		because string // details.downscale
		says    string
	}{
		"a type that is not decoded": {
			func(l *router.Limits, m *router.Model) { side(l, m); m.Limits.MediaTypes = []string{"image/bmp"} }, bmp(),
			"ImageTooLarge", "NotDecodable", "limits.maxImageSide 7; no smaller copy can be made of it: an image of this kind cannot be decoded",
		},
		"a type that is not taken at all": {side, bmp(), "MediaTypeNotAccepted", "", "image/bmp"},
		"a model that takes no type that can be written": {
			func(l *router.Limits, m *router.Model) { side(l, m); m.Limits.MediaTypes = []string{"image/gif"} }, []byte("GIF89a\x08\x00\x08\x00"),
			"ImageTooLarge", "NoCopyFits", "none that can be written",
		},
		"a picture that is cut off":                     {side, pngHeader(8, 8), "ImageTooLarge", "Malformed", "it is broken or cut off"},
		"a picture that takes too much memory":          {side, pngHeader(10_000, 5_000), "ImageTooLarge", "TooLargeToDecode", "more memory than the runtime has for it"},
		"more than four times the pixels of the policy": {side, pngHeader(20_001, 10_000), "TooManyPixels", "", "limits.image.maxPixels 50000000"},
		"an image that is refused for something else": {
			func(l *router.Limits, m *router.Model) { m.ContextWindowTokens = 5 }, square(t, 8, 1), "ContextWindowExceeded", "", "contextWindowTokens 5",
		},
		"a copy that is refused for something else": {
			func(l *router.Limits, m *router.Model) { side(l, m); m.ContextWindowTokens = 5 }, square(t, 8, 1), "ContextWindowExceeded", "", "contextWindowTokens 5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.use(downscaling(tc.edit))
			kind := fault.BudgetExceeded
			if tc.reason == "MediaTypeNotAccepted" {
				kind = fault.InvalidToolInput
			}
			f := r.refused(engine.Request{Path: r.file("a", tc.data), Prompt: "what"}, kind, tc.reason)
			why, _ := f.fault.Details["downscale"].(string)
			if why != tc.because || !strings.Contains(f.fault.Message, tc.says) || f.fault.RecoveryHint == "" || f.fault.Retryable {
				t.Errorf("downscale %q, hint %q: %s", why, f.fault.RecoveryHint, f.fault.Message)
			}
			r.wantCalls(0)
		})
	}
}

// As in TestTooManyPixelsAreRefusedBeforeTheBodyIsRead, with downscaling.
func TestABombIsRefusedBeforeTheBodyIsReadWhereImagesAreDownscaled(t *testing.T) {
	r := newRig(t)
	r.use(downscaling(func(*router.Limits, *router.Model) {}))
	path := r.file("bomb.png", pngHeader(100_000, 100_000))
	must(t, os.Truncate(path, 20<<20))
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err := r.engine.View(ctx, engine.Request{Path: path, Prompt: "what"})
	if f := fault.As(err); f.Reason != "TooManyPixels" || !strings.Contains(f.RecoveryHint, "4 times") {
		t.Errorf("the call gave %v, hint %q", err, f.RecoveryHint)
	}
}
