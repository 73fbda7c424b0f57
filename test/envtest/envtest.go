// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envtest starts a real Kubernetes API server and etcd for the tests of
// one package: the binaries that `make controlplane` builds, with this
// project's CRDs installed. A package starts one, in TestMain:
//
//	var cluster *envtest.Cluster
//
//	func TestMain(m *testing.M) {
//		os.Exit(envtest.Run(m, envtest.Options{}, func(c *envtest.Cluster) { cluster = c }))
//	}
//
// Without the binaries the suite fails and names the command that builds them;
// nothing is ever skipped.
package envtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startTimeout bounds how long etcd, and then the API server, may take to answer.
// An idle machine needs a few seconds; a full one compiles other packages meanwhile.
const startTimeout = 3 * time.Minute

// stopTimeout bounds how long each of them may take to end.
const stopTimeout = time.Minute

// binaries are the programs that an assets folder holds.
var binaries = [...]string{"kube-apiserver", "etcd", "kubectl"}

// Options change what is started. The zero value is an API server with its
// default flags and this project's CRDs.
type Options struct {
	// APIServerArgs replaces flags of kube-apiserver, by name without dashes. A nil
	// or empty list removes a flag that would be given by default (such as
	// "disable-admission-plugins", by default ServiceAccount).
	APIServerArgs map[string][]string

	// WithoutCRDs leaves out the CRDs of config/crd/bases.
	WithoutCRDs bool

	// AuditWritesOf is a user whose writes the API server notes for
	// [Cluster.Writes]; empty for nobody.
	AuditWritesOf string
}

// Cluster is a running API server with its etcd, without a kubelet, a scheduler
// or any controller of Kubernetes' own.
type Cluster struct {
	// Config reaches the API server as a member of system:masters.
	Config *rest.Config

	environment *envtest.Environment
	assets      string // the folder of the binaries
	folder      string // temporary: the administrator's kubeconfig, and what the servers keep
}

// Run starts a cluster, hands it to use, runs m's tests, stops the cluster and
// returns the exit code for [os.Exit]. A cluster that does not start fails the suite.
func Run(m *testing.M, options Options, use func(*Cluster)) int {
	cluster, err := Start(options)
	if err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: %v\n", err)
		return 1
	}
	use(cluster)
	code := m.Run()
	return failOn(cluster.Stop(), code)
}

// Start starts a cluster that the caller stops with [Cluster.Stop].
func Start(options Options) (*Cluster, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	assets, err := findAssets(root)
	if err != nil {
		return nil, err
	}
	environment, err := describe(root, assets, options)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "vision-envtest-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the control plane: %w", err)
	}
	cluster := &Cluster{environment: environment, assets: assets, folder: folder}
	if err := cluster.start(options); err != nil {
		return nil, errors.Join(err, cluster.Stop())
	}
	return cluster, nil
}

func (c *Cluster) start(options Options) (err error) {
	if err := c.keep(); err != nil {
		return err
	}
	if options.AuditWritesOf != "" {
		if err := c.audit(options.AuditWritesOf); err != nil {
			return err
		}
	}
	if c.Config, err = c.environment.Start(); err != nil {
		return fmt.Errorf("starting the control plane of %s: %w", c.assets, err)
	}
	if err := os.WriteFile(c.Kubeconfig(), c.environment.KubeConfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// keep gives both servers folders that outlive their processes: etcd's data and
// the API server's certificates.
func (c *Cluster) keep() error {
	data, certificates := filepath.Join(c.folder, "etcd"), filepath.Join(c.folder, "apiserver")
	for _, folder := range []string{data, certificates} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("making a folder for the control plane: %w", err)
		}
	}
	c.environment.ControlPlane.Etcd.DataDir = data
	c.environment.ControlPlane.GetAPIServer().CertDir = certificates
	return nil
}

