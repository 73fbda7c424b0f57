// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// containerName is the injected container.
const containerName = "vision-runtime"

// imageUser is the user of the runtime's image: see the Dockerfile.
const imageUser = 65532

// showInjection prints the difference that injection made: the same pod once
// opted out, in a dry run, and the live one.
func (d *demo) showInjection(ctx context.Context) error {
	if d.pod.Labels[v1alpha1.InjectedLabel] != "true" {
		return fmt.Errorf("pod %s/%s has no label %s: it was not injected", namespace, podName, v1alpha1.InjectedLabel)
	}
	manifest, err := os.ReadFile("config/samples/pod.yaml")
	if err != nil {
		return err
	}
	plain := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(manifest, plain); err != nil {
		return fmt.Errorf("reading config/samples/pod.yaml: %w", err)
	}
	plain.Name, plain.Namespace = podName+"-plain", namespace
	plain.Labels[v1alpha1.InjectLabel] = v1alpha1.InjectDisabled
	if err := d.client.Create(ctx, plain, client.DryRunAll); err != nil {
		return fmt.Errorf("creating the opted-out pod in a dry run: %w", err)
	}
	plain.Name, plain.Labels[v1alpha1.InjectLabel] = podName, v1alpha1.InjectEnabled
	diff, err := d.diff(comparable(plain), comparable(d.pod))
	if err != nil {
		return err
	}
	d.show("diff of the pod without and with injection", diff)
	return nil
}

// comparable leaves out what differs between any two pods.
func comparable(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	out.ObjectMeta = metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: pod.Labels, Annotations: pod.Annotations}
	delete(out.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	out.Status = corev1.PodStatus{}
	return out
}

func (d *demo) diff(before, after any) (string, error) {
	names := []string{"without.yaml", "with.yaml"}
	for i, object := range []any{before, after} {
		data, err := yaml.Marshal(object)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(d.dir, names[i]), data, 0o644); err != nil {
			return "", err
		}
	}
	cmd := exec.Command("diff", "-U2", names[0], names[1]) //nolint:noctx // ends at once
	cmd.Dir = d.dir
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
		return "", fmt.Errorf("running diff: %w", err)
	}
	if len(out) == 0 {
		return "", fmt.Errorf("injection changed nothing")
	}
	return string(out), nil
}

// startRuntime runs the injected container's command, arguments, environment
// and user below a root directory that holds what its image and its volumes would.
func (d *demo) startRuntime(ctx context.Context) error {
	container, err := injected(d.pod)
	if err != nil {
		return err
	}
	root := d.root()
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	d.kubelet = &kubelet{client: d.client, pod: d.pod, mounted: map[string]string{}, wrote: map[string][]byte{}}
	if err := mountVolumes(ctx, d.kubelet, container, root); err != nil {
		return err
	}
	program := container.Command[0]
	if err := copyFile(filepath.Join(d.bin, filepath.Base(program)), filepath.Join(root, program), 0o755); err != nil {
		return err
	}
	if err := d.runContainer(ctx, containerName); err != nil {
		return err
	}
	syncing, stop := context.WithCancel(context.Background()) // ends in stopAll, after the steps' own context
	d.stopSync = stop
	go d.kubelet.run(syncing)
	d.show("command", strings.Join(append(container.Command, container.Args...), " \\\n  "))
	d.say("as user %d, below %s", user(container), root)
	return nil
}

// runContainer starts the injected container's process on the volumes as they
// are, and waits for it to be ready. log names its log file.
func (d *demo) runContainer(ctx context.Context, log string) error {
	container, err := injected(d.pod)
	if err != nil {
		return err
	}
	if d.runtime, err = d.processes.start(log, containerCommand(container, d.root())); err != nil {
		return err
	}
	return d.runtime.waitFor(ctx, 15*time.Second, "the runtime to be ready", func(ctx context.Context) error {
		return httpOK(ctx, runtimeHealthURL+"/readyz")
	})
}

// root is what the container sees as /.
func (d *demo) root() string { return filepath.Join(d.dir, "rootfs") }

func injected(pod *corev1.Pod) (*corev1.Container, error) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == containerName {
			if len(c.Command) == 0 {
				return nil, fmt.Errorf("container %s has no command", c.Name)
			}
			return c, nil
		}
	}
	return nil, fmt.Errorf("pod %s has no container %s", pod.Name, containerName)
}

// user is who the container runs as: what it says, else what its image says.
func user(c *corev1.Container) int {
	if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
		return int(*c.SecurityContext.RunAsUser)
	}
	return imageUser
}

// mountVolumes lays the volumes out and puts each where the container mounts
// it. A bind mount needs root; a symlink would lead out of the container's
// root; so each volume's directory is made at its mount path.
func mountVolumes(ctx context.Context, k *kubelet, c *corev1.Container, root string) error {
	uid := user(c)
	for _, m := range c.VolumeMounts {
		k.mounted[m.Name] = filepath.Join(root, m.MountPath, m.SubPath)
		if err := os.MkdirAll(k.mounted[m.Name], 0o755); err != nil {
			return err
		}
	}
	if err := k.sync(ctx); err != nil {
		return err
	}
	for _, v := range k.pod.Spec.Volumes {
		if path := k.mounted[v.Name]; v.EmptyDir != nil && path != "" && os.Geteuid() == 0 {
			if err := own(path, uid); err != nil {
				return err
			}
		}
	}
	return nil
}

// containerCommand is the process that a container runtime would start. Without
// root it runs in a user namespace in which the container's user is ours.
func containerCommand(c *corev1.Container, root string) *exec.Cmd {
	cmd := &exec.Cmd{Path: c.Command[0], Args: append(append([]string{}, c.Command...), c.Args...), Dir: "/", Env: []string{}}
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	uid := user(c)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getgid(), Size: 1}}
	return cmd
}

func copyFile(from, to string, mode os.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, data, mode)
}
