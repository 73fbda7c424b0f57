// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/visionoperator/vision-operator/runtime/provider/transport"
	"github.com/visionoperator/vision-operator/runtime/router"
)

// recorder returns a logger and what it wrote until then, line by line.
func recorder(level slog.Level) (*slog.Logger, func(t *testing.T) (lines []map[string]any, text string)) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))
	return log, func(t *testing.T) ([]map[string]any, string) {
		t.Helper()
		var lines []map[string]any
		for decoder := json.NewDecoder(strings.NewReader(out.String())); ; {
			var line map[string]any
			if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
				return lines, out.String()
			} else if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
	}
}

// stable is a line without what differs from call to call.
func stable(t *testing.T, line map[string]any) map[string]any {
	t.Helper()
	if d, ok := line["duration"].(float64); !ok || d <= 0 {
		t.Errorf("duration = %v", line["duration"])
	}
	delete(line, "duration")
	delete(line, "time")
	return line
}

func host(s *httptest.Server) string { return s.Listener.Addr().String() }

func TestACallIsOneLineInTheLog(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Secret", key)
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "12345 "+key)
	})
	ep := endpoint(s.URL)
	ep.Headers = []router.Header{{Name: "X-Tenant", Value: "tenant " + key}}
	log, written := recorder(slog.LevelDebug)
	c := client(t, transport.Options{Endpoint: ep, Auth: bearer(), Logger: log})
	address := strings.Replace(s.URL, "http://", "http://user:"+key+"@", 1) + "/v1/a%2Fb/chat?key=" + key + "#" + key
	resp, err := c.Post(address, "application/json", strings.NewReader(`{"prompt":"`+key+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	if lines, _ := written(t); len(lines) != 0 {
		t.Errorf("the call was logged before its reply was read: %v", lines)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	_ = resp.Body.Close()
	lines, text := written(t)
	if len(lines) != 1 {
		t.Fatalf("the log holds %d lines: %s", len(lines), text)
	}
	want := map[string]any{
		"level": "DEBUG", "msg": "provider called", "method": "POST", "host": host(s), "path": "/v1/a%2Fb/chat",
		"status": float64(http.StatusTeapot), "sent": float64(len(`{"prompt":""}`) + len(key)), "received": float64(len("12345 ") + len(key)),
	}
	if diff := cmp.Diff(want, stable(t, lines[0])); diff != "" {
		t.Errorf("the line differs (-want +got):\n%s", diff)
	}
	noKey(t, text)
}

// noKey fails when text holds the key, as it is or as basic authentication has it.
func noKey(t *testing.T, text string) {
	t.Helper()
	for _, secret := range []string{key, key[:12], base64.StdEncoding.EncodeToString([]byte("user:" + key))} {
		if strings.Contains(text, secret) {
			t.Errorf("the log shows the key: %s", text)
		}
	}
}

func TestACallThatFailsIsLoggedWithAFixedPhrase(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	hanging := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, key)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	cutting := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, key)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	malformed := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(conn, "nonsense %s\r\n\r\n", key)
		_ = conn.Close()
	}
	unmounted := &transport.Auth{Header: "api-key", Source: transport.KeyFile(filepath.Join(t.TempDir(), key), "team/x")}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc // nil when nobody listens
		auth    *transport.Auth
		want    map[string]any
	}{
		"nobody listens":           {nil, bearer(), map[string]any{"status": 0.0, "failure": string(transport.Connection)}},
		"a malformed reply":        {malformed, bearer(), map[string]any{"status": 0.0, "failure": string(transport.Connection)}},
		"a body that is cut off":   {cutting, bearer(), map[string]any{"status": 200.0, "received": float64(len(key)), "failure": string(transport.Connection)}},
		"a body that stalls":       {hanging, bearer(), map[string]any{"status": 200.0, "received": float64(len(key)), "failure": string(transport.Timeout)}},
		"a key that is not there":  {hanging, unmounted, map[string]any{"status": 0.0, "sent": 0.0, "failure": "CredentialNotMounted"}},
		"a reply without a secret": {func(http.ResponseWriter, *http.Request) {}, nil, map[string]any{"status": 200.0, "received": 0.0, "failure": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			url := "http://" + closed.Addr().String()
			if tc.handler != nil {
				url = serve(t, tc.handler).URL
			}
			ep := endpoint(url)
			ep.Timeout = "200ms"
			log, written := recorder(slog.LevelDebug)
			_, _, err := get(t, client(t, transport.Options{Endpoint: ep, Auth: tc.auth, Logger: log}), url+"/v1?key="+key)
			if (err != nil) != (tc.want["failure"] != nil) {
				t.Errorf("the call gave %v", err)
			}
			lines, text := written(t)
			if len(lines) != 1 {
				t.Fatalf("the log holds %d lines: %s", len(lines), text)
			}
			for name, want := range tc.want {
				if got := lines[0][name]; got != want {
					t.Errorf("%s = %v, want %v", name, got, want)
				}
			}
			noKey(t, text)
		})
	}
}

func TestARedirectsPathIsNotLogged(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/"+key, http.StatusPermanentRedirect)
		}
	})
	log, written := recorder(slog.LevelDebug)
	c := client(t, transport.Options{Endpoint: endpoint(s.URL), Auth: bearer(), Logger: log})
	if _, status, err := get(t, c, s.URL+"/"); err != nil || status != http.StatusOK {
		t.Fatalf("the call gave %d and %v", status, err)
	}
	lines, text := written(t)
	if len(lines) != 2 || lines[0]["path"] != "/" || lines[0]["status"] != 308.0 || lines[1]["path"] != "(redirected)" || lines[1]["sent"] != 2.0 {
		t.Errorf("the log holds %s", text)
	}
	noKey(t, text)
}

func TestALoggerAboveDebugGetsNoLineForACall(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	log, written := recorder(slog.LevelInfo)
	if _, _, err := get(t, client(t, transport.Options{Endpoint: endpoint(s.URL), Logger: log}), s.URL); err != nil {
		t.Fatal(err)
	}
	if _, text := written(t); text != "" {
		t.Errorf("the log holds %s", text)
	}
}

func TestARequestWithoutABodyIsLoggedAsSendingNothing(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 || len(r.TransferEncoding) != 0 {
			t.Errorf("the request has length %d and encoding %v", r.ContentLength, r.TransferEncoding)
		}
	})
	log, written := recorder(slog.LevelDebug)
	c := client(t, transport.Options{Endpoint: endpoint(s.URL), Logger: log})
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL+"/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	lines, text := written(t)
	if len(lines) != 1 || lines[0]["method"] != "GET" || lines[0]["path"] != "/models" || lines[0]["sent"] != 0.0 {
		t.Errorf("the log holds %s", text)
	}
}

func TestAnAzureKeyTravelsAloneInItsOwnHeader(t *testing.T) {
	var got http.Header
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	ep := endpoint(s.URL)
	ep.Headers = []router.Header{{Name: "API-Key", Value: "smuggled"}}
	auth := &transport.Auth{Header: "api-key", Source: func() (transport.Secret, error) { return transport.NewSecret(key), nil }}
	if _, _, err := get(t, client(t, transport.Options{Endpoint: ep, Auth: auth}), s.URL); err != nil {
		t.Fatal(err)
	}
	if v := got.Values("Api-Key"); len(v) != 1 || v[0] != key {
		t.Errorf("Api-Key = %q", v)
	}
	if v := got.Get("Authorization"); v != "" {
		t.Errorf("Authorization = %q", v)
	}
}
