// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/visionoperator/vision-operator/api/v1alpha1"
)

// workspaces is where the runtime may read images.
type workspaces struct {
	// agent is the first container that mounts a workspace; nil when none does.
	agent *corev1.Container
	// directories are what the runtime is told, clean and sorted.
	directories []string
	// mounts make them readable in the runtime's container.
	mounts []corev1.VolumeMount
	// env are the agent's variables that the mounts' subPathExpr refer to.
	env []corev1.EnvVar
}

// reserved are the places that no workspace may hold, lie in, or be: the kernel's
// file systems, the service account, and what the runtime's own container needs.
var reserved = []string{
	"/proc", "/sys", "/dev", "/etc", "/run", "/var/run", "/bin", "/usr/bin",
	Command, cacheDirectory, routerDirectory, secretsDirectory,
}

// Bounds of what is looked at, so that no pod can keep admission busy. They are
// beyond what a pod has that runs, and what they leave out narrows.
const (
	maxMounts    = 256  // of one container
	maxAnnotated = 64   // directories of the pod's annotation
	maxPath      = 4096 // bytes: PATH_MAX of Linux
)

// isReserved reports whether a clean absolute directory holds, lies in, or is a
// reserved place. The root holds all of them.
func isReserved(dir string) bool {
	return slices.ContainsFunc(reserved, func(r string) bool { return within(dir, r) || within(r, dir) })
}

// Reserved reports whether no pod gets a directory as a workspace, whatever it mounts there.
func Reserved(dir string) bool { return !path.IsAbs(dir) || isReserved(path.Clean(dir)) }

// within reports whether the clean absolute path p is dir or lies below it.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// chooseWorkspaces finds the directories, the container whose they are, and the
// mounts behind them.
func chooseWorkspaces(d *decision) {
	allowed := d.listedWorkspaces()
	narrowed, narrow := d.annotatedWorkspaces()
	d.volumesByName = make(map[string]*corev1.Volume, len(d.Pod.Spec.Volumes))
	for i := range d.Pod.Spec.Volumes {
		d.volumesByName[d.Pod.Spec.Volumes[i].Name] = &d.Pod.Spec.Volumes[i]
	}
	for _, c := range mainFirst(d.Pod) {
		d.work = d.workspacesOf(c, allowed, narrowed, narrow)
		if d.work.agent != nil {
			break
		}
	}
	if narrow {
		for _, dir := range narrowed {
			if !slices.ContainsFunc(d.work.directories, func(w string) bool { return within(w, dir) }) {
				d.lack(ReasonWorkspaceNotAllowed, "annotation %s: %s is outside the workspaces that the policy and the agent's volumes leave", v1alpha1.WorkspacesAnnotation, dir)
			}
		}
	}
	if d.work.agent != nil {
		d.checkConflicts()
		return
	}
	say := d.tell
	if wanted := narrow && len(narrowed) > 0 || !narrow && len(allowed) > 0; wanted {
		say = d.lack
	}
	say(ReasonNoWorkspace, "no container mounts a workspace (a writable emptyDir or PersistentVolumeClaim%s); images reach the runtime by upload only", listedHint(allowed))
}

// defaultContainer is kubectl's annotation for the container that a pod is about.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// mainFirst are a pod's containers in order, but for the one that its author or a
// mesh calls the main one, which comes first: a mesh may put its proxy, with
// volumes of its own, before the agent.
func mainFirst(pod *corev1.Pod) []*corev1.Container {
	out := make([]*corev1.Container, 0, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name == pod.Annotations[defaultContainer] {
			out = slices.Insert(out, 0, c)
			continue
		}
		out = append(out, c)
	}
	return out
}

func listedHint(allowed []string) string {
	if len(allowed) == 0 {
		return ""
	}
	return " at " + strings.Join(allowed, ", ")
}

// listedWorkspaces are the policy's directories; empty when it lists none.
func (d *decision) listedWorkspaces() []string {
	var dirs []string
	for _, dir := range d.shape.Workspaces {
		switch dir = path.Clean(dir); {
		case !path.IsAbs(dir) || isReserved(dir):
			d.tell(ReasonWorkspaceRefused, "%s, which the policy lists, cannot be a workspace", dir)
		default:
			dirs = append(dirs, dir)
		}
	}
	return outermost(dirs)
}

// annotatedWorkspaces are the directories of the pod's annotation, and whether
// it has one. An annotation without a directory leaves no workspace.
func (d *decision) annotatedWorkspaces() ([]string, bool) {
	value, ok := d.Pod.Annotations[v1alpha1.WorkspacesAnnotation]
	if !ok {
		return nil, false
	}
	var dirs []string
	seen := 0
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		if seen++; seen > maxAnnotated {
			d.tell(ReasonWorkspaceRefused, "annotation %s: only the first %d directories count", v1alpha1.WorkspacesAnnotation, maxAnnotated)
			break
		}
		switch dir := path.Clean(item); {
		case len(dir) > maxPath:
			d.tell(ReasonWorkspaceRefused, "annotation %s: a directory of %d bytes cannot be a workspace", v1alpha1.WorkspacesAnnotation, len(dir))
		case !path.IsAbs(dir) || isReserved(dir):
			d.tell(ReasonWorkspaceRefused, "annotation %s: %s cannot be a workspace", v1alpha1.WorkspacesAnnotation, dir)
		default:
			dirs = append(dirs, dir)
		}
	}
	return outermost(dirs), true
}

