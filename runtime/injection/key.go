// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package injection

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"strings"

	"github.com/visionoperator/vision-operator/runtime/message"
)

// shortID is the fewest bytes of an id that may be one of its kind: Mistral's
// have 9 random characters.
const shortID = 9

// longestCount is the most digits that a count has; longer numbers are times and
// random ones. longestWords is the longest id that is words and one count: vendors'
// random ids are longer, and may have one run of digits as well.
const (
	longestCount = 8
	longestWords = 20
)

// weakID reports whether another conversation may well have the same id: there is
// none, it is short, or it is a count, as in tool_call_1 and functions.view_image:0.
func weakID(id, tool string) bool {
	if tool != "" {
		id = strings.TrimPrefix(id, "functions.")
		id = strings.Replace(id, tool, "", 1)
	}
	return len(id) < shortID || counts(id)
}

// counts reports whether an id is words and counts, each behind a separator, or
// words that end in their one count.
func counts(id string) bool {
	runs, mixed, end := 0, false, 0
	for i := 0; i < len(id); {
		start := i
		for i < len(id) && '0' <= id[i] && id[i] <= '9' {
			i++
		}
		switch digits := i - start; {
		case digits == 0:
			i++
		case digits > longestCount:
			return false
		default:
			runs, end = runs+1, i
			mixed = mixed || start > 0 && isLetter(id[start-1]) || i < len(id) && isLetter(id[i])
		}
	}
	return !mixed || runs == 1 && end == len(id) && len(id) <= longestWords
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// digest hashes fields, each with its length, so that no two lists of fields are alike.
type digest struct{ hash.Hash }

func newDigest(fields ...string) digest {
	d := digest{sha256.New()}
	for _, field := range fields {
		d.add(field)
	}
	return d
}

func (d digest) add(field string) {
	var long [8]byte
	binary.BigEndian.PutUint64(long[:], uint64(len(field)))
	d.Write(long[:])
	d.Write([]byte(field))
}

func (d digest) number(n int) {
	var word [8]byte
	binary.BigEndian.PutUint64(word[:], uint64(n))
	d.Write(word[:])
}

func (d digest) hex() string { return hex.EncodeToString(d.Sum(nil)) }

// keys makes the keys of one request's sights.
type keys struct {
	r    *message.Request
	body []byte
	// seen counts what was the same before: calls by name and arguments, texts.
	seen  map[string]int
	human string // the digest of the first human text, "" before it is needed
}

// named is, beside the kinds of sights, what ids of calls are counted as.
const named Kind = "named"

// ordinal counts how often it was asked for the same thing, from 0.
func (k *keys) ordinal(kind Kind, thing string) int {
	if k.seen == nil {
		k.seen = map[string]int{}
	}
	n := k.seen[string(kind)+thing]
	k.seen[string(kind)+thing] = n + 1
	return n
}

// conversation is a digest of the first thing that a human said, by that turn.
func (k *keys) conversation(turn int) string {
	if len(k.r.Texts) == 0 || k.r.Texts[0].Turn > turn {
		return ""
	}
	if k.human == "" {
		value := k.r.Texts[0].Value
		k.human = newDigest(string(k.body[value.Start:value.End])).hex()
	}
	return k.human
}

// called is the key of a call, the ordinal-th of the same name and arguments. One
// that even has the id of another before it is not taken for that one.
func (k *keys) called(c *call, result *message.Result, ordinal int) (key string, weak bool) {
	d := newDigest(string(Called), c.name, c.id, string(c.digest[:]))
	again := k.ordinal(named, c.name+string(c.digest[:])+c.id)
	if weak = weakID(c.id, c.name); weak {
		d.add(k.conversation(result.Turn))
		d.number(ordinal)
		d.add(said(k.r, k.body, result))
	} else if again > 0 {
		d.number(again)
	}
	return d.hex(), weak
}

// markdown is the key of the occurrence-th image of a text, which is the
// ordinal-th of its kind. It is always weak: people say the same things.
func (k *keys) markdown(text, path string, turn, occurrence, ordinal int) string {
	d := newDigest(string(Markdown), newDigest(text).hex(), path)
	d.number(occurrence)
	d.add(k.conversation(turn))
	d.number(ordinal)
	return d.hex()
}

// answer is the JSON of what a result says: its content or, in Gemini, the whole
// of the function's response.
func answer(r *message.Request, body []byte, result *message.Result) []byte {
	span := result.Content
	if r.Dialect == message.GeminiContents {
		span = result.Object
	}
	return body[span.Start:span.End]
}

// said is the text of a result, without what may stand beside it in one request
// and not in the next, such as a mark for the vendor's cache.
func said(r *message.Request, body []byte, result *message.Result) string {
	raw := answer(r, body, result)
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	texts := make([]string, len(parts))
	for i := range parts {
		texts[i] = parts[i].Text
	}
	return strings.Join(texts, "\n")
}
