// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// crowd is how many agents call at the same time.
const crowd = 200

// slowUpstream counts its calls, reads each to its end without keeping it, and
// answers after a while.
func slowUpstream(t testing.TB, pause time.Duration) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(pause)
		_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"stop","message":{"content":"{\"type\":\"visual_observation\",\"schema\":\"visual_observation.v1\",\"summary\":\"ok\"}"}}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", calls
}

// large is a PNG of size bytes, no two of the same number alike.
func (w *world) large(number, size int) string {
	w.t.Helper()
	data := make([]byte, size)
	copy(data, "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x04\x00\x00\x00\x03\x00\x08\x02\x00\x00\x00")
	binary.BigEndian.PutUint64(data[size-8:], uint64(number))
	path := fmt.Sprintf("%s/large-%d.png", w.workspace, number)
	w.write(path, data)
	return path
}

// together calls view for each of crowd callers at the same time, and returns
// how many were answered with status 200.
func together(t testing.TB, agents string, body func(caller int) string) (answered int64) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: crowd, MaxIdleConnsPerHost: crowd}}
	defer client.CloseIdleConnections()
	var ok atomic.Int64
	var first sync.Once
	var calls sync.WaitGroup
	for caller := range crowd {
		calls.Go(func() {
			resp, err := client.Post(agents+"/v1/view-image", "application/json", strings.NewReader(body(caller)))
			if err != nil {
				t.Error(err)
				return
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				ok.Add(1)
				return
			}
			first.Do(func() { t.Errorf("status %d: %s", resp.StatusCode, text) })
		})
	}
	calls.Wait()
	return ok.Load()
}

func TestTwoHundredEqualCallsAtOnceAreOneUpstreamCall(t *testing.T) {
	w := newWorld(t)
	url, calls := slowUpstream(t, 300*time.Millisecond)
	w.publish(func(d *router.Document) { d.Providers[0].Endpoints[0].URL = url })
	picture := w.picture("a.png")
	s, _ := w.start()
	answered := together(t, "http://"+s.agentsAt.String(), func(int) string { return fmt.Sprintf(`{"path":%q,"prompt":"look"}`, picture) })
	if answered != crowd || calls.Load() != 1 {
		t.Errorf("%d of %d were answered, by %d upstream calls; want all by 1", answered, crowd, calls.Load())
	}
}

// The process as it is built, so that its memory is its own.
func TestTwoHundredDifferentCallsAtOnceAreAllAnsweredWithinTheMemoryTheyMayTake(t *testing.T) {
	const inFlight, size = 32 << 20, 2 << 20
	w := newWorld(t)
	url, calls := slowUpstream(t, 20*time.Millisecond)
	w.publish(func(d *router.Document) { d.Providers[0].Endpoints[0].URL = url })
	paths := make([]string, crowd)
	for i := range paths {
		paths[i] = w.large(i, size)
	}
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	p, _ := launch(t, append(w.flags(), "--max-in-flight-bytes", fmt.Sprint(inFlight))...)
	answered := together(t, p.agents, func(caller int) string { return fmt.Sprintf(`{"path":%q,"prompt":"look"}`, paths[caller]) })
	if answered != crowd || calls.Load() != crowd {
		t.Errorf("%d of %d were answered, by %d upstream calls", answered, crowd, calls.Load())
	}
	most := memoryMiB(t, p.cmd.Process.Pid, "VmHWM")
	t.Logf("the most resident memory was %.1f MiB", most)
	if limit := float64(inFlight>>20 + 64); most > limit {
		t.Errorf("the process took %.1f MiB; %d in flight and 64 more are allowed", most, inFlight>>20)
	}
}

func TestImagesBeyondTheBytesInFlightWait(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	hold := make(chan struct{})
	w.upstream.set(func(u *upstream) { u.hold = hold })
	cfg := w.config()
	cfg.inFlight = minInFlightBytes
	s, err := start(cfg, newLogger(io.Discard, slog.LevelInfo))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.shutdown(time.Second) })
	var views sync.WaitGroup
	for i := range 2 {
		path := w.large(i, minInFlightBytes*3/4)
		views.Go(func() {
			if got := view(t, s, path, "look"); got.status != http.StatusOK {
				t.Errorf("status %d: %s", got.status, got.body)
			}
		})
	}
	eventually(t, "the model is called", func() bool { return w.upstream.calls() == 1 })
	time.Sleep(200 * time.Millisecond) // what would come at once comes in that time
	if calls := w.upstream.calls(); calls != 1 {
		t.Errorf("%d images are in flight where there is room for one", calls)
	}
	close(hold)
	views.Wait()
	if calls := w.upstream.calls(); calls != 2 {
		t.Errorf("%d calls; want one for each image", calls)
	}
}
