// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/inspect"
	"github.com/visionoperator/vision-operator/runtime/message"
	"github.com/visionoperator/vision-operator/runtime/preflight"
)

// both are what Images and Heads tell of one image's data in a chat.
func both(t *testing.T, data string) (whole, head preflight.Image) {
	t.Helper()
	body := fmt.Appendf(nil, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`, data)
	scanned, err := message.Scan(message.OpenAIChat, body)
	if err != nil {
		t.Fatal(err)
	}
	images, err := inspect.Images(t.Context(), scanned, body)
	if err != nil {
		t.Fatal(err)
	}
	heads, err := inspect.Heads(t.Context(), scanned, body)
	if err != nil {
		t.Fatal(err)
	}
	return images[0], heads[0]
}

func TestHeadsTellWhatImagesDoButForTheDigest(t *testing.T) {
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x00\x80\x08\x00\x00\x00\x00")
	for _, size := range []int{len(png), 1000, 64 << 10, 64<<10 + 1, 64<<10 + 2, 64<<10 + 3, 300_000} {
		data := append(append([]byte{}, png...), make([]byte, size-len(png))...)
		whole, head := both(t, base64.StdEncoding.EncodeToString(data))
		if whole.SHA256 == "" || size > 64<<10 && head.SHA256 != "" {
			t.Errorf("%d bytes: digests %q and %q", size, whole.SHA256, head.SHA256)
		}
		whole.SHA256, head.SHA256 = "", ""
		if diff := cmp.Diff(whole, head); diff != "" {
			t.Errorf("%d bytes (-Images +Heads):\n%s", size, diff)
		}
	}
}

func TestHeadsReadDataInOtherFormsWhole(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(make([]byte, 200_000))
	for name, other := range map[string]string{"with an escape": `\/` + data[2:], "without padding": data[:len(data)-2]} {
		if whole, head := both(t, other); whole.SHA256 != head.SHA256 || whole.Bytes != head.Bytes {
			t.Errorf("%s: %q of %d bytes, want %q of %d", name, head.SHA256, head.Bytes, whole.SHA256, whole.Bytes)
		}
	}
}

func TestHeadsNoticeDamageAtTheBeginning(t *testing.T) {
	data := []byte(base64.StdEncoding.EncodeToString(make([]byte, 200_002)))
	data[100] = '*'
	if _, head := both(t, string(data)); head.Bad == nil || head.Bad.Reason != "BadBase64" {
		t.Errorf("the head is told as %+v", head)
	}
}
