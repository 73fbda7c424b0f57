// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"context"
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settleFor is how long a directory must be quiet before the file is read: a
// swap by kubelet, or an editor's save, is several events.
const (
	settleFor = 20 * time.Millisecond
	settleMax = 200 * time.Millisecond
)

// watch is a watcher of one directory that may fail, vanish and come back;
// polling covers the gaps.
type watch struct {
	watcher *fsnotify.Watcher // nil where the system gives none
	dir     string            // as watched; empty when it is not
	logger  *slog.Logger
}

func newWatch(logger *slog.Logger) *watch {
	w := &watch{logger: logger}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		logger.Warn("watching the router directory failed; polling alone", "error", err.Error())
		return w
	}
	w.watcher = watcher
	return w
}

// follow watches dir from now on. Adding a directory again is harmless and
// finds one that was removed and made anew.
func (w *watch) follow(dir string) {
	if w.watcher == nil {
		return
	}
	if w.dir != "" && w.dir != dir {
		_ = w.watcher.Remove(w.dir) // may be gone already
	}
	w.dir = ""
	if err := w.watcher.Add(dir); err == nil {
		w.dir = dir
	}
}

// events are reasons to look; nil blocks forever.
func (w *watch) events() <-chan fsnotify.Event {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Events
}

// errors are reasons to look as well: an overflow means that events were lost.
func (w *watch) errors() <-chan error {
	if w.watcher == nil {
		return nil
	}
	return w.watcher.Errors
}

// lost tells that events were lost.
func (w *watch) lost(err error) {
	w.logger.Warn("watching the router directory lost events; reading it now", "error", err.Error())
}

// settle waits until the directory is quiet, or settleMax at most.
func (w *watch) settle(ctx context.Context) {
	end := time.NewTimer(settleMax)
	defer end.Stop()
	for {
		quiet := time.NewTimer(settleFor)
		select {
		case <-w.events():
			quiet.Stop()
		case err := <-w.errors():
			quiet.Stop()
			w.lost(err)
		case <-quiet.C:
			return
		case <-end.C:
			quiet.Stop()
			return
		case <-ctx.Done():
			quiet.Stop()
			return
		}
	}
}

func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close() // the process forgets it
	}
}
