// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
	strict "github.com/visionoperator/vision-operator/test/upstream"
)

// The soak sends many requests of every kind to the runtime as it is built, while its
// upstreams fail, its callers leave and its document changes every second, and
// compares what the process takes at the end with what it took near the beginning.
// VISION_SOAK is how many requests (make soak); without it the soak is short.
const (
	shortSoak = 2000
	// soakCallers send at the same time.
	soakCallers = 12
	// soakPictures is how many images there are.
	soakPictures = 64
)

// soak is the runtime, what is around it, and what came of its requests.
type soak struct {
	*models
	process  *process
	server   *httptest.Server // of all models
	looks    *httptest.Server
	pictures []string // their digests; each lies in the workspace and in memory
	data     [][]byte
	client   *http.Client

	arrived atomic.Uint64 // requests at the models' server
	next    atomic.Int64
	mu      sync.Mutex
	came    map[string]int // outcomes by kind of request
	wrong   []string
}

// weighed is what a process takes when it is left alone.
type weighed struct {
	rss                     float64 // MiB
	goroutines, descriptors int
}

func TestNothingGrowsAndNobodyGetsAnothersAnswerOverManyRequests(t *testing.T) {
	requests := shortSoak
	if told := os.Getenv("VISION_SOAK"); told != "" {
		var err error
		if requests, err = strconv.Atoi(told); err != nil || requests < shortSoak {
			t.Fatalf("VISION_SOAK is %q; want a number from %d on", told, shortSoak)
		}
	}
	s := newSoak(t)
	began := time.Now()
	early := max(requests/10, shortSoak/4)
	s.run(t, early)
	first := s.weigh(t)
	s.run(t, requests)
	last := s.weigh(t)
	t.Logf("%d requests in %.0f s; after %d: %.1f MiB, %d goroutines, %d descriptors; after %d: %.1f MiB, %d goroutines, %d descriptors",
		requests, time.Since(began).Seconds(), early, first.rss, first.goroutines, first.descriptors, requests, last.rss, last.goroutines, last.descriptors)
	s.report(t)
	spare := 0.0
	if requests < 10*shortSoak {
		spare = 6 // MiB: what the first requests of a process settle into
	}
	if last.rss > 1.1*first.rss+spare {
		t.Errorf("resident memory went from %.1f to %.1f MiB", first.rss, last.rss)
	}
	for what, counts := range map[string][2]int{"goroutines": {first.goroutines, last.goroutines}, "descriptors": {first.descriptors, last.descriptors}} {
		if float64(counts[1]) > 1.1*float64(counts[0])+1 { // 1: of less than ten, a tenth is none
			t.Errorf("%s went from %d to %d", what, counts[0], counts[1])
		}
	}
}

// newSoak starts all of it.
func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{came: map[string]int{}, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: soakCallers}}}
	s.models = laidOut(t, strict.Options{Script: heardSo, Pause: 200 * time.Microsecond})
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.looks = httptest.NewServer(http.HandlerFunc(s.look))
	t.Cleanup(s.server.Close)
	t.Cleanup(s.looks.Close)
	s.url = s.server.URL
	for i := range soakPictures {
		s.data = append(s.data, drawn(t, fmt.Sprintf("picture number %d of the soak", i)))
		s.pictures = append(s.pictures, digestOf(s.data[i]))
		s.write(s.workspace+"/"+pictureName(i), s.data[i])
	}
	s.publish(s.document(0))
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	s.process, _ = launch(t, append(s.flags(), "--log-level", "info")...)
	return s
}

func pictureName(i int) string { return "soak-" + strconv.Itoa(i) + ".png" }

// blindModels are the models of each dialect that take text alone.
var blindModels = map[string]string{"chat": "gpt-text", "responses": "gpt-text", "anthropic": "claude-text", "gemini": "gemini-2-text"}

