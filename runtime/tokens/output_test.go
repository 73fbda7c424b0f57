// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"math"
	"testing"
)

func TestOutputIsClampedToWhatTheWindowLeaves(t *testing.T) {
	for _, c := range []struct {
		name                      string
		configured, window, input int64
		want                      int64
	}{
		{"H68: an unknown window leaves the configured number", 384_000, 0, 10_000_000, 384_000},
		{"H69: a long input leaves what the window has after headroom", 384_000, 1_048_576, 666_198, 371_893},
		{"H70: a short input leaves the configured number", 384_000, 1_048_576, 10_000, 384_000},
		{"H71: a small window keeps at least 4096 free", 384_000, 100_000, 95_000, 904},
		{"an input above the window leaves one token", 384_000, 100_000, 200_000, 1},
		{"an input up to the headroom leaves one token", 384_000, 100_000, 95_904, 1},
		{"nothing configured asks for nothing", 0, 100_000, 10, 0},
		{"a negative input counts as none", 500_000, 100_000, -5, 95_904},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ClampOutput(c.configured, c.window, c.input); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestHeadroomIsAHundredthWithinBounds(t *testing.T) {
	for window, want := range map[int64]int64{0: 4096, 100_000: 4096, 409_600: 4096, 409_700: 4097, 1_048_576: 10_485, 3_276_800: 32_768, 100_000_000: 32_768} {
		if got := Headroom(window); got != want {
			t.Errorf("a window of %d keeps %d, want %d", window, got, want)
		}
	}
}

func TestTextIsFourBytesAToken(t *testing.T) {
	for bytes, want := range map[int64]int64{-1: 0, 0: 0, 1: 1, 4: 1, 5: 2, 8: 2, 9: 3, math.MaxInt64: math.MaxInt64/4 + 1} {
		if got := Text(bytes); got != want {
			t.Errorf("%d bytes are %d tokens, want %d", bytes, got, want)
		}
	}
}
