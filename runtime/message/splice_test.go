// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func text1(s string) []Segment { return []Segment{{Text: []byte(s)}} }

func TestSpliceEditsInTheOrderOfTheBytes(t *testing.T) {
	image := Segment{Data: strings.NewReader("\xfb\xff\xbf!"), Size: 4}
	for _, c := range []struct {
		name   string
		edits  []Edit
		want   string
		ranges []Range
	}{
		{"nothing to do", nil, "0123456789", nil},
		{"an insertion", []Edit{{Span{3, 3}, text1("abc")}}, "012abc3456789", []Range{{3, 0, 3}}},
		{"insertions at both ends", []Edit{{Span{10, 10}, text1(">")}, {Span{0, 0}, text1("<")}}, "<0123456789>", []Range{{0, 0, 1}, {10, 0, 1}}},
		{"a replacement", []Edit{{Span{2, 5}, text1("x")}}, "01x56789", []Range{{2, 3, 1}}},
		{"a deletion", []Edit{{Span{0, 9}, nil}}, "9", []Range{{0, 9, 0}}},
		{"edits out of order", []Edit{{Span{8, 9}, text1("b")}, {Span{1, 1}, text1("a")}}, "0a1234567b9", []Range{{1, 0, 1}, {8, 1, 1}}},
		{"insertions at one byte, in their order and before what begins there", []Edit{{Span{2, 4}, text1("-")}, {Span{2, 2}, text1("a")}, {Span{2, 2}, text1("b")}}, "01ab-456789", []Range{{2, 2, 3}}},
		{"an insertion right behind a replacement", []Edit{{Span{4, 4}, text1("b")}, {Span{2, 4}, text1("a")}}, "01ab456789", []Range{{2, 2, 2}}},
		{"data between texts", []Edit{{Span{5, 5}, []Segment{{Text: []byte("<")}, image, {Text: []byte(">")}}}}, "01234<+/+/IQ==>56789", []Range{{5, 0, 10}}},
		{"data alone, twice", []Edit{{Span{0, 10}, []Segment{image, image}}}, "+/+/IQ==+/+/IQ==", []Range{{0, 10, 16}}},
		{"what stands there already", []Edit{{Span{1, 3}, text1("12")}, {Span{4, 4}, nil}, {Span{5, 5}, text1("")}}, "0123456789", nil},
		{"no data", []Edit{{Span{1, 1}, []Segment{{Data: strings.NewReader("")}}}}, "0123456789", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.edits)
			s, err := Splice([]byte("0123456789"), c.edits)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(s.Reader()); string(got) != c.want || err != nil || s.Len() != int64(len(c.want)) {
				t.Errorf("%q of %d bytes, %v; want %q", got, s.Len(), err, c.want)
			}
			if diff := cmp.Diff(c.ranges, s.Ranges()); diff != "" && len(c.ranges) > 0 {
				t.Error(diff)
			}
			if s.Changed() != (c.ranges != nil) {
				t.Errorf("changed is %v", s.Changed())
			}
			for i := range before {
				if before[i].Span != c.edits[i].Span {
					t.Error("the caller's edits were sorted")
				}
			}
		})
	}
}