// describe makes the environment that options ask for, without starting anything.
func describe(root, assets string, options Options) (*envtest.Environment, error) {
	existing := false
	environment := &envtest.Environment{
		UseExistingCluster:       &existing,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
		ErrorIfCRDPathMissing:    true,
	}
	// The paths are given one by one: a folder alone would lose to the environment's variables.
	apiServer := environment.ControlPlane.GetAPIServer()
	apiServer.Path = filepath.Join(assets, "kube-apiserver")
	apiServer.Configure().Set("shutdown-watch-termination-grace-period", "1s") // else its end waits a minute for open watches
	environment.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(assets, "etcd")}
	environment.ControlPlane.KubectlPath = filepath.Join(assets, "kubectl")
	for flag, values := range options.APIServerArgs {
		if len(values) == 0 {
			apiServer.Configure().Disable(flag)
			continue
		}
		apiServer.Configure().Set(flag, values...)
	}
	if options.WithoutCRDs {
		return environment, nil
	}
	crds := filepath.Join(root, "config", "crd", "bases")
	manifests, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(manifests) == 0 {
		return nil, fmt.Errorf("finding CRDs: no manifest in %s: run `make manifests`", crds)
	}
	environment.CRDDirectoryPaths = []string{crds}
	return environment, nil
}

// Stop ends the API server and etcd and removes what they wrote.
func (c *Cluster) Stop() error {
	if err := errors.Join(c.environment.Stop(), os.RemoveAll(c.folder)); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}

// User returns a configuration that reaches the API server as name, a member of
// groups, with what RBAC grants to them and no more.
func (c *Cluster) User(name string, groups ...string) (*rest.Config, error) {
	user, err := c.environment.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("adding user %s: %w", name, err)
	}
	return user.Config(), nil
}

// Assets is the folder that holds kube-apiserver, etcd and kubectl.
func (c *Cluster) Assets() string { return c.assets }

// Kubeconfig is the path of a file that lets kubectl be the administrator until [Cluster.Stop].
func (c *Cluster) Kubeconfig() string {
	return filepath.Join(c.folder, "kubeconfig")
}

// Kubectl runs kubectl as the administrator with stdin as its input (for `-f -`).
// The error of a command that failed carries what kubectl said.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", c.Kubeconfig()}, args...)
	command := exec.CommandContext(ctx, c.environment.ControlPlane.KubectlPath, args...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("running kubectl %s: %w: %s", strings.Join(args[2:], " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Install applies what a kustomization makes, server-side, as the administrator;
// a namespace, when given, is that of all that has one. `go test` does not notice
// when a file of it changes, unless a test reads the files itself.
func (c *Cluster) Install(ctx context.Context, namespace, folder string) error {
	args := []string{"apply", "--server-side", "-k", folder}
	if namespace != "" {
		args = append(args, "--namespace", namespace)
	}
	_, err := c.Kubectl(ctx, "", args...)
	return err
}

// repository returns the root folder of this project: the nearest folder, from the
// working directory upwards, that holds the script which knows the assets' folder.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for folder := start; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(assetsScript(folder)); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("finding the repository: no folder from %s upwards holds %s", start, assetsScript(""))
		}
	}
}

// findAssets returns the folder of the control plane's binaries: KUBEBUILDER_ASSETS
// when set, else the per-user cache, where only `make controlplane` builds them.
func findAssets(root string) (string, error) {
	command := exec.Command("bash", assetsScript(root), "--print")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("finding the control plane's folder: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	folder := strings.TrimSpace(string(output))
	for _, binary := range binaries {
		if info, err := os.Stat(filepath.Join(folder, binary)); err != nil || info.Mode()&0o111 == 0 {
			return "", &MissingError{Folder: folder, Binary: binary}
		}
	}
	return folder, nil
}

// assetsScript is the path below root of the script that names, and builds, the assets.
func assetsScript(root string) string {
	return filepath.Join(root, "hack", "controlplane", "assets")
}

// MissingError says that the tests' control plane has not been built.
type MissingError struct {
	Folder string // where the binaries are looked for
	Binary string // the first one that is not there, or cannot be run
}

// Error names the folder and the command that fills it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("finding the control plane: %s has no %s: run `make controlplane` in the repository's root "+
		"(with KUBEBUILDER_ASSETS unset), or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, etcd and kubectl", e.Folder, e.Binary)
}
