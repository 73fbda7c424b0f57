// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// programs puts stand-ins for apt and dpkg-deb first in PATH. The archive "has"
// the packages named in the file "has"; what it gives is their NAME=VERSION, a newline after it.
func programs(t *testing.T) (has func(lines string)) {
	t.Helper()
	dir := t.TempDir()
	list := filepath.Join(dir, "has")
	for name, script := range map[string]string{
		"apt-config": `echo 'Acquire::Check-Date "false";'`,
		"apt-cache":  `exit 1`,
		"apt-get": `
case "$*" in
*update*) echo "update $APT_CONFIG" >>` + dir + `/calls ;;
*download*)
  echo download >>` + dir + `/calls
  shift 2
  for p; do grep -qx -- "$p" ` + list + ` || { echo "E: Version of $p was not found" >&2; exit 100; }; done
  for p; do echo "$p" >"${p%%=*}_$(echo "${p#*=}" | sed s/:/%3a/)_amd64.deb"; done ;;
esac`,
		"dpkg-deb": `
case "$1" in
--field) cat "$2" ;;
--fsys-tarfile) tar -cf - -C ` + dir + ` has ;;
esac`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func(lines string) {
		if err := os.WriteFile(list, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sums are of "zlib1g=1:1.2\n" and "libssl3=3\n", as sha256sum prints them.
var (
	zlib = Package{Name: "zlib1g", Version: "1:1.2", Architecture: "amd64", Size: 1, SHA256: "bbbf040ea837fd49f77ca561dfbf7fa1a8704a620a0212d0f7288269c86bae33"}
	ssl  = Package{Name: "libssl3", Version: "3", Architecture: "amd64", Size: 1, SHA256: "03d82d07b5aff2d48e20403717cf963e53d7a8192e9356220d70280c65a3e077"}
)

func TestPackagesAreFetchedOnceAndKept(t *testing.T) {
	has := programs(t)
	has("zlib1g=1:1.2\nlibssl3=3\n")
	s := Store{Dir: t.TempDir()}
	killed := filepath.Join(s.Dir, "partial.1")
	if err := os.Mkdir(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		got, err := s.Unpack(t.Context(), "bookworm", "20261201T000000Z", "amd64", []Package{zlib, ssl})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].Package != zlib || got[1].Control != "libssl3=3\n" {
			t.Errorf("got %+v", got)
		}
		if f, ok := got[0].Files.Get("has"); !ok || len(f.Data) == 0 {
			t.Errorf("the files are %v", got[0].Files.Files())
		}
		has("nothing\n") // the second round must come from the store
	}
	if _, err := os.Stat(killed); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a killed build left is there: %v", err)
	}
}

func TestAPackageThatIsGoneFromTheMirrorsIsNamedWithTheWayOut(t *testing.T) {
	programs(t)("zlib1g=1:1.2\n")
	var said []string
	s := Store{Dir: t.TempDir(), Say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	_, err := s.Unpack(t.Context(), "bookworm", "20261201T000000Z", "amd64", []Package{zlib, ssl})
	gone, ok := errors.AsType[*GoneError](err)
	if !ok || len(gone.Packages) != 1 || gone.Packages[0] != ssl || !strings.Contains(err.Error(), "make images-lock") {
		t.Errorf("got %v", err)
	}
	want := "getting 2 packages for amd64 from deb.debian.org; getting 1 packages for amd64 from snapshot.debian.org at 20261201T000000Z"
	if got := strings.Join(said, "; "); got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

func TestAPackageWithOtherBytesIsNotKept(t *testing.T) {
	programs(t)("zlib1g=1:1.2\n")
	forged := zlib
	forged.SHA256 = ssl.SHA256
	dir := t.TempDir()
	_, err := (&Store{Dir: dir}).Unpack(t.Context(), "bookworm", "", "amd64", []Package{forged})
	if bad, ok := errors.AsType[*DigestError](err); !ok || bad.Got != zlib.SHA256 {
		t.Errorf("got %v", err)
	}
	if kept, err := os.ReadDir(filepath.Join(dir, "debs")); err != nil || len(kept) > 0 {
		t.Errorf("kept %v, %v", kept, err)
	}
}

func TestTheSystemsAptIsLeftAlone(t *testing.T) {
	got := configuration("/cache/apt", "arm64", "Acquire::http::Proxy \"http://proxy:3128\";\n")
	for _, want := range []string{
		"Acquire::http::Proxy \"http://proxy:3128\";", `Dir "/cache/apt/";`, `Dir::State::status "/cache/apt/status";`,
		`APT::Architecture "arm64";`, `APT::Architectures { "arm64"; };`, `APT::Install-Recommends "false";`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}
