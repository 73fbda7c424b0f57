// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
	"github.com/visionoperator/vision-operator/runtime/router"
	"github.com/visionoperator/vision-operator/runtime/serve/tool"
	"github.com/visionoperator/vision-operator/runtime/telemetry"
)

func TestAViewIsAnsweredOnceByTheModelAndThenByTheCache(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, log := w.start()
	path := w.picture("disk.png")

	first := view(t, s, path, "What does the dialog say?")
	if first.status != http.StatusOK {
		t.Fatalf("status %d: %s", first.status, first.body)
	}
	body := first.object(t)
	if got := body["observation"].(map[string]any)["summary"]; got != summary {
		t.Errorf("summary is %q", got)
	}
	reference := body["visual_reference"].(map[string]any)
	if reference["path"] != path || reference["mime"] != "image/png" || !strings.HasPrefix(reference["id"].(string), "vis_") {
		t.Errorf("reference is %v", reference)
	}
	if size := reference["size"].(map[string]any); size["width"] != 64.0 || size["height"] != 48.0 {
		t.Errorf("size is %v", size)
	}
	if body["cached"] != false {
		t.Error("the first answer says that it comes from the cache")
	}

	second := view(t, s, path, "What does the dialog say?").object(t)
	if second["cached"] != true {
		t.Error("the second answer does not come from the cache")
	}
	if n := w.upstream.calls(); n != 1 {
		t.Errorf("the model was called %d times", n)
	}
	if got := w.upstream.keys[0]; got != "Bearer "+key {
		t.Errorf("the model was sent the key %q", got)
	}
	picture, _ := os.ReadFile(path)
	encoded := base64.StdEncoding.EncodeToString(picture)
	if !bytes.Contains(w.upstream.bodies[0], []byte(encoded)) {
		t.Error("the model was not sent the image")
	}
	for what, text := range map[string]string{"the answer": string(first.body), "the log": log.String()} {
		if strings.Contains(text, encoded[:40]) || strings.Contains(text, key) {
			t.Errorf("%s holds image bytes or the key", what)
		}
	}
	if strings.Contains(log.String(), "dialog") || strings.Contains(log.String(), path) {
		t.Error("the log holds a prompt or a path")
	}
}

func TestTheLogTellsDecisionsAtDebugAndOutcomesAtInfo(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		t.Run(level.String(), func(t *testing.T) {
			w := newWorld(t)
			w.publish(nil)
			cfg := w.config()
			cfg.logLevel = level
			log := &lines{}
			s, err := start(cfg, newLogger(log, level))
			if err != nil {
				t.Fatal(err)
			}
			for _, model := range []string{"lab@main/eye-1", "lab@main/text-1", "lab@main/what-somebody-typed"} {
				post(t, s.url("/v1/view-image"), fmt.Appendf(nil, `{"path":%q,"prompt":"x","model":%q}`, w.picture("a.png"), model))
			}
			if err := s.shutdown(time.Second); err != nil {
				t.Fatal(err)
			}
			for text, from := range map[string]slog.Level{
				"lab@main/eye-1 model_advertises_image_input": slog.LevelDebug,
				"lab@main/text-1 model_lacks_image_input":     slog.LevelDebug,
				"route_not_in_router":                         slog.LevelDebug,
				"view answered":                               slog.LevelInfo,
			} {
				if got, want := strings.Contains(log.String(), text), level <= from; got != want {
					t.Errorf("%q in the log: %t; want %t", text, got, want)
				}
			}
			if strings.Contains(log.String(), "somebody") {
				t.Error("the log repeats a route that is not the router's")
			}
		})
	}
}

