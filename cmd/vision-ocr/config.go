// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/visionoperator/vision-operator/cmd/internal/build"
)

// config is what the command line says.
type config struct {
	listen        string
	tesseract     string
	languages     []string
	maxConcurrent int
	timeout       time.Duration
	maxBodyBytes  byteSize
	model         string
	apiKeyFile    string
	showVersion   bool
}

// usageError is a command line that cannot work.
type usageError struct{ problem string }

func (e *usageError) Error() string { return "reading command line: " + e.problem }

// language is the form of Tesseract's codes: eng, chi_sim, script/Latin. It
// keeps a value from being read as an option or a path.
var language = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)?$`)

// parseFlags reads and checks the command line. --help prints to out and gives pflag.ErrHelp.
func parseFlags(args []string, out io.Writer) (config, error) {
	cfg := config{maxBodyBytes: 64 << 20}
	languages := ""
	flags := pflag.NewFlagSet("vision-ocr", pflag.ContinueOnError)
	flags.SetOutput(out)
	flags.SortFlags = false
	flags.StringVar(&cfg.listen, "listen", "127.0.0.1:8973", "address to serve on")
	flags.StringVar(&cfg.tesseract, "tesseract", "tesseract", "path of the tesseract program; a name is looked up in PATH")
	flags.StringVar(&languages, "languages", "eng", "languages to read, as tesseract's codes joined by commas or +")
	flags.IntVar(&cfg.maxConcurrent, "max-concurrent", runtime.GOMAXPROCS(0), "requests to recognise at a time; eight times as many may wait")
	flags.DurationVar(&cfg.timeout, "timeout", time.Minute, "longest time for one request, waiting included")
	flags.Var(&cfg.maxBodyBytes, "max-body-bytes", "largest body of a request, in bytes or with Ki, Mi or Gi")
	flags.StringVar(&cfg.model, "model", "tesseract", "id of the model that is served")
	flags.StringVar(&cfg.apiKeyFile, "api-key-file", "", "file with the key that callers must send as a bearer token; without it none is asked for")
	flags.BoolVar(&cfg.showVersion, "version", false, "print the version and exit")
	flags.Usage = func() {
		fmt.Fprintf(out, "vision-ocr serves OpenAI's Chat Completions protocol, backed by Tesseract OCR.\n\nUsage:\n  vision-ocr [flags]\n\nFlags:\n%s", flags.FlagUsages())
	}
	if err := flags.Parse(args); err != nil {
		if err == pflag.ErrHelp { //nolint:errorlint // pflag's own sentinel, never wrapped
			return cfg, err
		}
		return cfg, &usageError{problem: err.Error()}
	}
	cfg.languages = strings.FieldsFunc(languages, func(r rune) bool { return r == ',' || r == '+' })
	return cfg, cfg.check(flags.Args())
}

func (c config) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return &usageError{problem: fmt.Sprintf("there are no arguments beside the flags; got %q", rest[0])}
	case len(c.languages) == 0:
		return &usageError{problem: "--languages names none"}
	case c.maxConcurrent < 1 || c.maxConcurrent > 1024:
		return &usageError{problem: "--max-concurrent must be 1 to 1024"}
	case c.timeout <= 0:
		return &usageError{problem: "--timeout must be more than zero"}
	case c.maxBodyBytes < 1:
		return &usageError{problem: "--max-body-bytes must be at least 1"}
	case c.model == "":
		return &usageError{problem: "--model must not be empty"}
	}
	for _, l := range c.languages {
		if !language.MatchString(l) {
			return &usageError{problem: fmt.Sprintf("--languages: %q is not a language code of tesseract", l)}
		}
	}
	return nil
}

// maxKeyBytes bounds the key file.
const maxKeyBytes = 4096

// readKey reads the key file, without its line end; no file means no key.
func readKey(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading API key: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyBytes+1))
	if err != nil {
		return "", fmt.Errorf("reading API key: %w", err)
	}
	key := bytes.TrimSpace(data)
	if len(key) == 0 || len(data) > maxKeyBytes {
		return "", &usageError{problem: fmt.Sprintf("--api-key-file: %s must hold a key of 1 to %d bytes", path, maxKeyBytes)}
	}
	return string(key), nil
}

// byteSize is a number of bytes, written plainly or with Ki, Mi or Gi.
type byteSize int64

// String writes the size with the largest unit that divides it.
func (b *byteSize) String() string {
	for _, u := range byteUnits {
		if *b != 0 && *b%u.size == 0 {
			return strconv.FormatInt(int64(*b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Set reads a size.
func (b *byteSize) Set(text string) error {
	unit := byteSize(1)
	for _, u := range byteUnits {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = digits, u.size
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/int64(unit) {
		return &usageError{problem: "a size is a whole number, alone or with Ki, Mi or Gi"}
	}
	*b = byteSize(n) * unit
	return nil
}

// Type names the value in the help.
func (b *byteSize) Type() string { return "size" }

var byteUnits = []struct {
	name string
	size byteSize
}{{"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}}

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version = ""

// buildVersion is the version that --version prints.
func buildVersion() string { return build.Version(version) }
