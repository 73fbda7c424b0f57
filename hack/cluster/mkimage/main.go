// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command mkimage packs static binaries into a container image archive
// (docker-archive form) without a base image, a daemon or a registry.
//
//	mkimage -tag localhost/app:1 -out app.tar ./app [more files...]
//
// The first file is the entry point. Every file lands in / under its own
// name. The same input always gives the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	tag := flag.String("tag", "", "image reference, such as localhost/app:1")
	out := flag.String("out", "", "archive to write")
	user := flag.String("user", "65532:65532", "uid:gid that the image runs as")
	flag.Parse()
	if *tag == "" || *out == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*tag, *out, *user, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mkimage:", err)
		os.Exit(1)
	}
}

func run(tag, out, user string, files []string) error {
	layer, err := layerOf(files)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"created":      "1970-01-01T00:00:00Z",
		"config": map[string]any{
			"User":       user,
			"Entrypoint": []string{"/" + filepath.Base(files[0])},
			"WorkingDir": "/",
			"Env":        []string{"PATH=/"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer)}},
	})
	if err != nil {
		return err
	}
	configName, layerName := sum(config)+".json", sum(layer)+".tar"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{tag}, "Layers": []string{layerName},
	}})
	if err != nil {
		return err
	}

	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range []struct {
		name string
		data []byte
	}{{configName, config}, {layerName, layer}, {"manifest.json", manifest}} {
		if err := add(w, f.name, 0o644, f.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, archive.Bytes(), 0o644)
}

// layerOf returns the one layer's tar: the files, and a /tmp anyone may write.
func layerOf(files []string) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return nil, err
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := add(w, filepath.Base(path), 0o755, data); err != nil {
			return nil, err
		}
	}
	return layer.Bytes(), w.Close()
}

func add(w *tar.Writer, name string, mode int64, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
