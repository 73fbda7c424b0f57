// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations of the one entry of an archive's index. `ctr images import` names
// the image by the first (containerd, core/images/archive), others go by the second (OCI image-spec, annotations.md).
const (
	NameAnnotation = "io.containerd.image.name"
	TagAnnotation  = "org.opencontainers.image.ref.name"
)

// WriteArchive writes an image (v1.Image) or an index of images (v1.ImageIndex)
// as an OCI layout in an uncompressed tar file: the same bytes for the same image and reference.
func WriteArchive(name, reference string, content mutate.Appendable) error {
	_, tag, _ := strings.Cut(filepath.Base(reference), ":")
	add := mutate.IndexAddendum{Add: content, Descriptor: v1.Descriptor{
		Annotations: map[string]string{NameAnnotation: reference, TagAnnotation: tag},
	}}
	if image, ok := content.(v1.Image); ok {
		config, err := image.ConfigFile()
		if err != nil {
			return fmt.Errorf("writing an archive: %w", err)
		}
		add.Platform = config.Platform()
	}
	dir, err := os.MkdirTemp("", "vision-images.")
	if err != nil {
		return fmt.Errorf("making a folder for an archive: %w", err)
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), add)); err != nil {
		return fmt.Errorf("writing the layout of an archive: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("making the folder of archives: %w", err)
	}
	partial := name + ".partial"
	defer os.Remove(partial)
	if err := writeTar(partial, dir); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.Rename(partial, name); err != nil {
		return fmt.Errorf("naming an archive: %w", err)
	}
	return nil
}

// writeTar writes the files below dir into a tar file, in the order of their paths.
func writeTar(name, dir string) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	err = filepath.WalkDir(dir, func(at string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		return copyInto(w, filepath.ToSlash(inside), at)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}

func copyInto(w *tar.Writer, name, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0).UTC()}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
