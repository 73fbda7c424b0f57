// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testsummary turns the events of `go test -json` into a short report: one line for
// each package, the whole output of each test that failed, the names of the tests that were
// skipped, and at last how many tests passed and failed. It ends with 1 when anything failed
// or no test ran, since a run of no test proves nothing.
//
//	go test -json ./... | go run ./hack/testsummary
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is one line of `go test -json`, as `go doc test2json` gives it, and of a build that failed.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build's output
	Test       string // empty: the event is the package's own
	Elapsed    float64
	Output     string
}

// summary is what has been seen so far.
type summary struct {
	out             io.Writer
	output          map[string][]string // of packages, builds and tests that have not ended
	passed, failed  int                 // tests
	skipped         []string
	brokenPackages  []string // failed outside of any test: a build, a panic, a TestMain
	failedInPackage map[string]int
}

func main() {
	if err := report(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "testsummary: %v\n", err)
		os.Exit(1)
	}
}

// report reads events from in to its end and writes the report to out.
func report(in io.Reader, out io.Writer) error {
	s := &summary{out: out, output: map[string][]string{}, failedInPackage: map[string]int{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimRight(line, "\n"); line != "" {
			s.line(line)
		}
		if err == io.EOF {
			return s.end()
		}
		if err != nil {
			return fmt.Errorf("reading test events: %w", err)
		}
	}
}

// line takes one line of input; what is no event is passed on.
func (s *summary) line(line string) {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
		fmt.Fprintln(s.out, line)
		return
	}
	switch {
	case e.Action == "output" || e.Action == "build-output":
		s.output[e.name()] = append(s.output[e.name()], e.Output)
	case e.Action == "build-fail":
		s.flush(e.name())
	case e.Test == "":
		s.endPackage(e)
	default:
		s.endTest(e)
	}
}

// name is what the event's output belongs to.
func (e event) name() string {
	if e.Test != "" {
		return e.Package + " " + e.Test
	}
	return e.Package + e.ImportPath
}

// endTest counts a test that ended, and shows what it said when it failed.
func (s *summary) endTest(e event) {
	switch e.Action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped = append(s.skipped, e.name())
	case "fail":
		s.failed++
		s.failedInPackage[e.Package]++
		s.flush(e.name())
	default:
		return // run, pause, cont: it goes on
	}
	delete(s.output, e.name())
}

// endPackage writes the line of a package that ended.
func (s *summary) endPackage(e event) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(s.out, "ok    %s  %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		if s.failedInPackage[e.Package] == 0 {
			s.brokenPackages = append(s.brokenPackages, e.Package)
			s.flushPackage(e.Package)
		}
		fmt.Fprintf(s.out, "FAIL  %s  %.1fs\n", e.Package, e.Elapsed)
	case "skip": // no test files
	default:
		return
	}
	delete(s.output, e.name())
}

// flush writes the output kept under name.
func (s *summary) flush(name string) {
	for _, line := range s.output[name] {
		fmt.Fprint(s.out, line)
	}
	delete(s.output, name)
}

// flushPackage writes the package's own output and that of tests which never ended: a
// panic or a timeout ends the process in the middle of one.
func (s *summary) flushPackage(pkg string) {
	var names []string
	for name := range s.output {
		if strings.HasPrefix(name, pkg+" ") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range append(names, pkg) {
		s.flush(name)
	}
}

// end writes the counts and returns an error when the run proves nothing good.
func (s *summary) end() error {
	for _, name := range s.skipped {
		fmt.Fprintf(s.out, "skipped: %s\n", name)
	}
	for _, pkg := range s.brokenPackages {
		fmt.Fprintf(s.out, "failed outside of its tests: %s\n", pkg)
	}
	failed := s.failed + len(s.brokenPackages)
	if len(s.skipped) > 0 {
		fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, failed, len(s.skipped))
	} else {
		fmt.Fprintf(s.out, "%d passed, %d failed\n", s.passed, failed)
	}
	switch {
	case failed > 0:
		return fmt.Errorf("running tests: %d failed", failed)
	case s.passed == 0:
		return fmt.Errorf("running tests: no test ran")
	}
	return nil
}
