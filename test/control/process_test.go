// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// process is the operator, run as its service account with nothing that listens.
type process struct {
	command *exec.Cmd
	log     *tail
	ended   chan struct{} // closed when the process has
}

// tail is the end of what a process wrote.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

// kept is how much of a log is kept.
const kept = 8 << 10

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes = append(l.bytes, p...)
	l.bytes = bytes.Clone(l.bytes[max(0, len(l.bytes)-kept):])
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.bytes)
}

// startProcess starts the operator; it is killed with the test at the latest.
func startProcess(t *testing.T, flags ...string) *process {
	t.Helper()
	p, err := launch(flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

func launch(flags ...string) (*process, error) {
	p := &process{log: &tail{}, ended: make(chan struct{})}
	p.command = exec.Command(program, append([]string{"--operator-namespace", operatorNamespace, "--kubeconfig", kubeconfig, //nolint:gosec // built by the suite
		"--health-listen", "0", "--webhook-listen", "0", "--metrics-listen", "0"}, flags...)...)
	p.command.Stderr = p.log
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // how it ended is what tests bring about
	}()
	return p, nil
}

// kill ends the process at once, in the middle of whatever it does.
func (p *process) kill() {
	_ = p.command.Process.Signal(syscall.SIGKILL) // it may have ended
	<-p.ended
}

// keeper starts a process again whenever it has ended, as a kubelet does.
type keeper struct {
	mu      sync.Mutex
	current *process
	starts  int
	stopped bool
	done    chan struct{}
}

// keepRunning runs the operator until the end of the test, however often it ends.
func keepRunning(t *testing.T, flags ...string) *keeper {
	t.Helper()
	k := &keeper{current: startProcess(t, flags...), starts: 1, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		for k.again(t, flags) {
		}
	}()
	t.Cleanup(k.stop)
	return k
}

// again waits for the end of the process and starts it again, unless all is over.
func (k *keeper) again(t *testing.T, flags []string) bool {
	<-k.process().ended
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return false
	}
	p, err := launch(flags...)
	if err != nil {
		t.Error(err)
		return false
	}
	k.current, k.starts = p, k.starts+1
	return true
}

func (k *keeper) process() *process {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

func (k *keeper) stop() {
	k.mu.Lock()
	k.stopped = true
	p := k.current
	k.mu.Unlock()
	p.kill()
	<-k.done
}

// count is how often the operator was started.
func (k *keeper) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.starts
}
