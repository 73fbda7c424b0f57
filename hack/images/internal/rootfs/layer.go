// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// layerTime is the time of every file in a layer. It does not follow the
// commit, so that a layer that did not change keeps its digest from one release to the next.
var layerTime = time.Unix(0, 0).UTC()

// Tar returns the tree as an uncompressed tar file: folders, then files, each in
// the order of paths, owned by root, with one time for all.
func (t *Tree) Tar() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range t.folders() {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: layerTime}); err != nil {
			return nil, fmt.Errorf("writing %s to a layer: %w", dir, err)
		}
	}
	for _, f := range t.Files() {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: tarMode(f.Mode), Size: int64(len(f.Data)), ModTime: layerTime}
		if f.IsLink() {
			header.Typeflag, header.Linkname, header.Mode, header.Size = tar.TypeSymlink, f.Link, 0o777, 0
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("writing %s to a layer: %w", f.Path, err)
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, fmt.Errorf("writing %s to a layer: %w", f.Path, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing a layer: %w", err)
	}
	return out.Bytes(), nil
}

// The set-id bits of a tar header (POSIX pax, c_mode).
const (
	tarSetuid = 0o4000
	tarSetgid = 0o2000
)

func tarMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	if m&fs.ModeSetuid != 0 {
		mode |= tarSetuid
	}
	if m&fs.ModeSetgid != 0 {
		mode |= tarSetgid
	}
	return mode
}

// UnexpectedError is an entry of a tar file that an image cannot have, such as a device.
type UnexpectedError struct {
	Path string
	Type byte // as in archive/tar
}

func (e *UnexpectedError) Error() string {
	return fmt.Sprintf("reading a tar file: %s is of type %q, and neither file, folder nor link", e.Path, e.Type)
}

// maxTar bounds the bytes of files that one tar file may unpack to.
const maxTar = 1 << 30

// ErrTooLarge is the cause when a tar file unpacks to more than this program keeps in memory.
var ErrTooLarge = errors.New("more than 1 GiB of files")

// ReadTar returns the files of a tar file. Hard links become files of their own.
func ReadTar(r io.Reader) (*Tree, error) {
	t, err := New()
	if err != nil {
		return nil, err
	}
	left := int64(maxTar)
	for in := tar.NewReader(r); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading a tar file: %w", err)
		}
		f := File{Path: strings.TrimPrefix(path.Clean("/"+header.Name), "/"), Mode: header.FileInfo().Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid)}
		switch header.Typeflag {
		case tar.TypeDir:
			continue
		case tar.TypeReg:
			if f.Data, err = io.ReadAll(io.LimitReader(in, left+1)); err != nil {
				return nil, fmt.Errorf("reading %s of a tar file: %w", f.Path, err)
			}
			if left -= int64(len(f.Data)); left < 0 {
				return nil, fmt.Errorf("reading a tar file: %w", ErrTooLarge)
			}
		case tar.TypeSymlink:
			f.Mode, f.Link = fs.ModeSymlink|fs.ModePerm, header.Linkname
		case tar.TypeLink:
			target, ok := t.Get(strings.TrimPrefix(path.Clean("/"+header.Linkname), "/"))
			if !ok {
				return nil, fmt.Errorf("reading %s of a tar file: its link names %s: %w", f.Path, header.Linkname, fs.ErrNotExist)
			}
			target.Path = f.Path
			f = target
		default:
			return nil, &UnexpectedError{Path: header.Name, Type: header.Typeflag}
		}
		if err := t.Add(f); err != nil {
			return nil, fmt.Errorf("reading a tar file: %w", err)
		}
	}
}

// WriteTo writes the tree below dir, which must not exist or be empty.
func (t *Tree) WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the root folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the root folder: %w", err)
	}
	defer root.Close()
	for _, folder := range t.folders() {
		if err := root.MkdirAll(filepath.FromSlash(folder), 0o755); err != nil {
			return fmt.Errorf("making a folder of an image: %w", err)
		}
	}
	for _, f := range t.Files() {
		if err := writeFile(root, f); err != nil {
			return fmt.Errorf("writing a file of an image: %w", err)
		}
	}
	return nil
}

func writeFile(root *os.Root, f File) error {
	name := filepath.FromSlash(f.Path)
	if f.IsLink() {
		return root.Symlink(f.Link, name)
	}
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.Mode.Perm())
	if err != nil {
		return err
	}
	if _, err := out.Write(f.Data); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
