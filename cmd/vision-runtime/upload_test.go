// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// startWithCache runs a runtime that has a cache directory, as in a pod.
func (w *world) startWithCache() (*server, *lines) {
	w.t.Helper()
	cfg := w.config()
	cfg.cache = w.t.TempDir()
	log := &lines{}
	s, err := start(cfg, newLogger(log, slog.LevelDebug))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.shutdown(time.Second) })
	return s, log
}

// loose is a picture that lies in no workspace.
func (w *world) loose(name string) []byte {
	w.t.Helper()
	path := w.picture(name)
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		w.t.Fatal(err)
	}
	return data
}

// upload sends bytes as an image; length -1 sends them in chunks.
func upload(t *testing.T, s *server, data []byte, length int64) answer {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.url("/v1/images"), io.MultiReader(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = length
	r.Header.Set("Content-Type", "image/png")
	return do(t, r)
}

func TestAnUploadedImageIsLookedAtByItsReference(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, log := w.startWithCache()
	data := w.loose("loose.png")

	got := upload(t, s, data, int64(len(data)))
	if got.status != http.StatusCreated {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	kept := got.object(t)
	uri := kept["uri"].(string)
	if again := upload(t, s, data, -1); again.status != http.StatusOK || string(again.body) != string(got.body) {
		t.Errorf("the same bytes again: status %d: %s", again.status, again.body)
	}
	if found := get(t, s.url(got.header.Get("Location"))); found.status != http.StatusOK || string(found.body) != string(got.body) {
		t.Errorf("at %q: status %d: %s", got.header.Get("Location"), found.status, found.body)
	}

	seen := view(t, s, uri, "look")
	if seen.status != http.StatusOK {
		t.Fatalf("looking at %s: status %d: %s", uri, seen.status, seen.body)
	}
	if ref, want := seen.object(t)["visual_reference"].(map[string]any), kept["visual_reference"].(map[string]any); ref["sha256"] != want["sha256"] || ref["path"] != uri {
		t.Errorf("reference is %v; want %v", ref, want)
	}
	w.upstream.mu.Lock()
	sent := w.upstream.bodies[0]
	w.upstream.mu.Unlock()
	if !bytes.Contains(sent, []byte(base64.StdEncoding.EncodeToString(data))) {
		t.Error("the model was not sent the uploaded bytes")
	}
	overMCP := callTool(t, session(t, streamable(s)), map[string]any{"path": uri, "prompt": "look"})
	if overMCP.IsError || overMCP.StructuredContent.(map[string]any)["cached"] != true {
		t.Errorf("over MCP: %s", text(t, overMCP))
	}
	if strings.Contains(log.String(), kept["visual_reference"].(map[string]any)["sha256"].(string)) {
		t.Errorf("the log names the image:\n%s", log)
	}
	if !strings.Contains(log.String(), `"msg":"upload answered"`) {
		t.Errorf("the upload is not logged:\n%s", log)
	}
}

func TestAViewedImageIsFoundByItsReference(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.startWithCache()
	path := w.picture("a.png")
	id := view(t, s, path, "look").object(t)["visual_reference"].(map[string]any)["id"].(string)
	found := get(t, s.url("/v1/references/"+id))
	if found.status != http.StatusOK {
		t.Fatalf("status %d: %s", found.status, found.body)
	}
	kept := found.object(t)
	if kept["uploaded"] != false || kept["visual_reference"].(map[string]any)["path"] != path {
		t.Errorf("kept is %v", kept)
	}
	if got := view(t, s, kept["uri"].(string), "look"); got.status != http.StatusOK || got.object(t)["cached"] != true {
		t.Errorf("by its reference: status %d: %s", got.status, got.body)
	}
	w.write(path, w.loose("another.png"))
	if got := view(t, s, kept["uri"].(string), "look"); got.status < 400 {
		t.Errorf("a file that changed is still looked at by its reference: %s", got.body)
	}
	if got := get(t, s.url("/v1/references/vis_0000000000000000")); got.status != 404 || got.fault(t)["reason"] != "ReferenceUnknown" {
		t.Errorf("one that is not kept: status %d: %s", got.status, got.body)
	}
	if got := view(t, s, "vision://vis_0000000000000000", "look"); got.status != 400 || got.fault(t)["reason"] != "ReferenceUnknown" {
		t.Errorf("looking at one that is not kept: status %d: %s", got.status, got.body)
	}
}

func TestThePolicyBoundsUploads(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.startWithCache()
	data := w.loose("a.png")
	if got := upload(t, s, []byte("this is text, whatever its type says"), 36); got.status != 400 || got.fault(t)["kind"] != "invalid_tool_input" {
		t.Errorf("text: status %d: %s", got.status, got.body)
	}
	if got := upload(t, s, nil, 0); got.status != 400 {
		t.Errorf("nothing: status %d: %s", got.status, got.body)
	}
	if got := upload(t, s, pngHeader(100_000, 100_000), -1); got.status < 400 {
		t.Errorf("too many pixels: status %d: %s", got.status, got.body)
	}
	w.publish(func(doc *router.Document) { doc.Profiles[0].Limits.Request.MaxTotalImageBytes = 10 })
	eventually(t, "a lower limit is obeyed", func() bool { return upload(t, s, data, int64(len(data))).status == 413 })
	for name, length := range map[string]int64{"with its length": int64(len(data)), "chunked": -1} {
		got := upload(t, s, data, length)
		f := got.fault(t)
		details, _ := f["details"].(map[string]any)
		if got.status != 413 || f["kind"] != "budget_exceeded" || details["max_body_bytes"] != 10.0 || !strings.Contains(f["message"].(string), "10") {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
		}
	}
	w.publish(func(doc *router.Document) { doc.Profiles = []router.Profile{} })
	eventually(t, "without a profile uploads are refused", func() bool {
		got := upload(t, s, data, -1)
		return got.status == 403 && got.fault(t)["reason"] == "ProfileNotFound"
	})
}

func TestTheCallersOwnModelIsTriedFirst(t *testing.T) {
	w := newWorld(t)
	w.publish(func(doc *router.Document) {
		doc.Providers[0].Models = append(doc.Providers[0].Models, router.Model{Name: "eye-2", ImageInput: true})
	})
	s, _ := w.start()
	body := fmt.Appendf(nil, `{"path":%q,"prompt":"look"}`, w.picture("a.png"))
	ask := func(primary string) answer {
		r, err := http.NewRequest(http.MethodPost, s.url("/v1/view-image"), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Vision-Primary-Model", primary)
		return do(t, r)
	}
	chosen := func(selection any) (mode, ref any) {
		s := selection.(map[string]any)
		return s["selected_mode"], s["vision_model_ref"]
	}
	for primary, want := range map[string][2]string{
		"":                {"vision_adapter", "lab@main/eye-1"},
		"lab@main/eye-2":  {"native_image_with_observation", "lab@main/eye-2"},
		"lab/eye-2":       {"native_image_with_observation", "lab@main/eye-2"},
		"lab@main/text-1": {"vision_adapter", "lab@main/eye-1"},
		"far@away/gpt-6":  {"vision_adapter", "lab@main/eye-1"},
	} {
		got := ask(primary)
		if got.status != http.StatusOK {
			t.Errorf("%q: status %d: %s", primary, got.status, got.body)
			continue
		}
		if mode, ref := chosen(got.object(t)["vision_selection"]); mode != want[0] || ref != want[1] {
			t.Errorf("%q: %v %v; want %v", primary, mode, ref, want)
		}
	}
	if got := ask("gpt-6"); got.status != 400 || !strings.Contains(got.fault(t)["message"].(string), "X-Vision-Primary-Model") {
		t.Errorf("a header that is no route: status %d: %s", got.status, got.body)
	}
	overMCP, err := session(t, streamable(s)).CallTool(t.Context(), &sdk.CallToolParams{
		Meta: sdk.Meta{"visionoperator.dev/primary-model": "lab@main/eye-2"}, Name: "ViewImage", Arguments: json.RawMessage(body),
	})
	if err != nil {
		t.Fatal(err)
	}
	if mode, ref := chosen(overMCP.StructuredContent.(map[string]any)["vision_selection"]); mode != "native_image_with_observation" || ref != "lab@main/eye-2" {
		t.Errorf("over MCP: %v %v", mode, ref)
	}
}

func TestObservationsOutliveTheRuntimeWhereThePolicySaysSo(t *testing.T) {
	for persist, calls := range map[bool]int{true: 1, false: 2} {
		w := newWorld(t)
		w.publish(func(d *router.Document) { d.Profiles[0].Cache.Persist = persist })
		path := w.picture("a.png")
		for run := range 2 {
			s, _ := w.start()
			got := view(t, s, path, "look")
			if cached := got.object(t)["cached"]; got.status != http.StatusOK || cached != (persist && run == 1) {
				t.Errorf("persist %t, run %d: status %d, cached %v", persist, run, got.status, cached)
			}
			if err := s.shutdown(time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.upstream.calls(); got != calls {
			t.Errorf("persist %t: %d calls; want %d", persist, got, calls)
		}
	}
}
