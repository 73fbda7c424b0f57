// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recipe says what each image of the project is: its program, its user,
// its labels, what it takes from Debian, and how large it may be. The Dockerfile says the same, and a test compares.
package recipe

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Registry is where the images are published: Registry/NAME:VERSION.
const Registry = "ghcr.io/visionoperator"

// User is the numeric user and group of every image. Kubernetes checks runAsNonRoot by the number.
const User = "65532:65532"

// SearchPath is PATH in every image.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Source is the repository, as links and labels name it.
const Source = "https://github.com/visionoperator/vision-operator"

// Licence is the SPDX expression of the project's own code.
const Licence = "Apache-2.0"

// Suite is the release of Debian that images take files from. Its Tesseract (5.3) is the one that the tests run.
const Suite = "bookworm"

// tagForm is the form of a tag (OCI distribution-spec, "Pulling manifests").
var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// VersionError is a version that cannot be an image's tag.
type VersionError struct{ Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("choosing the images' tag: %q is none: letters, digits, dots, hyphens and underscores, at most 128", e.Version)
}

// CheckVersion says whether a version can be an image's tag: nil or a *VersionError.
func CheckVersion(version string) error {
	if !tagForm.MatchString(version) {
		return &VersionError{Version: version}
	}
	return nil
}

// Recipe is one image.
type Recipe struct {
	// Name is the image's, the Dockerfile target's, and the program's below cmd/.
	Name string
	// Title and Description are for people who look at the image.
	Title, Description string
	// Program is the absolute path of the program that the image runs.
	Program string
	// Debian is what the image takes from Debian; nil for an image that holds a static program alone.
	Debian *Debian
	// MaxBytes is the most that the compressed layers may be together; 0 is no limit.
	MaxBytes int64
}

// Debian is what an image takes from Debian's packages.
type Debian struct {
	// Packages are those that the image asks for; what they depend on is searched for libraries.
	Packages []string
	// Programs are the absolute paths of programs; the libraries that they need come with them.
	Programs []string
	// Files are paths of other files, and of folders when they end with a slash.
	Files []string
}

// All are the project's images.
var All = []Recipe{
	{
		Name: "vision-operator", Title: "Vision Operator",
		Description: "Controllers and admission webhooks that give AI agents in Kubernetes governed access to vision models",
		Program:     "/vision-operator",
	},
	{
		Name: "vision-runtime", Title: "Vision Operator runtime",
		Description: "Sidecar that looks at images for an AI agent, under a platform team's policy",
		Program:     "/vision-runtime",
		MaxBytes:    15 << 20,
	},
	{
		Name: "vision-ocr", Title: "Vision Operator OCR provider",
		Description: "Vision provider that needs no key and no internet: a Chat Completions server backed by Tesseract",
		Program:     "/usr/local/bin/vision-ocr",
		Debian: &Debian{
			Packages: []string{"base-files", "tesseract-ocr", "tesseract-ocr-eng"},
			Programs: []string{"/usr/bin/tesseract"},
			// English is what vision-ocr reads unless told otherwise. Licences refer to the common ones, and
			// vulnerability scanners ask os-release whose packages these are.
			Files: []string{
				"/usr/share/tesseract-ocr/5/tessdata/eng.traineddata",
				"/usr/share/common-licenses/", "/etc/os-release",
			},
		},
		MaxBytes: 64 << 20,
	},
}

// UnknownError is a name that no image has.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	names := make([]string, len(All))
	for i, r := range All {
		names[i] = r.Name
	}
	return fmt.Sprintf("choosing images: there is no %q; there are %s", e.Name, strings.Join(names, ", "))
}

// Choose returns the images with these names in the order of All; no name means all.
func Choose(names []string) ([]Recipe, error) {
	for _, name := range names {
		if !slices.ContainsFunc(All, func(r Recipe) bool { return r.Name == name }) {
			return nil, &UnknownError{Name: name}
		}
	}
	if len(names) == 0 {
		return slices.Clone(All), nil
	}
	return slices.DeleteFunc(slices.Clone(All), func(r Recipe) bool { return !slices.Contains(names, r.Name) }), nil
}

// Reference is the image's full name with its tag.
func (r Recipe) Reference(version string) string { return Registry + "/" + r.Name + ":" + version }

// Programs are the absolute paths of all that the image may execute, the dynamic loader aside.
func (r Recipe) Programs() []string {
	programs := []string{r.Program}
	if r.Debian != nil {
		programs = append(programs, r.Debian.Programs...)
	}
	return programs
}

// Release is what the labels say of where and when an image was made.
type Release struct {
	Version  string    // the tag
	Revision string    // the commit, in full
	Created  time.Time // the commit's time, so that it is the same for the same source
}

// Labels are the image's OCI annotations
// (https://github.com/opencontainers/image-spec/blob/v1.1.1/annotations.md).
func (r Recipe) Labels(release Release) map[string]string {
	labels := map[string]string{
		"title": r.Title, "description": r.Description, "source": Source, "url": Source, "licenses": Licence,
		"version": release.Version, "revision": release.Revision, "created": release.Created.UTC().Format(time.RFC3339),
	}
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out["org.opencontainers.image."+key] = labels[key]
	}
	return out
}
