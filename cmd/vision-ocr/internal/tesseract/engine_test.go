// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tesseract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/picture"
)

// open gives the installed engine; without one the test fails and says what to run.
func open(t testing.TB) *Engine {
	t.Helper()
	engine, err := Open(t.Context(), "tesseract", []string{"eng"})
	if err != nil {
		t.Fatalf("these tests run the real Tesseract: %v", err)
	}
	return engine
}

// program writes a shell script in tesseract's place. It answers to what Open
// asks; body runs for everything else.
func program(t *testing.T, body string) *Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	script := "#!/bin/sh\ncase \"$1\" in\n--version) echo 'tesseract 9.8.7'; exit;;\n--list-langs) echo eng; exit;;\nesac\n" + body + "\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	engine, err := Open(t.Context(), path, []string{"eng"})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func blank() *picture.Raster {
	r := &picture.Raster{Width: 120, Height: 60, Pix: make([]byte, 120*60)}
	for i := range r.Pix {
		r.Pix[i] = 255
	}
	return r
}

func screenshot(t testing.TB) *picture.Raster {
	t.Helper()
	data, err := os.ReadFile("../../../../test/images/release-dashboard.png")
	if err != nil {
		t.Fatal(err)
	}
	r, err := picture.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheRealEngineReadsAScreenshotsParagraph(t *testing.T) {
	engine := open(t)
	if !strings.HasPrefix(engine.Version(), "5.") || engine.Languages() != "eng" {
		t.Errorf("version %q, languages %q", engine.Version(), engine.Languages())
	}
	page, err := engine.Recognise(t.Context(), screenshot(t))
	if err != nil {
		t.Fatal(err)
	}
	if page.Width != 1280 || page.Height != 800 {
		t.Errorf("the page is %dx%d, not the picture's size", page.Width, page.Height)
	}
	text := strings.Join(strings.Fields(page.Text()), " ")
	for _, want := range []string{
		"Release 4.18.2 of the checkout service was stopped at 09:42 after the second of six replicas failed its readiness check three times in a row.",
		"The new version could not open a connection to the payments database because the password in the rotated secret still has a trailing newline.",
		"Fix the secret, then press Retry to continue the rollout.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from %q", want, text)
		}
	}
	for _, l := range page.Lines() { // the heading is drawn at 64..333, 108..140
		if l.Text() == "Deployment failed" && (l.Box.X < 60 || l.Box.X > 70 || l.Box.Y < 104 || l.Box.Y > 120 || l.Box.Width < 260 || l.Box.Width > 276) {
			t.Errorf("the heading is said to be at %+v", l.Box)
		}
	}
}

func TestTheRealEngineFindsNothingOnABlankPage(t *testing.T) {
	page, err := open(t).Recognise(t.Context(), blank())
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Blocks) != 0 || page.Text() != "" {
		t.Errorf("got %q", page.Text())
	}
}

func TestOpenNamesWhatIsMissing(t *testing.T) {
	_, err := Open(t.Context(), "no-such-program-here", []string{"eng"})
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "apt-get install -y tesseract-ocr") {
		t.Errorf("a missing program: %v", err)
	}
	open(t)
	_, err = Open(t.Context(), "tesseract", []string{"eng", "tlh_old"})
	if !errors.Is(err, ErrMissingLanguage) || !strings.Contains(err.Error(), "tesseract-ocr-tlh-old") {
		t.Errorf("a missing language: %v", err)
	}
}

func TestTheProcessAndItsChildrenEndWithTheContext(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	engine := program(t, fmt.Sprintf("sleep 300 & echo $$ $! > %s.part; mv %s.part %s; wait", pids, pids, pids))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := engine.Recognise(ctx, blank())
		done <- err
	}()
	var started []byte
	for len(started) == 0 {
		started, _ = os.ReadFile(pids)
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for _, field := range strings.Fields(string(started)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Second); running(pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("process %d lives on", pid)
			}
		}
	}
}

// running reports whether pid is a process that was not killed: one that
// waits for its parent to notice (Z) no longer runs.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func TestOutputIsBounded(t *testing.T) {
	_, err := program(t, "cat > /dev/null; exec yes 'a line without an end in sight'").Recognise(t.Context(), blank())
	if !errors.Is(err, errOutputTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestAFailureCarriesTheProgramsWords(t *testing.T) {
	_, err := program(t, "cat > /dev/null; echo 'no memory left' >&2; exit 3").Recognise(t.Context(), blank())
	failure, ok := errors.AsType[*Failure](err)
	if !ok || failure.Detail != "no memory left" || failure.Doing != "recognising text" {
		t.Errorf("got %v", err)
	}
}

func TestTheProgramGetsOneThreadAndNoneOfOurEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_OURS", "x")
	_, err := program(t, "cat > /dev/null; env >&2; exit 1").Recognise(t.Context(), blank())
	if err == nil || !strings.Contains(err.Error(), "OMP_THREAD_LIMIT=1") || strings.Contains(err.Error(), "SECRET_OF_OURS") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkRecogniseScreenshot(b *testing.B) {
	engine, pixels := open(b), screenshot(b)
	for b.Loop() {
		if _, err := engine.Recognise(b.Context(), pixels); err != nil {
			b.Fatal(err)
		}
	}
}
