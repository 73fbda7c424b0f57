// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const limit = 20 << 20

// lay makes a directory: name -> content, "-> target" for a link, and names
// that end in / for directories.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for name, content := range files {
		layAt(t, dir, name, content)
	}
	return dir
}

func layAt(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	switch target, isLink := strings.CutPrefix(content, "-> "); {
	case strings.HasSuffix(name, "/"):
		must(t, os.MkdirAll(path, 0o755))
	case isLink:
		must(t, os.Symlink(target, path))
	default:
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dirs ...string) *Set {
	t.Helper()
	set, err := Open(dirs)
	must(t, err)
	t.Cleanup(set.Close)
	return set
}

func reasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func TestReadWithinTheWorkspaces(t *testing.T) {
	second := lay(t, map[string]string{"b.png": "second", "deep/c.png": "deep"})
	first := lay(t, map[string]string{
		"a.png": "first", "dir/a.png": "in dir", "..a.png": "dots", "100%.png": "percent", "%2e%2e/x.png": "encoded",
		"スクリーン ショット é.png": "unicode", "link.png": "-> dir/a.png", "dir/up.png": "-> ../a.png",
		"chain.png": "-> dir/up.png", "dirlink": "-> dir", "across.png": "-> " + second + "/b.png",
		"acrossdir": "-> " + second + "/deep", "acrossup": "-> " + second + "/deep/../b.png",
	})
	layAt(t, first, "abs.png", "-> "+first+"/a.png")
	layAt(t, first, "abschain.png", "-> "+first+"/across.png")
	toSecond, err := filepath.Rel(first, second)
	must(t, err)
	set := open(t, first, second)
	tests := map[string]struct{ path, want, at string }{
		"relative, below the first":               {"a.png", "first", first + "/a.png"},
		"relative with dot segments that stay":    {"./dir/../dir/a.png", "in dir", first + "/dir/a.png"},
		"blanks around are trimmed":               {" \t a.png\n", "first", first + "/a.png"},
		"absolute, in the first":                  {first + "/dir/a.png", "in dir", first + "/dir/a.png"},
		"absolute, in the second":                 {second + "/b.png", "second", second + "/b.png"},
		"absolute, dotting from one into another": {first + "/" + toSecond + "/b.png", "second", second + "/b.png"},
		"dots at the top stay at the top":         {"/../.." + first + "/a.png", "first", first + "/a.png"},
		"two dots that only begin a name":         {"..a.png", "dots", first + "/..a.png"},
		"a percent sign is itself":                {"100%.png", "percent", first + "/100%.png"},
		"a percent-encoding is not decoded":       {"%2e%2e/x.png", "encoded", first + "/%2e%2e/x.png"},
		"a name of another script, with a blank":  {"スクリーン ショット é.png", "unicode", first + "/スクリーン ショット é.png"},
		"a relative link":                         {"link.png", "in dir", first + "/link.png"},
		"a relative link upwards that stays":      {"dir/up.png", "first", first + "/dir/up.png"},
		"a chain of links":                        {"chain.png", "first", first + "/chain.png"},
		"through a link to a directory":           {"dirlink/a.png", "in dir", first + "/dirlink/a.png"},
		"an absolute link into its own":           {"abs.png", "first", first + "/abs.png"},
		"an absolute link into another":           {"across.png", "second", first + "/across.png"},
		"an absolute link to a directory":         {"acrossdir/c.png", "deep", first + "/acrossdir/c.png"},
		"an absolute link with dots that stay":    {"acrossup", "second", first + "/acrossup"},
		"an absolute link to an absolute link":    {"abschain.png", "second", first + "/abschain.png"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := set.Read(tc.path, limit)
			if err != nil {
				t.Fatal(err)
			}
			digest := sha256.Sum256([]byte(tc.want))
			if string(file.Bytes) != tc.want || file.Path != tc.at || file.SHA256 != hex.EncodeToString(digest[:]) {
				t.Errorf("read %q at %s (%s), want %q at %s", file.Bytes, file.Path, file.SHA256, tc.want, tc.at)
			}
		})
	}
}

