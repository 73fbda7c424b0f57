// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/visionoperator/vision-operator/hack/images/internal/oci"
	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

func image(t *testing.T, arch string) v1.Image {
	t.Helper()
	var layers []oci.Layer
	for _, name := range []string{"etc/certs", "reader"} {
		tree, err := rootfs.New(rootfs.File{Path: name, Mode: 0o644, Data: []byte(strings.Repeat(name, 100))})
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, oci.Layer{Files: tree, By: "test of " + name})
	}
	out, err := oci.Image(oci.Config{
		Architecture: arch, Entrypoint: []string{"/reader"}, User: "65532:65532", SearchPath: "/bin",
		Labels: map[string]string{"b": "2", "a": "1"}, Created: time.Unix(1_800_000_000, 0),
	}, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// written returns what was added to a layout, read back from it.
func written(t *testing.T, content mutate.Appendable) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: content})); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestAnImageIsValidAndOfOCITypes(t *testing.T) {
	digest, err := image(t, "arm64").Digest()
	if err != nil {
		t.Fatal(err)
	}
	got, err := written(t, image(t, "arm64")).Image(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(got); err != nil {
		t.Fatal(err)
	}
	manifest, err := got.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON || len(manifest.Layers) != 2 || manifest.Layers[0].MediaType != types.OCILayer {
		t.Errorf("%+v", manifest)
	}
	config, err := got.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || config.Config.User != "65532:65532" || config.Config.Labels["a"] != "1" ||
		config.Created.Unix() != 1_800_000_000 || len(config.History) != 2 || config.History[1].CreatedBy != "test of reader" {
		t.Errorf("%+v", config)
	}
	size, err := oci.Size(got)
	if want := manifest.Layers[0].Size + manifest.Layers[1].Size; err != nil || size != want {
		t.Errorf("size %d, want %d, %v", size, want, err)
	}
}

func TestTheSameImageIsTheSameArchive(t *testing.T) {
	var archives [][]byte
	for range 2 {
		name := filepath.Join(t.TempDir(), "sub", "reader.tar")
		if err := oci.WriteArchive(name, "ghcr.io/x/reader:v1", image(t, "amd64")); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, data)
		if left, err := os.ReadDir(filepath.Dir(name)); err != nil || len(left) != 1 {
			t.Errorf("the folder holds %v, %v", left, err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of one image differ")
	}
}

// The layout, as the image-spec's image-layout.md has it, is read here without the library that wrote it.
func TestAnArchiveIsALayoutThatNamesItsImage(t *testing.T) {
	name := filepath.Join(t.TempDir(), "reader.tar")
	index, err := oci.Index(image(t, "amd64"), image(t, "arm64"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(written(t, index)); err != nil {
		t.Fatal(err)
	}
	if err := oci.WriteArchive(name, "ghcr.io/x/reader:v1", index); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if err != nil {
			break
		}
		if files[h.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
	type descriptor struct {
		MediaType, Digest string
		Annotations       map[string]string
		Platform          struct{ OS, Architecture string }
	}
	var top, inner struct{ Manifests []descriptor }
	read := func(name string, into any) {
		t.Helper()
		if err := json.Unmarshal(files[name], into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if got := strings.Join(strings.Fields(string(files["oci-layout"])), ""); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	read("index.json", &top)
	if len(top.Manifests) != 1 || top.Manifests[0].MediaType != "application/vnd.oci.image.index.v1+json" ||
		top.Manifests[0].Annotations["io.containerd.image.name"] != "ghcr.io/x/reader:v1" || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1" {
		t.Fatalf("%+v", top)
	}
	read("blobs/"+strings.ReplaceAll(top.Manifests[0].Digest, ":", "/"), &inner)
	var platforms []string
	for _, m := range inner.Manifests {
		platforms = append(platforms, m.Platform.OS+"/"+m.Platform.Architecture)
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %q", platforms)
	}
}
