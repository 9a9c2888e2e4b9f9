package search

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/identity"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// ErrFormat is wrapped by errors about what is in an index's file.
var ErrFormat = errors.New("no index that can be used")

// Open opens the index of a pool that Save wrote. The file is mapped into memory where the system
// can do that, and read once to compare it with its checksum. The rows of the pool are compared with those that the
// index was built of: what the file system says of the pool's files is believed where it proves that nothing has
// changed since they were last read, and else they are read, on the threads of e, or on the calling goroutine without
// one. progress is told of that and may be nil. Close the index after use; the pool stays open as long.
//
// It fails with a *StaleError where the index is of other rows than the pool's, and with
// ErrFormat where the file is cut, damaged, of an earlier version or none of an index: build it again then.
func Open(ctx context.Context, e *compute.Engine, path string, pool Pool, progress func(done, of int)) (*Index, error) {
	x, err := open(path)
	if err != nil {
		return nil, err
	}
	if err := x.take(ctx, e, path, pool, progress); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

// Check reads the file of an index and compares it with its checksum. It fails as Open does, whatever the rows.
func Check(path string) (Stats, error) {
	x, err := open(path)
	if err != nil {
		return Stats{}, err
	}
	return x.Stats(), x.close()
}

// open opens the file of an index, of whatever pool.
func open(path string) (*Index, error) {
	f, size, err := files.Open(path, 0)
	if err != nil {
		return nil, fmt.Errorf("search: open the index: %w", err)
	}
	defer f.Close()
	b := files.Map(f, size)
	x := &Index{close: func() error { return nil }}
	if b != nil {
		// a second time it may be the memory of another index
		x.close = sync.OnceValue(func() error { return files.Unmap(b) })
	} else if b, err = files.Rest(f, size, 0); err != nil {
		return nil, fmt.Errorf("search: open the index: %w", err)
	}
	if err := x.open(path, b); err != nil {
		return nil, errors.Join(err, x.close())
	}
	return x, nil
}

// open takes the index from the bytes of its file.
func (x *Index) open(path string, b []byte) (err error) {
	defer files.RecoverFault(&err, errGone, debug.SetPanicOnFault(true))
	if err := x.parse(b); err != nil {
		return fmt.Errorf("search: %s: %w: %w: build it again", path, ErrFormat, err)
	}
	return nil
}

// take takes the pool, which must have the rows that the index was built of.
func (x *Index) take(ctx context.Context, e *compute.Engine, path string, pool Pool,
	progress func(done, of int)) (err error) {
	defer files.RecoverFault(&err, errGone, debug.SetPanicOnFault(true))
	h := &x.header
	if err := checkPool(pool); err != nil {
		return err
	}
	if pool.Rows() != h.Rows || pool.Width() != h.Width {
		return &StaleError{path, fmt.Sprintf("it has %d rows of width %d, the pool has %d of width %d", h.Rows, h.Width,
			pool.Rows(), pool.Width())}
	}
	x.pool, x.metric = pool, h.Metric
	if err := x.checkRows(ctx, e, path, progress); err != nil {
		return err
	}
	x.setCoarse()
	return nil
}

// parse reads and checks the bytes of a file. The slices of x point into them, but for the shift.
func (x *Index) parse(b []byte) error {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return errors.New("this processor stores the highest byte first, which indexes are not written for")
	}
	f, err := safetensors.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	text, ok := f.Metadata()[headerKey]
	if !ok {
		return errors.New("it is a safetensors file without the description of an index")
	}
	if x.header, err = parseHeader(text); err != nil {
		return err
	}
	if err := safetensors.CheckSum(b, f.Metadata()[sumKey]); err != nil {
		return err
	}
	x.width = codeWidth(x.header.Width)
	if err := x.view(b, f); err != nil {
		return err
	}
	return x.checkValues()
}

// view points the slices at their tensors, of which each must be there in its shape.
func (x *Index) view(b []byte, f *safetensors.File) error {
	types := map[string]safetensors.DType{"codes": safetensors.U8, "bits": safetensors.U8, "sums": safetensors.U8, "rows": safetensors.I32,
		"starts": safetensors.I32}
	wanted := x.tensors()
	data := map[string][]byte{}
	for _, t := range wanted {
		info, ok := f.Lookup(t.Name)
		want := types[t.Name]
		if want == "" {
			want = safetensors.F32
		}
		if !ok || info.DType != want || !slices.Equal(info.Shape, t.Shape) {
			return fmt.Errorf("its tensor %q is %s %v, not %s %v", t.Name, info.DType, info.Shape, want, t.Shape)
		}
		start, length, _ := f.Span(t.Name)
		data[t.Name] = b[start : start+length]
		if uintptr(unsafe.Pointer(unsafe.SliceData(data[t.Name])))%uintptr(want.Size()) != 0 {
			return fmt.Errorf("its tensor %q does not begin at a multiple of %d bytes", t.Name, want.Size())
		}
	}
	if n := len(f.Tensors()); n != len(wanted) {
		return fmt.Errorf("it has %d tensors, not %d", n, len(wanted))
	}
	x.centres, x.scales = cast[float32](data["centres"]), cast[float32](data["scales"])
	x.starts, x.rows = cast[int32](data["starts"]), cast[int32](data["rows"])
	x.half = cast[float32](data["half"])
	x.shift = slices.Clone(cast[float32](data["shift"])) // read for each query, before the parts that a cut file ends
	x.codes, x.bits = cast[int8](data["codes"]), data["bits"]
	x.sums = make([]identity.Sum, blocks(x.header.Rows))
	for i := range x.sums {
		copy(x.sums[i][:], data["sums"][i*len(x.sums[i]):])
	}
	return nil
}

// cast returns bytes as values in the processor's order, nil for none.
func cast[T float32 | int32 | int8](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(T(0))))
}

// checkValues refuses values that a search would fail by: a checksum is not a proof against
// somebody who writes one.
func (x *Index) checkValues() error {
	if sum := fingerprintOf(x.header.Rows, x.header.Width, x.sums); sum != x.header.Fingerprint {
		return fmt.Errorf("the fingerprint of its rows is %.40q, and the sums of their blocks give %s",
			x.header.Fingerprint, sum)
	}
	at := int32(0)
	for c, s := range x.starts {
		if s < at || c == 0 && s != 0 || c == x.header.Cells && int(s) != x.header.Rows {
			return fmt.Errorf("cell %d begins at row %d after one that begins at %d", c, s, at)
		}
		at = s
	}
	seen := make([]bool, x.header.Rows)
	for i, r := range x.rows {
		if r < 0 || int(r) >= len(seen) || seen[r] {
			return fmt.Errorf("row %d of the pool is in it twice or not there, at place %d", r, i)
		}
		seen[r] = true
	}
	for name, values := range map[string][]float32{"scales": x.scales, "half": x.half} {
		for i, v := range values {
			if v-v != 0 || math.Abs(float64(v)) > maxLength {
				return fmt.Errorf("value %d of its tensor %q is %v", i, name, v)
			}
		}
	}
	for name, rows := range map[string][]float32{"centres": x.centres, "shift": x.shift} {
		for i := range len(rows) / x.header.Width {
			// Means and medians of rows, each of which was as short. The comparison refuses NaN.
			if sq := vector.SumSq(rows[i*x.header.Width:][:x.header.Width]); !(sq <= maxLength) {
				return fmt.Errorf("row %d of its tensor %q has length %.3g", i, name, math.Sqrt(sq))
			}
		}
	}
	return nil
}
