// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mountpointsDirectory is where parts of workspaces are mounted only so that they exist.
const mountpointsDirectory = "/var/run/vision/mountpoints"

// mountpoints make the directories on which workspaces within workspaces are
// mounted. In the agent's container, where the outer one is writable, the container
// runtime makes them; the runtime's container starts before it with read-only copies,
// in which a directory that is not there cannot be made, and would never start. The
// kubelet makes the directory of a subPath in the volume itself, also for a read-only mount.
func mountpoints(mounts []corev1.VolumeMount) []corev1.VolumeMount {
	var out []corev1.VolumeMount
	for i := range mounts {
		outer := outerOf(mounts, mounts[i].MountPath)
		if outer == nil {
			continue
		}
		m := corev1.VolumeMount{Name: outer.Name, MountPath: path.Join(mountpointsDirectory, strconv.Itoa(len(out))), ReadOnly: true}
		inside := strings.TrimPrefix(mounts[i].MountPath, outer.MountPath+"/")
		if outer.SubPathExpr != "" {
			m.SubPathExpr = strings.TrimSuffix(outer.SubPathExpr, "/") + "/" + literal(inside)
		} else {
			m.SubPath = path.Join(outer.SubPath, inside)
		}
		out = append(out, m)
	}
	return out
}

// outerOf is the deepest mount above a directory; nil when there is none.
func outerOf(mounts []corev1.VolumeMount, dir string) *corev1.VolumeMount {
	var best *corev1.VolumeMount
	for i := range mounts {
		m := &mounts[i]
		if m.MountPath != dir && within(dir, m.MountPath) && (best == nil || len(m.MountPath) > len(best.MountPath)) {
			best = m
		}
	}
	return best
}