func TestAPromptThatLooksLikeANumberIsSentAsText(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	got := post(t, s.url("/v1/view-image"), fmt.Appendf(nil, `{"path":%q,"prompt":"42"}`, w.picture("a.png")))
	if got.status != http.StatusOK || got.object(t)["observation"].(map[string]any)["prompt"] != "42" {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}

// badInput is a request that must be refused without ending the runtime.
type badInput struct {
	name   string
	path   func(w *world) string
	status int
	kind   string
	reason string // not checked when empty
}

func badInputs() []badInput {
	return []badInput{
		{"a file that is no image", func(w *world) string {
			return w.file("notes.png", []byte("just words, whatever the name says"))
		}, 400, "invalid_tool_input", ""},
		{"an empty file", func(w *world) string { return w.file("empty.png", nil) }, 400, "invalid_tool_input", ""},
		{"a path outside the workspace", func(*world) string { return "/etc/passwd" }, 403, "policy_denied", "OutsideWorkspace"},
		{"a path that climbs out", func(w *world) string { return w.workspace + "/../../../etc/passwd" }, 403, "policy_denied", "OutsideWorkspace"},
		{"the runtime's own keys", func(w *world) string { return w.secrets + "/team-a/lab" }, 403, "policy_denied", "OutsideWorkspace"},
		{"a symlink that leads out", func(w *world) string {
			return w.link("out.png", "/etc/passwd")
		}, 403, "policy_denied", "OutsideWorkspace"},
		{"a FIFO", func(w *world) string {
			path := filepath.Join(w.workspace, "pipe.png")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				w.t.Fatal(err)
			}
			return path
		}, 400, "invalid_tool_input", ""},
		{"a directory", func(w *world) string { return w.workspace }, 400, "invalid_tool_input", ""},
		{"a file of 21 MiB", func(w *world) string {
			path := w.picture("huge.png")
			if err := os.Truncate(path, 21<<20); err != nil {
				w.t.Fatal(err)
			}
			return path
		}, 400, "budget_exceeded", ""},
		{"a PNG that claims 100000x100000 pixels", func(w *world) string {
			return w.file("bomb.png", pngHeader(100_000, 100_000))
		}, 400, "budget_exceeded", ""},
		{"a file that is not there", func(w *world) string { return filepath.Join(w.workspace, "none.png") }, 400, "invalid_tool_input", ""},
		{"a blank path", func(*world) string { return " " }, 400, "invalid_tool_input", ""},
		{"a path with a NUL", func(w *world) string { return w.workspace + "/a\x00.png" }, 400, "invalid_tool_input", ""},
	}
}

func TestBadInputIsRefusedByKindAndTheRuntimeLivesOn(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	for _, test := range badInputs() {
		t.Run(test.name, func(t *testing.T) {
			got := view(t, s, test.path(w), "look")
			f := got.fault(t)
			if got.status != test.status || f["kind"] != test.kind || (test.reason != "" && f["reason"] != test.reason) {
				t.Errorf("status %d, %v; want %d %s %s", got.status, f, test.status, test.kind, test.reason)
			}
			if f["message"] == "" || f["retryable"] != false || got.header.Get("x-should-retry") != "false" {
				t.Errorf("fault is %v, x-should-retry %q", f, got.header.Get("x-should-retry"))
			}
		})
	}
	if n := w.upstream.calls(); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
	if got := view(t, s, w.picture("good.png"), "look"); got.status != http.StatusOK {
		t.Errorf("after all that a good image gives %d: %s", got.status, got.body)
	}
}

func TestAFailedObservationStillReturnsTheReference(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	w.upstream.set(func(u *upstream) { u.status = http.StatusUnauthorized })
	s, log := w.start()
	got := view(t, s, w.picture("a.png"), "look")
	if f := got.fault(t); got.status != http.StatusBadGateway || f["kind"] != "vision_observation_failed" {
		t.Fatalf("status %d, %v", got.status, f)
	}
	body := got.object(t)
	if body["visual_reference"] == nil || body["vision_selection"] == nil {
		t.Errorf("no reference or no selection: %s", got.body)
	}
	if strings.Contains(string(got.body)+log.String(), key) {
		t.Error("a key that the upstream repeated reached the answer or the log")
	}
}

func TestAModelThatIsTextOnlyIsRefusedWithItsReference(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	got := post(t, s.url("/v1/view-image"), fmt.Appendf(nil, `{"path":%q,"prompt":"x","model":"lab@main/text-1"}`, w.picture("a.png")))
	if f := got.fault(t); got.status != http.StatusFailedDependency || f["kind"] != "vision_adapter_unavailable" {
		t.Errorf("status %d, %v", got.status, f)
	}
	if got.object(t)["visual_reference"] == nil {
		t.Errorf("no reference: %s", got.body)
	}
}

