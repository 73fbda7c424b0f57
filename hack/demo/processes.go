// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// processes are the programs that the demo started, in order.
type processes struct {
	logs    string
	running []*process
}

// process is one program and where it logs.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// start runs a program in the background with its output in a log file.
func (p *processes) start(name string, cmd *exec.Cmd) (*process, error) {
	path := filepath.Join(p.logs, name+".log")
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	proc := &process{name: name, log: path, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state that it leaves says how it ended
		close(proc.done)
	}()
	p.running = append(p.running, proc)
	return proc, nil
}

// stop ends every program, the last started first, and waits for each.
func (p *processes) stop() {
	for len(p.running) > 0 {
		p.end(p.running[len(p.running)-1])
	}
}

// end ends one program and waits for it.
func (p *processes) end(proc *process) {
	_ = proc.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-proc.done:
	case <-time.After(15 * time.Second):
		_ = proc.cmd.Process.Kill()
		<-proc.done
	}
	p.running = slices.DeleteFunc(p.running, func(other *process) bool { return other == proc })
}

// waitFor calls ready until it returns nil. It gives up when the program ends
// or the time is over, and then says where the log is.
func (proc *process) waitFor(ctx context.Context, limit time.Duration, what string, ready func(context.Context) error) error {
	return await(ctx, limit, func(ctx context.Context) error {
		select {
		case <-proc.done:
			return permanent{fmt.Errorf("waiting for %s: %s ended (%s): %s; its log: %s", what, proc.name, proc.cmd.ProcessState, proc.lastLine(), proc.log)}
		default:
		}
		if err := ready(ctx); err != nil {
			return fmt.Errorf("waiting for %s: %w; its log: %s", what, err, proc.log)
		}
		return nil
	})
}

// lastLine is the last line of the program's log.
func (proc *process) lastLine() string {
	data, err := os.ReadFile(proc.log)
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(string(data))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// permanent marks an error that waiting cannot cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// await calls try every 100 ms until it returns nil or the time is over.
func await(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if p, ok := err.(permanent); ok { //nolint:errorlint // the mark is never wrapped
			return p.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up after %s: %w", limit, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
