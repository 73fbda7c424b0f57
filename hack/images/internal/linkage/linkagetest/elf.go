// Copyright The Vision Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package linkagetest makes small ELF files for tests: headers and what says how
// a file is linked, without any code.
package linkagetest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Sizes of the structures of 64-bit ELF (elf(5)).
const (
	headerSize  = 64
	programSize = 56
	sectionSize = 64
)

// File returns an ELF file for a machine, with an interpreter unless that is
// empty, that needs libraries, and with a RUNPATH unless that is empty.
func File(machine elf.Machine, interpreter, runpath string, needed ...string) []byte {
	names := []byte{0}
	name := func(s string) uint64 {
		at := uint64(len(names))
		names = append(append(names, s...), 0)
		return at
	}
	var dynamic bytes.Buffer
	entry := func(tag elf.DynTag, value uint64) { put(&dynamic, elf.Dyn64{Tag: int64(tag), Val: value}) }
	for _, n := range needed {
		entry(elf.DT_NEEDED, name(n))
	}
	if runpath != "" {
		entry(elf.DT_RUNPATH, name(runpath))
	}
	entry(elf.DT_NULL, 0)
	dynstr, dyn, null := name(".dynstr"), name(".dynamic"), uint64(0)
	programs := uint16(0)
	if interpreter != "" {
		programs = 1
	}
	interpAt := uint64(headerSize) + uint64(programs)*programSize
	interp := append([]byte(interpreter), 0)
	namesAt := interpAt + uint64(len(interp))
	dynamicAt := namesAt + uint64(len(names))
	sectionsAt := dynamicAt + uint64(dynamic.Len())

	var out bytes.Buffer
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Ehsize: headerSize, Phentsize: programSize, Phnum: programs, Shoff: sectionsAt, Shentsize: sectionSize, Shnum: 3, Shstrndx: 1,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	if programs > 0 {
		h.Phoff = headerSize
	}
	put(&out, h)
	if programs > 0 {
		put(&out, elf.Prog64{Type: uint32(elf.PT_INTERP), Off: interpAt, Filesz: uint64(len(interp)), Memsz: uint64(len(interp))})
	}
	out.Write(interp)
	out.Write(names)
	out.Write(dynamic.Bytes())
	put(&out, elf.Section64{Name: uint32(null), Type: uint32(elf.SHT_NULL)})
	put(&out, elf.Section64{Name: uint32(dynstr), Type: uint32(elf.SHT_STRTAB), Off: namesAt, Size: uint64(len(names))})
	put(&out, elf.Section64{Name: uint32(dyn), Type: uint32(elf.SHT_DYNAMIC), Off: dynamicAt, Size: uint64(dynamic.Len()), Link: 1, Entsize: 16})
	return out.Bytes()
}

// put writes a structure of fixed size; writing such to memory cannot fail.
func put(out *bytes.Buffer, v any) {
	if err := binary.Write(out, binary.LittleEndian, v); err != nil {
		panic(err)
	}
}
