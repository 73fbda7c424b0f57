// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sbom_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	spdx "github.com/spdx/tools-golang/json"

	"github.com/visionoperator/vision-operator/hack/images/internal/sbom"
)

var subject = sbom.Subject{
	Name: "vision-ocr", Repository: "ghcr.io/visionoperator/vision-ocr", Version: "v1.2.3", Architecture: "arm64",
	Digest: "sha256:" + strings.Repeat("ab", 32), Source: "https://github.com/visionoperator/vision-operator",
	Licence: "Apache-2.0", Created: time.Unix(1_800_000_000, 0),
}

func document(t *testing.T) []byte {
	t.Helper()
	program := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/visionoperator/vision-operator", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "golang.org/x/sys", Version: "v0.1.0"}, {Path: "golang.org/x/sys_", Version: "v0.1.0"},
			{Path: "example.com/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/new", Version: "v2.0.0+incompatible"}},
		},
	}
	out, err := sbom.Document(subject, program, []sbom.Module{{Path: "golang.org/x/crypto/x509roots/fallback", Version: "v0.0.0-1"}, {Path: "golang.org/x/sys", Version: "v0.1.0"}},
		[]sbom.Debian{{Name: "libstdc++6", Version: "1:12.2.0-14+deb12u1", Architecture: "arm64", Source: "gcc-12", SHA256: strings.Repeat("cd", 32), Suite: "bookworm"}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// written is what of an SPDX document the tests look at, read without the library that wrote it.
type written struct {
	SPDXVersion, DataLicense, SPDXID, Name, DocumentNamespace string
	CreationInfo                                              struct {
		Created  string
		Creators []string
	}
	Packages []struct {
		Name, SPDXID, VersionInfo, DownloadLocation, Supplier, LicenseDeclared, LicenseConcluded, CopyrightText string
		FilesAnalyzed                                                                                           *bool
		ExternalRefs                                                                                            []struct{ ReferenceCategory, ReferenceType, ReferenceLocator string }
		Checksums                                                                                               []struct{ Algorithm, ChecksumValue string }
	}
	Relationships []struct{ SPDXElementID, RelationshipType, RelatedSPDXElement string }
}

func TestADocumentKeepsTheRulesOfSPDX(t *testing.T) {
	data := document(t)
	if _, err := spdx.Read(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	var d written
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	// Clauses 6.1 to 6.9 of SPDX 2.3.
	if d.SPDXVersion != "SPDX-2.3" || d.DataLicense != "CC0-1.0" || d.SPDXID != "SPDXRef-DOCUMENT" || d.Name != "vision-ocr-arm64" ||
		d.CreationInfo.Created != "2027-01-15T08:00:00Z" || !slices.Contains(d.CreationInfo.Creators, "Organization: The Vision Operator Authors") {
		t.Errorf("%+v", d)
	}
	if d.DocumentNamespace != "https://github.com/visionoperator/vision-operator/spdx/vision-ocr/arm64/sha256-"+strings.Repeat("ab", 32) {
		t.Errorf("namespace %q", d.DocumentNamespace)
	}
	known := map[string]bool{"SPDXRef-DOCUMENT": true}
	form := regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`) // 7.2
	for _, p := range d.Packages {
		if !form.MatchString(p.SPDXID) || known[p.SPDXID] {
			t.Errorf("%s: identifier %q is malformed or used twice", p.Name, p.SPDXID)
		}
		known[p.SPDXID] = true
		if p.FilesAnalyzed == nil || *p.FilesAnalyzed || p.DownloadLocation == "" || p.LicenseConcluded == "" || p.LicenseDeclared == "" ||
			p.CopyrightText == "" || p.Supplier == "" || p.VersionInfo == "" || len(p.ExternalRefs) != 1 || p.ExternalRefs[0].ReferenceCategory != "PACKAGE-MANAGER" {
			t.Errorf("incomplete: %+v", p)
		}
	}
	reached := map[string]bool{}
	for _, r := range d.Relationships {
		if !known[r.SPDXElementID] || !known[r.RelatedSPDXElement] || !slices.Contains([]string{"DESCRIBES", "CONTAINS", "DEPENDS_ON"}, r.RelationshipType) {
			t.Errorf("%+v is about something that is not there", r)
		}
		reached[r.RelatedSPDXElement] = true
	}
	if len(reached) != len(d.Packages) {
		t.Errorf("%d packages, and %d of them in a relationship", len(d.Packages), len(reached))
	}
}

func TestADocumentNamesAllThatIsInTheImage(t *testing.T) {
	var d written
	if err := json.Unmarshal(document(t), &d); err != nil {
		t.Fatal(err)
	}
	var locators []string
	for _, p := range d.Packages {
		locators = append(locators, p.ExternalRefs[0].ReferenceLocator)
	}
	want := []string{
		"pkg:oci/vision-ocr@sha256%3A" + strings.Repeat("ab", 32) + "?arch=arm64&repository_url=ghcr.io%2Fvisionoperator%2Fvision-ocr&tag=v1.2.3",
		"pkg:golang/github.com/visionoperator/vision-operator@v1.2.3", "pkg:golang/stdlib@1.26.8",
		"pkg:golang/golang.org/x/sys@v0.1.0", "pkg:golang/golang.org/x/sys_@v0.1.0", "pkg:golang/example.com/new@v2.0.0%2Bincompatible",
		"pkg:golang/golang.org/x/crypto/x509roots/fallback@v0.0.0-1",
		"pkg:deb/debian/libstdc%2B%2B6@1%3A12.2.0-14%2Bdeb12u1?arch=arm64&distro=bookworm",
	}
	if !slices.Equal(locators, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(locators, "\n"), strings.Join(want, "\n"))
	}
	if image := d.Packages[0]; image.Checksums[0].Algorithm != "SHA256" || image.Checksums[0].ChecksumValue != strings.Repeat("ab", 32) {
		t.Errorf("the image's checksum is %+v", image.Checksums)
	}
}

func TestTheSameImageHasTheSameDocument(t *testing.T) {
	first := document(t)
	for range 10 {
		if !bytes.Equal(first, document(t)) {
			t.Fatal("two documents of one image differ")
		}
	}
}
