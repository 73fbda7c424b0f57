// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sbom writes what an image is made of, as an SPDX 2.3 document: the same
// bytes for the same image (https://spdx.github.io/spdx-spec/v2.3/).
package sbom

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// Subject is the image that is described.
type Subject struct {
	Name         string // vision-runtime
	Repository   string // ghcr.io/visionoperator/vision-runtime
	Version      string
	Architecture string
	Digest       string // of the manifest: sha256:...
	Source       string // where the project's code is
	Licence      string // of the project's code, an SPDX expression
	Created      time.Time
}

// Module is a Go module, other than the program's, that gave something to the image.
type Module struct{ Path, Version string }

// Debian is a binary package of Debian that gave something to the image.
type Debian struct {
	Name, Version, Architecture, Source, SHA256 string
	// Suite is the release: bookworm.
	Suite string
}

// none is SPDX's word for what the author does not state.
const none = "NOASSERTION"

// imageID is the identifier of the image itself.
const imageID = "Image"

// Document returns the document. program is what Go wrote into the image's binary.
func Document(s Subject, program *debug.BuildInfo, modules []Module, packages []Debian) ([]byte, error) {
	d := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      s.Name + "-" + s.Architecture,
		DocumentNamespace: s.Source + "/spdx/" + s.Name + "/" + s.Architecture + "/" + strings.ReplaceAll(s.Digest, ":", "-"),
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "The Vision Operator Authors"}, {CreatorType: "Tool", Creator: "vision-operator-hack-images"}},
			Created:  s.Created.UTC().Format(time.RFC3339),
		},
	}
	image := s.image()
	own := golang(Module{Path: program.Main.Path, Version: s.Version})
	own.PackageLicenseDeclared, own.PrimaryPackagePurpose = s.Licence, "APPLICATION"
	d.Packages = append(d.Packages, image, own)
	relate(d, "DOCUMENT", "DESCRIBES", image)
	relate(d, imageID, "CONTAINS", own)
	for _, m := range linked(program) {
		p := golang(m)
		d.Packages = append(d.Packages, p)
		relate(d, own.PackageSPDXIdentifier, "DEPENDS_ON", p)
	}
	for _, m := range modules {
		p := golang(m)
		if !slices.ContainsFunc(d.Packages, func(q *v2_3.Package) bool { return q.PackageSPDXIdentifier == p.PackageSPDXIdentifier }) {
			d.Packages = append(d.Packages, p)
		}
		relate(d, imageID, "CONTAINS", p)
	}
	for _, m := range packages {
		p := m.packaged()
		d.Packages = append(d.Packages, p)
		relate(d, imageID, "CONTAINS", p)
	}
	var out bytes.Buffer
	if err := json.Write(d, &out, json.Indent("  "), json.EscapeHTML(false)); err != nil {
		return nil, fmt.Errorf("writing an SPDX document: %w", err)
	}
	return out.Bytes(), nil
}

// linked are the modules in a program and Go's standard library, in the order of Go's list.
func linked(program *debug.BuildInfo) []Module {
	modules := []Module{{Path: "stdlib", Version: strings.TrimPrefix(program.GoVersion, "go")}}
	for _, m := range program.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, Module{Path: m.Path, Version: m.Version})
	}
	return modules
}

func (s Subject) image() *v2_3.Package {
	p := described(s.Name, s.Version, fmt.Sprintf("pkg:oci/%s@%s?arch=%s&repository_url=%s&tag=%s",
		s.Name, url.QueryEscape(s.Digest), s.Architecture, url.QueryEscape(s.Repository), url.QueryEscape(s.Version)))
	p.PackageSPDXIdentifier, p.PrimaryPackagePurpose = imageID, "CONTAINER"
	p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: strings.TrimPrefix(s.Digest, "sha256:")}}
	p.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: "The Vision Operator Authors"}
	return p
}

// golang describes a Go module (https://github.com/package-url/purl-spec, type golang).
func golang(m Module) *v2_3.Package {
	p := described(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+url.QueryEscape(m.Version))
	p.PackageSupplier = &common.Supplier{Supplier: none}
	return p
}

// packaged describes a Debian package (purl type deb). Its licence is a text of
// many, in the image, that no one has put into SPDX's words.
func (d Debian) packaged() *v2_3.Package {
	p := described(d.Name, d.Version, fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=%s",
		url.QueryEscape(d.Name), url.QueryEscape(d.Version), d.Architecture, d.Suite))
	p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: d.SHA256}}
	p.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: "Debian"}
	p.PackageSourceInfo = "built from Debian's source package " + d.Source
	p.PackageLicenseComments = "the image holds the licence as /usr/share/doc/" + d.Name + "/copyright"
	return p
}

// described is a package with what SPDX asks of each.
func described(name, version, locator string) *v2_3.Package {
	return &v2_3.Package{
		PackageName: name, PackageVersion: version, PackageSPDXIdentifier: identifier(name, locator),
		PackageDownloadLocation: none, FilesAnalyzed: false, IsFilesAnalyzedTagPresent: true,
		PackageLicenseConcluded: none, PackageLicenseDeclared: none, PackageCopyrightText: none,
		PackageExternalReferences: []*v2_3.PackageExternalReference{
			{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: locator},
		},
	}
}

var beyondIdentifier = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// identifier is an SPDX identifier (letters, digits, dots and hyphens) that tells
// packages apart whose names differ in other characters only.
func identifier(name, locator string) common.ElementID {
	sum := sha256.Sum256([]byte(locator))
	return common.ElementID(beyondIdentifier.ReplaceAllString(name, "-") + "-" + hex.EncodeToString(sum[:4]))
}

func relate(d *v2_3.Document, from common.ElementID, how string, to *v2_3.Package) {
	d.Relationships = append(d.Relationships, &v2_3.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, RefB: common.DocElementID{ElementRefID: to.PackageSPDXIdentifier}, Relationship: how,
	})
}
