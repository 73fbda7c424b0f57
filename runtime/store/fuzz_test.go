// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/store"
)

// FuzzDecode gives any bytes as the file of an entry: what is taken for one is
// byte for byte what would be written for that value at that time.
func FuzzDecode(f *testing.F) {
	for _, data := range []string{"", "a", "some value"} {
		whole := append(store.Header("a", start, []byte(data)), data...)
		f.Add("a", whole)
		f.Add("b", whole)
		f.Add("a", whole[:len(whole)-1])
		f.Add("a", append(whole, 0))
	}
	f.Add("a", []byte("vision-store/1\r\n"))
	f.Add("a", bytes.Repeat([]byte{0xff}, 200))
	f.Fuzz(func(t *testing.T, name string, file []byte) {
		data, stored, ok := store.Decode(name, file)
		if !ok {
			if data != nil || !stored.IsZero() {
				t.Error("a refusal carries a value")
			}
			return
		}
		if again := append(store.Header(name, stored, data), data...); !bytes.Equal(again, file) {
			t.Errorf("%q is taken for %q", file, again)
		}
	})
}
