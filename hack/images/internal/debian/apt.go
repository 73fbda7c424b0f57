// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// keyring is what the archive's signatures are checked with.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// CommandError is a program that failed, with what it wrote to standard error.
type CommandError struct {
	Doing, Said string
	Err         error
}

func (e *CommandError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Doing, e.Err, e.Said) }

func (e *CommandError) Unwrap() error { return e.Err }

// mirror is where packages come from.
type mirror struct {
	// snapshot is a time of snapshot.debian.org; empty means the mirrors, with today's versions.
	snapshot string
}

func (m mirror) String() string {
	if m.snapshot == "" {
		return "deb.debian.org"
	}
	return "snapshot.debian.org at " + m.snapshot
}

// sources writes apt's sources.list. A snapshot's index is out of date on purpose.
func (m mirror) sources(suite string) string {
	root, option := "http://deb.debian.org", ""
	if m.snapshot != "" {
		root, option = "http://snapshot.debian.org/archive", " check-valid-until=no"
	}
	var out strings.Builder
	for _, part := range [][2]string{{"debian", suite}, {"debian", suite + "-updates"}, {"debian-security", suite + "-security"}} {
		url := root + "/" + part[0]
		if m.snapshot != "" {
			url += "/" + m.snapshot
		}
		fmt.Fprintf(&out, "deb [signed-by=%s%s] %s %s main\n", keyring, option, url, part[1])
	}
	return out.String()
}

// apt is a private apt: its own sources, index, empty list of installed packages, and architecture.
type apt struct {
	config string // path of its configuration
	mirror mirror
}

// hostSettings are the settings of the system's apt that are about reaching an
// archive at all, and so are taken over.
var hostSettings = []string{"Acquire::http", "Acquire::https", "Acquire::Check-Valid-Until", "Acquire::Check-Date"}

// configuration writes apt.conf for a private apt in dir. host is what `apt-config dump` says of hostSettings.
func configuration(dir, architecture, host string) string {
	return fmt.Sprintf(`%sDir "%s/";
Dir::State "state";
Dir::State::status "%s/status";
Dir::Cache "cache";
Dir::Etc "etc";
APT::Architecture "%s";
APT::Architectures { "%s"; };
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "3";
`, host, dir, dir, architecture, architecture)
}

// openApt makes a private apt below dir and reads the archive's index.
func openApt(ctx context.Context, dir, suite, architecture string, from mirror) (*apt, error) {
	for _, tool := range []string{"apt-get", "apt-cache", "apt-config", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, fmt.Errorf("looking for %s, which unpacks Debian's packages (this takes Debian or Ubuntu): %w", tool, err)
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("looking for Debian's keys (apt-get install debian-archive-keyring): %w", err)
	}
	host, err := output(ctx, "asking apt for its settings", nil, "apt-config", append([]string{"dump"}, hostSettings...)...)
	if err != nil {
		return nil, err
	}
	name := "mirror"
	if from.snapshot != "" {
		name = from.snapshot
	}
	dir = filepath.Join(dir, "apt-"+suite+"-"+architecture+"-"+name)
	for _, sub := range []string{"etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("making a private apt: %w", err)
		}
	}
	a := &apt{config: filepath.Join(dir, "apt.conf"), mirror: from}
	for file, text := range map[string]string{
		a.config: configuration(dir, architecture, string(host)), filepath.Join(dir, "status"): "", filepath.Join(dir, "etc/sources.list"): from.sources(suite),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("making a private apt: %w", err)
		}
	}
	// Without --error-on, a mirror that cannot be reached would be a warning, and yesterday's index be used.
	if _, err := a.run(ctx, "reading the index of "+from.String(), "apt-get", "-qq", "--error-on=any", "update"); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *apt) run(ctx context.Context, doing, program string, args ...string) ([]byte, error) {
	return output(ctx, doing, []string{"APT_CONFIG=" + a.config}, program, args...)
}

// resolve returns the packages that installing names into an empty system would take, in the order of names.
func (a *apt) resolve(ctx context.Context, names []string) ([]Package, error) {
	plan, err := a.run(ctx, "resolving what packages depend on", "apt-get", append([]string{"-qq", "-y", "--print-uris", "install"}, names...)...)
	if err != nil {
		return nil, err
	}
	all, err := parsePlan(string(plan))
	if err != nil {
		return nil, err
	}
	index, err := a.run(ctx, "asking what packages are", "apt-cache", append([]string{"show"}, all...)...)
	if err != nil {
		return nil, err
	}
	return parseIndex(string(index))
}

// download gets packages, by NAME=VERSION, into dir.
func (a *apt) download(ctx context.Context, dir string, packages []Package) error {
	args := []string{"-qq", "download"}
	for _, p := range packages {
		args = append(args, p.String())
	}
	cmd := command(ctx, []string{"APT_CONFIG=" + a.config}, "apt-get", args...)
	cmd.Dir = dir
	_, err := capture(cmd, fmt.Sprintf("getting %d packages from %s", len(packages), a.mirror))
	return err
}

// control returns the control paragraph of a package's file.
func control(ctx context.Context, deb string) (string, error) {
	out, err := output(ctx, "reading the control file of "+filepath.Base(deb), nil, "dpkg-deb", "--field", deb)
	return string(out), err
}

// files returns the files of a package's file as a tar file.
func files(ctx context.Context, deb string) ([]byte, error) {
	return output(ctx, "unpacking "+filepath.Base(deb), nil, "dpkg-deb", "--fsys-tarfile", deb)
}

func output(ctx context.Context, doing string, env []string, program string, args ...string) ([]byte, error) {
	return capture(command(ctx, env, program, args...), doing)
}

func command(ctx context.Context, env []string, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), env...)
	return cmd
}

// capture runs a program and returns its standard output. Its failure is a *CommandError.
func capture(cmd *exec.Cmd, doing string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return nil, &CommandError{Doing: doing, Said: strings.TrimSpace(stderr.String()), Err: err}
	}
	return stdout.Bytes(), nil
}

// isCommand says whether a program ran and failed, rather than something around it.
func isCommand(err error) bool {
	_, ok := errors.AsType[*CommandError](err)
	return ok
}