func TestTheRunningRuntimeObeysTheNewestDocument(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start()
	path := w.picture("a.png")

	got := view(t, s, path, "look")
	if f := got.fault(t); got.status != 503 || f["kind"] != "router_unavailable" || got.header.Get("x-should-retry") != "true" {
		t.Fatalf("without a document: status %d, %v", got.status, f)
	}
	if status := get(t, "http://"+s.healthAt.String()+"/readyz").status; status != 503 {
		t.Errorf("readyz without a document: %d", status)
	}

	w.publish(nil)
	eventually(t, "the first document serves", func() bool { return view(t, s, path, "look").status == 200 })
	if status := get(t, "http://"+s.healthAt.String()+"/readyz").status; status != 200 {
		t.Errorf("readyz with a document: %d", status)
	}
	good := get(t, s.url("/v1/router")).object(t)["digest"]

	w.publishBytes([]byte(`{"version":"router/v1","profiles":[`))
	eventually(t, "the failure is told", func() bool { return get(t, s.url("/v1/router")).object(t)["lastError"] != nil })
	if got := view(t, s, path, "look again"); got.status != 200 {
		t.Errorf("with a document that does not parse: %d %s", got.status, got.body)
	}
	if digest := get(t, s.url("/v1/router")).object(t)["digest"]; digest != good {
		t.Errorf("digest is %v; want the last good %v", digest, good)
	}

	w.publish(func(doc *router.Document) { doc.Profiles[0].Limits.Image.MaxPixels = 100 })
	eventually(t, "a lower limit is obeyed", func() bool {
		got := view(t, s, path, "look")
		return got.status == 400 && got.fault(t)["kind"] == "budget_exceeded"
	})

	w.publish(func(doc *router.Document) { doc.Profiles[0].Limits.Request.MaxBodyBytes = 10 })
	eventually(t, "a lower limit on bodies is obeyed", func() bool {
		got := view(t, s, path, "look")
		return got.status == 413 && got.fault(t)["reason"] == "BodyTooLarge"
	})

	w.publish(func(doc *router.Document) { doc.Profiles = []router.Profile{} })
	eventually(t, "a profile that is gone is refused", func() bool {
		got := view(t, s, path, "look")
		return got.status == 403 && got.fault(t)["reason"] == "ProfileNotFound"
	})
	if found := get(t, s.url("/v1/router")).object(t)["profileFound"]; found != false {
		t.Errorf("profileFound is %v", found)
	}
}

func (w *world) file(name string, data []byte) string {
	path := filepath.Join(w.workspace, name)
	w.write(path, data)
	return path
}

func (w *world) link(name, target string) string {
	path := filepath.Join(w.workspace, name)
	if err := os.Symlink(target, path); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// pngHeader is the beginning of a PNG of a size, with a valid checksum and no pixels.
func pngHeader(width, height uint32) []byte {
	chunk := append([]byte("IHDR"), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)...)
	chunk = append(chunk, 8, 2, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	out = append(out, chunk...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(chunk))
}

func TestAPanicBecomesAFaultAndIsCounted(t *testing.T) {
	log := &lines{}
	broken := &app{log: newLogger(log, slog.LevelInfo), metrics: telemetry.New(time.Now())} // it has no engine
	_, err := broken.view(t.Context(), tool.Call{Args: tool.Args{Path: "/secret/path.png", Prompt: "secret prompt"}})
	if f := fault.As(err); f.Kind != fault.VisionObservationFailed || f.Reason != "Internal" {
		t.Errorf("got %v", err)
	}
	var text bytes.Buffer
	_ = broken.metrics.Write(&text, telemetry.State{})
	if !strings.Contains(text.String(), `{outcome="vision_observation_failed"} 1`) {
		t.Errorf("not counted:\n%s", &text)
	}
	if !strings.Contains(log.String(), "panicked") || strings.Contains(log.String(), "secret") {
		t.Errorf("log is %s", log.String())
	}
}

func TestAnAnswerDoesNotRepeatALongArgument(t *testing.T) {
	w := newWorld(t)
	w.publish(nil)
	s, _ := w.start()
	long := strings.Repeat("x", 100_000)
	for what, body := range map[string]string{
		"a path in the workspace": fmt.Sprintf(`{"path":"%s/%s","prompt":"p"}`, w.workspace, long),
		"a path outside":          fmt.Sprintf(`{"path":"/%s","prompt":"p"}`, long),
		"a model":                 fmt.Sprintf(`{"path":%q,"prompt":"p","model":"%s"}`, w.picture("a.png"), long),
		"a route":                 fmt.Sprintf(`{"path":%q,"prompt":"p","model":"lab@main/%s"}`, w.picture("a.png"), long),
	} {
		got := post(t, s.url("/v1/view-image"), []byte(body))
		if got.status < 400 || len(got.body) > 8192 {
			t.Errorf("%s: status %d, %d bytes: %.300s", what, got.status, len(got.body), got.body)
		}
	}
}
