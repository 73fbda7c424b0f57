// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/visionoperator/vision-operator/hack/images/internal/linkage"
	"github.com/visionoperator/vision-operator/hack/images/internal/linkage/linkagetest"
	"github.com/visionoperator/vision-operator/hack/images/internal/recipe"
	"github.com/visionoperator/vision-operator/hack/images/internal/rootfs"
)

const loader = "/lib64/ld-linux-x86-64.so.2"

func plain(name, data string) rootfs.File {
	return rootfs.File{Path: name, Mode: 0o644, Data: []byte(data)}
}

func object(name string, mode fs.FileMode, interpreter string, needed ...string) rootfs.File {
	return rootfs.File{Path: name, Mode: mode, Data: linkagetest.File(elf.EM_X86_64, interpreter, "", needed...)}
}

func pack(t *testing.T, name string, files ...rootfs.File) Unpacked {
	t.Helper()
	tree, err := rootfs.New(files...)
	if err != nil {
		t.Fatal(err)
	}
	return Unpacked{Package: Package{Name: name, Version: "1"}, Control: "Package: " + name + "\n", Files: tree}
}

// archive is a reader with a library and a loader, whose library's licence is in another package, and a shell.
func archive(t *testing.T) []Unpacked {
	t.Helper()
	return []Unpacked{
		pack(t, "reader", object("usr/bin/reader", 0o755|fs.ModeSetuid, loader, "libpage.so.5"), object("usr/bin/trainer", 0o755, loader, "libpage.so.5"),
			plain("usr/share/doc/reader/copyright", "reader's"), plain("usr/share/doc/reader/changelog", "long")),
		pack(t, "libpage5", object("usr/lib/x86_64-linux-gnu/libpage.so.5", 0o755, ""),
			rootfs.File{Path: "usr/share/doc/libpage5", Mode: fs.ModeSymlink | 0o777, Link: "page-base"}),
		pack(t, "page-base", plain("usr/share/doc/page-base/copyright", "page's")),
		pack(t, "libc6", object("lib64/ld-linux-x86-64.so.2", 0o755, ""), plain("usr/share/doc/libc6/copyright", "libc's")),
		pack(t, "dash", object("bin/sh", 0o755, loader), plain("usr/share/doc/dash/copyright", "dash's")),
		pack(t, "words", plain("usr/share/words/eng", "words"), plain("usr/share/words/osd", "more"), plain("usr/share/doc/words/copyright", "words'")),
	}
}

func TestAnImageTakesWhatItsProgramsNeedAndNothingElse(t *testing.T) {
	want := recipe.Debian{Programs: []string{"/usr/bin/reader"}, Files: []string{"/usr/share/words/eng"}}
	files, used, err := Choose(archive(t), want, linkage.Platforms["amd64"])
	if err != nil {
		t.Fatal(err)
	}
	var paths, names []string
	for _, f := range files.Files() {
		paths = append(paths, f.Path)
	}
	for _, p := range used {
		names = append(names, p.Name)
	}
	if want := []string{"libc6", "libpage5", "page-base", "reader", "words"}; !slices.Equal(names, want) {
		t.Errorf("packages %q, want %q", names, want)
	}
	if want := []string{
		"lib64/ld-linux-x86-64.so.2", "usr/bin/reader", "usr/lib/x86_64-linux-gnu/libpage.so.5",
		"usr/share/doc/libc6/copyright", "usr/share/doc/libpage5", "usr/share/doc/page-base/copyright",
		"usr/share/doc/reader/copyright", "usr/share/doc/words/copyright", "usr/share/words/eng",
		"var/lib/dpkg/status.d/libc6", "var/lib/dpkg/status.d/libpage5", "var/lib/dpkg/status.d/page-base",
		"var/lib/dpkg/status.d/reader", "var/lib/dpkg/status.d/words",
	}; !slices.Equal(paths, want) {
		t.Errorf("files\n got %q\nwant %q", paths, want)
	}
	for name, mode := range map[string]fs.FileMode{
		"usr/bin/reader": 0o755, "lib64/ld-linux-x86-64.so.2": 0o755, "usr/lib/x86_64-linux-gnu/libpage.so.5": 0o644,
	} {
		if f, _ := files.Get(name); f.Mode != mode {
			t.Errorf("%s has mode %v, want %v", name, f.Mode, mode)
		}
	}
}

