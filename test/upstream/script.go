// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"
	"strconv"
)

// Answer is what the model says at one turn: a text, calls of tools, or both.
type Answer struct {
	Text  string
	Calls []Call
	// Unsigned leaves out the reasoning that is otherwise signed, where the dialect has it.
	Unsigned bool
	// Break breaks the first reply of this turn off in its middle; the same request is
	// answered when it comes again.
	Break bool
}

// Call is one call of a tool.
type Call struct {
	// ID is made up where it is empty: as the vendor forms them, never the same twice.
	ID   string
	Name string
	// Arguments is a JSON object.
	Arguments string
	// Custom makes it a custom tool's in the Responses dialect, where Arguments is any text.
	Custom bool
}

// reply is an Answer on its way.
type reply struct {
	Answer
	serial    uint64
	signature string // "" when nothing is signed
	breaks    bool
}

// id is an id of this reply, such as "resp_000000000001".
func (r *reply) id(prefix string) string {
	n := strconv.FormatUint(r.serial, 10)
	return prefix + "000000000000"[:max(0, 12-len(n))] + n
}

// breaksAfter is how much of a broken reply is sent: more than its head, less
// than any whole one.
const breaksAfter = 150

// breaking ends the connection after so many bytes.
type breaking struct {
	http.ResponseWriter
	left int
}

func (b *breaking) Write(data []byte) (int, error) {
	if len(data) < b.left {
		b.left -= len(data)
		return b.ResponseWriter.Write(data)
	}
	_, _ = b.ResponseWriter.Write(data[:b.left])
	b.end()
	return 0, http.ErrAbortHandler
}

func (b *breaking) Flush() { flush(b.ResponseWriter) }

// end breaks the connection off; what was written has left.
func (b *breaking) end() {
	flush(b.ResponseWriter)
	panic(http.ErrAbortHandler)
}

func itoa(n int) string { return strconv.Itoa(n) }
