// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

const (
	// MaxJSONBytes is the largest JSON body, whatever a policy says: 1 MiB, many
	// times what a path and a prompt need, and little enough to be read whole.
	MaxJSONBytes = 1 << 20
	// MaxJSONValues is the most values that a JSON body may hold: a thousand times
	// what a call has, and little enough to be decoded, which takes up to half a
	// KiB for each.
	MaxJSONValues = 4096
	// DefaultImageBytes is the largest image where no policy says otherwise:
	// 20 MiB, as a VisionPolicy's own default.
	DefaultImageBytes = 20 << 20
	// DefaultModelBytes is the largest model request where no policy says
	// otherwise: 64 MiB, as a VisionPolicy's own default.
	DefaultModelBytes = 64 << 20
)

// Limit is the largest body now, in bytes. It is asked for every request,
// because the policy can change. Nil, and an answer of 0, say nothing.
type Limit func() int64

// Body is what one path takes as the body of a request: JSON, Image, Model, Messages or Proxied.
type Body struct {
	image bool // of an image's type; JSON otherwise
	// streamed bodies are left to the handler to read, up to what limit says or,
	// where it says nothing, byDefault.
	streamed  bool
	byDefault int64
	limit     Limit
	hint      string // to who sends too much
	// passed bodies are the handler's to judge by type and encoding.
	passed bool
	refuse func(http.ResponseWriter, *http.Request, *fault.Fault)
}

// JSON takes application/json of at most MaxJSONBytes, or fewer where limit says
// so, and MaxJSONValues. The body is read whole before the path's handler is called.
func JSON(limit Limit) *Body {
	return &Body{limit: limit, hint: "Send the image's path, not its bytes; POST /v1/images takes bytes."}
}

// Image takes image/* and application/octet-stream, as many bytes as limit says,
// or DefaultImageBytes where it says nothing. The body is not read ahead: the
// handler reads it as it comes, and a read beyond the limit fails with the
// *fault.Fault to answer with.
func Image(limit Limit) *Body {
	return &Body{
		image: true, streamed: true, byDefault: DefaultImageBytes, limit: limit,
		hint: "Send a smaller image, or one compressed more.",
	}
}

// Model takes application/json of as many bytes as limit says, or
// DefaultModelBytes where it says nothing: a model request with its images. As
// with Image, the handler reads it as it comes.
func Model(limit Limit) *Body {
	return &Body{
		streamed: true, byDefault: DefaultModelBytes, limit: limit,
		hint: "Review a request of that size in the facts form, which leaves image data out, or refuse it.",
	}
}

// Messages takes what Model does, of who owns a conversation and asks about it.
func Messages(limit Limit) *Body {
	b := Model(limit)
	b.hint = "Send fewer messages, or smaller images."
	return b
}

// Proxied takes what is sent on to somebody else: as many bytes as limit says, or
// DefaultModelBytes where it says nothing, as they come. The handler judges the
// type, by DeclaredJSON for what is none of an opened path, and undoes encodings.
// It also says how requests are refused.
func Proxied(limit Limit, refuse func(http.ResponseWriter, *http.Request, *fault.Fault)) *Body {
	return &Body{
		passed: true, streamed: true, byDefault: DefaultModelBytes, limit: limit, refuse: refuse,
		hint: "Shorten the conversation, or send smaller images.",
	}
}

// DeclaredJSON refuses a request whose body is not declared as JSON, in whatever charset.
func DeclaredJSON(r *http.Request) *fault.Fault {
	if declared := r.Header["Content-Type"]; len(declared) == 1 && declared[0] == "application/json" {
		return nil
	}
	return (&Body{}).checkMediaType(r)
}

// Handler lets only requests through to next whose body is as b says.
func (b *Body) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := b.check(r); f != nil {
			b.Refuse(w, r, f)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Refuse words a refusal as those of the path are.
func (b *Body) Refuse(w http.ResponseWriter, r *http.Request, f *fault.Fault) {
	refusing(b.refuse)(w, r, f)
}

// check judges type and length, and sees to it that no handler can read more
// than the limit.
func (b *Body) check(r *http.Request) *fault.Fault {
	if !b.passed {
		if f := b.checkMediaType(r); f != nil {
			return f
		}
		if f := checkEncoding(r); f != nil {
			return f
		}
	}
	if r.ContentLength == 0 {
		return nil
	}
	limit := b.most()
	if r.ContentLength > limit {
		drain(r, r.Body)
		return b.tooLarge(limit, fmt.Sprintf("%d bytes", r.ContentLength)).With("body_bytes", r.ContentLength)
	}
	if b.streamed {
		r.Body = &limited{ReadCloser: r.Body, request: r, left: limit, over: b.tooLarge(limit, "more")}
		return nil
	}
	return b.readWhole(r, limit)
}

// most is the largest body now.
func (b *Body) most() int64 {
	var said int64
	if b.limit != nil {
		said = max(b.limit(), 0)
	}
	switch {
	case b.streamed && said == 0:
		return b.byDefault
	case b.streamed:
		return said
	case said == 0:
		return MaxJSONBytes
	}
	return min(said, MaxJSONBytes)
}

// checkMediaType refuses a body that is not declared as what the path takes:
// the types that a page may send without asking first (text/plain, forms) are
// taken nowhere.
func (b *Body) checkMediaType(r *http.Request) *fault.Fault {
	if r.ContentLength == 0 && r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
		return nil
	}
	if declared := r.Header.Values("Content-Type"); len(declared) == 1 {
		if media, _, err := mime.ParseMediaType(declared[0]); err == nil && b.takes(media) {
			return nil
		}
	}
	wanted := "application/json"
	if b.image {
		wanted = "the image's type, such as image/png, or application/octet-stream"
	}
	f := fault.New(fault.InvalidToolInput, "UnsupportedMediaType", "the body must be declared as Content-Type: %s", wanted)
	f.HTTPStatus = http.StatusUnsupportedMediaType
	return f
}

