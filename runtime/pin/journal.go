// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pin

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
)

// journalName is the file of pins and texts, journalMagic its beginning, with the
// version of the layout.
const (
	journalName  = "journal"
	journalMagic = "vision-pins/1\r\n"
)

// journalShare is how many times the bytes of all records the journal may take:
// it is written anew once it has grown to twice of them, beside the old one.
const journalShare = 3

// tempPrefix begins the name of a file that is being written.
const tempPrefix = ".tmp-"

func newTempName() string { return tempPrefix + rand.Text() }

// newFile is a file that is being written.
type newFile interface {
	io.Writer
	io.Closer
}

// create makes a file that did not exist; tests make it fail.
func create(root *os.Root, name string) (newFile, error) {
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// errRewrite says that the journal is to be written anew before more is appended.
var errRewrite = errors.New("the journal is to be written anew")

// journal is the file that pins and texts are appended to. It is used by one
// goroutine at a time.
type journal struct {
	root   *os.Root
	create func(root *os.Root, name string) (newFile, error)
	most   int64 // bytes

	file newFile // nil: broken, or not open yet
	size int64
	room []byte
	rest int // so many records wait before it is tried to write it anew
}

// replay reads what is there, and what comes later stands for what came before.
// It ends at the first record that is not whole.
func (j *journal) replay(add func(name, *record)) {
	info, err := j.root.Lstat(journalName)
	if err != nil || !info.Mode().IsRegular() || info.Size() > j.most {
		return
	}
	data, err := j.root.ReadFile(journalName)
	if err != nil || len(data) < len(journalMagic) || string(data[:len(journalMagic)]) != journalMagic {
		return
	}
	for rest := data[len(journalMagic):]; ; {
		n, r, after, ok := cutRecord(rest)
		if !ok {
			return
		}
		add(n, r)
		rest = after
	}
}

// restAfterFailure is how many records wait for the next attempt on a disk that
// failed; that attempt then writes all of them.
const restAfterFailure = 64

// append writes one record. The error is errRewrite when there is no room, or the
// file is broken; while it rests after that failed, nothing is written.
func (j *journal) append(n name, r *record) error {
	if j.rest > 0 {
		j.rest--
		return nil
	}
	j.room = appendRecord(j.room[:0], n, r)
	if j.file == nil || j.size+int64(len(j.room)) > j.most {
		return errRewrite
	}
	if _, err := j.file.Write(j.room); err != nil {
		_ = j.close() // it may end in a part of a record, and is written anew
		j.rest = restAfterFailure
		return bare("writing pins", err)
	}
	j.size += int64(len(j.room))
	return nil
}

// rewrite writes all records into a new file, in the place of the old one.
func (j *journal) rewrite(all []entry) error {
	const doing = "writing pins anew"
	temp := newTempName()
	j.rest = restAfterFailure
	file, err := j.create(j.root, temp)
	if err != nil {
		return bare(doing, err)
	}
	size, err := writeAll(file, all)
	if err == nil {
		err = j.root.Rename(temp, journalName)
	}
	if err != nil {
		_, _ = file.Close(), j.root.Remove(temp) // what stays, the next Open removes
		return bare(doing, err)
	}
	_ = j.close() // its records are in the new file
	j.file, j.size, j.rest = file, size, 0
	return nil
}

func writeAll(to io.Writer, all []entry) (size int64, err error) {
	const piece = 64 << 10
	room := append(make([]byte, 0, piece+maxPayload+frameSize), journalMagic...)
	for i := 0; err == nil && i <= len(all); i++ {
		if i < len(all) {
			room = appendRecord(room, all[i].name, all[i].record)
		}
		if len(room) >= piece || i == len(all) {
			_, err = to.Write(room)
			size += int64(len(room))
			room = room[:0]
		}
	}
	return size, err
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
