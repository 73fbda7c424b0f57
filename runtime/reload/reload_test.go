// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/visionoperator/vision-operator/runtime/reload"
	"github.com/visionoperator/vision-operator/runtime/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// document returns the bytes of a document that is told apart by its namespace.
func document(t *testing.T, namespace string) []byte {
	t.Helper()
	data, err := router.Marshal(&router.Document{Version: router.Version, Namespace: namespace, Profiles: []router.Profile{}, Providers: []router.Provider{}})
	if err != nil {
		t.Fatalf("writing a document: %v", err)
	}
	return data
}

// volume lays a directory out as kubelet does: files live in a directory named
// by the time, ..data links to it, and each key links through ..data.
type volume struct {
	t       *testing.T
	dir     string
	version int
}

func newVolume(t *testing.T) *volume {
	t.Helper()
	return &volume{t: t, dir: t.TempDir()}
}

// publish swaps in new content; no content at all removes the key, as an
// optional ConfigMap that goes away does.
func (v *volume) publish(content []byte) {
	v.t.Helper()
	v.version++
	name := fmt.Sprintf("..2026_11_30_16_00_%02d.%09d", v.version%60, v.version)
	v.must(os.Mkdir(filepath.Join(v.dir, name), 0o755))
	if content != nil {
		v.must(os.WriteFile(filepath.Join(v.dir, name, router.Key), content, 0o644))
	}
	old, _ := os.Readlink(filepath.Join(v.dir, "..data"))
	v.must(os.Symlink(name, filepath.Join(v.dir, "..data_tmp")))
	v.must(os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
	key := filepath.Join(v.dir, router.Key)
	if _, err := os.Lstat(key); content != nil && err != nil {
		v.must(os.Symlink(filepath.Join("..data", router.Key), key))
	} else if content == nil && err == nil {
		v.must(os.Remove(key))
	}
	if old != "" {
		v.must(os.RemoveAll(filepath.Join(v.dir, old)))
	}
}

func (v *volume) must(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatalf("laying out the volume: %v", err)
	}
}

// served records what Apply was given.
type served struct {
	mu     sync.Mutex
	names  []string
	refuse error
}

func (s *served) apply(doc *router.Document) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return s.refuse
	}
	s.names = append(s.names, doc.Namespace)
	return nil
}

func (s *served) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.names, " ")
}

// eventually waits for a condition; the deadline only bounds a failure.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never happened: %s", what)
}

// run starts a Reloader and stops it with the test.
func run(t *testing.T, o reload.Options) *reload.Reloader {
	t.Helper()
	r := reload.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	return r
}

func TestASwapByKubeletIsSeenByTheWatchAlone(t *testing.T) {
	v, s := newVolume(t), &served{}
	v.publish(document(t, "one"))
	r := run(t, reload.Options{Path: v.dir, Apply: s.apply, Interval: time.Hour})
	eventually(t, "the first document", func() bool { return s.list() == "one" })
	for _, want := range []string{"one two", "one two three"} {
		name := want[strings.LastIndexByte(want, ' ')+1:]
		v.publish(document(t, name))
		eventually(t, want, func() bool { return s.list() == want })
	}
	if got, want := r.State().Digest, router.Digest(document(t, "three")); got != want {
		t.Errorf("digest = %s, want %s", got, want)
	}
}

func TestAnEmptyVolumeThatIsFilledLaterIsServed(t *testing.T) {
	v, s := newVolume(t), &served{}
	r := run(t, reload.Options{Path: v.dir, Apply: s.apply, Interval: time.Hour})
	eventually(t, "the failure", func() bool { return r.State().LastError != "" })
	if r.State().Loaded {
		t.Error("loaded without a file")
	}
	v.publish(document(t, "late"))
	eventually(t, "the late document", func() bool { return s.list() == "late" && r.State().LastError == "" })
}

func TestADirectoryThatIsMadeLaterIsFoundByPolling(t *testing.T) {
	dir, s := filepath.Join(t.TempDir(), "later", "deep"), &served{}
	run(t, reload.Options{Path: dir, Apply: s.apply, Interval: 5 * time.Millisecond})
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, router.Key), document(t, "found"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the document", func() bool { return s.list() == "found" })
}

func TestAFileGivenDirectlyIsFollowed(t *testing.T) {
	file, s := filepath.Join(t.TempDir(), "my-router.json"), &served{}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(document(t, "one"))
	run(t, reload.Options{Path: file, Apply: s.apply, Interval: time.Hour})
	eventually(t, "the first document", func() bool { return s.list() == "one" })
	write(document(t, "two"))
	eventually(t, "the second document", func() bool { return s.list() == "one two" })
}

func TestATornWriteKeepsTheLastGoodDocumentAndHeals(t *testing.T) {
	file, s := filepath.Join(t.TempDir(), router.Key), &served{}
	whole := document(t, "two")
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(document(t, "one"))
	r := run(t, reload.Options{Path: file, Apply: s.apply, Interval: time.Hour})
	eventually(t, "the first document", func() bool { return s.list() == "one" })
	write(whole[:len(whole)/2])
	eventually(t, "the failure", func() bool { return r.State().LastError != "" })
	if state := r.State(); state.Digest != router.Digest(document(t, "one")) || s.list() != "one" {
		t.Errorf("a torn file is in service: %+v", state)
	}
	write(whole)
	eventually(t, "the whole file", func() bool { return s.list() == "one two" && r.State().LastError == "" })
}

