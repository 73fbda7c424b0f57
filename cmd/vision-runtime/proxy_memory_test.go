// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// Bodies of 64 agents at once, each with an image of 10 MiB in base64, through the
// process as it is built: what does not fit waits, and all are answered.
func TestSixtyFourLargeModelRequestsAtOnceStayWithinTheMemoryTheyMayTake(t *testing.T) {
	const agents, inFlight, size = 64, 64 << 20, 10 << 20
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"id":"c1","choices":[]}`)
	}))
	t.Cleanup(upstream.Close)
	w := newWorld(t)
	w.publish(func(d *router.Document) {
		withProxy(d)
		d.Providers[0].Endpoints[0].URL = upstream.URL + "/v1"
	})
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	p, _ := launch(t, append(w.flags(), "--max-in-flight-bytes", fmt.Sprint(inFlight))...)

	png := make([]byte, size/4*3)
	copy(png, "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x04\x00\x00\x00\x03\x00\x08\x02\x00\x00\x00")
	body := fmt.Appendf(nil, `{"model":"eye-1","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,%s"}}]}]}`,
		base64.StdEncoding.EncodeToString(png))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: agents}, Timeout: 2 * time.Minute}
	t.Cleanup(client.CloseIdleConnections)
	var answered, busy atomic.Int64
	var all sync.WaitGroup
	for range agents {
		all.Go(func() {
			for { // an agent's SDK tries again when it is told that there is no room
				resp, err := client.Post(p.agents+"/openai/v1/chat/completions", "application/json", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusServiceUnavailable {
					busy.Add(1)
					continue
				}
				if resp.StatusCode != http.StatusOK {
					t.Errorf("status %d: %s", resp.StatusCode, text)
					return
				}
				answered.Add(1)
				return
			}
		})
	}
	all.Wait()
	most := memoryMiB(t, p.cmd.Process.Pid, "VmHWM")
	t.Logf("%d answered, %d times told to come again; the most resident memory was %.1f MiB", answered.Load(), busy.Load(), most)
	if limit := float64(inFlight>>20 + 64); most > limit {
		t.Errorf("the process took %.1f MiB; %d in flight and 64 more are allowed", most, inFlight>>20)
	}
}