// outermost sorts directories and drops those that lie in another.
func outermost(dirs []string) []string {
	slices.Sort(dirs)
	var out []string
	for _, dir := range dirs {
		if !slices.ContainsFunc(out, func(o string) bool { return within(dir, o) }) {
			out = append(out, dir)
		}
	}
	return out
}

// workspacesOf are the workspaces that one container mounts. Its agent is nil
// when there are none.
func (d *decision) workspacesOf(c *corev1.Container, allowed, narrowed []string, narrow bool) workspaces {
	if len(c.VolumeMounts) > maxMounts {
		d.tell(ReasonWorkspaceRefused, "container %q has more than %d volume mounts; none of them is a workspace", c.Name, maxMounts)
		return workspaces{}
	}
	own := d.usableMounts(c, len(d.shape.Workspaces) > 0)
	every, usable := cleanPaths(c.VolumeMounts), mountPaths(own)
	dirs := slices.Clone(usable)
	if len(d.shape.Workspaces) > 0 {
		dirs = intersect(dirs, allowed)
	}
	if narrow {
		dirs = intersect(dirs, narrowed)
	}
	// A directory behind a mount that is no workspace (a Secret below an
	// emptyDir) is not readable here: the mount in between is not copied.
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !slices.Contains(usable, coveringMount(every, dir)) })
	w, needed := workspaces{directories: outermost(dirs)}, map[string]bool{}
	for _, m := range own {
		if !slices.ContainsFunc(w.directories, func(dir string) bool { return within(m.MountPath, dir) || within(dir, m.MountPath) }) {
			continue
		}
		if !listsAll(c.Env, references(m.SubPathExpr)) {
			d.tell(ReasonWorkspaceRefused, "%s: its subPathExpr %q refers to a variable that container %q does not list in env", m.MountPath, m.SubPathExpr, c.Name)
			w.directories = slices.DeleteFunc(w.directories, func(dir string) bool { return within(dir, m.MountPath) })
			continue
		}
		for _, name := range references(m.SubPathExpr) {
			needed[name] = true
		}
		m.ReadOnly = true
		w.mounts = append(w.mounts, m)
	}
	if len(w.directories) == 0 {
		return workspaces{}
	}
	w.agent, w.env = c, ofContainer(c.Name, envNamed(c.Env, needed))
	return w
}

// usableMounts are copies of a container's mounts that may hold workspaces, with
// clean paths, sorted by path: emptyDirs and PersistentVolumeClaims. Read-only
// ones count only where the policy lists directories.
func (d *decision) usableMounts(c *corev1.Container, listed bool) []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for _, m := range c.VolumeMounts {
		dir := path.Clean(m.MountPath)
		if len(dir) > maxPath || !path.IsAbs(dir) || isReserved(dir) || !d.holdsWorkspaces(m.Name, listed) || m.ReadOnly && !listed {
			continue
		}
		out = append(out, corev1.VolumeMount{Name: m.Name, MountPath: dir, SubPath: m.SubPath, SubPathExpr: m.SubPathExpr})
	}
	slices.SortFunc(out, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	return slices.CompactFunc(out, func(a, b corev1.VolumeMount) bool { return a.MountPath == b.MountPath })
}

// holdsWorkspaces reports whether a volume of the pod is of a kind that may.
func (d *decision) holdsWorkspaces(name string, listed bool) bool {
	v := d.volumesByName[name]
	if v == nil || isOurVolume(name) {
		return false
	}
	if claim := v.PersistentVolumeClaim; claim != nil {
		return listed || !claim.ReadOnly
	}
	return v.EmptyDir != nil || v.Ephemeral != nil
}

func mountPaths(mounts []corev1.VolumeMount) []string {
	out := make([]string, len(mounts))
	for i := range mounts {
		out[i] = mounts[i].MountPath
	}
	return out
}

// cleanPaths are where a container's volumes are mounted.
func cleanPaths(mounts []corev1.VolumeMount) []string {
	out := mountPaths(mounts)
	for i := range out {
		out[i] = path.Clean(out[i])
	}
	return out
}

// intersect are the directories that lie in one of each list.
func intersect(a, b []string) []string {
	var out []string
	for _, x := range a {
		for _, y := range b {
			switch {
			case within(x, y):
				out = append(out, x)
			case within(y, x):
				out = append(out, y)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// coveringMount is the deepest of a container's mounts at or above a directory;
// empty when there is none.
func coveringMount(mounts []string, dir string) string {
	best := ""
	for _, p := range mounts {
		if within(dir, p) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

// checkConflicts objects when another container mounts something else where the
// agent has a workspace: every container is told the runtime's address, and a
// path must mean the same file to all of them.
func (d *decision) checkConflicts() {
	mine := make(map[string]*corev1.VolumeMount, len(d.work.mounts))
	for i := range d.work.mounts {
		mine[d.work.mounts[i].MountPath] = &d.work.mounts[i]
	}
	for i := range d.Pod.Spec.Containers {
		c := &d.Pod.Spec.Containers[i]
		if c.Name == d.work.agent.Name {
			continue
		}
		for _, m := range c.VolumeMounts {
			at := path.Clean(m.MountPath)
			if w := mine[at]; w != nil && (m.Name != w.Name || m.SubPath != w.SubPath || m.SubPathExpr != w.SubPathExpr) {
				d.obstruct(ReasonWorkspaceConflict, "containers %q and %q mount different volumes at %s", d.work.agent.Name, c.Name, at)
			}
		}
	}
}
