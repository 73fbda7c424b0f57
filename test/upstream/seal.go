// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// heard is what a request says, as far as all dialects have it in common.
type heard struct {
	model    string
	stream   bool
	framed   bool // Gemini: the stream is of events
	counting bool
	opening  string    // the human's first text
	messages []message // all of them
	turns    int       // how often the model has spoken
	seals    []seal    // the signatures that are replayed
	images   []Image
	base     []byte         // what stands before the messages, such as the system's text
	idPrefix string         // of the ids of calls
	idSize   int            // how many characters follow
	nameless bool           // calls have no ids
	unsigned bool           // no reasoning is asked for
	chained  bool           // a signature also holds for the one before it
	encrypts bool           // Responses: reasoning is sent with its signature
	pause    time.Duration  // before each event of a stream
	remember func(r *reply) // keeps the conversation
}

// message is one message of a request.
type message struct {
	raw []byte // as it came
	sum []byte // of its canonical form
	// step is how often the model has spoken, with this message.
	step int
}

// seal is a signature that a request replays.
type seal struct {
	place     string
	signature string
	before    int    // how many messages stand before what is signed
	want      []byte // what the prefix was, where the server itself remembers it
	dropped   bool   // the request asks to drop what does not fit
}

// canonical is a message without what does not count: the order of members, white
// space, signatures, reasoning, and marks for caches.
func canonical(raw []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return raw
	}
	data, err := json.Marshal(stripped(v))
	if err != nil {
		return raw
	}
	return data
}

func stripped(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		delete(v, "thoughtSignature")
		delete(v, "thought_signature")
		for k, member := range v {
			v[k] = stripped(member)
		}
	case []any:
		kept := v[:0]
		for _, member := range v {
			if o, ok := member.(map[string]any); ok && (o["type"] == "thinking" || o["type"] == "redacted_thinking") {
				continue
			}
			kept = append(kept, stripped(member))
		}
		return kept
	}
	return v
}

// hold adds a message; one that is reasoning alone does not count.
func (h *heard) hold(raw []byte, counts bool) {
	m := message{raw: raw, step: h.turns}
	if counts {
		sum := sha256.Sum256(canonical(raw))
		m.sum = sum[:]
	}
	h.messages = append(h.messages, m)
}

// prefix is the code of what stands before the message with that index.
func (h *heard) prefix(key []byte, before int) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strconv.Itoa(len(h.base)) + ":"))
	mac.Write(h.base)
	for _, m := range h.messages[:before] {
		mac.Write(m.sum)
	}
	return mac.Sum(nil)
}

// codeSize is the size of a code. A signature is the code of the prefix, and then that
// of the signature before it.
const codeSize = sha256.Size

// sign makes the signature of what is said next.
func (s *Server) sign(h *heard, before []byte) string {
	var last []byte
	if h.chained && len(h.seals) > 0 {
		last, _ = base64.StdEncoding.DecodeString(h.seals[len(h.seals)-1].signature)
	}
	code := append(append([]byte(nil), before...), last[:min(len(last), codeSize)]...)
	return base64.StdEncoding.EncodeToString(code)
}

// signed says whether a signature is ours and holds for what stands before it, the
// signature before it included: that one may be missing only when all before it are.
func (s *Server) signed(h *heard, sealed seal, last string) bool {
	code, err := base64.StdEncoding.DecodeString(sealed.signature)
	if err != nil || len(code) < codeSize || !hmac.Equal(code[:codeSize], h.prefix(s.key, sealed.before)) {
		return false
	}
	if !h.chained || last == "" {
		return true
	}
	previous, err := base64.StdEncoding.DecodeString(last)
	return err == nil && len(previous) >= codeSize && bytes.Equal(code[codeSize:], previous[:codeSize])
}

// callID makes up an id.
func (h *heard) callID(key []byte, serial uint64, n int) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("call " + strconv.FormatUint(serial, 10) + " " + strconv.Itoa(n)))
	return h.idPrefix + ("1" + hex.EncodeToString(mac.Sum(nil)))[:h.idSize]
}
