package safetensors

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/geoalign/geoalign/internal/files"
)

// bufLen is the size of the conversion buffer; a multiple of every element size.
const bufLen = 64 << 10

// File is an open safetensors file. It may be used by several goroutines.
type File struct {
	r      io.ReaderAt
	closer io.Closer
	start  int64 // of the data
	infos  []Info
	index  map[string]int
	meta   map[string]string
}

// Open opens the file at path and checks its header. Close it after use.
func Open(path string) (*File, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	s, err := NewReader(f, size)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.closer = f
	return s, nil
}

// NewReader reads the header of a file of the given size in bytes.
func NewReader(r io.ReaderAt, size int64) (*File, error) {
	var head [8]byte
	if size < 8 {
		return nil, formatError("%d bytes are too few", size)
	}
	if _, err := r.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("safetensors: read header: %w", err)
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader {
		return nil, formatError("header of %d bytes is larger than %d: damaged or another format", n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, formatError("header of %d bytes in a file of %d: truncated or another format", n, size)
	}
	raw := make([]byte, n)
	if _, err := r.ReadAt(raw, 8); err != nil && err != io.EOF {
		return nil, fmt.Errorf("safetensors: read header: %w", err)
	}
	start := 8 + int64(n)
	infos, meta, err := parseHeader(raw, size-start)
	if err != nil {
		return nil, err
	}
	f := &File{r: r, start: start, infos: infos, index: make(map[string]int, len(infos)), meta: meta}
	for i, t := range infos {
		f.index[t.Name] = i
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Tensors lists the tensors in the order of their data.
func (f *File) Tensors() []Info { return slices.Clone(f.infos) }

// Metadata returns the strings of the header's __metadata__.
func (f *File) Metadata() map[string]string { return f.meta }

// Lookup returns the description of the tensor name.
func (f *File) Lookup(name string) (Info, bool) {
	i, ok := f.index[name]
	if !ok {
		return Info{}, false
	}
	return f.infos[i], true
}

// ReadFloat32 converts the tensor name into dst, which must have its length.
// Numbers that float32 cannot hold are rounded.
func (f *File) ReadFloat32(name string, dst []float32) error {
	info, err := f.want(name, len(dst))
	if err != nil {
		return err
	}
	if inOrder && info.DType == F32 && len(dst) > 0 {
		return f.readAt(info, info.begin, memory(dst))
	}
	get, err := floatDecoder(info)
	if err != nil {
		return err
	}
	return f.each(info, func(i int, b []byte) { dst[i] = get(b) })
}

// Float32 returns the tensor name as float32.
func (f *File) Float32(name string) ([]float32, error) {
	info, ok := f.Lookup(name)
	if !ok {
		return nil, f.missing(name)
	}
	dst := make([]float32, info.Len())
	return dst, f.ReadFloat32(name, dst)
}

// ReadInt64 converts the integer tensor name into dst, which must have its length.
func (f *File) ReadInt64(name string, dst []int64) error {
	info, err := f.want(name, len(dst))
	if err != nil {
		return err
	}
	get, err := intDecoder(info)
	if err != nil {
		return err
	}
	return f.each(info, func(i int, b []byte) { dst[i] = get(b) })
}

// Int64 returns the integer tensor name as int64.
func (f *File) Int64(name string) ([]int64, error) {
	info, ok := f.Lookup(name)
	if !ok {
		return nil, f.missing(name)
	}
	dst := make([]int64, info.Len())
	return dst, f.ReadInt64(name, dst)
}

func (f *File) missing(name string) error {
	return fmt.Errorf("safetensors: no tensor %q among the %d of the file", name, len(f.infos))
}

func (f *File) want(name string, n int) (Info, error) {
	info, ok := f.Lookup(name)
	if !ok {
		return Info{}, f.missing(name)
	}
	if info.Len() != n {
		return Info{}, fmt.Errorf("safetensors: tensor %q has shape %v (%d elements), want %d elements", name,
			info.Shape, info.Len(), n)
	}
	return info, nil
}

// each calls fn with the bytes of every element, through one small buffer.
func (f *File) each(info Info, fn func(i int, b []byte)) error {
	size := int(info.DType.size())
	buf := make([]byte, min(bufLen, info.Bytes()))
	i := 0
	for off := info.begin; off < info.end; {
		b := buf[:min(int64(len(buf)), info.end-off)]
		if err := f.readAt(info, off, b); err != nil {
			return err
		}
		off += int64(len(b))
		for ; len(b) > 0; b = b[size:] {
			fn(i, b)
			i++
		}
	}
	return nil
}

// readAt fills b with the data from off on.
func (f *File) readAt(info Info, off int64, b []byte) error {
	if n, err := f.r.ReadAt(b, f.start+off); n < len(b) {
		return fmt.Errorf("safetensors: read tensor %q: %w", info.Name, err)
	}
	return nil
}

// floatDecoder returns the conversion of one element of info to float32.
func floatDecoder(info Info) (func(b []byte) float32, error) {
	le := binary.LittleEndian
	switch info.DType {
	case F64:
		return func(b []byte) float32 { return float32(math.Float64frombits(le.Uint64(b))) }, nil
	case F32:
		return func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) }, nil
	case F16:
		return func(b []byte) float32 { return halfToFloat(le.Uint16(b)) }, nil
	case BF16:
		return func(b []byte) float32 { return bfloatToFloat(le.Uint16(b)) }, nil
	case U64:
		return func(b []byte) float32 { return float32(le.Uint64(b)) }, nil
	}
	get, err := intDecoder(info)
	if err != nil {
		return nil, fmt.Errorf("safetensors: tensor %q: %s cannot be converted to float32", info.Name, info.DType)
	}
	return func(b []byte) float32 { return float32(get(b)) }, nil
}

// intDecoder returns the conversion of one element of info to int64.
func intDecoder(info Info) (func(b []byte) int64, error) {
	le := binary.LittleEndian
	switch info.DType {
	case I64, U64: // a U64 above the range of int64 wraps
		return func(b []byte) int64 { return int64(le.Uint64(b)) }, nil
	case I32:
		return func(b []byte) int64 { return int64(int32(le.Uint32(b))) }, nil
	case U32:
		return func(b []byte) int64 { return int64(le.Uint32(b)) }, nil
	case I16:
		return func(b []byte) int64 { return int64(int16(le.Uint16(b))) }, nil
	case U16:
		return func(b []byte) int64 { return int64(le.Uint16(b)) }, nil
	case I8:
		return func(b []byte) int64 { return int64(int8(b[0])) }, nil
	case U8, Bool:
		return func(b []byte) int64 { return int64(b[0]) }, nil
	}
	return nil, fmt.Errorf("safetensors: tensor %q: %s is not an integer type", info.Name, info.DType)
}
