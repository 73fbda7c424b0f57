// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci makes images of files, and writes them as OCI layout archives that
// containerd, skopeo and crane read.
package oci

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

// Config is what an image says of itself.
type Config struct {
	Architecture string
	Entrypoint   []string
	User         string
	SearchPath   string // PATH
	Labels       map[string]string
	Created      time.Time
}

// Layer is files that make one layer, and what made them, for the image's history.
type Layer struct {
	Files *rootfs.Tree
	By    string
}

// Image makes an image. The same arguments give the same digest.
func Image(c Config, layers ...Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: c.Architecture, OS: "linux", Created: v1.Time{Time: c.Created.UTC()},
		RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: c.User, Entrypoint: c.Entrypoint, Env: []string{"PATH=" + c.SearchPath}, WorkingDir: "/", Labels: c.Labels,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making an image: %w", err)
	}
	for _, l := range layers {
		data, err := l.Files.Tar()
		if err != nil {
			return nil, err
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
		if err != nil {
			return nil, fmt.Errorf("compressing a layer: %w", err)
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, History: v1.History{CreatedBy: l.By, Created: v1.Time{Time: c.Created.UTC()}},
		})
		if err != nil {
			return nil, fmt.Errorf("adding a layer to an image: %w", err)
		}
	}
	return image, nil
}

// Index makes one image of several architectures'.
func Index(images ...v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("joining images: %w", err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: config.Platform()},
		})
	}
	return index, nil
}

// Size is the sum of an image's compressed layers, in bytes.
func Size(image v1.Image) (int64, error) {
	layers, err := image.Layers()
	if err != nil {
		return 0, fmt.Errorf("reading layers: %w", err)
	}
	var sum int64
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return 0, fmt.Errorf("reading layers: %w", err)
		}
		sum += size
	}
	return sum, nil
}
