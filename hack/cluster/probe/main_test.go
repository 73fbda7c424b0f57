// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeSaysWhatItSees(t *testing.T) {
	file := filepath.Join(t.TempDir(), "greeting")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler(http.DefaultClient))
	defer server.Close()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		status     int
		body       string
	}{
		{"the host's name", "/", http.StatusOK, name + "\n"},
		{"a file", "/read?file=" + url.QueryEscape(file), http.StatusOK, "hello"},
		{"a missing file", "/read?file=" + url.QueryEscape(file+"2"), http.StatusNotFound, "no such file"},
		{"another server", "/get?url=" + url.QueryEscape(server.URL+"/"), http.StatusOK, name + "\n"},
		{"another server's error", "/get?url=" + url.QueryEscape(server.URL+"/read?file=/missing"), http.StatusBadGateway, "404 Not Found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, err := http.Get(server.URL + c.path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status || !strings.Contains(string(body), c.body) {
				t.Errorf("the answer is %s %q; want %d %q", response.Status, body, c.status, c.body)
			}
		})
	}
}

func TestTheHookAddsItsLabelAndKeepsTheOthers(t *testing.T) {
	in := `{"request": {"uid": "u1", "object": {"metadata": {"labels": {"app": "web"}}}}}`
	w := httptest.NewRecorder()
	mutate(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(in)))
	var out struct {
		Response struct {
			UID     string `json:"uid"`
			Allowed bool   `json:"allowed"`
			Patch   []byte `json:"patch"`
		} `json:"response"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"add","path":"/metadata/labels","value":{"app":"web","probe":"seen"}}]`
	if out.Response.UID != "u1" || !out.Response.Allowed || string(out.Response.Patch) != want {
		t.Errorf("the answer is %s", w.Body)
	}
	w = httptest.NewRecorder()
	mutate(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{")))
	if w.Code != http.StatusBadRequest {
		t.Errorf("half a review is answered with %d", w.Code)
	}
}
