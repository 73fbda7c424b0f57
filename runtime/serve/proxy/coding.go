// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// The encodings of bodies that are undone, by their names of RFC 9110 §8.4.1 and
// RFC 8878.
const (
	codingGzip    = "gzip"
	codingDeflate = "deflate"
	codingZstd    = "zstd"
)

const (
	// zstdWindow is the most that a zstd body may refer back: the 8 MiB that RFC
	// 8878 §3.1.1.1.2 asks of decoders, and that encoders keep to.
	zstdWindow = 8 << 20
	// unpacking is what a compressed body is expected to grow to: JSON with base64
	// in it shrinks to three quarters and less.
	unpacking = 4
)

// codingOf is the encoding of a body by its headers; "" where it has none.
func codingOf(h http.Header) (string, *fault.Fault) {
	coding := ""
	for _, value := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(value, ",") {
			switch name = strings.ToLower(strings.TrimSpace(name)); {
			case name == "" || name == "identity":
				continue
			case name == "x-gzip":
				name = codingGzip
			case name != codingGzip && name != codingDeflate && name != codingZstd, coding != "":
				return "", unknownCoding()
			}
			if coding != "" {
				return "", unknownCoding()
			}
			coding = name
		}
	}
	return coding, nil
}

func unknownCoding() *fault.Fault {
	f := fault.New(fault.InvalidToolInput, "UnsupportedEncoding", "the body's Content-Encoding is not one of gzip, deflate and zstd").
		Hint("Send it in one of these, or without.")
	f.HTTPStatus = http.StatusUnsupportedMediaType
	return f
}

// decode undoes the encoding of what was received, into at most most bytes.
func (x *trip) decode(ctx context.Context, coding string, most int64) ([]byte, error) {
	window := int64(0)
	if coding == codingZstd {
		window = min(zstdWindow, max(x.MaxInFlight/4, 1<<10))
		if err := x.hold(ctx, window); err != nil {
			return nil, err
		}
	}
	from, stop, err := decoder(bytes.NewReader(x.received.wire), coding, window)
	if err != nil {
		return nil, undecodable(coding, err)
	}
	defer stop()
	return x.readUntold(ctx, &decoding{from, coding}, most, min(unpacking*int64(len(x.received.wire)), most))
}

// decoder undoes an encoding. The caller calls stop when it has read enough.
func decoder(from *bytes.Reader, coding string, window int64) (r io.Reader, stop func(), err error) {
	switch coding {
	case codingGzip:
		r, err = gzip.NewReader(from)
	case codingDeflate:
		r, err = inflater(from)
	case codingZstd:
		var z *zstd.Decoder
		z, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
		if err == nil {
			return z, z.Close, nil
		}
	}
	return r, func() {}, err
}

// inflater reads what HTTP calls deflate: zlib's format or, from senders who took
// the name for it, the bare one. Its first two bytes tell (RFC 1950 §2.2).
func inflater(from *bytes.Reader) (io.Reader, error) {
	b := bufio.NewReader(from)
	head, err := b.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		plain, err := zlib.NewReader(b)
		return &whole{plain, b}, err
	}
	return &whole{flate.NewReader(b), b}, nil
}

// whole is a decoder that has nothing behind its end: others might read on there.
type whole struct {
	io.Reader
	from *bufio.Reader
}

// errBehind is what stands behind the end of a body.
var errBehind = errors.New("decoding: there is more behind the end")

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		if _, more := w.from.Peek(1); more == nil {
			return n, errBehind
		}
	}
	return n, err
}

// decoding words the errors of a decoder.
type decoding struct {
	from   io.Reader
	coding string
}

func (d *decoding) Read(p []byte) (int, error) {
	n, err := d.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = undecodable(d.coding, err)
	}
	return n, err
}

func undecodable(coding string, err error) *fault.Fault {
	return fault.New(fault.InvalidToolInput, "BodyUndecodable", "the body is not %s, as its Content-Encoding says", coding).
		Hint("Send the body whole, or without Content-Encoding.").Because(err)
}
