// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream is a model's server for tests: strict and recording. It speaks
// OpenAI's chat completions and Responses, Anthropic's messages and Gemini's
// generateContent, streamed and not, answers as a script says, and refuses what
// the vendors refuse, in their own words. Its replies carry reasoning that is
// signed over everything before it; a later request that replays such a
// signature over something else is a mismatch.
//
// It imports nothing of this project, so that what it finds wrong cannot be wrong
// in the same way here and there.
package upstream

import (
	"crypto/hmac"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options set up a Server. The zero value is a strict vendor whose model says
// "Done." to everything.
type Options struct {
	// Script is what the model says, turn by turn, in the conversation that a human
	// opened with that text. After its end the model says "Done.".
	Script func(opening string) []Answer
	// Key is the credential that every request must carry; "" asks for none.
	Key string
	// TextOnly refuses every image part.
	TextOnly bool
	// Mistral makes chat completions a Mistral-like server: no user message after a
	// tool message, ids of nine characters.
	Mistral bool
	// ToolImages lets tool messages of chat completions hold images.
	ToolImages bool
	// Nameless leaves out the ids of Gemini's calls, as its older models do.
	Nameless bool
	// Fault is the status with which the n-th request is answered, from 1 on, in place of
	// a reply: such as 429 or 503. 0 lets it be answered.
	Fault func(n uint64) int
	// Pause is before each event of a stream.
	Pause time.Duration
	// Keep is how many requests are kept, the latest ones; 0 keeps all.
	Keep int
	// MaxBodyBytes bounds a request; 0 is 64 MiB.
	MaxBodyBytes int64
}

// Server is the upstream. Its methods may be used while it serves.
type Server struct {
	options Options
	key     []byte // of the signatures

	asked      atomic.Uint64
	mu         sync.Mutex
	requests   []*Request
	mismatches []string
	calls      map[string][]byte // chat: what came before the message with a call, by the call's id
	said       map[string]bool   // texts that the model said, after the conversation's name
	broken     map[string]bool   // turns that were broken off once
	stored     map[string]stored // Responses: what is kept, by the id of a response
	listed     map[string]stored // Responses: what is kept, by the id of a conversation
	serial     uint64
}

// New makes a Server.
func New(options Options) *Server {
	if options.MaxBodyBytes == 0 {
		options.MaxBodyBytes = 64 << 20
	}
	return &Server{
		options: options,
		key:     []byte("a key that only the vendor has"),
		calls:   map[string][]byte{},
		said:    map[string]bool{},
		broken:  map[string]bool{},
		stored:  map[string]stored{},
		listed:  map[string]stored{},
	}
}

// dialect is one wire protocol.
type dialect interface {
	// hear reads a request, or panics with a *refusal.
	hear(s *Server, r *http.Request, body []byte) *heard
	// say writes the model's reply.
	say(w http.ResponseWriter, h *heard, reply *reply)
	// count writes how many tokens a request has.
	count(w http.ResponseWriter, h *heard)
	// forged is the refusal of a signature that does not fit.
	forged(h *heard, s seal) *refusal
	// refuse writes an error.
	refuse(w http.ResponseWriter, r *refusal)
	// credential is the key that a request carries.
	credential(r *http.Request) string
	// list writes a list of one model.
	list(w http.ResponseWriter)
}

// route finds the protocol of a path, and what the path asks for.
func (s *Server) route(r *http.Request) (d dialect, method string) {
	switch path := r.URL.Path; {
	case path == "/v1/chat/completions":
		return chat{mistral: s.options.Mistral, toolImages: s.options.ToolImages}, http.MethodPost
	case path == "/v1/responses", path == "/v1/responses/input_tokens":
		return responses{}, http.MethodPost
	case path == "/v1/messages", path == "/v1/messages/count_tokens":
		return anthropic{}, http.MethodPost
	case path == "/v1/models" && r.Header.Get("Anthropic-Version") != "":
		return anthropic{}, http.MethodGet
	case path == "/v1/models":
		return chat{}, http.MethodGet
	case path == "/v1beta/models":
		return gemini{}, http.MethodGet
	case strings.HasPrefix(path, "/v1beta/models/"):
		return gemini{}, http.MethodPost
	}
	return chat{}, ""
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, method := s.route(r)
	record := &Request{Path: r.URL.Path, Query: r.URL.RawQuery, Header: r.Header.Clone(), Status: http.StatusOK}
	defer func() {
		trouble := recover()
		if refused, ok := trouble.(*refusal); ok {
			record.Status, record.Refusal = refused.status, refused.message
			s.keep(record)
			d.refuse(w, refused)
		} else if trouble != nil {
			panic(trouble)
		}
	}()
	if method == "" || r.Method != method {
		panic(&refusal{status: http.StatusNotFound, kind: "invalid_request_error", message: "Unknown request URL: " + r.Method + " " + r.URL.Path})
	}
	if s.options.Key != "" && d.credential(r) != s.options.Key {
		panic(&refusal{status: http.StatusUnauthorized, kind: "authentication_error", code: "invalid_api_key", message: "Incorrect API key provided."})
	}
	if method == http.MethodGet {
		s.keep(record)
		d.list(w)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.options.MaxBodyBytes))
	record.Body = body
	if err != nil {
		panic(&refusal{status: http.StatusRequestEntityTooLarge, kind: "request_too_large", message: "Reading the request failed: " + err.Error()})
	}
	s.answer(w, r, d, record)
}

