// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect reads archives of images back and says what is wrong with them:
// their structure, and what the project promises of every image.
package inspect

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/visionoperator/vision-operator/hack/images/internal/linkage"
	"github.com/visionoperator/vision-operator/hack/images/internal/oci"
	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
	"github.com/visionoperator/vision-operator/hack/images/internal/roots"
)

// Found is one image of an archive.
type Found struct {
	Architecture string
	Digest       string // of the manifest
	Size         int64  // of the compressed layers together, in bytes
	Problems     []string
}

// Archive reads an archive of one image, or of one index of images, and checks
// it against the recipe. The error is about reading; what is wrong with an image is in Found.Problems.
func Archive(name string, want recipe.Recipe, release recipe.Release) ([]Found, error) {
	dir, err := os.MkdirTemp("", "vision-images.")
	if err != nil {
		return nil, fmt.Errorf("making a folder to unpack in: %w", err)
	}
	defer os.RemoveAll(dir)
	archive, err := unpack(name, dir)
	if err != nil {
		return nil, fmt.Errorf("reading archive %s: %w", name, err)
	}
	if err := validate.Index(archive); err != nil {
		return nil, fmt.Errorf("validating archive %s: %w", name, err)
	}
	manifest, err := archive.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading archive %s: %w", name, err)
	}
	if len(manifest.Manifests) != 1 {
		return nil, &EntriesError{Archive: name, Entries: len(manifest.Manifests)}
	}
	entry := manifest.Manifests[0]
	reference := want.Reference(release.Version)
	if got := entry.Annotations[oci.NameAnnotation]; got != reference {
		return nil, &NameError{Archive: name, Got: got, Want: reference}
	}
	images, err := imagesOf(archive, entry)
	if err != nil {
		return nil, fmt.Errorf("reading archive %s: %w", name, err)
	}
	found := make([]Found, len(images))
	for i, image := range images {
		if found[i], err = look(image, want, release); err != nil {
			return nil, fmt.Errorf("reading archive %s: %w", name, err)
		}
	}
	return found, nil
}

// EntriesError is an archive of none or of several images.
type EntriesError struct {
	Archive string
	Entries int
}

func (e *EntriesError) Error() string {
	return fmt.Sprintf("reading archive %s: its index has %d entries, and must have one", e.Archive, e.Entries)
}

// NameError is an archive whose image would be imported under another name.
type NameError struct{ Archive, Got, Want string }

func (e *NameError) Error() string {
	return fmt.Sprintf("reading archive %s: the image is called %q, and must be %q", e.Archive, e.Got, e.Want)
}

func unpack(name, dir string) (v1.ImageIndex, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tree, err := rootfs.ReadTar(f)
	if err != nil {
		return nil, err
	}
	if err := tree.WriteTo(dir); err != nil {
		return nil, err
	}
	return layout.ImageIndexFromPath(dir)
}

func imagesOf(archive v1.ImageIndex, entry v1.Descriptor) ([]v1.Image, error) {
	if entry.MediaType.IsImage() {
		image, err := archive.Image(entry.Digest)
		return []v1.Image{image}, err
	}
	index, err := archive.ImageIndex(entry.Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var images []v1.Image
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		images = append(images, image)
	}
	return images, nil
}

func look(image v1.Image, want recipe.Recipe, release recipe.Release) (Found, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return Found{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return Found{}, err
	}
	found := Found{Architecture: config.Architecture, Digest: digest.String()}
	if found.Size, err = oci.Size(image); err != nil {
		return Found{}, err
	}
	if err := validate.Image(image); err != nil {
		found.Problems = append(found.Problems, err.Error())
	}
	flat := mutate.Extract(image)
	defer flat.Close()
	files, err := rootfs.ReadTar(flat)
	if err != nil {
		return Found{}, err
	}
	found.Problems = append(found.Problems, Settings(config, want, release)...)
	found.Problems = append(found.Problems, Files(files, want, config.Architecture)...)
	if want.MaxBytes > 0 && found.Size > want.MaxBytes {
		found.Problems = append(found.Problems, fmt.Sprintf("its compressed layers are %d bytes, at most %d", found.Size, want.MaxBytes))
	}
	return found, nil
}

// Settings says what is wrong with an image's configuration.
func Settings(config *v1.ConfigFile, want recipe.Recipe, release recipe.Release) []string {
	var problems []string
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if config.OS != "linux" {
		complain("it is for %q, and must be for linux", config.OS)
	}
	if config.Config.User != recipe.User {
		complain("it runs as user %q, and must as %s", config.Config.User, recipe.User)
	}
	if !slices.Equal(config.Config.Entrypoint, []string{want.Program}) || len(config.Config.Cmd) > 0 {
		complain("it runs %q %q, and must run %s alone", config.Config.Entrypoint, config.Config.Cmd, want.Program)
	}
	if !slices.Equal(config.Config.Env, []string{"PATH=" + recipe.SearchPath}) {
		complain("its environment is %q, and must be PATH alone", config.Config.Env)
	}
	for key, value := range want.Labels(release) {
		if config.Config.Labels[key] != value {
			complain("label %s is %q, and must be %q", key, config.Config.Labels[key], value)
		}
	}
	return problems
}

// forbidden are programs that give whoever gets in something to work with.
var forbidden = []string{
	"sh", "bash", "dash", "ash", "zsh", "busybox", "perl", "python", "python3", "awk", "mawk", "gawk",
	"dpkg", "apt", "apt-get", "curl", "wget", "nc", "openssl", "su", "sudo", "login",
}

// Files says what is wrong with the files of an image for an architecture: a shell, a
// set-id bit, anything executable or writable that the recipe does not name, a program for
// another processor, a library that is missing, or no certificates.
func Files(files *rootfs.Tree, want recipe.Recipe, architecture string) []string {
	platform, ok := linkage.Platforms[architecture]
	if !ok {
		return []string{fmt.Sprintf("its architecture is %q", architecture)}
	}
	var problems []string
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	executable := linkage.Executables(files, want.Programs()...)
	for _, program := range want.Programs() {
		if f, _, err := files.Resolve(program); err != nil || f.Mode&0o555 != 0o555 {
			complain("%s is not there for all to execute", program)
		}
	}
	for _, f := range files.Files() {
		switch {
		case slices.Contains(forbidden, path.Base(f.Path)) && strings.Contains("/"+path.Dir(f.Path)+"/", "bin/"):
			complain("%s is in it", f.Path)
		case f.IsLink():
		case f.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
			complain("%s has a set-id bit", f.Path)
		case f.Mode&0o022 != 0:
			complain("%s may be written by others than root", f.Path)
		case f.Mode&0o111 != 0 && !executable[f.Path]:
			complain("%s is executable, and no program of the recipe", f.Path)
		case f.Mode&0o444 != 0o444:
			complain("%s cannot be read by all", f.Path)
		}
		if linkage.IsELF(f.Data) {
			if object, err := linkage.Read(f.Data); err != nil || object.Machine != platform.Machine {
				complain("%s is for %s, and must be for %s (%v)", f.Path, object.Machine, platform.Machine, err)
			}
		}
	}
	if _, err := linkage.Closure(files, platform, want.Programs()...); err != nil {
		complain("it cannot run: %v", err)
	}
	if f, _, err := files.Resolve(roots.Path); err != nil || len(f.Data) == 0 {
		complain("%s is not there", roots.Path)
	}
	return problems
}
