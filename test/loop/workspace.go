// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
)

// Workspace is the folder in which tools work. One may serve several conversations.
type Workspace struct {
	// Dir is the folder.
	Dir string
	// Side is the images' width and height; 0 is 24.
	Side int

	drawn atomic.Uint64
}

// Outcome is what a tool came to.
type Outcome struct {
	Call Call
	Text string
	// Failed says that the tool reports an error.
	Failed bool
	// Own is an image that the tool itself returns, as PNG.
	Own []byte
	// View is set for tools that look at images.
	View *View
}

// do does all calls of a turn, in order.
func (w *Workspace) do(turn int, calls []Call) ([]Outcome, error) {
	var outcomes []Outcome
	for _, call := range calls {
		outcome, err := w.Do(call)
		if err != nil {
			return nil, fmt.Errorf("doing the call of %s: %w", call.Name, err)
		}
		if outcome.View != nil {
			outcome.View.Turn = turn
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes, nil
}

// Do does one call. A view finds a new picture at its path, as if the screen had
// changed: unless the file's name begins with "missing" (there is none, and the
// tool says so) or "damaged" (it is no image any more). With a name that begins
// with "own" the tool returns the image itself. Other tools come to a text.
func (w *Workspace) Do(call Call) (Outcome, error) {
	if !strings.Contains(strings.ToLower(strings.ReplaceAll(call.Name, "_", "")), "viewimage") {
		return Outcome{Call: call, Text: "ok: " + call.Name + " <done> & \"well\""}, nil
	}
	var arguments struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil {
		return Outcome{}, fmt.Errorf("reading arguments: %w", err)
	}
	name := path.Base(arguments.Path)
	v := &View{CallID: call.ID, Tool: call.Name, Path: arguments.Path}
	if strings.HasPrefix(name, "missing") {
		v.Fails = true
		return Outcome{Call: call, Text: "Error: " + arguments.Path + " does not exist.", Failed: true, View: v}, nil
	}
	data, err := w.draw()
	if err != nil {
		return Outcome{}, err
	}
	if v.Fails = strings.HasPrefix(name, "damaged"); v.Fails {
		data = append([]byte("no image: "), data[len(data)/2:]...)
	}
	file := filepath.Join(w.Dir, filepath.FromSlash(arguments.Path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return Outcome{}, fmt.Errorf("making the folder of an image: %w", err)
	}
	if err := replace(file, data); err != nil {
		return Outcome{}, fmt.Errorf("writing an image: %w", err)
	}
	sum := sha256.Sum256(data)
	v.SHA256 = hex.EncodeToString(sum[:])
	outcome := Outcome{Call: call, Text: "Viewed " + arguments.Path + ".", View: v}
	if v.Own = strings.HasPrefix(name, "own"); v.Own {
		outcome.Own = data
	}
	return outcome, nil
}

// replace puts a file in the place of another in one step.
func replace(file string, data []byte) error {
	if err := os.WriteFile(file+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// draw makes a picture that no other is like.
func (w *Workspace) draw() ([]byte, error) {
	side := w.Side
	if side == 0 {
		side = 24
	}
	n := w.drawn.Add(1)
	picture := image.NewNRGBA(image.Rect(0, 0, side, side))
	state := n * 0x9E3779B97F4A7C15
	for y := range side {
		for x := range side {
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			picture.SetNRGBA(x, y, color.NRGBA{R: uint8(state), G: uint8(state >> 8), B: uint8(state >> 16), A: 255})
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		return nil, fmt.Errorf("drawing an image: %w", err)
	}
	return out.Bytes(), nil
}

// sameJSON compares two texts that may be JSON.
func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return reflect.DeepEqual(x, y)
}