// answer lets the model say what its script has next.
// The record is kept whole before anything of the reply leaves.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, d dialect, record *Request) {
	if s.options.Fault != nil {
		if status := s.options.Fault(s.asked.Add(1)); status != 0 {
			panic(fault(status))
		}
	}
	h := d.hear(s, r, record.Body)
	h.pause = s.options.Pause
	record.Model, record.Counting = h.model, h.counting
	record.Conversation, record.Turn, record.Images = h.opening, h.turns, h.images
	for _, m := range h.messages {
		record.Messages = append(record.Messages, m.raw)
		record.Steps = append(record.Steps, m.step)
	}
	s.verify(d, h)
	if h.counting {
		s.keep(record)
		d.count(w, h)
		return
	}
	reply := s.next(h)
	record.Broken = reply.breaks
	s.keep(record) // before the reply: what comes after it must come after it here too
	if !reply.breaks {
		d.say(w, h, reply)
		return
	}
	broken := &breaking{ResponseWriter: w, left: breaksAfter}
	d.say(broken, h, reply)
	broken.end()
}

// fault is a failure that has nothing to do with the request. Gemini's words for it
// are OpenAI's code.
func fault(status int) *refusal {
	switch status {
	case http.StatusTooManyRequests:
		return &refusal{status: status, kind: "rate_limit_error", code: "RESOURCE_EXHAUSTED", message: "Too many requests."}
	case 529:
		return &refusal{status: status, kind: "overloaded_error", code: "UNAVAILABLE", message: "Overloaded"}
	}
	return &refusal{status: status, kind: "api_error", code: "UNAVAILABLE", message: "The server had an error while processing your request."}
}

// verify compares every signature with what stands before it. Where the dialect has
// none, and the server only remembers what it answered, a mismatch is no refusal.
func (s *Server) verify(d dialect, h *heard) {
	var last string
	for _, sealed := range h.seals {
		own := sealed.want != nil
		ok := own && hmac.Equal(sealed.want, h.prefix(s.key, sealed.before)) || !own && s.signed(h, sealed, last)
		last = sealed.signature
		if ok || sealed.dropped {
			continue
		}
		s.mu.Lock()
		s.mismatches = append(s.mismatches, sealed.place+" of the conversation "+h.opening)
		s.mu.Unlock()
		if !own {
			panic(d.forged(h, sealed))
		}
	}
}

// next is the model's reply: what the script has for the turn.
func (s *Server) next(h *heard) *reply {
	answer := Answer{Text: "Done."}
	if s.options.Script != nil {
		if script := s.options.Script(h.opening); h.turns < len(script) {
			answer = script[h.turns]
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	turn := h.opening + "\x00" + itoa(h.turns)
	r := &reply{Answer: answer, serial: s.serial, breaks: answer.Break && !s.broken[turn]}
	s.broken[turn] = s.broken[turn] || answer.Break
	r.Calls = make([]Call, len(answer.Calls))
	copy(r.Calls, answer.Calls)
	before := h.prefix(s.key, len(h.messages))
	for i := range r.Calls {
		if r.Calls[i].ID == "" && !h.nameless {
			r.Calls[i].ID = h.callID(s.key, s.serial, i)
		}
		s.calls[r.Calls[i].ID] = before
	}
	if !answer.Unsigned && !h.unsigned {
		r.signature = s.sign(h, before)
	}
	s.said[h.opening+"\x00"+answer.Text] = true
	if h.remember != nil && !r.breaks { // what nobody heard is not kept
		h.remember(r)
	}
	return r
}
