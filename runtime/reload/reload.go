// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reload keeps the runtime on the newest router document: it watches
// the directory that the document is mounted in, compares bytes, parses, and
// hands each new document to whoever serves it.
//
// A valid document is always obeyed, also when it grants less than the one
// before. The last good document stays only while the file is missing,
// unreadable, unparsable or of an unknown version.
package reload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/visionoperator/vision-operator/runtime/router"
)

// DefaultInterval is how often the file is read even when no event says so:
// events get lost on some file systems, and kubelet's own period is about a minute.
const DefaultInterval = 10 * time.Second

// Options say what to watch and what to do with it.
type Options struct {
	// Path is the directory that holds router.json, or the file itself.
	Path string
	// Apply takes a valid document into service. An error leaves the one before
	// in service and is reported like an unreadable file.
	Apply func(*router.Document) error
	// Interval is the poll period; 0 means DefaultInterval.
	Interval time.Duration
	// Logger gets one line for each change and each new failure, without
	// content. Nil discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// State is what is in service. It is also what GET /v1/router and /readyz tell.
type State struct {
	// Loaded is true once any document has been in service.
	Loaded bool `json:"loaded"`
	// Digest names the bytes in service, "sha256:…"; empty before the first.
	Digest string `json:"digest,omitempty"`
	// LoadedAt is when they went into service.
	LoadedAt time.Time `json:"loadedAt,omitzero"`
	// LastError is why the file as it is now is not in service; empty when it
	// is. It is cut at 2 KiB.
	LastError string `json:"lastError,omitempty"`
	// FailingSince is when LastError began.
	FailingSince time.Time `json:"failingSince,omitzero"`
}

// Reloader follows one router document. It is safe for concurrent use.
type Reloader struct {
	options Options
	loading sync.Mutex // one load at a time

	mu    sync.RWMutex
	state State
}

// New returns a Reloader that has read nothing yet: call Load once, then Run.
func New(o Options) *Reloader {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Reloader{options: o}
}

// State returns what is in service.
func (r *Reloader) State() State {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.state
}

// Load reads the file now and takes it into service if its bytes are new. The
// error is what State.LastError says, uncut.
func (r *Reloader) Load() error {
	r.loading.Lock()
	defer r.loading.Unlock()
	data, err := readFile(r.file())
	if err != nil {
		return r.failed(fmt.Errorf("reading router file: %w", err))
	}
	digest := router.Digest(data)
	if state := r.State(); state.Digest == digest {
		r.recovered()
		return nil
	}
	doc, err := router.Parse(data)
	if err != nil {
		return r.failed(err)
	}
	if err := r.options.Apply(doc); err != nil {
		return r.failed(fmt.Errorf("applying router document: %w", err))
	}
	r.changed(digest, doc)
	return nil
}

// file is the path of the file: Path itself, or router.json in the directory Path.
func (r *Reloader) file() string {
	if info, err := os.Stat(r.options.Path); err == nil && info.IsDir() {
		return filepath.Join(r.options.Path, router.Key)
	}
	return r.options.Path
}

// directory is what is watched: never the file, which kubelet replaces.
func (r *Reloader) directory() string { return filepath.Dir(r.file()) }

func (r *Reloader) changed(digest string, doc *router.Document) {
	r.mu.Lock()
	r.state = State{Loaded: true, Digest: digest, LoadedAt: r.options.Now()}
	r.mu.Unlock()
	r.options.Logger.Info("router document is in service", "digest", digest,
		"namespace", doc.Namespace, "profiles", len(doc.Profiles), "providers", len(doc.Providers))
}

// recovered clears a failure when the bytes in service are on disk again.
func (r *Reloader) recovered() {
	r.mu.Lock()
	was := r.state.LastError
	r.state.LastError, r.state.FailingSince = "", time.Time{}
	digest := r.state.Digest
	r.mu.Unlock()
	if was != "" {
		r.options.Logger.Info("router file is good again and unchanged", "digest", digest)
	}
}

// maxErrorText bounds what is told of a failure, in bytes: a document can be
// wrong in as many places as it has.
const maxErrorText = 2 << 10

// failed notes a failure; the same failure again is not logged again.
func (r *Reloader) failed(err error) error {
	text := err.Error()
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	r.mu.Lock()
	known := r.state.LastError == text
	if r.state.LastError == "" {
		r.state.FailingSince = r.options.Now()
	}
	r.state.LastError = text
	digest := r.state.Digest
	r.mu.Unlock()
	if !known {
		r.options.Logger.Error("router file is not usable; what is in service stays", "error", text, "file", r.file(), "in_service", digest)
	}
	return err
}

// ErrNotRegular is a router file that is a directory, a FIFO or a device.
var ErrNotRegular = errors.New("not a regular file")

// readFile reads a bounded regular file without waiting for a FIFO's writer.
// The error holds no more than the system's own words.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, plain(err)
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, router.MaxBytes+1))
	if err != nil {
		return nil, plain(err)
	}
	return data, nil
}

// plain leaves a host path out of an error that callers may see.
func plain(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Run follows the file until ctx is done. It returns nil then; nothing else
// ends it, since polling works where watching does not.
func (r *Reloader) Run(ctx context.Context) error {
	w := newWatch(r.options.Logger)
	defer w.close()
	tick := time.NewTicker(r.options.Interval)
	defer tick.Stop()
	for {
		w.follow(r.directory())
		_ = r.Load() // told by State and the log
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-w.events():
			w.settle(ctx)
		case err := <-w.errors():
			w.lost(err)
		}
	}
}
