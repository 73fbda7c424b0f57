// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
)

// Request is one request as it came, and what became of it.
type Request struct {
	Path, Query string
	Header      http.Header
	Body        []byte
	// Model is as the request named it. Counting says that only tokens were counted.
	Model    string
	Counting bool
	// Conversation is the text with which the human opened it, and Turn how often the
	// model has spoken in it so far.
	Conversation string
	Turn         int
	// Messages are the JSON texts of all messages: those that the server keeps first.
	Messages [][]byte
	// Steps are, for each message, how often the model has spoken up to it and with it.
	Steps []int
	// Images are the images in the messages, in order.
	Images []Image
	// Status is what was answered, and Refusal why.
	Status  int
	Refusal string
	// Broken says that the reply was broken off.
	Broken bool
}

// Image is one image of a request.
type Image struct {
	// Place is such as "messages[2].content[1]", in the vendor's own spelling, and
	// Message the index in Request.Messages.
	Place   string
	Message int
	// Result says that it stands in a tool's result.
	Result bool
	// SHA256 is of the bytes, in hex; empty where a URL or a file's id stands for them.
	SHA256    string
	MediaType string
	Bytes     int
	// URL is what stands for the bytes.
	URL string
}

func (s *Server) keep(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if over := len(s.requests) - s.options.Keep; s.options.Keep > 0 && over > 0 {
		s.requests = slices.Delete(s.requests, 0, over)
	}
}

// Requests are those that came, in order.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Of are the requests of one conversation that asked the model to speak.
func (s *Server) Of(conversation string) []*Request {
	return slices.DeleteFunc(s.Requests(), func(r *Request) bool { return r.Conversation != conversation || r.Counting })
}

// Take gives the requests that came, in order, and forgets them and the mismatches.
func (s *Server) Take() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.requests
	s.requests, s.mismatches = nil, nil
	return taken
}

// Reset forgets the requests and the mismatches, and nothing of conversations.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.mismatches = nil, nil
}

// Mismatches are the places of signatures that stood behind something else than
// what they were made over. Chat completions have no signatures: there they are
// the calls that stood behind something else than what the model answered.
func (s *Server) Mismatches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mismatches)
}

// Refusals are what was refused, and why.
func (s *Server) Refusals() []string {
	var all []string
	for _, r := range s.Requests() {
		if r.Refusal != "" {
			all = append(all, fmt.Sprintf("%s: %d %s", r.Path, r.Status, r.Refusal))
		}
	}
	return all
}

// SharedPrefixesEqual finds where a request of a conversation does not begin with
// every message of the one before it, byte for byte. The marks cache_control do
// not count where a message has them: agents move them.
func (s *Server) SharedPrefixesEqual() []string {
	var problems []string
	before := map[string]*Request{}
	for _, r := range s.Requests() {
		if r.Conversation == "" || r.Counting {
			continue
		}
		if last := before[r.Conversation]; last != nil {
			if problem := differs(last, r); problem != "" {
				problems = append(problems, fmt.Sprintf("conversation %s, turn %d: %s", r.Conversation, r.Turn, problem))
			}
		}
		before[r.Conversation] = r
	}
	return problems
}

func differs(last, r *Request) string {
	if len(r.Messages) < len(last.Messages) {
		return fmt.Sprintf("%d messages after %d", len(r.Messages), len(last.Messages))
	}
	for i, m := range last.Messages {
		now := r.Messages[i]
		if bytes.Equal(m, now) {
			continue
		}
		marked := []byte(`"cache_control"`)
		if (bytes.Contains(m, marked) || bytes.Contains(now, marked)) && bytes.Equal(canonical(m), canonical(now)) {
			continue
		}
		return fmt.Sprintf("message %d was %s and is %s", i, shortened(m), shortened(now))
	}
	return ""
}

func shortened(data []byte) string {
	if len(data) > 400 {
		return string(data[:400]) + "…"
	}
	return string(data)
}

// ImagesOnce finds images that a request holds twice, and those of an earlier
// request of the conversation that a later one has lost.
func (s *Server) ImagesOnce() []string {
	var problems []string
	shown := map[string][]string{}
	for _, r := range s.Requests() {
		if r.Refusal != "" {
			continue
		}
		found := map[string]int{}
		for _, image := range r.Images {
			found[image.SHA256+image.URL]++
		}
		where := fmt.Sprintf("conversation %s, turn %d", r.Conversation, r.Turn)
		for _, name := range shown[r.Conversation] {
			if found[name] == 0 {
				problems = append(problems, fmt.Sprintf("%s: the image %s is gone", where, name))
			}
		}
		for name, n := range found {
			if n > 1 {
				problems = append(problems, fmt.Sprintf("%s: the image %s stands there %d times", where, name, n))
			}
			if !slices.Contains(shown[r.Conversation], name) {
				shown[r.Conversation] = append(shown[r.Conversation], name)
			}
		}
	}
	return problems
}
