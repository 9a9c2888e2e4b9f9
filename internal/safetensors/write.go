package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
)

// Tensor is a tensor to write. Data is []float32, []int64, []int32, []uint8, a *Spool or a Lazy of
// as many elements as Shape says (an empty shape: one).
type Tensor struct {
	Name  string
	Shape []int
	Data  any
}

// Lazy is the data of a tensor of Len elements that are there when they are written, and then no longer: Fill fills dst
// with all of them. Of many such tensors one is in memory at a time. A number that F16 cannot hold is an error.
type Lazy struct {
	Len  int
	Fill func(dst []float32) error
	As   DType // in the file: F32, F16 or BF16, rounded to the nearest; empty: F32
}

// layout returns type and number of elements of t.
func (t Tensor) layout() (DType, int, error) {
	var d DType
	var n int
	switch v := t.Data.(type) {
	case []float32:
		d, n = F32, len(v)
	case []int64:
		d, n = I64, len(v)
	case []int32:
		d, n = I32, len(v)
	case []uint8:
		d, n = U8, len(v)
	case *Spool:
		d, n = F32, v.Len()
	case Lazy:
		d, n = cmp.Or(v.As, F32), v.Len
		if d != F32 && d != F16 && d != BF16 {
			return "", 0, fmt.Errorf("safetensors: tensor %q: cannot write floats as %s: use F32, F16 or BF16", t.Name, d)
		}
	default:
		return "", 0, fmt.Errorf("safetensors: tensor %q: cannot write a %T: use []float32, []int64, []int32, []uint8, a *Spool or a Lazy", t.Name, t.Data)
	}
	if want := (Info{Shape: t.Shape}).Len(); want != n {
		return "", 0, fmt.Errorf("safetensors: tensor %q: shape %v needs %d elements (got %d)", t.Name, t.Shape, want,
			n)
	}
	return d, n, nil
}

// Write writes tensors and metadata to w. Wider types come first, so that every
// tensor is aligned for readers that map the file; among equals the given order
// is kept.
func Write(w io.Writer, tensors []Tensor, meta map[string]string) error {
	tensors = slices.Clone(tensors)
	types := map[string]DType{}
	for _, t := range tensors {
		d, _, err := t.layout()
		if err != nil {
			return err
		}
		if _, dup := types[t.Name]; dup || t.Name == "__metadata__" {
			return fmt.Errorf("safetensors: tensor name %q is reserved or used twice", t.Name)
		}
		types[t.Name] = d
	}
	sort.SliceStable(tensors, func(i, j int) bool {
		return types[tensors[i].Name].size() > types[tensors[j].Name].size()
	})

	head, err := header(tensors, types, meta)
	if err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	buf := make([]byte, 0, bufLen)
	var made []float32 // memory of lazy tensors
	for _, t := range tensors {
		data := t.Data
		if x, ok := data.(Lazy); ok {
			made = slices.Grow(made[:0], x.Len)[:x.Len]
			if err := x.Fill(made); err != nil {
				return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
			}
			data = made
			if d := types[t.Name]; d != F32 {
				if err := writeHalves(w, made, d, buf); err != nil {
					return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
				}
				continue
			}
		}
		if err := writeData(w, data, buf); err != nil {
			return err
		}
	}
	return nil
}

// header returns the length and the JSON, padded with spaces to eight bytes.
func header(tensors []Tensor, types map[string]DType, meta map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	sep := ""
	field := func(key string, value any) error {
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s%s:%s", sep, k, v)
		sep = ","
		return nil
	}
	if len(meta) > 0 {
		if err := field("__metadata__", meta); err != nil {
			return nil, err
		}
	}
	var off int64
	for _, t := range tensors {
		d := types[t.Name]
		end := off + d.size()*int64((Info{Shape: t.Shape}).Len())
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		if err := field(t.Name, struct {
			DType   DType   `json:"dtype"`
			Shape   []int   `json:"shape"`
			Offsets []int64 `json:"data_offsets"`
		}{d, shape, []int64{off, end}}); err != nil {
			return nil, err
		}
		off = end
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	out := b.Bytes()
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))
	return out, nil
}

// writeData streams the elements of data through buf.
func writeData(w io.Writer, data any, buf []byte) error {
	le := binary.LittleEndian
	switch v := data.(type) {
	case []float32:
		if inOrder && len(v) > 0 {
			return writePieces(w, memory(v))
		}
		return stream(w, v, buf, func(b []byte, x float32) []byte { return le.AppendUint32(b, math.Float32bits(x)) })
	case []int64:
		return stream(w, v, buf, func(b []byte, x int64) []byte { return le.AppendUint64(b, uint64(x)) })
	case []int32:
		return stream(w, v, buf, func(b []byte, x int32) []byte { return le.AppendUint32(b, uint32(x)) })
	case []uint8:
		_, err := w.Write(v)
		return err
	case *Spool:
		return v.copyTo(w)
	}
	return fmt.Errorf("safetensors: cannot write a %T", data)
}

// writeHalves writes numbers as F16 or BF16, or names the first that F16 cannot hold.
func writeHalves(w io.Writer, x []float32, d DType, buf []byte) error {
	le := binary.LittleEndian
	if d == BF16 {
		return stream(w, x, buf, func(b []byte, v float32) []byte { return le.AppendUint16(b, floatToBfloat(v)) })
	}
	for i, v := range x {
		if size := math.Abs(float64(v)); size >= beyondHalf && !math.IsInf(size, 1) {
			return fmt.Errorf("number %d is %g, and F16 ends at 65504: use BF16 or F32", i, v)
		}
	}
	return stream(w, x, buf, func(b []byte, v float32) []byte { return le.AppendUint16(b, floatToHalf(v)) })
}

// WriteFloats writes elements as they lie in a file, in little endian.
func WriteFloats(w io.Writer, x []float32) error { return writeData(w, x, nil) }

// writePieces writes b some at a time, so that a writer which reads it twice, for a checksum beside
// the write, finds it in the processor's cache.
func writePieces(w io.Writer, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), pieceLen)
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// pieceLen is the most bytes that are written at a time.
const pieceLen = 1 << 20

func stream[T any](w io.Writer, v []T, buf []byte, put func([]byte, T) []byte) error {
	for _, x := range v {
		buf = put(buf, x)
		if len(buf)+8 > cap(buf) {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	_, err := w.Write(buf)
	return err
}
