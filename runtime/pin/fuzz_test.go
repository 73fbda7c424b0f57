// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/visionoperator/vision-operator/runtime/pin"
)

func FuzzRecord(f *testing.F) {
	f.Add(pin.Record("k", square))
	f.Add(pin.Record("k", pin.Pin{Reason: "NotFound"}))
	f.Add(append(pin.TextRecord("k", "some text"), pin.Record("k", square)...))
	f.Add([]byte{0, 0, 0, 33})
	f.Fuzz(func(t *testing.T, data []byte) {
		if again, ok := pin.Reencode(data); ok && !bytes.Equal(again, data) {
			t.Errorf("%x is read as %x", data, again)
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(pin.Magic))
	f.Add(append(append([]byte(pin.Magic), pin.Record("k", square)...), 1, 2, 3))
	f.Add(append(append([]byte(pin.Magic), pin.TextRecord("k", "text")...), pin.Record("k", square)[:40]...))
	f.Add(make([]byte, 100))
	f.Fuzz(func(t *testing.T, file []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "journal"), file, 0o600); err != nil {
			t.Fatal(err)
		}
		pins := func() int {
			s, err := pin.Open(pin.Options{Dir: dir, MaxPins: 10, MaxDiskBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.Put("new", square)
			if p, ok := s.Get("new"); !ok || p != square {
				t.Errorf("a new pin is %+v", p)
			}
			return s.Len()
		}
		if first := pins(); first > 10 || pins() != first {
			t.Errorf("there are %d pins, and another number after a restart", first)
		}
	})
}
