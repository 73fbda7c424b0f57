// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelet lays a pod's volumes out on disk and keeps them current, in the way
// that a kubelet does: each volume is a directory whose files are symlinks
// into "..data", and an update swaps "..data" in one rename.
type kubelet struct {
	client client.Client
	pod    *corev1.Pod
	// mounted is where each volume's directory is, by volume name; volumes that
	// the container does not mount are not there.
	mounted map[string]string
	// wrote is the fingerprint of what each volume holds.
	wrote map[string][]byte
}

// sync brings every volume up to date once.
func (k *kubelet) sync(ctx context.Context) error {
	for _, v := range k.pod.Spec.Volumes {
		if k.mounted[v.Name] == "" {
			continue
		}
		files, err := k.payload(ctx, &v)
		if err != nil {
			return fmt.Errorf("laying out volume %s: %w", v.Name, err)
		}
		if err := k.write(v.Name, files); err != nil {
			return fmt.Errorf("laying out volume %s: %w", v.Name, err)
		}
	}
	return nil
}

// run syncs until the context ends. A kubelet takes about a minute on its own,
// and less than a second when the pod changes; this one looks twice a second.
func (k *kubelet) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = k.sync(ctx) // the API server may be going away; the next turn tries again
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// payload returns the files of a volume, by relative path.
func (k *kubelet) payload(ctx context.Context, v *corev1.Volume) (map[string][]byte, error) {
	files := map[string][]byte{}
	switch {
	case v.ConfigMap != nil:
		return files, k.configMap(ctx, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional, files)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.Secret == nil {
				return nil, fmt.Errorf("a projected source that this demo does not lay out: %+v", source)
			}
			if err := k.secret(ctx, source.Secret, files); err != nil {
				return nil, err
			}
		}
	case v.EmptyDir != nil, v.DownwardAPI != nil && len(v.DownwardAPI.Items) == 0:
	default:
		return nil, fmt.Errorf("a kind of volume that this demo does not lay out")
	}
	return files, nil
}

func (k *kubelet) configMap(ctx context.Context, name string, items []corev1.KeyToPath, optional *bool, files map[string][]byte) error {
	cm := &corev1.ConfigMap{}
	err := k.client.Get(ctx, types.NamespacedName{Namespace: k.pod.Namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	for key, text := range cm.Data {
		data[key] = []byte(text)
	}
	project(data, items, files)
	return nil
}

func (k *kubelet) secret(ctx context.Context, p *corev1.SecretProjection, files map[string][]byte) error {
	secret := &corev1.Secret{}
	err := k.client.Get(ctx, types.NamespacedName{Namespace: k.pod.Namespace, Name: p.Name}, secret)
	if apierrors.IsNotFound(err) && p.Optional != nil && *p.Optional {
		return nil
	}
	if err != nil {
		return err
	}
	project(secret.Data, p.Items, files)
	return nil
}

// project copies keys to paths; no items means every key under its own name.
func project(data map[string][]byte, items []corev1.KeyToPath, files map[string][]byte) {
	if len(items) == 0 {
		maps.Copy(files, data)
	}
	for _, item := range items {
		if value, ok := data[item.Key]; ok {
			files[item.Path] = value
		}
	}
}

// write puts files into a volume by one swap, unless they are there already.
func (k *kubelet) write(volume string, files map[string][]byte) error {
	root := k.mounted[volume]
	print := fingerprint(files)
	if old, ok := k.wrote[volume]; ok && bytes.Equal(old, print) {
		return nil
	}
	if len(files) > 0 {
		if err := swap(root, files); err != nil {
			return err
		}
	}
	k.wrote[volume] = print
	return nil
}

func swap(root string, files map[string][]byte) error {
	stamp := ".." + strconv.FormatInt(time.Now().UnixNano(), 10)
	for path, data := range files {
		full := filepath.Join(root, stamp, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, data, 0o444); err != nil {
			return err
		}
		top, _, _ := cutPath(path)
		if err := os.Symlink(filepath.Join("..data", top), filepath.Join(root, top)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	old, _ := os.Readlink(filepath.Join(root, "..data"))
	if err := os.Symlink(stamp, filepath.Join(root, "..data_tmp")); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(root, "..data_tmp"), filepath.Join(root, "..data")); err != nil {
		return err
	}
	if old != "" {
		return os.RemoveAll(filepath.Join(root, old))
	}
	return nil
}

// cutPath splits a path after its first element.
func cutPath(path string) (first, rest string, more bool) {
	for i := range len(path) {
		if path[i] == filepath.Separator {
			return path[:i], path[i+1:], true
		}
	}
	return path, "", false
}

// fingerprint lists a payload in one order; it stays in memory.
func fingerprint(files map[string][]byte) []byte {
	var b bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%q %q\n", path, files[path])
	}
	return b.Bytes()
}

// own gives a directory tree to a user, as fsGroup would for an emptyDir.
func own(root string, uid int) error {
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
}
