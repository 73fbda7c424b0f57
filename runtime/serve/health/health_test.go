// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/serve/health"
	"github.com/visionoperator/vision-operator/runtime/telemetry"
)

func TestEachProbeAsksItsOwnQuestion(t *testing.T) {
	tests := []struct {
		name            string
		started, loaded bool
		want            map[string]int
	}{
		{"a process whose listeners are not open lives", false, false, map[string]int{"/healthz": 200, "/startupz": 503, "/readyz": 503, "/metrics": 200}},
		{"a started process without a router lives and has started", true, false, map[string]int{"/healthz": 200, "/startupz": 200, "/readyz": 503, "/metrics": 200}},
		{"a process with a router is ready", true, true, map[string]int{"/healthz": 200, "/startupz": 200, "/readyz": 200, "/metrics": 200, "/": 404, "/healthz/x": 404}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			handler := health.Handler(health.Options{
				Started: func() bool { return test.started },
				State:   func() telemetry.State { return telemetry.State{Router: telemetry.Router{Loaded: test.loaded}} },
				Metrics: telemetry.New(time.Now()),
			})
			for path, want := range test.want {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != want {
					t.Errorf("%s: status %d; want %d", path, w.Code, want)
				}
				if path == "/metrics" && w.Header().Get("Content-Type") != telemetry.ContentType {
					t.Errorf("metrics have type %q", w.Header().Get("Content-Type"))
				}
			}
		})
	}
}
