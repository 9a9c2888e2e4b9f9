package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of Thrift's compact protocol, as a field or the elements of a list have them.
const (
	typeStop = iota
	typeTrue
	typeFalse
	typeByte
	typeInt16
	typeInt32
	typeInt64
	typeDouble
	typeBinary
	typeList
	typeSet
	typeMap
	typeStruct
	typeUUID
)

// maxDepth is how deep structures and lists may lie in each other: those of Parquet's footer are fewer than ten.
const maxDepth = 64

var errShort = errors.New("it ends early")

// walker passes over values of Thrift's compact protocol, and refuses what is longer than the bytes that are there.
type walker struct {
	rest []byte
}

// skip passes n bytes.
func (w *walker) skip(n uint64) error {
	if n > uint64(len(w.rest)) {
		return errShort
	}
	w.rest = w.rest[n:]
	return nil
}

func (w *walker) byte() (byte, error) {
	if len(w.rest) == 0 {
		return 0, errShort
	}
	b := w.rest[0]
	w.rest = w.rest[1:]
	return b, nil
}

func (w *walker) varint() (uint64, error) {
	v, n := binary.Uvarint(w.rest)
	if n <= 0 {
		return 0, errShort
	}
	w.rest = w.rest[n:]
	return v, nil
}

// structure passes fields up to the stop behind them. A field begins with a byte of its type and, four bits above, the
// difference of its number to that of the field before; of difference 0 the number follows.
func (w *walker) structure(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is deeper than %d", maxDepth)
	}
	for {
		b, err := w.byte()
		if err != nil {
			return err
		}
		kind := b & 15
		if kind == typeStop {
			return nil
		}
		if b>>4 == 0 {
			if _, err := w.varint(); err != nil {
				return err
			}
		}
		if kind == typeTrue || kind == typeFalse { // the type is the value
			continue
		}
		if err := w.value(kind, depth+1); err != nil {
			return err
		}
	}
}

// value passes a value of a type.
func (w *walker) value(kind byte, depth int) error {
	switch kind {
	case typeTrue, typeFalse, typeByte:
		return w.skip(1)
	case typeInt16, typeInt32, typeInt64:
		_, err := w.varint()
		return err
	case typeDouble:
		return w.skip(8)
	case typeUUID:
		return w.skip(16)
	case typeBinary:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case typeList, typeSet:
		b, err := w.byte()
		if err != nil {
			return err
		}
		n := uint64(b >> 4)
		if n == 15 {
			if n, err = w.varint(); err != nil {
				return err
			}
		}
		return w.values(n, depth, b&15)
	case typeMap:
		n, err := w.varint()
		if err != nil || n == 0 {
			return err
		}
		b, err := w.byte()
		if err != nil {
			return err
		}
		return w.values(n, depth, b>>4, b&15)
	case typeStruct:
		return w.structure(depth)
	}
	return fmt.Errorf("it has a value of the type %d, which is none", kind)
}

// values passes n values of each of the types by turns. Every value takes a byte at least.
func (w *walker) values(n uint64, depth int, kinds ...byte) error {
	if n > uint64(len(w.rest)) {
		return fmt.Errorf("a list of %d values has %d bytes", n, len(w.rest))
	}
	if depth > maxDepth {
		return fmt.Errorf("it is deeper than %d", maxDepth)
	}
	for range n {
		for _, kind := range kinds {
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