func TestWhatKeepsTheLastGoodDocument(t *testing.T) {
	cases := map[string]struct {
		spoil func(t *testing.T, file string)
		is    func(error) bool
	}{
		"a file that is gone": {
			func(t *testing.T, file string) { must(t, os.Remove(file)) },
			func(err error) bool { return errors.Is(err, os.ErrNotExist) },
		},
		"a file that is no JSON": {
			func(t *testing.T, file string) { must(t, os.WriteFile(file, []byte("{"), 0o600)) },
			func(err error) bool { return err != nil },
		},
		"a version from the future": {
			func(t *testing.T, file string) { must(t, os.WriteFile(file, []byte(`{"version":"router/v9"}`), 0o600)) },
			func(err error) bool { _, ok := errors.AsType[*router.VersionError](err); return ok },
		},
		"a document that breaks its rules": {
			func(t *testing.T, file string) {
				must(t, os.WriteFile(file, []byte(`{"version":"router/v1","namespace":""}`), 0o600))
			},
			func(err error) bool { _, ok := errors.AsType[*router.FieldError](err); return ok },
		},
		"a file over the size limit": {
			func(t *testing.T, file string) {
				must(t, os.WriteFile(file, bytes.Repeat([]byte(" "), router.MaxBytes+1), 0o600))
			},
			func(err error) bool { return err != nil },
		},
		"a FIFO": {
			func(t *testing.T, file string) {
				must(t, os.Remove(file))
				must(t, syscall.Mkfifo(file, 0o600))
			},
			func(err error) bool { return errors.Is(err, reload.ErrNotRegular) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file, s := filepath.Join(t.TempDir(), router.Key), &served{}
			good := document(t, "good")
			must(t, os.WriteFile(file, good, 0o600))
			r := reload.New(reload.Options{Path: filepath.Dir(file), Apply: s.apply})
			must(t, r.Load())
			tc.spoil(t, file)
			if err := r.Load(); !tc.is(err) {
				t.Errorf("Load returned %v", err)
			}
			state := r.State()
			if state.Digest != router.Digest(good) || !state.Loaded || state.LastError == "" || state.FailingSince.IsZero() {
				t.Errorf("state = %+v; want the good digest and an error", state)
			}
			must(t, os.RemoveAll(file))
			must(t, os.WriteFile(file, good, 0o600))
			must(t, r.Load())
			if state := r.State(); state.LastError != "" || !state.FailingSince.IsZero() || s.list() != "good" {
				t.Errorf("the same bytes again gave %+v and applied %q; want no error and no second apply", state, s.list())
			}
		})
	}
}

func TestADocumentThatGrantsNothingIsObeyed(t *testing.T) {
	file := filepath.Join(t.TempDir(), router.Key)
	var got *router.Document
	r := reload.New(reload.Options{Path: file, Apply: func(d *router.Document) error { got = d; return nil }})
	must(t, os.WriteFile(file, document(t, "team"), 0o600))
	must(t, r.Load())
	if got == nil || len(got.Profiles) != 0 {
		t.Errorf("in service: %+v", got)
	}
}

func TestWhatIsToldOfADocumentThatIsWrongInManyPlacesIsBounded(t *testing.T) {
	file, s, log := filepath.Join(t.TempDir(), router.Key), &served{}, &bytes.Buffer{}
	doc := `{"version":"router/v1","namespace":"n","profiles":[],"providers":[{}` + strings.Repeat(`,{}`, 5000) + `]}`
	must(t, os.WriteFile(file, []byte(doc), 0o600))
	r := reload.New(reload.Options{Path: file, Apply: s.apply, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	if err := r.Load(); err == nil {
		t.Fatal("the document is accepted")
	}
	if n := len(r.State().LastError); n == 0 || n > 3<<10 || log.Len() > 8<<10 {
		t.Errorf("the error has %d bytes, the log %d", n, log.Len())
	}
}

func TestARefusedDocumentIsReportedAndNotInService(t *testing.T) {
	file, s := filepath.Join(t.TempDir(), router.Key), &served{}
	must(t, os.WriteFile(file, document(t, "one"), 0o600))
	r := reload.New(reload.Options{Path: file, Apply: s.apply})
	must(t, r.Load())
	s.refuse = errors.New("no")
	must(t, os.WriteFile(file, document(t, "two"), 0o600))
	if err := r.Load(); !errors.Is(err, s.refuse) {
		t.Fatalf("Load returned %v", err)
	}
	if r.State().Digest != router.Digest(document(t, "one")) {
		t.Error("the refused document counts as in service")
	}
}

func TestEachChangeAndEachNewFailureIsOneLogLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), router.Key)
	var log bytes.Buffer
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	r := reload.New(reload.Options{
		Path: file, Apply: func(*router.Document) error { return nil },
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now },
	})
	lines := func() int { return strings.Count(log.String(), "\n") }
	steps := []struct {
		name string
		do   func()
		want int
	}{
		{"missing", func() {}, 1},
		{"still missing", func() {}, 1},
		{"there", func() { must(t, os.WriteFile(file, document(t, "one"), 0o600)) }, 2},
		{"unchanged", func() {}, 2},
		{"broken", func() { must(t, os.WriteFile(file, []byte("very-private-text"), 0o600)) }, 3},
		{"still broken", func() {}, 3},
		{"back", func() { must(t, os.WriteFile(file, document(t, "one"), 0o600)) }, 4},
	}
	for _, step := range steps {
		step.do()
		_ = r.Load() // judged by the log
		if got := lines(); got != step.want {
			t.Errorf("after %q the log has %d lines, want %d:\n%s", step.name, got, step.want, log.String())
		}
	}
	if strings.Count(log.String(), "file="+file) != 2 {
		t.Errorf("the log does not name the file of each failure:\n%s", log.String())
	}
	if strings.Contains(log.String(), "private") {
		t.Errorf("the log repeats content:\n%s", log.String())
	}
	if got := r.State().LoadedAt; !got.Equal(now) {
		t.Errorf("loadedAt = %v, want %v", got, now)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
