// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/visionoperator/vision-operator/test/loop"
	strict "github.com/visionoperator/vision-operator/test/upstream"
)

// soakKinds are the kinds of requests, and the outcome that is to be expected of most.
var soakKinds = []struct{ name, good string }{
	{"plain", "200"}, {"plain", "200"}, {"plain", "200"}, {"injected", "200"}, {"injected", "200"}, {"injected", "200"}, {"injected", "200"},
	{"observed", "200"}, {"observed", "200"}, {"pictured", "200"}, {"pictured", "200"}, {"kept", "200"}, {"refused", "404"}, {"refused", "404"},
	{"malformed", "400"}, {"malformed", "400"}, {"too large", "413"}, {"too large", "413"}, {"canceled", "canceled"}, {"canceled", "canceled"},
	{"missing", "200"}, {"missing", "200"},
}

// soakViews is how many views there are, each of which comes again and again, as those
// of a conversation do. What a new one takes is kept, up to the bounds of package pin,
// and no leak; only conversations that the vendor keeps have new ones each time, so
// that there are few of them.
const soakViews = 256

// order is the n-th request of a soak: what it asks follows from n alone.
type order struct {
	number  int
	kind    string
	picture int
	token   string
	spoken
	chance *rand.Rand
}

func orderOf(n int) *order {
	chance := rand.New(rand.NewPCG(uint64(n), 4))
	o := &order{number: n, kind: soakKinds[chance.IntN(len(soakKinds))].name, token: "token-" + strconv.Itoa(n) + ";", chance: chance}
	if o.kind == "kept" && n%3 > 0 {
		o.kind = "plain"
	}
	o.dialect, o.stream = dialects[chance.IntN(len(dialects))], chance.IntN(2) == 0
	o.model = seeing[o.dialect]
	view := chance.IntN(soakViews)
	o.picture = view % soakPictures
	id, path := "call_"+digestOf([]byte{byte(view)})[:24], pictureName(o.picture)
	human := said{who: "human", text: "Heed the " + o.token}
	call, result := said{who: "call", id: id, path: path}, said{who: "result", id: id, text: "viewed"}
	switch o.kind {
	case "observed":
		o.model = blindModels[o.dialect]
	case "refused":
		o.model = "no-such-model"
	case "missing":
		call.path = "missing-" + path
	}
	switch o.kind {
	case "injected", "observed", "missing":
		o.turns = []said{human, call, result}
	default:
		o.turns = []said{human}
	}
	return o
}

// heardSo is what the models say: the token of the conversation, at every turn; where
// it is kept, they call for its picture first.
func heardSo(opening string) []strict.Answer {
	token, ok := anyToken(opening)
	if !ok {
		return nil
	}
	answers := slices.Repeat([]strict.Answer{{Text: "I heed the " + token + " as told."}}, 4)
	n, _ := strconv.Atoi(strings.Trim(token, "token-;"))
	if o := orderOf(n); o.kind == "kept" {
		answers[0] = strict.Answer{Calls: []strict.Call{{Name: "view_image", Arguments: `{"path":"` + pictureName(o.picture) + `"}`}}}
	}
	return answers
}

var tokens = regexp.MustCompile(`token-\d+;`)

func anyToken(text string) (string, bool) {
	found := tokens.FindString(text)
	return found, found != ""
}

// send sends one request and looks at its reply.
func (s *soak) send(ctx context.Context, n int) {
	o := orderOf(n)
	outcome := ""
	if o.kind == "kept" {
		outcome = s.converse(ctx, o)
	} else {
		outcome = s.ask(ctx, o)
	}
	s.mu.Lock()
	s.came[o.kind+" "+outcome]++
	s.mu.Unlock()
}

// ask sends a request of one turn, and is its status, or how it broke off.
func (s *soak) ask(ctx context.Context, o *order) string {
	body := written(s.draw(o), nil)
	switch o.kind {
	case "malformed":
		body = body[:len(body)-1]
	case "too large":
		body = append(body, bytes.Repeat([]byte{' '}, 1<<20)...)
	case "canceled":
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.chance.IntN(4000))*time.Microsecond)
		defer cancel()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.process.agents+o.path(), bytes.NewReader(body))
	if err != nil {
		s.complain("making request %d: %v", o.number, err)
		return "unsent"
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := s.client.Do(r)
	if err != nil {
		return endedBy(err)
	}
	defer func() { _ = resp.Body.Close() }()
	reply, err := io.ReadAll(resp.Body)
	s.compare(o, resp, reply, err == nil)
	if err != nil {
		return endedBy(err)
	}
	return strconv.Itoa(resp.StatusCode)
}

func endedBy(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "canceled"
	}
	return "broken"
}

// draw puts its picture into a request that has one.
func (s *soak) draw(o *order) object {
	if o.kind == "pictured" {
		o.turns[0].image = s.data[o.picture]
	}
	return o.body()
}

