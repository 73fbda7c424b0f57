// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/visionoperator/vision-operator/runtime/provider/exchange"
	"github.com/visionoperator/vision-operator/runtime/provider/exchange/exchangetest"
)

// message is a request whose texts come before the image and whose schema comes after.
type message struct {
	Text   string          `json:"text"`
	Image  slot            `json:"image"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

func TestTheImageIsEncodedWhileItIsRead(t *testing.T) {
	at := slot{URL: "data:image/png;base64,"}
	for _, size := range []int{0, 1, 2, 3, 3071, 3072, 3073, 100_000} {
		image := make([]byte, size)
		for i := range image {
			image[i] = byte(i * 7)
		}
		body, err := exchange.Encode(message{Text: `{"url":"data:image/png;base64,"}`, Image: at, Schema: json.RawMessage(`{"url":"data:image/png;base64,"}`)}, at, image)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"text":"{\"url\":\"data:image/png;base64,\"}","image":{"url":"data:image/png;base64,` +
			base64.StdEncoding.EncodeToString(image) + `"},"schema":{"url":"data:image/png;base64,"}}`
		for name, read := range map[string]io.Reader{
			"whole": body.Reader(), "again": body.Reader(),
			"byte by byte": iotest.OneByteReader(body.Reader()), "by halves": iotest.HalfReader(body.Reader()),
		} {
			if got, err := io.ReadAll(read); err != nil || string(got) != want {
				t.Errorf("size %d, %s: %d bytes, want %d; %v", size, name, len(got), len(want), err)
			}
		}
		if body.Size() != int64(len(want)) {
			t.Errorf("size %d: Size is %d, want %d", size, body.Size(), len(want))
		}
	}
}

func TestReadersOfOneBodyAreIndependent(t *testing.T) {
	body := bodyWith(t, picture)
	first, second := body.Reader(), body.Reader()
	if _, err := io.CopyN(io.Discard, first, 30); err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(second)
	if err != nil || int64(len(whole)) != body.Size() {
		t.Errorf("%d of %d bytes, %v", len(whole), body.Size(), err)
	}
}

func TestAMessageWithoutAPlaceForItsImageIsRefused(t *testing.T) {
	at := slot{URL: "data:image/png;base64,"}
	for name, tc := range map[string]struct{ message, slot any }{
		"no slot":                            {message{Text: "x"}, at},
		"a slot that does not end in a text": {map[string]any{"image": map[string]int{"n": 1}}, map[string]int{"n": 1}},
		"a message that is no JSON":          {math.NaN(), at},
		"a slot that is no JSON":             {message{Image: at}, math.NaN()},
	} {
		if body, err := exchange.Encode(tc.message, tc.slot, nil); err == nil {
			t.Errorf("%s: no error, and a body of %d bytes", name, body.Size())
		}
	}
	if _, err := exchange.Plain(math.NaN()); err == nil {
		t.Error("a plain message that is no JSON: no error")
	}
	if f := exchange.Unwritable(errors.New(key)); f.Reason != "Internal" || f.Retryable || leaks(f.Error()) {
		t.Errorf("fault = %+v", f)
	}
}

func TestAPlainMessageIsItsJSON(t *testing.T) {
	body, err := exchange.Plain(map[string]string{"model": "<see> & 漢"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body.Reader())
	if want := `{"model":"<see> & 漢"}`; err != nil || string(got) != want || body.Size() != int64(len(want)) {
		t.Errorf("%s, %d bytes, %v", got, body.Size(), err)
	}
}

func TestSendingALargeImageMakesNoSecondCopy(t *testing.T) {
	image := make([]byte, 16<<20)
	at := slot{URL: "data:image/png;base64,"}
	client := &http.Client{Transport: exchangetest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		n, err := io.Copy(io.Discard, r.Body)
		if n != r.ContentLength {
			t.Errorf("%d bytes were sent, Content-Length %d", n, r.ContentLength)
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, err
	})}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	body, err := exchange.Encode(message{Image: at}, at, image)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (exchange.Post{Client: client, URL: "http://x.example", Body: body}).Do(context.Background()); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes were allocated to send %d", got, len(image))
	}
}

