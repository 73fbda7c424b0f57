// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Parse reads and validates a document. Unknown fields are accepted, so that a
// newer control plane can serve older pods; an unknown version is not.
func Parse(data []byte) (*Document, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("reading router document: %d bytes; the limit is %d", len(data), MaxBytes)
	}
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("reading router document: %w", err)
	}
	if head.Version != Version {
		return nil, &VersionError{Version: head.Version}
	}
	doc := &Document{}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, fmt.Errorf("reading router document: %w", err)
	}
	if err := Validate(doc); err != nil {
		return nil, fmt.Errorf("reading router document: %w", err)
	}
	return doc, nil
}

// VersionError is a document of a version that this build does not read.
type VersionError struct{ Version string }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("router document has version %q; this build reads %q", e.Version, Version)
}

// Marshal validates a document and returns its bytes: indented JSON, so that
// people can review it, with a final newline. Equal documents give equal bytes.
func Marshal(doc *Document) ([]byte, error) {
	if err := Validate(doc); err != nil {
		return nil, fmt.Errorf("writing router document: %w", err)
	}
	data, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing router document: %w", err)
	}
	data = append(data, '\n')
	if len(data) > MaxBytes {
		return nil, &TooLargeError{Bytes: len(data)}
	}
	return data, nil
}

// TooLargeError is a document over MaxBytes.
type TooLargeError struct{ Bytes int }

// Error gives both numbers.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("router document has %d bytes; the limit is %d", e.Bytes, MaxBytes)
}

// IsTooLarge reports whether err is a TooLargeError.
func IsTooLarge(err error) bool {
	_, ok := errors.AsType[*TooLargeError](err)
	return ok
}

// Digest names a document by its bytes: "sha256:" and 64 hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
