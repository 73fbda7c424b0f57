// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"
)

// An entry's file, integers big-endian:
//
//	 0  magic, with the version of this layout
//	16  stored, nanoseconds since 1970
//	24  length of the data in bytes
//	32  sha256 of the 32 bytes before it, the entry's name, a zero byte and the data
//	64  the data
//
// The digest covers the name, so that a file that is moved to another name
// never answers for it, and the time, so that a damaged one never makes a
// value younger.
const (
	magic      = "vision-store/1\r\n"
	lengthAt   = 24
	digestAt   = 32
	headerSize = digestAt + sha256.Size
)

// blockSize is the smallest piece of a disk that a file takes on the usual
// file systems (ext4, xfs, tmpfs with 4 KiB pages).
const blockSize = 4096

// Size is what a value of n bytes counts: its file with the header, in whole
// blocks of 4 KiB, as a volume's limit counts it.
func Size(n int) int64 { return blocks(headerSize + int64(n)) }

func blocks(fileSize int64) int64 { return (fileSize + blockSize - 1) / blockSize * blockSize }

// maxName bounds a name: far below the 255 bytes that file systems take.
const maxName = 128

// validName reports whether a name can be an entry's on any file system: no
// separators, no dots, no two that differ only in case.
func validName(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// header is what stands before data in the file of an entry.
func header(name string, stored time.Time, data []byte) []byte {
	h := make([]byte, 0, headerSize)
	h = append(h, magic...)
	h = binary.BigEndian.AppendUint64(h, uint64(stored.UnixNano()))
	h = binary.BigEndian.AppendUint64(h, uint64(len(data)))
	return append(h, digest(h, name, data)...)
}

func digest(head []byte, name string, data []byte) []byte {
	h := sha256.New()
	h.Write(head)
	h.Write(append([]byte(name), 0))
	h.Write(data)
	return h.Sum(nil)
}

// announces reports whether a header is of this layout and of length bytes of data.
func announces(header []byte, length int64) bool {
	return bytes.HasPrefix(header, []byte(magic)) && binary.BigEndian.Uint64(header[lengthAt:]) == uint64(length)
}

// decode reads the file of an entry. It is false for anything but what header
// and the data make up for that name. data is a part of file.
func decode(name string, file []byte) (data []byte, stored time.Time, ok bool) {
	if len(file) < headerSize || !announces(file, int64(len(file)-headerSize)) {
		return nil, time.Time{}, false
	}
	data = file[headerSize:]
	if !bytes.Equal(file[digestAt:headerSize], digest(file[:digestAt], name, data)) {
		return nil, time.Time{}, false
	}
	return data, time.Unix(0, int64(binary.BigEndian.Uint64(file[len(magic):]))), true
}
