// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
)

// podKeyFile is below the cache directory, and podKeyBytes what is in it: random
// bytes, that is all.
const (
	podKeyFile  = "pod.key"
	podKeyBytes = 32
)

// podKey is the secret that marks what was read from images. It is kept in the
// cache directory, so that a conversation that goes on after a restart is shown the
// same texts. Without a directory, or with one that cannot be used, it is nil: the
// engine then makes one up.
func podKey(dir string, log *slog.Logger) []byte {
	if dir == "" {
		return nil
	}
	key, err := keepPodKey(dir)
	if err != nil {
		log.Warn("keeping the pod's key failed: after a restart, observations are marked anew", "error", err)
		return nil
	}
	return key
}

// keepPodKey reads the key that is in a directory, or makes one. Of two processes
// that make one at the same time, one has its way. What is no key is replaced.
func keepPodKey(dir string) (key []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the pod's key: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	if key, err = readPodKey(root); err == nil {
		return key, nil
	}
	temp := ".tmp-" + rand.Text()
	defer func() { _ = root.Remove(temp) }() // gone already when it was renamed
	if err := writePodKey(root, temp); err != nil {
		return nil, fmt.Errorf("writing the pod's key: %w", err)
	}
	switch err := root.Link(temp, podKeyFile); {
	case err == nil:
	case errors.Is(err, fs.ErrExist):
		if key, err := readPodKey(root); err == nil {
			return key, nil // another process was first
		}
		fallthrough
	default:
		if err := root.Rename(temp, podKeyFile); err != nil {
			return nil, fmt.Errorf("writing the pod's key: %w", err)
		}
	}
	return readPodKey(root)
}

func writePodKey(root *os.Root, name string) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	key := make([]byte, podKeyBytes)
	_, _ = rand.Read(key) // never fails
	_, err = file.Write(key)
	return errors.Join(err, file.Close())
}

// errNoPodKey is a file that is not the pod's key.
var errNoPodKey = errors.New("reading the pod's key: the file is none")

func readPodKey(root *os.Root) ([]byte, error) {
	info, err := root.Lstat(podKeyFile)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != podKeyBytes {
		return nil, errNoPodKey
	}
	file, err := root.Open(podKeyFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	key := make([]byte, podKeyBytes)
	if _, err := io.ReadFull(file, key); err != nil {
		return nil, err
	}
	return key, nil
}
