// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"runtime"
	"strings"
	"testing"
)

// What stands deep in a body is no lever: many images there share the way to them.
func TestManyImagesDeepInABodyTakeLittleMemory(t *testing.T) {
	const deep, images = 120, 9_000
	parts := strings.Repeat(`{"type":"image"},`, images-1) + `{"type":"image"}`
	body := `{"messages":[{"role":"user","content":[` + strings.Repeat(`{"type":"tool_result","content":[`, deep) + parts + strings.Repeat(`]}`, deep) + `]}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := mustScan(t, AnthropicMessages, body)
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(16<<20); got > most {
		t.Errorf("%d bytes were taken for a body of %d; want at most %d", got, len(body), most)
	}
	want := "messages[0].content[0]" + strings.Repeat(".content[0]", deep-1) + ".content[8999]"
	if got := r.ID(images - 1); got != want {
		t.Errorf("the last image is at %s; want %s", got, want)
	}
}