func TestRefusedPaths(t *testing.T) {
	outside := lay(t, map[string]string{"secret.png": "secret", "in/secret.png": "secret"})
	dir := lay(t, map[string]string{
		"ws/a.png": "a", "ws/dir/": "", "wsx/a.png": "sibling", "ws/rel": "-> ../wsx/a.png", "ws/dir/rel": "-> ../../wsx/a.png",
		"ws/abs": "-> " + outside + "/secret.png", "ws/reldir": "-> ../wsx", "ws/absdir": "-> " + outside + "/in",
		"ws/chain": "-> chain2", "ws/chain2": "-> dir/chain3", "ws/dir/chain3": "-> ../abs", "ws/loop": "-> loop2",
		"ws/loop2": "-> loop", "ws/dangling": "-> gone.png", "ws/root": "-> /", "ws/back": "-> ../ws/a.png", "ws/self": "-> .",
		"ws/proc": "-> /proc/self/root/etc/hostname",
	})
	ws := filepath.Join(dir, "ws")
	layAt(t, ws, "absup", "-> "+ws+"/../wsx/a.png")
	set := open(t, ws)
	tests := map[string]struct {
		path string
		want Reason
	}{
		"no path":                                 {"", Blank},
		"a blank path":                            {" \n\t ", Blank},
		"dots that lead out":                      {"../wsx/a.png", OutsideWorkspace},
		"dots that lead out behind a directory":   {"dir/../../wsx/a.png", OutsideWorkspace},
		"dots that lead out and back":             {"../ws/a.png", OutsideWorkspace},
		"an absolute path elsewhere":              {"/etc/passwd", OutsideWorkspace},
		"an absolute path that dots out":          {ws + "/../wsx/a.png", OutsideWorkspace},
		"a sibling whose name begins alike":       {dir + "/wsx/a.png", OutsideWorkspace},
		"a parent of the workspace":               {dir, OutsideWorkspace},
		"the root":                                {"/", OutsideWorkspace},
		"a relative link out":                     {"rel", OutsideWorkspace},
		"a relative link out from below":          {"dir/rel", OutsideWorkspace},
		"a relative link out and back":            {"back", OutsideWorkspace},
		"an absolute link out":                    {"abs", OutsideWorkspace},
		"an absolute link in whose dots lead out": {"absup", OutsideWorkspace},
		"a relative directory link out":           {"reldir/a.png", OutsideWorkspace},
		"an absolute directory link out":          {"absdir/secret.png", OutsideWorkspace},
		"a chain of links that ends outside":      {"chain", OutsideWorkspace},
		"a link to the root":                      {"root" + ws + "/a.png", OutsideWorkspace},
		"a link through proc":                     {"proc", OutsideWorkspace},
		"a loop of links":                         {"loop", TooManyLinks},
		"a missing file":                          {"gone.png", NotFound},
		"a missing directory":                     {"gone/a.png", NotFound},
		"a dangling link":                         {"dangling", NotFound},
		"a path through a file":                   {"a.png/b.png", NotFound},
		"a name with a NUL":                       {"a\x00.png", NotFound},
		"a name longer than any":                  {strings.Repeat("n", 5000), NotFound},
		"a directory":                             {"dir", NotRegular},
		"the workspace itself":                    {ws, NotRegular},
		"the workspace itself, by a link":         {"self", NotRegular},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			handle, err := set.Open(tc.path)
			if err == nil {
				data, _ := handle.ReadAll(limit)
				t.Fatalf("opened %s: %q", handle.Path(), data.Bytes)
			}
			if reasonOf(err) != tc.want {
				t.Fatalf("error = %v, want reason %s", err, tc.want)
			}
			for _, secret := range []string{outside, "wsx", "hostname", "chain2"} {
				if strings.Contains(err.Error(), secret) && !strings.Contains(tc.path, secret) {
					t.Errorf("%q tells what the caller did not give: %s", err, secret)
				}
			}
		})
	}
}