// document is the n-th version of the document: each has other limits than the last.
func (s *soak) document(n int) func(*router.Document) {
	return func(doc *router.Document) {
		doc.Profiles[0].DefaultModel = "lab@main/eye-1"
		doc.Profiles[0].Limits.Request.MaxDistinctImages = int64(16 + n%2)
		doc.Profiles[0].Limits.Request.MaxBodyBytes = 1 << 20
		for i := range doc.Providers {
			p := &doc.Providers[i]
			switch p.Name {
			case "team-a/lab":
				p.Endpoints[0].URL = s.looks.URL + "/v1"
			case "team-a/openai":
				p.Models = append(p.Models, router.Model{Name: blindModels["chat"]})
			case "team-a/anthropic":
				p.Models = append(p.Models, router.Model{Name: blindModels["anthropic"]})
			case "team-a/google":
				p.Models = append(p.Models, router.Model{Name: blindModels["gemini"]})
			}
		}
	}
}

// run sends requests until so many have been sent in all, and a new document each second.
func (s *soak) run(t *testing.T, until int) {
	t.Helper()
	var callers sync.WaitGroup
	for range soakCallers {
		callers.Go(func() {
			for {
				n := s.next.Add(1) - 1
				if n >= int64(until) {
					s.next.Add(-1)
					return
				}
				s.send(t.Context(), int(n))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		callers.Wait()
		close(done)
	}()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for version := 1; ; version++ {
		select {
		case <-done:
			s.inspect()
			return
		case <-second.C:
			s.publish(s.document(version))
			s.inspect()
		}
	}
}

// weigh lets the process come to rest, and sees what it takes: connections are closed,
// and requests that are all alike have its memory collected.
func (s *soak) weigh(t *testing.T) weighed {
	t.Helper()
	filler := spoken{dialect: "chat", model: seeing["chat"], turns: []said{{who: "human", text: strings.Repeat("fill ", 40_000)}}}
	body := written(filler.body(), nil)
	for range 200 {
		s.server.CloseClientConnections() // so that these come through one after the other, each anew
		resp, err := s.client.Post(s.process.agents+filler.path(), "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	s.strict.Reset()
	var least weighed
	for i := range 10 {
		s.client.CloseIdleConnections()
		s.server.CloseClientConnections()
		s.looks.CloseClientConnections()
		time.Sleep(300 * time.Millisecond)
		now := s.taken(t)
		if i == 0 {
			least = now
		}
		least.rss, least.goroutines, least.descriptors = min(least.rss, now.rss), min(least.goroutines, now.goroutines), min(least.descriptors, now.descriptors)
	}
	return least
}

// taken is what the process takes now.
func (s *soak) taken(t *testing.T) weighed {
	t.Helper()
	pid := s.process.cmd.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	w := weighed{rss: memoryMiB(t, pid, "VmRSS"), descriptors: len(open)}
	for line := range strings.Lines(string(get(t, s.process.health+"/metrics").body)) {
		if n, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			if w.goroutines, err = strconv.Atoi(strings.TrimSpace(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if w.goroutines == 0 {
		t.Fatal("the process does not tell how many goroutines it has")
	}
	return w
}

// report tells what came of the requests, and fails where something was wrong, or where
// of some kind none was answered.
func (s *soak) report(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for outcome, n := range s.came {
		lines = append(lines, fmt.Sprintf("%s: %d", outcome, n))
	}
	slices.Sort(lines)
	t.Logf("outcomes:\n%s", strings.Join(lines, "\n"))
	if len(s.wrong) > 0 {
		t.Errorf("%d things were wrong, such as:\n%s", len(s.wrong), strings.Join(s.wrong[:min(len(s.wrong), 20)], "\n"))
	}
	for _, kind := range soakKinds {
		if s.came[kind.name+" "+kind.good] == 0 {
			t.Errorf("of the requests %q none came to %q", kind.name, kind.good)
		}
	}
}

func (s *soak) complain(format string, about ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, about...))
}
