// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/visionoperator/vision-operator/hack/images/internal/gobuild"
	"github.com/visionoperator/vision-operator/hack/images/internal/inspect"
	"github.com/visionoperator/vision-operator/hack/images/internal/oci"
	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
	"github.com/visionoperator/vision-operator/hack/images/internal/roots"
	"github.com/visionoperator/vision-operator/hack/images/internal/sbom"
)

// builder builds what one command line asks for.
type builder struct {
	config
	packages *packages
	stderr   io.Writer
}

func newBuilder(c config, stderr io.Writer) (*builder, error) {
	var err error
	for _, dir := range []*string{&c.root, &c.out} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return nil, fmt.Errorf("finding folder %s: %w", *dir, err)
		}
	}
	b := &builder{config: c, stderr: stderr}
	b.packages, err = newPackages(filepath.Join(c.root, lockFile), c.current, b.say)
	return b, err
}

func (b *builder) say(format string, args ...any) {
	fmt.Fprintf(b.stderr, "images: "+format+"\n", args...)
}

// made is one image with what goes into its SBOM.
type made struct {
	layers  []oci.Layer
	program *debug.BuildInfo
	debian  []sbom.Debian
}

// make gathers the files of an image. Layers that change the least come first.
func (b *builder) make(ctx context.Context, r recipe.Recipe, arch string) (made, error) {
	var m made
	if r.Debian != nil {
		files, used, err := b.packages.choose(ctx, *r.Debian, arch)
		if err != nil {
			return m, fmt.Errorf("taking files from Debian's packages for %s: %w", arch, err)
		}
		m.layers = append(m.layers, oci.Layer{Files: files, By: "files of Debian " + recipe.Suite + "'s packages"})
		m.debian = used
	}
	certificates, err := roots.File()
	if err != nil {
		return m, err
	}
	trust, err := rootfs.New(certificates)
	if err != nil {
		return m, err
	}
	m.layers = append(m.layers, oci.Layer{Files: trust, By: "certificates of " + roots.Module})
	b.say("building %s for %s", r.Name, arch)
	binary, err := gobuild.Build(ctx, b.root, "./cmd/"+r.Name, b.version, arch)
	if err != nil {
		return m, err
	}
	program, err := rootfs.New(rootfs.File{Path: strings.TrimPrefix(r.Program, "/"), Mode: 0o755, Data: binary.Data})
	if err != nil {
		return m, err
	}
	m.program = binary.Info
	m.layers = append(m.layers, oci.Layer{Files: program, By: "go build ./cmd/" + r.Name})
	return m, nil
}

// build writes archives and SBOMs, reads them back, and prints a table of them.
func (b *builder) build(ctx context.Context, stdout io.Writer) error {
	release, err := releaseOf(ctx, b.root, b.version, b.say)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tARCHITECTURE\tMIB\tDIGEST")
	for _, r := range b.recipes {
		var images []v1.Image
		for _, arch := range b.architectures {
			image, err := b.buildOne(ctx, r, arch, release)
			if err != nil {
				return fmt.Errorf("building image %s for %s: %w", r.Name, arch, err)
			}
			images = append(images, image)
			archive := filepath.Join(b.out, r.Name+"-"+arch+".tar")
			if err := oci.WriteArchive(archive, r.Reference(release.Version), image); err != nil {
				return err
			}
			if err := check(archive, r, release, table); err != nil {
				return err
			}
		}
		if len(images) < 2 {
			continue
		}
		if err := b.join(r, release, images, table); err != nil {
			return err
		}
	}
	return table.Flush()
}

// join writes the archive of an image for all architectures.
func (b *builder) join(r recipe.Recipe, release recipe.Release, images []v1.Image, table io.Writer) error {
	index, err := oci.Index(images...)
	if err != nil {
		return err
	}
	archive := filepath.Join(b.out, r.Name+".tar")
	if err := oci.WriteArchive(archive, r.Reference(release.Version), index); err != nil {
		return err
	}
	if err := check(archive, r, release, io.Discard); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("reading an index: %w", err)
	}
	fmt.Fprintf(table, "%s\t%s\t\t%s\n", r.Reference(release.Version), strings.Join(b.architectures, ","), digest)
	return nil
}

func (b *builder) buildOne(ctx context.Context, r recipe.Recipe, arch string, release recipe.Release) (v1.Image, error) {
	m, err := b.make(ctx, r, arch)
	if err != nil {
		return nil, err
	}
	image, err := oci.Image(oci.Config{
		Architecture: arch, Entrypoint: []string{r.Program}, User: recipe.User, SearchPath: recipe.SearchPath,
		Labels: r.Labels(release), Created: release.Created,
	}, m.layers...)
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, fmt.Errorf("computing the digest: %w", err)
	}
	document, err := sbom.Document(sbom.Subject{
		Name: r.Name, Repository: recipe.Registry + "/" + r.Name, Version: release.Version, Architecture: arch,
		Digest: digest.String(), Source: recipe.Source, Licence: recipe.Licence, Created: release.Created,
	}, m.program, []sbom.Module{{Path: roots.Module, Version: moduleVersion(roots.Module)}}, m.debian)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of images: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.out, r.Name+"-"+arch+".spdx.json"), document, 0o644); err != nil {
		return nil, fmt.Errorf("writing the SBOM: %w", err)
	}
	return image, nil
}

// ProblemsError is an image that is not as it must be.
type ProblemsError struct {
	Archive, Architecture string
	Problems              []string
}

func (e *ProblemsError) Error() string {
	return fmt.Sprintf("checking %s for %s:\n  %s", e.Archive, e.Architecture, strings.Join(e.Problems, "\n  "))
}

// check reads an archive back, and adds its images to the table. An archive with a problem is removed.
func check(archive string, r recipe.Recipe, release recipe.Release, table io.Writer) error {
	found, err := inspect.Archive(archive, r, release)
	if err != nil {
		return err
	}
	for _, f := range found {
		if len(f.Problems) > 0 {
			if err := os.Remove(archive); err != nil {
				return fmt.Errorf("removing a bad archive: %w", err)
			}
			return &ProblemsError{Archive: archive, Architecture: f.Architecture, Problems: f.Problems}
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%s\n", r.Reference(release.Version), f.Architecture, float64(f.Size)/(1<<20), f.Digest)
	}
	return nil
}

// rootfs writes the files of images into folders.
func (b *builder) rootfs(ctx context.Context) error {
	if len(b.architectures) != 1 {
		return &usageError{problem: "rootfs takes one architecture"}
	}
	for _, r := range b.recipes {
		m, err := b.make(ctx, r, b.architectures[0])
		if err != nil {
			return err
		}
		for _, l := range m.layers {
			if err := l.Files.WriteTo(filepath.Join(b.out, r.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// moduleVersion is the version of a module that this program is built with.
func moduleVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}
