// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debian gets packages from Debian's archive with apt and dpkg-deb, in
// folders of its own and without touching the system's, and picks from them what an image needs.
package debian

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Package is one binary package as an archive's index describes it.
type Package struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	// Source is the source package, with its version when that differs: "gcc-12", "bzip2 (1.0.8-5)".
	Source string `json:"source"`
	// Filename is the path below the archive's root.
	Filename string `json:"filename"`
	// Size is in bytes, SHA256 in lower-case hexadecimal.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// String names the package as apt does: libssl3=3.0.22-1.
func (p Package) String() string { return p.Name + "=" + p.Version }

// FieldError is a field of an index that is missing or malformed.
type FieldError struct{ Package, Field, Value string }

func (e *FieldError) Error() string {
	return fmt.Sprintf("reading what apt says of package %q: %s is %q", e.Package, e.Field, e.Value)
}

// The forms of fields (Debian Policy 5.6.1, 5.6.12; sums as sha256sum prints them).
var (
	nameForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)
	versionForm = regexp.MustCompile(`^[0-9][A-Za-z0-9.+:~-]*$`)
	sumForm     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Check says what is wrong with the package's fields, which become arguments and file names: a *FieldError.
func (p Package) Check() error {
	for _, f := range []struct {
		name, value string
		form        *regexp.Regexp
	}{{"Package", p.Name, nameForm}, {"Version", p.Version, versionForm}, {"Architecture", p.Architecture, nameForm}, {"SHA256", p.SHA256, sumForm}} {
		if !f.form.MatchString(f.value) {
			return &FieldError{Package: p.Name, Field: f.name, Value: f.value}
		}
	}
	if p.Size <= 0 {
		return &FieldError{Package: p.Name, Field: "Size", Value: strconv.FormatInt(p.Size, 10)}
	}
	return nil
}

// parseIndex reads the paragraphs that `apt-cache show` prints (Debian Policy 5.1). Errors are *FieldError.
func parseIndex(text string) ([]Package, error) {
	var packages []Package
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.TrimSpace(paragraph) == "" {
			continue
		}
		fields := map[string]string{}
		for line := range strings.Lines(paragraph) {
			key, value, ok := strings.Cut(line, ":")
			if ok && !strings.HasPrefix(key, " ") && !strings.HasPrefix(key, "\t") { // a continued line goes with what nobody reads here
				fields[key] = strings.TrimSpace(value)
			}
		}
		p := Package{
			Name: fields["Package"], Version: fields["Version"], Architecture: fields["Architecture"],
			Source: fields["Source"], Filename: fields["Filename"], SHA256: fields["SHA256"],
		}
		if p.Source == "" {
			p.Source = p.Name
		}
		var err error
		if p.Size, err = strconv.ParseInt(fields["Size"], 10, 64); err != nil {
			return nil, &FieldError{Package: p.Name, Field: "Size", Value: fields["Size"]}
		}
		if err := p.Check(); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// parsePlan reads what `apt-get --print-uris install` prints, lines of 'URI' FILE SIZE [SUM],
// and returns NAME=VERSION of each package. FILE is NAME_VERSION_ARCH.deb with %3a for a colon.
func parsePlan(text string) ([]string, error) {
	var names []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) < 3 {
			return nil, &FieldError{Package: "", Field: "line of apt's plan", Value: strings.TrimSpace(line)}
		}
		parts := strings.Split(strings.TrimSuffix(words[1], ".deb"), "_")
		if len(parts) != 3 {
			return nil, &FieldError{Package: "", Field: "file of apt's plan", Value: words[1]}
		}
		version := strings.ReplaceAll(parts[1], "%3a", ":")
		if !nameForm.MatchString(parts[0]) || !versionForm.MatchString(version) {
			return nil, &FieldError{Package: parts[0], Field: "file of apt's plan", Value: words[1]}
		}
		names = append(names, parts[0]+"="+version)
	}
	return names, nil
}
