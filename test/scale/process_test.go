// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/visionoperator/vision-operator/test/envtest"
)

// process is the operator.
type process struct {
	command *exec.Cmd
	started time.Time
	log     *bytes.Buffer // read only once it has ended
}

// launch starts the operator as its Deployment does, but without metrics. It
// ends with the benchmark at the latest.
func launch(tb testing.TB) *process {
	tb.Helper()
	health, err := envtest.FreeAddress()
	if err != nil {
		tb.Fatal(err)
	}
	p := &process{log: &bytes.Buffer{}, started: time.Now()}
	p.command = exec.Command(suite.command, "--operator-namespace", operatorNamespace, "--kubeconfig", suite.kubeconfig, //nolint:noctx // stop ends it
		"--leader-elect", "--metrics-listen", "0", "--health-listen", health, "--webhook-listen", suite.webhooks,
		"--runtime-image", "registry.example.com/runtime:test", "--log-level", "warn")
	p.command.Stderr = p.log
	if err := p.command.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.stop(tb) })
	return p
}

// stop asks the operator to end, as a kubelet does, and waits until it has.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	if p.command == nil {
		return
	}
	command := p.command
	p.command = nil
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Errorf("asking the operator to end: %v", err)
	}
	if err := command.Wait(); err != nil {
		log := p.log.String()
		tb.Errorf("the operator ended with %v: %s", err, log[max(0, len(log)-4000):])
	}
}

// memory reads a figure of the process, such as VmRSS, in MiB.
func (p *process) memory(tb testing.TB, field string) float64 {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); len(words) >= 2 && words[0] == field+":" {
			kib, err := strconv.ParseFloat(words[1], 64)
			if err != nil {
				tb.Fatal(err)
			}
			return kib / 1024
		}
	}
	tb.Fatalf("/proc tells no %s", field)
	return 0
}

// cpu is the processor time that the process has used.
func (p *process) cpu(tb testing.TB) time.Duration {
	tb.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.command.Process.Pid))
	if err != nil {
		tb.Fatal(err)
	}
	// The name, in brackets, is the second field; utime and stime are the 14th and
	// 15th, in hundredths of a second.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			tb.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
