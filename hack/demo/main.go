// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo runs the main job of Vision Operator for real on one machine:
// a Kubernetes API server with etcd, the operator and the embedded provider,
// the samples applied with kubectl, an agent pod injected, and the injected
// container's own command looking at real images. It needs no key and no
// kubelet: it lays the pod's volumes out itself and runs the container's
// command below a root directory of its own.
//
// The exit status is 0 only when every step did what it says.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/visionoperator/vision-operator/runtime/observation"
	"github.com/visionoperator/vision-operator/test/envtest"
)

func main() {
	keep := flag.Bool("keep", false, "leave everything running until interrupted")
	dir := flag.String("dir", ".demo", "where logs, volumes and state are written; emptied first")
	flag.Parse()
	log.SetLogger(logr.Discard()) // of controller-runtime; every program logs to a file of its own
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Stdout, *dir, *keep)
	interrupted := ctx.Err() != nil
	stop()
	if interrupted && err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; everything was stopped")
		os.Exit(130)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// demo is what the steps share.
type demo struct {
	*narrator
	dir       string
	bin       string
	processes processes
	cluster   *envtest.Cluster
	client    client.Client
	pod       *corev1.Pod
	runtime   *process
	kubelet   *kubelet
	stopSync  context.CancelFunc
	seen      *observation.Result // the first look at the screenshot
	kept      *uploaded           // a picture that no workspace holds
	sentence  string              // what the rendered picture says
}

// step is one numbered part of the story.
type step struct {
	title string
	do    func(context.Context) error
}

func (d *demo) steps() []step {
	return []step{
		{"Build the programs", d.build},
		{"Start a Kubernetes API server and etcd", d.startControlPlane},
		{"Install the CRDs, the roles and the webhooks: kubectl apply --server-side -k config/local", d.install},
		{"Start the operator with its own service account's rights", d.startOperator},
		{"Start the embedded provider: Tesseract behind the OpenAI dialect", d.startProvider},
		{"Apply the samples: a provider, a policy and an agent pod: kubectl apply -k config/samples", d.applySamples},
		{"Read the conditions", d.showConditions},
		{"Read the router that was compiled and published", d.showRouter},
		{"See what admission did to the pod", d.showInjection},
		{"Lay out the pod's volumes as a kubelet does and run the injected container's command", d.startRuntime},
		{"ViewImage over HTTP: a screenshot with a paragraph of text", d.lookAtScreenshot},
		{"Ask the same again", d.lookAgain},
		{"ViewImage of a picture of a sentence made up just now", d.lookAtSentence},
		{"ViewImage over MCP", d.lookOverMCP},
		{"The model proxy: an agent's own tool read a picture, and the model is asked what it says", d.converse},
		{"Upload a picture that the pod has no file of, and look at it by its reference", d.uploadPicture},
		{"Restart the runtime's container: observations and uploads outlive it", d.restartRuntime},
		{"Lower the policy's image limit, watch the running runtime obey, and put it back", d.lowerLimit},
	}
}

func run(ctx context.Context, stdout *os.File, dir string, keep bool) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := portsAreFree(); err != nil { // first of all: the directory may be another demo's, which runs
		return err
	}
	if err := emptyDirectory(dir); err != nil {
		return err
	}
	d := &demo{dir: dir, bin: filepath.Join(dir, "bin"), processes: processes{logs: filepath.Join(dir, "log")}}
	if err := os.MkdirAll(d.processes.logs, 0o755); err != nil {
		return err
	}
	steps := d.steps()
	d.narrator = newNarrator(stdout, len(steps))
	defer func() { err = errors.Join(err, d.stopAll()) }()
	for i, s := range steps {
		end := d.begin(s.title)
		err := s.do(ctx)
		end(err)
		if err != nil {
			return fmt.Errorf("step %d (%s): %w%s", i+1, s.title, err, d.logHint())
		}
	}
	fmt.Fprintf(d.out, "\n%s\n", d.paint(green, "Everything that was promised was seen."))
	if keep {
		d.keep(ctx)
	}
	return nil
}

// logHint says where the logs are, once there are any.
func (d *demo) logHint() string {
	if len(d.processes.running) == 0 {
		return ""
	}
	return "\nlogs: " + d.processes.logs
}

// marker is the file that tells the demo's own directory from any other.
const marker = ".vision-operator-demo"

// emptyDirectory makes a directory anew; one that the demo did not make, and
// that is not empty, it leaves alone.
func emptyDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("emptying %s: %w", dir, err)
	}
	if _, err := os.Stat(filepath.Join(dir, marker)); err != nil && len(entries) > 0 {
		return fmt.Errorf("emptying %s: it holds files and is not the demo's own; name another with -dir", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("emptying %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("emptying %s: %w", dir, err)
	}
	return os.WriteFile(filepath.Join(dir, marker), nil, 0o644)
}

// keep prints how to reach everything and waits to be interrupted.
func (d *demo) keep(ctx context.Context) {
	fmt.Fprintf(d.out, `
Everything is running. In another terminal:

  export KUBECONFIG=%s PATH=%s:$PATH
  kubectl -n %s get vision,configmaps,pods
  curl -s %s/v1/view-image -H 'Content-Type: application/json' \
    -d '{"path": "screenshot.png", "prompt": "What failed?"}'

  MCP (streamable HTTP): %s
  logs:                  %s

Press Ctrl-C to stop.
`, d.cluster.Kubeconfig(), d.cluster.Assets(), namespace, runtimeURL, mcpURL, d.processes.logs)
	<-ctx.Done()
}

// stopAll ends what the demo started, the last first.
func (d *demo) stopAll() error {
	if d.stopSync != nil {
		d.stopSync()
	}
	d.processes.stop()
	if d.cluster == nil {
		return nil
	}
	fmt.Fprintln(d.out, "\nStopped the runtime, the provider, the operator and the control plane.")
	return d.cluster.Stop()
}
