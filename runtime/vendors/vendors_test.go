// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package vendors

import (
	"encoding/base64"
	"math"
	"testing"
)

func TestBase64LengthIsThatOfTheStandardEncoding(t *testing.T) {
	for n, want := range map[int64]int64{-1: 0, 0: 0, 7_864_320: 10_485_760, 7_864_321: 10_485_764, math.MaxInt64/4*3 + 1: math.MaxInt64, math.MaxInt64: math.MaxInt64} {
		if got := Base64Length(n); got != want {
			t.Errorf("%d bytes are %d in base64, want %d", n, got, want)
		}
	}
	for n := range 100 {
		if got, want := Base64Length(int64(n)), base64.StdEncoding.EncodedLen(n); got != int64(want) {
			t.Errorf("%d bytes are %d in base64, want %d", n, got, want)
		}
	}
	if got := Base64Length(math.MaxInt64 / 4 * 3); got <= 0 || got%4 != 0 {
		t.Errorf("the largest length is %d", got)
	}
}

func TestALimitSaysItsNameValueAndUnit(t *testing.T) {
	anthropic := Find("AnthropicMessages", "api.anthropic.com", "claude-opus-4-7", "")
	for name, want := range map[Name]string{
		MaxSide:             "maxSide 8000 px",
		MaxImages:           "maxImages 100 images",
		MaxImageBase64Bytes: "maxImageBase64Bytes 10485760 bytes",
		MediaTypes:          "mediaTypes image/png, image/jpeg, image/gif, image/webp",
	} {
		if limit, ok := anthropic.Get(name); !ok || limit.String() != want {
			t.Errorf("%s is %q, want %q", name, limit, want)
		}
	}
	if limit, ok := anthropic.Get(MaxPixels); ok {
		t.Errorf("there is a limit %s", limit)
	}
}
