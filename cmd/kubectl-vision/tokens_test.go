// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/tokens"
)

func TestTokensOfACommandLineThatCannotWorkSaysWhy(t *testing.T) {
	tests := map[string]struct {
		args string
		says []string
	}{
		"no model":                    {"--width 3 --height 3", []string{"--model is missing"}},
		"a width alone":               {"--model m --width 3", []string{"--width", "--height"}},
		"a height alone":              {"--model m --height 3", []string{"--height", "--width"}},
		"a width of nothing":          {"--model m --width 0 --height 3", []string{"--width is 0", "1 pixel"}},
		"a height below nothing":      {"--model m --width 3 --height -4", []string{"--height is -4", "1 pixel"}},
		"a width that is no number":   {"--model m --width wide", []string{"--width", `"wide"`}},
		"a width beyond every number": {"--model m --width 99999999999999999999 --height 1", []string{"--width", "99999999999999999999"}},
		"a family that nobody knows":  {"--model m --family nobody", []string{"--family", `"nobody"`, "qwen3-vl"}},
		"a wild output":               {"--model m -o yaml", []string{`"yaml"`}},
		"a word":                      {"--model m photo.png", []string{`"photo.png"`}},
		"a wild flag":                 {"--model m --nope", []string{"--nope"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), append([]string{"tokens"}, strings.Fields(tc.args)...), nil, io.Discard, io.Discard)
			if exitCode(err) != exitUsage {
				t.Errorf("exit code %d and %v, want %d", exitCode(err), err, exitUsage)
			}
			for _, says := range tc.says {
				if !strings.Contains(fmt.Sprint(err), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		})
	}
}

// The command adds nothing to the package's numbers and hides none.
func TestTokensPrintsWhatTheRuntimeCounts(t *testing.T) {
	refusals := 0
	for _, family := range tokens.Default().Families() {
		for _, size := range [][2]int{{0, 0}, {1, 1}, {640, 480}, {6000, 6000}, {3, 9000}} {
			args := []string{"tokens", "--family", family.Name(), "-o", "json"}
			if size[0] > 0 {
				args = append(args, "--width", fmt.Sprint(size[0]), "--height", fmt.Sprint(size[1]))
			}
			want, refused := tokens.Find("", family.Name()).Estimate(tokens.Image{Width: size[0], Height: size[1]})
			var stdout bytes.Buffer
			err := run(t.Context(), args, nil, &stdout, io.Discard)
			var got tokensObject
			if bad := json.Unmarshal(stdout.Bytes(), &got); bad != nil {
				t.Fatalf("%v: %v", args, bad)
			}
			if refused != nil {
				refusals++
				no := new(tokens.RejectError)
				if !errors.As(err, &no) || exitCode(err) != exitFailed || got.Reject == nil || got.Reject.Value != no.Value || got.Reject.Actual != no.Actual || got.Total != nil {
					t.Errorf("%v: %v and %+v, want %v", args, err, got, refused)
				}
				continue
			}
			if err != nil || got.Reject != nil || *got.Total != want.Total() || *got.Tokens != want.Tokens || *got.Basis != want.Basis() || *got.UpperBound != want.UpperBound || got.Family != want.Family {
				t.Errorf("%v: %v and %s, want %+v", args, err, stdout.String(), want)
			}
			if (got.Resized != nil) != (want.Resized != tokens.Size{}) || (got.Width == nil) != (size[0] == 0) {
				t.Errorf("%v: sizes in %s, want %v", args, stdout.String(), want.Resized)
			}
		}
	}
	if refusals == 0 {
		t.Error("no image was refused")
	}
}