func TestSpliceRefusesEditsThatCannotBe(t *testing.T) {
	data := strings.NewReader("x")
	for name, edits := range map[string][]Edit{
		"beyond the end":                {{Span{3, 11}, nil}},
		"before the beginning":          {{Span{-1, 2}, nil}},
		"backwards":                     {{Span{3, 2}, nil}},
		"two that overlap":              {{Span{1, 4}, nil}, {Span{3, 5}, nil}},
		"an insertion into another one": {{Span{1, 4}, text1("a")}, {Span{2, 2}, text1("b")}},
		"the same span twice":           {{Span{1, 4}, text1("a")}, {Span{1, 4}, text1("b")}},
		"data of a negative size":       {{Span{1, 1}, []Segment{{Data: data, Size: -1}}}},
		"data of a size beyond all":     {{Span{1, 1}, []Segment{{Data: data, Size: 1 << 62}}}},
		"a size without data":           {{Span{1, 1}, []Segment{{Size: 1}}}},
		"text and data at once":         {{Span{1, 1}, []Segment{{Text: []byte("a"), Data: data, Size: 1}}}},
	} {
		if s, err := Splice([]byte("0123456789"), edits); reasonOf(err) != BadEdit || s != nil || !strings.HasPrefix(err.Error(), "splicing the request") {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// broken is data that fails.
type broken struct{ err error }

func (b broken) ReadAt(p []byte, at int64) (int, error) { return 0, b.err }

func TestDataThatEndsTooSoonIsAnErrorAndNeverPadded(t *testing.T) {
	other := errors.New("the disk is gone")
	for _, c := range []struct {
		name  string
		data  io.ReaderAt
		size  int64
		cause error
	}{
		{"a byte short", strings.NewReader("abcde"), 6, io.ErrUnexpectedEOF},
		{"a chunk short", bytes.NewReader(make([]byte, rawChunk)), 2 * rawChunk, io.ErrUnexpectedEOF},
		{"nothing there", strings.NewReader(""), 1, io.ErrUnexpectedEOF},
		{"another failure", broken{other}, 5, other},
	} {
		s, err := Splice([]byte("<>"), []Edit{{Span{1, 1}, []Segment{{Data: c.data, Size: c.size}}}})
		if err != nil {
			t.Fatal(err)
		}
		for how, read := range map[string]func() (int64, error){
			"Read":    func() (int64, error) { b, err := io.ReadAll(onlyReader{s.Reader()}); return int64(len(b)), err },
			"WriteTo": func() (int64, error) { return io.Copy(io.Discard, s.Reader()) },
			"by byte": func() (int64, error) {
				b, err := io.ReadAll(iotest.OneByteReader(s.Reader()))
				return int64(len(b)), err
			},
		} {
			n, err := read()
			if reasonOf(err) != ShortData || !errors.Is(err, c.cause) || n >= s.Len() || strings.Contains(err.Error(), "disk") {
				t.Errorf("%s, %s: %d of %d bytes, %v", c.name, how, n, s.Len(), err)
			}
		}
	}
}

// eager is data that tells its end along with its last byte, as io.ReaderAt may.
type eager struct{ *strings.Reader }

func (e eager) ReadAt(p []byte, at int64) (int, error) {
	n, err := e.Reader.ReadAt(p, at)
	if at+int64(n) == e.Size() {
		err = io.EOF
	}
	return n, err
}

func TestAnEndThatComesWithTheLastByteIsNoError(t *testing.T) {
	s, err := Splice([]byte("<>"), []Edit{{Span{1, 1}, []Segment{{Data: eager{strings.NewReader("abc")}, Size: 3}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s.Reader()); string(got) != "<YWJj>" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// onlyReader hides WriteTo.
type onlyReader struct{ io.Reader }

func TestASplicedBodyIsTheSameHoweverItIsRead(t *testing.T) {
	raw := make([]byte, 3*rawChunk+7)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range raw {
		raw[i] = byte(rng.Uint32())
	}
	body := []byte(`{"messages":[]}`)
	for _, size := range []int{0, 1, 2, 3, 4, 100, rawChunk - 1, rawChunk, rawChunk + 1, len(raw)} {
		s, err := Splice(body, []Edit{{Span{13, 13}, []Segment{{Text: []byte(`"`)}, {Data: bytes.NewReader(raw), Size: int64(size)}, {Text: []byte(`"`)}}}})
		if err != nil {
			t.Fatal(err)
		}
		want := `{"messages":["` + base64.StdEncoding.EncodeToString(raw[:size]) + `"]}`
		if s.Len() != int64(len(want)) {
			t.Errorf("%d bytes of data: %d bytes, want %d", size, s.Len(), len(want))
		}
		if err := iotest.TestReader(s.Reader(), []byte(want)); err != nil {
			t.Errorf("%d bytes of data: %v", size, err)
		}
		for _, piece := range []int{1, 2, 3, 5, 4097} {
			var got bytes.Buffer
			r, buf := s.Reader(), make([]byte, piece)
			for {
				n, err := r.Read(buf)
				if got.Write(buf[:n]); err != nil {
					break
				}
				if n == 0 {
					t.Fatal("nothing was read, and no error")
				}
			}
			if got.String() != want {
				t.Errorf("%d bytes of data by %d: %d bytes", size, piece, got.Len())
			}
		}
		var got bytes.Buffer
		r := s.Reader()
		begun := make([]byte, 15)
		if _, err := io.ReadFull(r, begun); err != nil {
			t.Fatal(err)
		}
		if n, err := r.(io.WriterTo).WriteTo(&got); err != nil || n != int64(len(want)-15) || string(begun)+got.String() != want {
			t.Errorf("%d bytes of data by WriteTo after Read: %d, %v", size, n, err)
		}
	}
}

func TestReadingASplicedBodyHoldsNothingTwice(t *testing.T) {
	body, data := bytes.Repeat([]byte(" "), 1<<20), bytes.NewReader(make([]byte, 4<<20))
	allocated := func(edits ...Edit) float64 {
		return testing.AllocsPerRun(10, func() {
			s, err := Splice(body, edits)
			if err != nil {
				t.Error(err)
			}
			if _, err := io.Copy(io.Discard, s.Reader()); err != nil {
				t.Error(err)
			}
		})
	}
	if none, one := allocated(), allocated(Edit{Span{9, 9}, []Segment{{Data: data, Size: 4 << 20}}}); none > 5 || one > 12 {
		t.Errorf("%v allocations without edits, %v with data of 4 MiB", none, one)
	}
}

// undone takes the edits of a body out again by its ranges alone.
func undone(original, spliced []byte, ranges []Range) []byte {
	var out []byte
	from, to := int64(0), int64(0) // in original, in spliced
	for _, r := range ranges {
		same := r.Offset - from
		out = append(out, spliced[to:to+same]...)
		out = append(out, original[r.Offset:r.Offset+r.Deleted]...)
		from, to = r.Offset+r.Deleted, to+same+r.Inserted
	}
	return append(out, spliced[to:]...)
}

// FuzzSplice makes edits of any numbers, and holds the result against one that is
// put together at once, and against the body after its ranges are taken out.
func FuzzSplice(f *testing.F) {
	f.Add([]byte("0123456789"), []byte{3, 0, 2, 1, 0, 5, 1, 4, 200, 2})
	f.Add([]byte(`{"model":"m"}`), []byte{9, 3, 3, 0})
	f.Add([]byte(""), []byte{0, 0, 9, 1, 0, 0, 9, 2})
	f.Fuzz(func(t *testing.T, body, plan []byte) {
		var edits []Edit
		var want []byte
		at, done := 0, 0
		for ; len(plan) >= 4 && at <= len(body); plan = plan[4:] {
			start := min(at+int(plan[0]), len(body))
			end := min(start+int(plan[1]), len(body))
			put := bytes.Repeat([]byte{plan[2], 'x'}, int(plan[2]))
			e := Edit{Span: Span{start, end}}
			want = append(want, body[done:start]...)
			if plan[3]%2 == 0 {
				e.Segments = text1(string(put))
				want = append(want, put...)
			} else {
				size := max(0, len(put)-int(plan[3]%3))
				e.Segments = []Segment{{Data: bytes.NewReader(put), Size: int64(size)}, {Text: []byte("|")}}
				want = append(want, base64.StdEncoding.EncodeToString(put[:size])+"|"...)
			}
			edits = append(edits, e)
			at, done = end, end
			if start == end {
				at++ // what is inserted at one byte has an order of its own, which a shuffle would change
			}
		}
		want = append(want, body[done:]...)
		rand.New(rand.NewPCG(1, uint64(len(body)))).Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
		s, err := Splice(body, edits)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(s.Reader())
		if err != nil || !bytes.Equal(got, want) || s.Len() != int64(len(want)) {
			t.Fatalf("%q of %d bytes, %v; want %q", got, s.Len(), err, want)
		}
		if !bytes.Equal(undone(body, got, s.Ranges()), body) || s.Changed() != (len(s.Ranges()) > 0) || !s.Changed() && !bytes.Equal(got, body) {
			t.Fatalf("%v do not lead back from %q to %q", s.Ranges(), got, body)
		}
		for i, r := range s.Ranges() {
			if i > 0 && r.Offset <= s.Ranges()[i-1].Offset+s.Ranges()[i-1].Deleted {
				t.Fatalf("%v touch", s.Ranges())
			}
		}
	})
}
