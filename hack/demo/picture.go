// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// drawSentence renders one line of dark text on white as a PNG.
func drawSentence(sentence string) ([]byte, error) {
	parsed, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return nil, fmt.Errorf("reading the font: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: 36, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, fmt.Errorf("reading the font: %w", err)
	}
	defer face.Close()
	width := font.MeasureString(face, sentence).Ceil() + 80
	canvas := image.NewRGBA(image.Rect(0, 0, width, 120))
	draw.Draw(canvas, canvas.Bounds(), image.White, image.Point{}, draw.Src)
	drawer := font.Drawer{Dst: canvas, Src: image.NewUniform(color.Gray{Y: 0x20}), Face: face, Dot: fixed.P(40, 72)}
	drawer.DrawString(sentence)
	var out bytes.Buffer
	if err := png.Encode(&out, canvas); err != nil {
		return nil, fmt.Errorf("encoding the picture: %w", err)
	}
	return out.Bytes(), nil
}
