// Package testlib makes small shared libraries for tests of what happens when a
// library is broken. They are written byte by byte, so that the tests need no C
// compiler; see System V ABI, chapters 4 and 5, and its AMD64 supplement.
package testlib

import (
	"bytes"
	"encoding/binary"
)

// Func is a function of a library: machine code of amd64 that follows the calling
// convention of System V.
type Func struct {
	Name string
	Code []byte
}

// Machine code of functions that take no notice of their arguments.
var (
	ReturnsZero = []byte{0x31, 0xc0, 0xc3} // xor eax, eax; ret
	// xor eax, eax; mov dword [rax], 0
	Segfaults = []byte{0x31, 0xc0, 0xc7, 0x00, 0, 0, 0, 0, 0xc3}
	Illegal   = []byte{0x0f, 0x0b}                                 // ud2
	Loops     = []byte{0xeb, 0xfe}                                 // jmp to itself
	ExitsZero = []byte{0x31, 0xff, 0xb8, 231, 0, 0, 0, 0x0f, 0x05} // exit_group(0)
	// kill(getpid(), SIGABRT)
	KillsItself = []byte{0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x89, 0xc7, 0xbe, 6, 0, 0, 0, 0xb8, 62,
		0, 0, 0, 0x0f, 0x05, 0xc3}
)

// ReturnsInts is code that returns the address of 32-bit numbers.
func ReturnsInts(values ...int32) []byte {
	code := []byte{0x48, 0x8d, 0x05, 9, 0, 0, 0, 0xc3, 0, 0, 0, 0, 0, 0, 0, 0} // lea rax, [rip+9]; ret
	for _, v := range values {
		code = binary.LittleEndian.AppendUint32(code, uint32(v))
	}
	return append(code, make([]byte, 64)...)
}

// ReturnsText is code that returns the address of a string.
func ReturnsText(text string) []byte {
	code := []byte{0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3} // lea rax, [rip+1]; ret
	return append(append(code, text...), 0)
}

// Constants of the ELF format.
const (
	headerSize  = 64
	segmentSize = 56
	page        = 4096
)

// Build returns the file of a shared library for Linux on amd64 with functions. If
// init is not nil, it is code that runs when the library is loaded.
func Build(functions []Func, init []byte) []byte {
	type symbol struct {
		Name        uint32
		Info, Other uint8
		Section     uint16
		Value, Size uint64
	}
	const segments = 4
	names, symbols := []byte{0}, []symbol{{}}
	hash := []uint32{1, uint32(len(functions) + 1), 0, 0} // one bucket, a chain through all symbols
	hashAt := headerSize + segments*segmentSize
	symbolsAt := hashAt + 4*(4+len(functions))
	symbolsAt += -symbolsAt & 7
	for i := range functions {
		if i == 0 {
			hash[2] = 1
		}
		next := uint32(i + 2)
		if i == len(functions)-1 {
			next = 0
		}
		hash = append(hash, next)
	}
	namesAt := symbolsAt + 24*(len(functions)+1)
	namesSize := 1
	for _, f := range functions {
		namesSize += len(f.Name) + 1
	}
	var code []byte
	codeAt := namesAt + namesSize
	codeAt += -codeAt & 15
	place := func(c []byte) uint64 {
		at := codeAt + len(code)
		code = append(code, c...)
		code = append(code, make([]byte, -len(code)&15)...)
		return uint64(at)
	}
	for _, f := range functions {
		symbols = append(symbols, symbol{Name: uint32(len(names)), Info: 0x12, Section: 1, Value: place(f.Code),
			Size: uint64(len(f.Code))})
		names = append(append(names, f.Name...), 0)
	}
	dynamic := [][2]uint64{{4, uint64(hashAt)}, {6, uint64(symbolsAt)}, {5, uint64(namesAt)}, {10, uint64(namesSize)},
		{11, 24}}
	if init != nil {
		dynamic = append(dynamic, [2]uint64{12, place(init)})
	}
	dynamic = append(dynamic, [2]uint64{})
	codeEnd := codeAt + len(code)
	dynamicAt := (codeEnd + page - 1) / page * page
	dynamicSize := uint64(16 * len(dynamic))

	var b bytes.Buffer
	write := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // a bytes.Buffer takes all
		}
	}
	padTo := func(n int) { b.Write(make([]byte, n-b.Len())) }
	b.Write([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	// Shared object, AMD64, version; entry, segment table, no section table.
	write(uint16(3), uint16(62), uint32(1), uint64(0), uint64(headerSize), uint64(0), uint32(0),
		uint16(headerSize), uint16(segmentSize), uint16(segments), uint16(64), uint16(0), uint16(0))
	segment := func(kind, flags uint32, at int, size, align uint64) {
		write(kind, flags, uint64(at), uint64(at), uint64(at), size, size, align)
	}
	segment(1, 5, 0, uint64(codeEnd), page)     // code, read and execute
	segment(1, 6, dynamicAt, dynamicSize, page) // the dynamic table, read and write
	segment(2, 6, dynamicAt, dynamicSize, 8)    // where the dynamic table is
	segment(0x6474e551, 6, 0, 0, 16)            // a stack that is not executable
	write(hash)
	padTo(symbolsAt)
	write(symbols)
	b.Write(names)
	padTo(codeAt)
	b.Write(code)
	padTo(dynamicAt)
	write(dynamic)
	return b.Bytes()
}