func TestAFolderIsTakenWhole(t *testing.T) {
	files, _, err := Choose(archive(t), recipe.Debian{Files: []string{"/usr/share/words/"}}, linkage.Platforms["amd64"])
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := files.Get("usr/share/words/osd"); !ok {
		t.Error("a file of the folder is missing")
	}
}

func TestWhatNoPackageHasIsNamed(t *testing.T) {
	for name, want := range map[string]recipe.Debian{
		"a file": {Files: []string{"/usr/share/words/deu"}}, "a folder": {Files: []string{"/usr/share/gone/"}},
	} {
		_, _, err := Choose(archive(t), want, linkage.Platforms["amd64"])
		if absent, ok := errors.AsType[*AbsentError](err); !ok || absent.Path != want.Files[0] {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Choose(archive(t)[:1], recipe.Debian{Programs: []string{"/usr/bin/reader"}}, linkage.Platforms["amd64"]); err == nil {
		t.Error("a program without its library was chosen")
	}
	bare := []Unpacked{pack(t, "bare", plain("usr/share/bare", "x"))}
	_, _, err := Choose(bare, recipe.Debian{Files: []string{"/usr/share/bare"}}, linkage.Platforms["amd64"])
	if bad, ok := errors.AsType[*LicenceError](err); !ok || bad.Package != "bare" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a package without a licence: %v", err)
	}
}

// paragraph is one of `apt-cache show`, with a field that continues on a line with a colon.
const paragraph = `Package: libgcc-s1
Source: gcc-12
Version: 12.2.0-14+deb12u1
Architecture: amd64
Description: GCC support library
 see also: nothing
Filename: pool/main/g/gcc-12/libgcc-s1_12.2.0-14+deb12u1_amd64.deb
Size: 49856
SHA256: 3016e62cb4b7cd8038822870601f5ed131befe942774d0f745622cc77d8a88f7
`

func TestAnIndexIsRead(t *testing.T) {
	other := strings.NewReplacer("libgcc-s1", "zlib1g", "Source: gcc-12\n", "", "12.2.0-14+deb12u1\n", "1:1.2.13.dfsg-1\n").Replace(paragraph)
	got, err := parseIndex(paragraph + "\n" + other + "\n\n")
	sum := "3016e62cb4b7cd8038822870601f5ed131befe942774d0f745622cc77d8a88f7"
	want := []Package{
		{Name: "libgcc-s1", Version: "12.2.0-14+deb12u1", Architecture: "amd64", Source: "gcc-12", Filename: "pool/main/g/gcc-12/libgcc-s1_12.2.0-14+deb12u1_amd64.deb", Size: 49856, SHA256: sum},
		{Name: "zlib1g", Version: "1:1.2.13.dfsg-1", Architecture: "amd64", Source: "zlib1g", Filename: "pool/main/g/gcc-12/zlib1g_12.2.0-14+deb12u1_amd64.deb", Size: 49856, SHA256: sum},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

func TestAFieldThatWouldBecomeAnOptionOrAPathIsRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"Package":      {"Package: libgcc-s1", "Package: -oDir=/"},
		"Version":      {"Version: 12", "Version: ../12"},
		"Architecture": {"Architecture: amd64", "Architecture: am/d64"},
		"SHA256":       {"SHA256: 3016", "SHA256: ../"},
		"Size":         {"Size: 49856", "Size: many"},
	} {
		_, err := parseIndex(strings.Replace(paragraph, change[0], change[1], 1))
		if bad, ok := errors.AsType[*FieldError](err); !ok || bad.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPlanIsRead(t *testing.T) {
	got, err := parsePlan(`'http://deb.debian.org/debian/pool/main/z/zlib/zlib1g_1.2.13.dfsg-1_amd64.deb' zlib1g_1%3a1.2.13.dfsg-1_amd64.deb 86684 MD5Sum:ec42
'http://deb.debian.org/debian-security/pool/updates/main/o/openssl/libssl3_3.0.22-1%7edeb12u2_amd64.deb' libssl3_3.0.22-1~deb12u2_amd64.deb 2039888 
`)
	if err != nil || !slices.Equal(got, []string{"zlib1g=1:1.2.13.dfsg-1", "libssl3=3.0.22-1~deb12u2"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"Reading package lists...", "'uri' zlib1g.deb 1", "'uri' -oDir_1_amd64.deb 1", "'uri' zlib1g_/1_amd64.deb 1"} {
		if got, err := parsePlan(bad); err == nil {
			t.Errorf("%q was read as %q", bad, got)
		}
	}
}

func TestTheProjectsLockCoversItsRecipesAndArchitectures(t *testing.T) {
	lock, err := ReadLock("../../debian.lock.json")
	if err != nil {
		t.Fatal(err)
	}
	if lock.Suite != recipe.Suite {
		t.Errorf("the lock is of %s, and recipes are for %s", lock.Suite, recipe.Suite)
	}
	for architecture := range linkage.Platforms {
		for _, r := range recipe.All {
			if r.Debian == nil {
				continue
			}
			for _, name := range r.Debian.Packages {
				if !slices.ContainsFunc(lock.Packages[architecture], func(p Package) bool { return p.Name == name }) {
					t.Errorf("the lock lacks %s for %s", name, architecture)
				}
			}
		}
	}
	again, err := lock.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if on, err := os.ReadFile("../../debian.lock.json"); err != nil || string(on) != string(again) {
		t.Errorf("the lock is not as images lock writes it (%v)", err)
	}
}

func TestALockThatSaysTooMuchOrTooLittleIsRefused(t *testing.T) {
	good := `{"suite":"bookworm","snapshot":"20261201T000000Z","packages":{"amd64":[{"name":"zlib1g","version":"1","architecture":"amd64","source":"zlib","filename":"f","size":1,"sha256":"` + strings.Repeat("a", 64) + `"}]}}`
	if _, err := ParseLock([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a suite that is a path":         {"bookworm", "../x"},
		"a snapshot that is no time":     {"20261201T000000Z", "yesterday"},
		"a field that nobody knows":      {`"size"`, `"weight"`},
		"a name that is an option":       {`"zlib1g"`, `"-o"`},
		"a sum that is too short":        {"aaaa", ""},
		"another architecture":           {`"architecture":"amd64"`, `"architecture":"arm64"`},
		"what is not JSON":               {"{", "["},
		"an architecture of no packages": {good[strings.Index(good, `[{`) : len(good)-2], "[]"},
	} {
		if _, err := ParseLock([]byte(strings.Replace(good, change[0], change[1], 1))); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestSourcesAreSignedAndOfOneSuite(t *testing.T) {
	want := `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-updates main
deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian-security bookworm-security main
`
	if got := (mirror{}).sources("bookworm"); got != want {
		t.Errorf("got\n%s", got)
	}
	// https://snapshot.debian.org says how its sources are written.
	first := "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg check-valid-until=no] http://snapshot.debian.org/archive/debian/20261201T000000Z bookworm main\n"
	if got := (mirror{snapshot: "20261201T000000Z"}).sources("bookworm"); !strings.HasPrefix(got, first) {
		t.Errorf("got\n%s", got)
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add(paragraph)
	f.Add("\n\n:\n \n")
	f.Fuzz(func(t *testing.T, text string) {
		packages, err := parseIndex(text)
		for _, p := range packages {
			if err == nil && p.Check() != nil {
				t.Errorf("%+v passed", p)
			}
		}
	})
}

func FuzzParsePlan(f *testing.F) {
	f.Add("'http://x/zlib1g_1.2_amd64.deb' zlib1g_1%3a1.2_amd64.deb 86684 MD5Sum:ec42\n")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := parsePlan(text)
		for _, name := range names {
			if err == nil && (strings.HasPrefix(name, "-") || strings.ContainsAny(name, "/ \n")) {
				t.Errorf("%q passed", name)
			}
		}
	})
}

func FuzzParseLock(f *testing.F) {
	f.Add([]byte(`{"suite":"bookworm","snapshot":"20261201T000000Z","packages":{"amd64":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		lock, err := ParseLock(data)
		if err != nil {
			return
		}
		again, err := lock.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if other, err := ParseLock(again); err != nil || !reflect.DeepEqual(lock, other) {
			t.Errorf("%+v became %+v, %v", lock, other, err)
		}
	})
}