func TestManyLinksAreFollowedUpToTheBound(t *testing.T) {
	dir := lay(t, map[string]string{"0": "end"})
	for i := 1; i <= maxLinks+1; i++ {
		layAt(t, dir, strings.Repeat("x", i), "-> "+map[bool]string{true: "0", false: strings.Repeat("x", i-1)}[i == 1])
	}
	set := open(t, dir)
	if _, err := set.Read(strings.Repeat("x", maxLinks), limit); err != nil {
		t.Errorf("%d links: %v", maxLinks, err)
	}
	if _, err := set.Read(strings.Repeat("x", maxLinks+1), limit); reasonOf(err) != TooManyLinks {
		t.Errorf("%d links: %v, want too many", maxLinks+1, err)
	}
}

func TestWorkspaces(t *testing.T) {
	t.Run("none at all: everything is outside", func(t *testing.T) {
		set := open(t)
		for _, path := range []string{"a.png", "/etc/passwd"} {
			if _, err := set.Open(path); reasonOf(err) != OutsideWorkspace {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
	t.Run("a blank one is refused at once", func(t *testing.T) {
		if _, err := Open([]string{t.TempDir(), " "}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("a file is no workspace", func(t *testing.T) {
		file := filepath.Join(lay(t, map[string]string{"a.png": "a"}), "a.png")
		if _, err := Open([]string{file}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("error = %v, want one that names it", err)
		}
	})
	t.Run("one that comes later is opened when it is there", func(t *testing.T) {
		dir := filepath.Join(lay(t, nil), "later")
		set := open(t, dir)
		_, err := set.Open("a.png")
		if reasonOf(err) != NotFound || !strings.Contains(err.Error(), dir) || !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("error = %v, want one that names the workspace", err)
		}
		layAt(t, dir, "a.png", "late")
		if file, err := set.Read("a.png", limit); err != nil || string(file.Bytes) != "late" {
			t.Errorf("read %q, %v", file.Bytes, err)
		}
	})
	t.Run("one that is itself a link is known by both names", func(t *testing.T) {
		dir := lay(t, map[string]string{"real/a.png": "a", "ws": "-> real"})
		layAt(t, dir, "real/abs", "-> "+dir+"/real/a.png")
		layAt(t, dir, "real/alias", "-> "+dir+"/ws/a.png")
		set := open(t, dir+"/ws")
		for _, path := range []string{"a.png", dir + "/ws/a.png", dir + "/real/a.png", "abs", "alias"} {
			if _, err := set.Read(path, limit); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
	t.Run("one that is swapped for a link later stays what it was", func(t *testing.T) {
		dir := lay(t, map[string]string{"ws/a.png": "mine", "other/a.png": "theirs"})
		set := open(t, dir+"/ws")
		must(t, os.Rename(dir+"/ws", dir+"/old"))
		must(t, os.Symlink(dir+"/other", dir+"/ws"))
		if file, err := set.Read(dir+"/ws/a.png", limit); err != nil || string(file.Bytes) != "mine" {
			t.Errorf("read %q, %v", file.Bytes, err)
		}
	})
	t.Run("nested ones allow links between them", func(t *testing.T) {
		dir := lay(t, map[string]string{"a.png": "a", "sub/up": "-> ../a.png"})
		set := open(t, dir+"/sub", dir)
		if file, err := set.Read(dir+"/sub/up", limit); err != nil || string(file.Bytes) != "a" {
			t.Errorf("read %q, %v", file.Bytes, err)
		}
	})
	t.Run("given twice, they are listed once", func(t *testing.T) {
		dir := lay(t, nil)
		if got := open(t, dir, dir+"/.").Dirs(); len(got) != 1 || got[0] != dir {
			t.Errorf("Dirs = %v", got)
		}
	})
	t.Run("closed, they open nothing", func(t *testing.T) {
		set := open(t, lay(t, map[string]string{"a.png": "a"}))
		set.Close()
		if _, err := set.Open("a.png"); reasonOf(err) != IO || !errors.Is(err, fs.ErrClosed) {
			t.Errorf("error = %v", err)
		}
	})
}

func TestHeaderComesBeforeTheBody(t *testing.T) {
	body := strings.Repeat("0123456789", 10)
	set := open(t, lay(t, map[string]string{"a.png": body, "empty": ""}))
	handle, err := set.Open("a.png")
	must(t, err)
	defer handle.Close()
	for _, tc := range []struct{ n, want int }{{7, 7}, {100, 100}, {64 << 10, 100}, {0, 0}} {
		prefix, err := handle.Header(tc.n)
		if err != nil || string(prefix) != body[:tc.want] {
			t.Errorf("Header(%d) = %q, %v", tc.n, prefix, err)
		}
	}
	file, err := handle.ReadAll(limit)
	if err != nil || !bytes.Equal(file.Bytes, []byte(body)) {
		t.Errorf("ReadAll = %q, %v", file.Bytes, err)
	}
	empty, err := set.Open("empty")
	must(t, err)
	defer empty.Close()
	if prefix, err := empty.Header(64 << 10); err != nil || len(prefix) != 0 {
		t.Errorf("Header of an empty file = %q, %v", prefix, err)
	}
}

// grow makes a sparse file of n bytes.
func grow(t *testing.T, dir, name string, n int64) {
	t.Helper()
	layAt(t, dir, name, "")
	must(t, os.Truncate(filepath.Join(dir, name), n))
}

func TestSizeLimit(t *testing.T) {
	dir := lay(t, nil)
	grow(t, dir, "exact.png", limit)
	grow(t, dir, "over.png", limit+1)
	grow(t, dir, "huge.png", 1<<40)
	set := open(t, dir)

	file, err := set.Read("exact.png", limit)
	if err != nil || len(file.Bytes) != limit {
		t.Errorf("a file of the limit: %d bytes, %v", len(file.Bytes), err)
	}
	for name, size := range map[string]int64{"over.png": limit + 1, "huge.png": 1 << 40} {
		handle, err := set.Open(name)
		must(t, err)
		must(t, handle.Close()) // any attempt to read it fails from here on
		_, err = handle.ReadAll(limit)
		var tooLarge *Error
		if !errors.As(err, &tooLarge) || tooLarge.Reason != TooLarge || tooLarge.Size != size || tooLarge.Limit != limit {
			t.Errorf("%s: %v, want its size and the limit, without reading", name, err)
		}
	}
}

func TestAFileThatChangesIsRefused(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"grows within one tick of its clock": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return errors.Join(os.Truncate(path, 11), os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"grows":   func(path string) error { return os.Truncate(path, 11) },
		"shrinks": func(path string) error { return os.Truncate(path, 9) },
		"empties": func(path string) error { return os.Truncate(path, 0) },
		"is rewritten in its length": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.Chtimes(path, info.ModTime(), info.ModTime().Add(1))
		},
	} {
		t.Run("that "+name, func(t *testing.T) {
			dir := lay(t, map[string]string{"a.png": "0123456789"})
			handle, err := open(t, dir).Open("a.png")
			must(t, err)
			defer handle.Close()
			must(t, change(filepath.Join(dir, "a.png")))
			if file, err := handle.ReadAll(limit); reasonOf(err) != Changed || file.Bytes != nil {
				t.Errorf("ReadAll = %q, %v", file.Bytes, err)
			}
		})
	}
}

func TestAFileMayBeReadInPieces(t *testing.T) {
	dir := lay(t, map[string]string{"a": "some bytes"})
	handle, err := open(t, dir).Open("a")
	must(t, err)
	defer handle.Close()
	piece := make([]byte, 5)
	if n, err := handle.ReadAt(piece, 5); n != 5 || string(piece) != "bytes" {
		t.Errorf("got %q, %v", piece[:n], err)
	}
	if n, err := handle.ReadAt(piece, 8); n != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("at its end: %d bytes, %v", n, err)
	}
	must(t, handle.Unchanged())
	layAt(t, dir, "a", "some bytes more")
	if e, ok := errors.AsType[*Error](handle.Unchanged()); !ok || e.Reason != Changed {
		t.Errorf("written to meanwhile: %v", e)
	}
	must(t, handle.file.Close())
	if _, err := handle.ReadAt(piece, 0); strings.Contains(err.Error(), dir) {
		t.Errorf("closed: %v", err)
	}
}
