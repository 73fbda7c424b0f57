// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/visionoperator/vision-operator/runtime/fault"
)

// Secret is a credential. However it is printed, it prints as redacted.
type Secret struct{ value string }

const redacted = "[redacted]"

// NewSecret holds value as a Secret.
func NewSecret(value string) Secret { return Secret{value: value} }

// String hides the value.
func (Secret) String() string { return redacted }

// GoString hides the value from %#v.
func (Secret) GoString() string { return redacted }

// Format hides the value from every verb.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalText hides the value from JSON, YAML and structured logs.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Reveal returns the value, for the one place that puts it on the wire.
func (s Secret) Reveal() string { return s.value }

// Source yields the credential for one call. Its errors are *fault.Fault.
type Source func() (Secret, error)

// maxKeyBytes bounds a key file: 64 KiB is far above any vendor's key or token.
const maxKeyBytes = 64 << 10

// settled is how old a file must be for what was read of it to be kept: two
// seconds, the coarsest clock that file systems have for changes. A younger one may
// change again without telling.
const settled = 2 * time.Second

// KeyFile is a Source that looks at a file at every call, and reads it when it is
// another one than before, so that a rotated key is used at once. One trailing
// newline is dropped. A file that is missing, empty, or not one line of printable
// ASCII is a fault of kind vision_adapter_unavailable; name, such as "team/openai",
// stands for the provider in its message.
func KeyFile(path, name string) Source {
	type known struct {
		info fs.FileInfo
		key  Secret
	}
	var last atomic.Pointer[known]
	return func() (Secret, error) {
		info, err := os.Stat(path)
		if before := last.Load(); err == nil && before != nil && unchanged(before.info, info) {
			return before.key, nil
		}
		key, bad := readKey(path, name)
		if bad != nil {
			last.Store(nil)
			return Secret{}, bad
		}
		if err == nil && time.Since(info.ModTime()) > settled {
			last.Store(&known{info, key})
		}
		return key, nil
	}
}

// unchanged says that a path leads to the file that it led to before, as it was.
func unchanged(before, now fs.FileInfo) bool {
	return os.SameFile(before, now) && before.Size() == now.Size() && before.Mode() == now.Mode() && before.ModTime().Equal(now.ModTime())
}

// readKey reads a key out of its file. Its errors are *fault.Fault.
func readKey(path, name string) (Secret, error) {
	data, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Secret{}, fault.New(fault.VisionAdapterUnavailable, "CredentialNotMounted",
			"the key of provider %s is not mounted in this pod", name).
			Hint("Check the provider's Secret; a provider added after the pod started needs a new pod.")
	case err != nil:
		return Secret{}, fault.New(fault.VisionAdapterUnavailable, "CredentialUnreadable",
			"the key of provider %s cannot be read", name).Because(err)
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	data = bytes.TrimSuffix(data, []byte("\r"))
	switch {
	case len(data) == 0:
		return Secret{}, fault.New(fault.VisionAdapterUnavailable, "CredentialEmpty",
			"the key of provider %s is empty", name).Hint("Put the key into the provider's Secret.")
	case len(data) > maxKeyBytes:
		return Secret{}, fault.New(fault.VisionAdapterUnavailable, "CredentialMalformed",
			"the key of provider %s is over %d bytes", name, maxKeyBytes)
	case bytes.ContainsFunc(data, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return Secret{}, fault.New(fault.VisionAdapterUnavailable, "CredentialMalformed",
			"the key of provider %s holds white space, a line break or a character outside ASCII", name).
			Hint("Write the Secret again without quotes, spaces or line breaks.")
	}
	return Secret{value: string(data)}, nil
}

// errNotRegular is a key file that is a directory, a FIFO or a device.
var errNotRegular = errors.New("not a regular file")

// readBounded reads at most two bytes more than a key may have, without
// waiting for a FIFO's writer.
func readBounded(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errNotRegular)
	}
	return io.ReadAll(io.LimitReader(f, maxKeyBytes+2))
}