// checkEncoding refuses a compressed body, which nobody here unpacks: what it
// holds would be judged by bytes that say something else.
func checkEncoding(r *http.Request) *fault.Fault {
	for _, coding := range r.Header.Values("Content-Encoding") {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			f := fault.New(fault.InvalidToolInput, "UnsupportedEncoding", "the body must not be compressed").
				Hint("Send it without Content-Encoding.")
			f.HTTPStatus = http.StatusUnsupportedMediaType
			return f
		}
	}
	return nil
}

// takes says whether a media type, in lower case, is one of b's.
func (b *Body) takes(media string) bool {
	if b.image {
		return media == "application/octet-stream" || strings.HasPrefix(media, "image/")
	}
	return media == "application/json"
}

// readWhole reads the body and puts it back, so that all handlers refuse a cut
// one alike.
func (b *Body) readWhole(r *http.Request, limit int64) *fault.Fault {
	data, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return Unreadable(err)
	}
	if int64(len(data)) > limit {
		drain(r, r.Body)
		return b.tooLarge(limit, "more")
	}
	if sprawls(data) {
		return fault.New(fault.InvalidToolInput, "BodySprawling", "the JSON holds more than %d values", MaxJSONValues).
			Hint("Send the arguments of one call, and little beside them.")
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	r.ContentLength = int64(len(data))
	return nil
}

// sprawls counts what begins or parts values, without decoding them. What is no
// JSON is its decoder's to refuse.
func sprawls(data []byte) bool {
	values, text := 0, false
	for i := 0; i < len(data) && values <= MaxJSONValues; i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++ // what is escaped ends no text
		case c == '"':
			text = !text
		case !text && (c == ',' || c == '[' || c == '{'):
			values++
		}
	}
	return values > MaxJSONValues
}

// limited is a body that may be read up to a limit.
type limited struct {
	io.ReadCloser
	request *http.Request
	left    int64
	over    *fault.Fault // what a read beyond the limit is answered with
	passed  bool         // the limit was passed
}

// Read reads up to the limit. What comes after it is thrown away, so that the
// sender gets to hear why, and the error is the refusal.
func (l *limited) Read(p []byte) (int, error) {
	switch {
	case l.passed:
		return 0, l.over
	case len(p) == 0:
		return 0, nil
	case l.left > 0:
		n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
		l.left -= int64(n)
		return n, err
	}
	var beyond [1]byte
	n, err := io.ReadFull(l.ReadCloser, beyond[:])
	if n == 0 {
		return 0, err // io.EOF: the body has just the limit
	}
	l.passed = true
	drain(l.request, l.ReadCloser)
	return 0, l.over
}

// Unreadable is the refusal of a body that broke off, or that did not come in
// the time that the listener gives it.
func Unreadable(err error) *fault.Fault {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		f := fault.New(fault.InvalidToolInput, "BodyTimeout", "the body did not come in time").Because(err).
			Hint("Call again, and send the whole body at once.")
		f.HTTPStatus, f.Retryable = http.StatusRequestTimeout, true
		return f
	}
	return fault.New(fault.InvalidToolInput, "BodyUnreadable", "the body ended before it was complete").Because(err)
}

// drainBytes is how much of a refused body is read and thrown away: a client
// that is cut off while it sends sees a broken connection in place of the
// refusal. 64 MiB is more than a caller's likely mistake, an image in base64.
const drainBytes = 64 << 20

// Drain throws away what is left of the body of a request that is refused before
// its body was read, so that its sender gets to hear why.
func Drain(r *http.Request) { drain(r, r.Body) }

// drain throws away what is left of a request's body, up to drainBytes. A client
// that announced a body too long and waits to be asked for it is never asked.
func drain(r *http.Request, body io.Reader) {
	if Waits(r) {
		return
	}
	_, _ = io.CopyN(io.Discard, body, drainBytes)
}

// Waits reports whether a client announced its body and sends it only when it
// is asked to, which the first read does.
func Waits(r *http.Request) bool {
	return r.ContentLength > 0 && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// tooLarge is a body over the limit; size says by how much, as far as known.
func (b *Body) tooLarge(limit int64, size string) *fault.Fault {
	f := fault.New(fault.BudgetExceeded, "BodyTooLarge", "the body may have %d bytes and has %s", limit, size).
		With("max_body_bytes", limit)
	f.HTTPStatus = http.StatusRequestEntityTooLarge
	return f.Hint("%s", b.hint)
}