// compare looks whether a reply is that of its request: the token, of no other, and
// all of it where the reply is whole and a success.
func (s *soak) compare(o *order, resp *http.Response, reply []byte, whole bool) {
	text := wordsOf(reply)
	for _, token := range tokens.FindAllString(text+string(reply), -1) {
		if token != o.token {
			s.complain("request %d (%s, %s) was answered with %s", o.number, o.kind, o.dialect, token)
		}
	}
	if whole && resp.StatusCode == http.StatusOK && !strings.Contains(text, o.token) {
		s.complain("request %d (%s, %s) was answered without its token: %.300s", o.number, o.kind, o.dialect, reply)
	}
}

// wordsOf puts the texts of a reply together, of one document or of events.
func wordsOf(reply []byte) string {
	var words strings.Builder
	documents := [][]byte{reply}
	if !json.Valid(reply) {
		documents = bytes.Split(reply, []byte("\n"))
	}
	for _, document := range documents {
		var v any
		if json.Unmarshal(bytes.TrimPrefix(bytes.TrimRight(document, "\r"), []byte("data: ")), &v) == nil {
			gather(&words, v)
		}
	}
	return words.String()
}

func gather(words *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"text", "content", "delta"} {
			if text, ok := v[key].(string); ok {
				words.WriteString(text)
			}
		}
		for _, inner := range v {
			gather(words, inner)
		}
	case []any:
		for _, inner := range v {
			gather(words, inner)
		}
	}
}

// converse plays a conversation that the vendor keeps: a call, and what its answer is
// answered with. What fails on the way is sent again, as agents do.
func (s *soak) converse(ctx context.Context, o *order) string {
	client := &loop.Responses{
		Wire:  loop.Wire{Base: s.process.agents + "/openai/v1", Key: agentKey, Model: seeing["responses"], Stream: o.stream, HTTP: s.client},
		Keeps: "previous",
	}
	client.Human(o.turns[0].text)
	called, err := stubborn(ctx, client)
	if err != nil || len(called.Calls) != 1 {
		return fmt.Sprintf("without a call: %.60v", err)
	}
	client.Results([]loop.Outcome{{Call: called.Calls[0], Text: "viewed"}}, "")
	last, err := stubborn(ctx, client)
	if err != nil {
		return fmt.Sprintf("without an end: %.60v", err)
	}
	if got, _ := anyToken(last.Text); got != o.token {
		s.complain("conversation %d was answered with %q", o.number, last.Text)
	}
	return "200"
}

// stubborn sends until it is answered, several times.
func stubborn(ctx context.Context, c loop.Client) (heard loop.Said, err error) {
	for range 6 {
		if heard, err = c.Send(ctx); err == nil {
			return heard, nil
		}
	}
	return heard, err
}

// serve is the models' server with its troubles.
func (s *soak) serve(w http.ResponseWriter, r *http.Request) {
	n := s.arrived.Add(1)
	if n%53 == 0 {
		time.Sleep(20 * time.Millisecond)
	}
	switch {
	case n%31 == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case n%37 == 0:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case n%41 == 0:
		panic(http.ErrAbortHandler)
	case n%43 == 0:
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {}\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		s.strict.ServeHTTP(w, r)
	}
}

// look is the server of the model that looks, which says what image it saw.
func (s *soak) look(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	observed := fmt.Sprintf(`{"type":"visual_observation","schema":"visual_observation.v1","summary":%q}`, recognized(body))
	_, _ = fmt.Fprintf(w, `{"choices":[{"finish_reason":"stop","message":{"content":%q}}]}`, observed)
}

// inspect looks at what came to the models' server since the last time: each request
// holds what its order shows and nothing of another's.
func (s *soak) inspect() {
	for _, r := range s.strict.Take() {
		token, ok := anyToken(r.Conversation)
		if !ok {
			continue
		}
		n, _ := strconv.Atoi(strings.Trim(token, "token-;"))
		o := orderOf(n)
		var want []string
		if o.kind == "injected" || o.kind == "pictured" || o.kind == "kept" && r.Turn > 0 {
			want = []string{s.pictures[o.picture]}
		}
		var got []string
		for _, image := range r.Images {
			got = append(got, image.SHA256)
		}
		all := readable(bytes.Join(r.Messages, nil))
		told := strings.Contains(all, recognizedAs(s.pictures[o.picture]))
		if !slices.Equal(got, want) || told != (o.kind == "observed") || strings.Count(all, "the picture ") > 1 {
			s.complain("request %d (%s, %s) reached the model with the images %.8s, want %.8s: %.600s", n, o.kind, o.dialect, got, want, all)
		}
		for _, other := range tokens.FindAllString(all, -1) {
			if other != o.token {
				s.complain("request %d reached the model with %s", n, other)
			}
		}
		if r.Refusal != "" {
			s.complain("request %d (%s, %s) was refused: %s", n, o.kind, o.dialect, r.Refusal)
		}
	}
}
