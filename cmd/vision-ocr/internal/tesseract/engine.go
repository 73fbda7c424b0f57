// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tesseract runs the Tesseract OCR program on one picture at a time
// and reads its TSV output into blocks, lines and words with positions and
// confidences. engine.go is the rim that starts processes; page.go and tsv.go
// are pure.
package tesseract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/visionoperator/vision-operator/cmd/vision-ocr/internal/picture"
)

const (
	// maxOutput bounds what is kept of the program's standard output. A page
	// of 50 million pixels dense with text stays below 8 MiB.
	maxOutput = 32 << 20
	// maxDiagnostics bounds what is kept of its standard error.
	maxDiagnostics = 4 << 10
	// startTimeout bounds the questions that Open asks the program.
	startTimeout = 15 * time.Second
	// killDelay is how long a killed program may hold its pipes open.
	killDelay = 2 * time.Second
)

// Engine is an installed Tesseract with chosen languages. It may be used by
// many goroutines; each Recognise is one single-threaded process.
type Engine struct {
	path      string
	languages []string
	version   string
}

// Failure says why the program gave no text.
type Failure struct {
	// Doing is what was being done, as a gerund.
	Doing string
	// Detail is what the program said, shortened; it never holds the picture's text.
	Detail string
	// Err is the cause: the context's error when time ran out.
	Err error
}

func (e *Failure) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("%s: %v", e.Doing, e.Err)
	}
	return fmt.Sprintf("%s: %v: %s", e.Doing, e.Err, e.Detail)
}

func (e *Failure) Unwrap() error { return e.Err }

// ErrMissingLanguage is the cause when the training data of a language are not installed.
var ErrMissingLanguage = errors.New("language not installed")

// errOutputTooLarge is the cause when the program wrote more than maxOutput.
var errOutputTooLarge = fmt.Errorf("more than %d bytes of output", maxOutput)

// Open finds the program at path (a name is looked up in PATH) and asks it for
// its version and languages. languages are Tesseract's codes, such as "eng";
// at least one. Its errors are *Failure.
func Open(ctx context.Context, path string, languages []string) (*Engine, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return nil, &Failure{Doing: "finding tesseract", Err: err, Detail: "install it with: apt-get install -y tesseract-ocr"}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	e := &Engine{path: found, languages: slices.Clone(languages)}
	out, err := e.run(ctx, "asking tesseract for its version", nil, "--version")
	if err != nil {
		return nil, err
	}
	e.version = version(string(out))
	out, err = e.run(ctx, "asking tesseract for its languages", nil, "--list-langs")
	if err != nil {
		return nil, err
	}
	installed := strings.Fields(string(out))
	for _, l := range languages {
		if !slices.Contains(installed, l) {
			return nil, &Failure{
				Doing: fmt.Sprintf("choosing language %q", l), Err: ErrMissingLanguage,
				Detail: "install it with: apt-get install -y tesseract-ocr-" + strings.ReplaceAll(strings.ToLower(l), "_", "-"),
			}
		}
	}
	return e, nil
}

// version reads "tesseract 5.3.0" from the first line of --version.
func version(out string) string {
	first, _, _ := strings.Cut(out, "\n")
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(first), "tesseract "))
}

// Version is the program's, such as "5.3.0".
func (e *Engine) Version() string { return e.version }

// Languages are the chosen codes joined by "+", as Tesseract writes them.
func (e *Engine) Languages() string { return strings.Join(e.languages, "+") }

// Recognise reads the text of one picture; positions are the picture's pixels.
// A picture that was enlarged and turns out to be written in high letters is
// read once more as it came. The process, and whatever it started, is killed
// when ctx ends. Errors are *Failure or *TSVError.
func (e *Engine) Recognise(ctx context.Context, pixels *picture.Raster) (Page, error) {
	scale := enlargement(pixels.Width, pixels.Height)
	page, err := e.recogniseAt(ctx, pixels, scale)
	if err != nil || scale == 1 || page.wordHeight() < highWord {
		return page, err
	}
	return e.recogniseAt(ctx, pixels, 1)
}

func (e *Engine) recogniseAt(ctx context.Context, pixels *picture.Raster, scale int) (Page, error) {
	out, err := e.run(ctx, "recognising text", pixels.Enlarged(scale).PGM(), "stdin", "stdout",
		"-l", e.Languages(), "--psm", pageSegmentation, "-c", "tessedit_create_tsv=1")
	if err != nil {
		return Page{}, err
	}
	page, err := ParseTSV(string(out))
	if err != nil {
		return Page{}, err
	}
	return page.Reduced(scale), nil
}

// highWord is from where on, as the median height of a picture's words in its
// own pixels, doubling harms: measured on sentences in a Go font, 1 of 240 was
// misread at 20 and 24 pixels when doubled, 7 of 240 at 28 and 36, and at these
// none of 160 as they came. Words of 28 pixels' letters are about 20 pixels high.
const highWord = 19

// pageSegmentation 3 is "fully automatic, without orientation detection". On
// rendered text it finds the same words as 6 and 11 and, unlike 6, keeps
// columns apart.
const pageSegmentation = "3"

// maxEnlarged is the most pixels that are enlarged: a screenshot of 2560x1600.
// Larger pictures come from dense screens and scanners, whose letters are high
// enough, and four times their pixels would cost seconds.
const maxEnlarged = 2560 * 1600

// enlargement says how many times a picture is enlarged before recognition.
// Tesseract is trained on letters about 30 pixels high. Measured over DejaVu
// Sans and Sans Mono at 10 to 32 pixels (14 settings of 162 random words,
// black, grey and inverted): 43 wrong words as they come, 14 when doubled, 34
// when tripled, at 1.0, 1.3 and 1.5 times the time; at 10 and 11 pixels 41, 8
// and 18.
func enlargement(width, height int) int {
	if width*height > maxEnlarged || max(width, height)*2 > picture.MaxSide {
		return 1
	}
	return 2
}

// run starts the program once with the given standard input; nil is an empty one.
func (e *Engine) run(ctx context.Context, doing string, stdin io.Reader, args ...string) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout := &bounded{limit: maxOutput, full: func() { cancel(errOutputTooLarge) }}
	stderr := &bounded{limit: maxDiagnostics}
	cmd := exec.CommandContext(ctx, e.path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.Env = environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killDelay
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, &Failure{Doing: doing, Err: cause}
		}
		return nil, &Failure{Doing: doing, Err: err, Detail: strings.TrimSpace(stderr.kept.String())}
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, &Failure{Doing: doing, Err: cause}
	}
	return stdout.kept.Bytes(), nil
}

// environment is all that the program is given: one thread, UTF-8, and where
// the training data lie when that was said.
func environment() []string {
	env := []string{"OMP_THREAD_LIMIT=1", "LC_ALL=C.UTF-8"}
	if dir := os.Getenv("TESSDATA_PREFIX"); dir != "" {
		env = append(env, "TESSDATA_PREFIX="+dir)
	}
	return env
}

// bounded keeps the first limit bytes written to it, and calls full (when set)
// at the first byte beyond. It always accepts, so that the writer never
// blocks. (The buffer is not embedded: its ReadFrom would pass the limit by.)
type bounded struct {
	kept  bytes.Buffer
	limit int
	full  func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.kept.Len(); len(p) > room {
		b.kept.Write(p[:room])
		if b.full != nil {
			b.full()
		}
		return len(p), nil
	}
	return b.kept.Write(p)
}