func TestArraysAreReadUpToABound(t *testing.T) {
	type doc struct {
		List exchange.Array[struct{ N int }] `json:"list"`
	}
	for name, tc := range map[string]struct {
		body string
		want int
		bad  bool
	}{
		"absent":                     {`{}`, 0, false},
		"null":                       {`{"list":null}`, 0, false},
		"empty":                      {`{"list":[ ]}`, 0, false},
		"two, one of them null":      {`{"list":[{"n":1},null]}`, 2, false},
		"more than are looked at":    {`{"list":[` + strings.Repeat(`{"n":1},`, 5000) + `"not even an object"]}`, exchange.MaxElements, false},
		"an object":                  {`{"list":{}}`, 0, true},
		"a text":                     {`{"list":"` + key + `"}`, 0, true},
		"elements of another shape":  {`{"list":["` + key + `"]}`, 0, true},
		"elements that are no JSON":  {`{"list":[{]}`, 0, true},
		"an array that does not end": {`{"list":[{"n":1}`, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			var d doc
			err := exchange.Read([]byte(tc.body), &d, "a list")
			if tc.bad {
				if f := asFault(t, err); f.Reason != "InvalidResponse" || f.Message != "the provider's reply is not a list" {
					t.Errorf("fault = %+v", f)
				}
				return
			}
			if err != nil || len(d.List) != tc.want {
				t.Errorf("%d elements, want %d; %v", len(d.List), tc.want, err)
			}
		})
	}
}

func FuzzEncode(f *testing.F) {
	f.Add("look", "image/png", []byte("x"))
	f.Add(`{"url":"data:image/png;base64,"}`, "image/png", []byte{})
	f.Add("\xff\x00\"</script>\u2028", `";base64,"}`, []byte{0xff})
	f.Fuzz(func(t *testing.T, text, mediaType string, image []byte) {
		at := slot{URL: "data:" + mediaType + ";base64,"}
		body, err := exchange.Encode(message{Text: text, Image: at}, at, image)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(body.Reader())
		if err != nil || int64(len(data)) != body.Size() {
			t.Fatalf("%d bytes of %d, %v", len(data), body.Size(), err)
		}
		var got message
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("the body is no JSON: %v", err)
		}
		encoded, ok := strings.CutPrefix(got.Image.URL, strings.ToValidUTF8("data:"+mediaType+";base64,", "\ufffd"))
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if !ok && !strings.Contains(got.Image.URL, "\ufffd") || ok && (err != nil || !bytes.Equal(decoded, image)) {
			t.Errorf("the image arrived changed: %q", got.Image.URL)
		}
	})
}

func TestCountsNeverFailAReply(t *testing.T) {
	for raw, want := range map[string]exchange.Count{
		`1024`: 1024, `1024.0`: 1024, `null`: 0, `"9"`: 0, `-1`: 0, `1e300`: 0, `{}`: 0, `[1]`: 0, `true`: 0, `2147483648`: 1 << 31,
	} {
		got := struct{ N exchange.Count }{N: 7}
		if err := json.Unmarshal([]byte(`{"n":`+raw+`}`), &got); err != nil || got.N != want {
			t.Errorf("%s: %d, %v", raw, got.N, err)
		}
	}
}

func TestTheRestOfALongArrayTakesNoMemory(t *testing.T) {
	reply := []byte(`{"list":[` + strings.Repeat("{},", 1<<20) + `{}]}`)
	var d struct {
		List exchange.Array[struct{ A, B, C, D string }] `json:"list"`
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := exchange.Read(reply, &d, "a list")
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; err != nil || got > 1<<20 {
		t.Errorf("%d bytes were allocated to read %d (%v)", got, len(reply), err)
	}
}

func TestAnErrorOfAnotherShapeTakesLittleMemory(t *testing.T) {
	long := "[" + strings.Repeat("{},", 1<<20) + "{}]"
	for name, raw := range map[string]string{
		"members": `{"code":` + long + `,"message":"no"}`,
		"details": `{"code":"x","details":[{"reason":` + long + `}]}`,
		"a list":  long,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		bad := exchange.ErrorIn([]byte(raw))
		runtime.ReadMemStats(&after)
		if bad == nil || bad.Reason != "UpstreamStatus" {
			t.Errorf("%s: %v", name, bad)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(8*len(raw)) {
			t.Errorf("%s: %d bytes took %d bytes of memory", name, len(raw), took)
		}
	}
}
