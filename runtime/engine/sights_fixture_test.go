// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color/palette"
	"image/gif"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/engine"
	"github.com/visionoperator/vision-operator/runtime/injection"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/pin"
	"github.com/visionoperator/vision-operator/runtime/reference"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/workspace"
)

// gallery is a rig whose engine keeps pins.
type gallery struct {
	*rig
	pins *pin.Store
}

// newGallery keeps pins on disk; edit changes that.
func newGallery(t *testing.T, edit func(*pin.Options)) *gallery {
	t.Helper()
	g := &gallery{rig: newRig(t)}
	g.restart(edit, g.space)
	return g
}

// tight leaves contents on disk that many blocks.
func tight(blocks int64) func(*pin.Options) {
	return func(o *pin.Options) { o.MaxPins, o.MaxDiskBytes = 64, 64*768+blocks*4096 }
}

// inMemory keeps no pins on disk, and contents of that many bytes.
func inMemory(bytes int64) func(*pin.Options) {
	return func(o *pin.Options) { o.Dir, o.MaxMemoryBytes = "", bytes }
}

// restart is the next process over the same directories.
func (g *gallery) restart(edit func(*pin.Options), spaces ...string) {
	g.t.Helper()
	if g.pins != nil {
		must(g.t, g.pins.Close())
	}
	set, err := workspace.Open(spaces)
	must(g.t, err)
	g.t.Cleanup(set.Close)
	references, err := reference.Open(reference.Options{Dir: g.cache})
	must(g.t, err)
	g.t.Cleanup(func() { _ = references.Close() })
	logger := slog.New(slog.NewTextHandler(g.log, nil))
	o := pin.Options{Dir: filepath.Join(g.cache, "pinned"), Logger: logger}
	if edit != nil {
		edit(&o)
	}
	g.pins, err = pin.Open(o)
	must(g.t, err)
	g.t.Cleanup(func() { _ = g.pins.Close() })
	g.engine = engine.New(engine.Options{
		Profile: "policy/p", SecretsDir: g.secrets, Workspaces: set, References: references, Pins: g.pins, Logger: logger,
	})
	g.t.Cleanup(g.engine.Close)
	g.use(nil)
}

// limit changes the policy's limits.
func (g *gallery) limit(edit func(*router.Limits)) {
	g.use(func(d *router.Document) { edit(&d.Profiles[0].Limits) })
}

// sight is a call that looks at a path, and that nobody has answered yet.
func sight(key, path string, edits ...func(*injection.Sight)) injection.Sight {
	s := injection.Sight{
		Kind: injection.Called, Turn: 2, Call: 0, Result: 0, Text: -1, Tool: "view_image", CallID: key,
		Path: path, Key: hashed([]byte(key)), Fresh: true, State: injection.Wanted,
	}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// old is a sight that was answered.
func old(s *injection.Sight) { s.Fresh = false }

// weak is a sight whose key others may have.
func weak(s *injection.Sight) { s.Weak = true }

// told is a sight whose result tells the digest of what it is about.
func told(digest string) func(*injection.Sight) {
	return func(s *injection.Sight) { s.SHA256 = digest }
}

func hashed(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// shows is what a sight shows: the bytes as text, or its reason.
func (g *gallery) shows(s injection.Sight) string {
	g.t.Helper()
	return g.show(s)[0]
}

// show is what each sight of one turn shows.
func (g *gallery) show(sights ...injection.Sight) []string {
	g.t.Helper()
	return g.conversation(loop(1), sights...)
}

// loop is a conversation in which the assistant called a tool n times, one after
// the other. The results are turns 2, 4 and so on.
func loop(n int) *message.Request {
	r := &message.Request{Dialect: message.OpenAIChat, Turns: []message.Turn{{Role: message.User}}}
	for range n {
		r.Turns = append(r.Turns, message.Turn{Role: message.Assistant}, message.Turn{Role: message.Tool, ToolResults: true})
	}
	return r
}

func (g *gallery) conversation(r *message.Request, sights ...injection.Sight) []string {
	g.t.Helper()
	found, release, bad := g.engine.Resolve(g.t.Context(), &injection.Plan{Sights: sights}, r)
	if bad != nil {
		g.t.Fatalf("resolving: %v", bad)
	}
	defer release()
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = g.shown(&f)
	}
	return out
}

// shown checks that what was found agrees with itself.
func (g *gallery) shown(f *engine.Resolved) string {
	g.t.Helper()
	p := f.Picture
	if (p == nil) != (f.Reason != "") {
		g.t.Errorf("a picture %v stands beside the reason %q", p, f.Reason)
	}
	if p == nil {
		return f.Reason
	}
	data, err := io.ReadAll(io.NewSectionReader(p.Data, 0, p.Size+1))
	if err != nil {
		g.t.Fatal(err)
	}
	if int64(len(data)) != p.Size || p.SHA256 != hashed(data) || f.SHA256 != p.SHA256 || p.MediaType != f.Facts.MediaType || p.Width != f.Facts.Width {
		g.t.Errorf("the picture of %d bytes tells %+v and %+v", len(data), p, f)
	}
	return string(data)
}

// write writes a file anew and returns its path.
func (g *gallery) write(name string, data []byte) string {
	g.t.Helper()
	path := filepath.Join(g.space, name)
	must(g.t, os.WriteFile(path+".new", data, 0o600))
	must(g.t, os.Rename(path+".new", path))
	return path
}

// sparse is a file that begins as data and has size bytes.
func (g *gallery) sparse(name string, data []byte, size int64) string {
	g.t.Helper()
	path := g.file(name, data)
	must(g.t, os.Truncate(path, size))
	return path
}

// stillGIF is a GIF of one frame, larger than what its header is probed by.
func stillGIF(t *testing.T, frames int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 400, 400), palette.Plan9)
	noise := uint32(1)
	for i := range img.Pix {
		noise = noise*1664525 + 1013904223
		img.Pix[i] = byte(noise >> 24)
	}
	all := &gif.GIF{}
	for range frames {
		all.Image, all.Delay = append(all.Image, img), append(all.Delay, 10)
	}
	var out bytes.Buffer
	must(t, gif.EncodeAll(&out, all))
	return out.Bytes()
}

// canceled is a context that ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
