package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// file builds the bytes of a file from its JSON header and data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func open(b []byte) (*File, error) { return NewReader(bytes.NewReader(b), int64(len(b))) }

// testdata/mixed.safetensors was written by the safetensors library for Python
// from values stated in tools/goldens/safetensors_mixed.py.
func TestReadMixedTypes(t *testing.T) {
	f := check.Get(Open("testdata/mixed.safetensors"))(t)
	defer f.Close()
	inf := float32(math.Inf(1))
	for name, want := range map[string][]float32{
		"f64": {1e-3, -2}, "f32": {0, -1.5, 2, 65504, 6e-8, inf},
		"f16":  {0, -1.5, 2, 65504, 5.9604645e-08, inf}, // 6e-8 rounds to 2^-24
		"bf16": {0, -1.5, 2, 65536, 6.0070306e-08, inf}, // 6e-8 rounds to 129/128 * 2^-24
		"i64":  {-5, 1 << 40}, "i32": {-5, 7}, "i16": {-300, 300}, "i8": {-5, 7}, "u8": {0, 255}, "bool": {1, 0},
		"scalar": {0.07}, "empty": {},
	} {
		if got, err := f.Float32(name); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	if got, err := f.Int64("i64"); err != nil || !reflect.DeepEqual(got, []int64{-5, 1 << 40}) {
		t.Errorf("i64: got %v, %v", got, err)
	}
	check.Fails(f.Int64("f32"))(t, "not an integer type")
	if info, ok := f.Lookup("f16"); !ok || info.DType != F16 || !reflect.DeepEqual(info.Shape, []int{2, 3}) ||
		info.Bytes() != 12 {
		t.Errorf("f16: got %+v", info)
	}
	if f.Metadata()["note"] != "mixed types" || len(f.Tensors()) != 12 {
		t.Errorf("metadata %v, %d tensors", f.Metadata(), len(f.Tensors()))
	}
	if _, err := f.Float32("none"); err == nil {
		t.Error("missing tensor: no error")
	}
	check.Error(t, f.ReadFloat32("f32", make([]float32, 5)), "[2 3]")
}

// The half-precision numbers whose float32 values are known exactly.
func TestHalf(t *testing.T) {
	for h, want := range map[uint16]float32{
		0x0000: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 0x0001: 1.0 / (1 << 24), 0x0400: 1.0 / (1 << 14),
		0x3555: 0.33325195,
	} {
		if got := halfToFloat(h); got != want {
			t.Errorf("%#04x: got %v, want %v", h, got, want)
		}
	}
	if v := halfToFloat(0x7e00); v == v {
		t.Errorf("NaN: got %v", v)
	}
	if v := halfToFloat(0x8000); v != 0 || !math.Signbit(float64(v)) {
		t.Errorf("negative zero: got %v", v)
	}
}

func TestRoundTrip(t *testing.T) {
	long := make([]float32, 3*bufLen/4+5) // several buffers
	for i := range long {
		long[i] = float32(i) * 0.1
	}
	nan := math.Float32frombits(0x7fc12345)
	in := []Tensor{
		{"bytes", []int{3}, []uint8{1, 2, 255}},
		{"long/\"quoted\"", []int{len(long)}, long},
		{"odd", []int{1, 1}, []float32{nan}},
		{"ids", []int{2}, []int64{-1, math.MaxInt64}},
		{"small", []int{2}, []int32{-1, 5}},
		{"scalar", nil, []float32{0.07}},
		{"none", []int{0, 3}, []float32{}},
	}
	var b bytes.Buffer
	check.OK(t, Write(&b, in, map[string]string{"step": "3"}))
	f := check.Get(open(b.Bytes()))(t)
	for _, w := range in {
		switch want := w.Data.(type) {
		case []float32:
			got := check.Get(f.Float32(w.Name))(t)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%s[%d]: got %v, want %v", w.Name, i, got[i], want[i])
				}
			}
		case []int64:
			if got, err := f.Int64(w.Name); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %v, %v", w.Name, got, err)
			}
		default:
			if _, err := f.Int64(w.Name); err != nil {
				t.Errorf("%s: %v", w.Name, err)
			}
		}
	}
	for _, info := range f.Tensors() {
		if (f.start+info.begin)%info.DType.size() != 0 {
			t.Errorf("%s is not aligned", info.Name)
		}
	}
	if f.Metadata()["step"] != "3" {
		t.Errorf("metadata: got %v", f.Metadata())
	}
}

func TestWriteErrors(t *testing.T) {
	for name, c := range map[string]struct {
		in   []Tensor
		want string
	}{
		"shape":    {[]Tensor{{"a", []int{2, 2}, []float32{1}}}, "needs 4 elements (got 1)"},
		"type":     {[]Tensor{{"a", []int{1}, []float64{1}}}, "[]float64"},
		"twice":    {[]Tensor{{"a", []int{1}, []float32{1}}, {"a", []int{1}, []float32{1}}}, "used twice"},
		"reserved": {[]Tensor{{"__metadata__", []int{1}, []float32{1}}}, "reserved"},
	} {
		var b bytes.Buffer
		if err := Write(&b, c.in, nil); err == nil || !strings.Contains(err.Error(), c.want) || b.Len() > 0 {
			t.Errorf("%s: got %v after %d bytes, want an error with %q", name, err, b.Len(), c.want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	const a = `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":            {nil, "too few"},
		"short":            {[]byte{1, 2}, "too few"},
		"huge header":      {file("", 0)[:0:0], "too few"},
		"header too long":  {append([]byte{255, 255, 255, 255, 0, 0, 0, 0}, make([]byte, 9)...), "larger than"},
		"header past end":  {[]byte{100, 0, 0, 0, 0, 0, 0, 0, '{', '}'}, "truncated or another format"},
		"no object":        {file(`[1]`, 0), "does not start with {"},
		"broken json":      {file(`{"a":`, 0), `tensor "a"`},
		"open object":      {file(`{`+a, 8), "header"},
		"duplicate":        {file(`{`+a+`,`+a+`}`, 8), `duplicate key "a"`},
		"truncated data":   {file(`{`+a+`}`, 7), "need 8 bytes of data, the file has 7"},
		"trailing data":    {file(`{`+a+`}`, 9), "the file has 9"},
		"trailing json":    {file(`{`+a+`}{}`, 8), "follow the header"},
		"overlap":          {file(`{`+a+`,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), "gap or overlap"},
		"gap":              {file(`{`+a+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`, 16), "gap or overlap"},
		"dtype":            {file(`{"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}}`, 8), `unknown dtype "F33"`},
		"shape and bytes":  {file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8), "needs 12 bytes"},
		"negative shape":   {file(`{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8), "bad shape"},
		"overflow":         {file(`{"a":{"dtype":"F32","shape":[2147483647,2147483647,2147483647],"data_offsets":[0,8]}}`, 8), "overflows"},
		"negative offsets": {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}`, 8), "bad data_offsets"},
		"three offsets":    {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}}`, 8), "bad data_offsets"},
		"metadata":         {file(`{"__metadata__":{"n":1}}`, 0), "__metadata__"},
	} {
		_, err := open(c.raw)
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want ErrFormat with %q", name, err, c.want)
		}
	}
}

// Real files of several writers, where they are at hand.
func TestRealFiles(t *testing.T) {
	root := "../../../shared/data/safetensors_samples"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no sample files: ", err)
	}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".safetensors" {
			return err
		}
		files++
		f, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		defer f.Close()
		for _, info := range f.Tensors() {
			v, err := f.Float32(info.Name)
			if err != nil || len(v) != info.Len() {
				t.Errorf("%s: %s: %d numbers, %v", path, info.Name, len(v), err)
			}
			for _, x := range v {
				if math.IsNaN(float64(x)) {
					t.Errorf("%s: %s holds a NaN", path, info.Name)
					break
				}
			}
		}
		return nil
	})
	if err != nil || files < 5 {
		t.Errorf("%d files read, %v", files, err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}}`, 8))
	f.Add(file(`{"a":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}  `, 2))
	f.Add(file(`{"a":{"dtype":"BOOL","shape":[0,7],"data_offsets":[0,0]}}`, 0))
	f.Add(file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0))
	for _, d := range []DType{F64, BF16, I64, I32, I16, I8, U64, U32, U16, U8, "F8_E4M3", "C64"} {
		f.Add(file(fmt.Sprintf(`{"a":{"dtype":%q,"shape":[2,1],"data_offsets":[0,%d]}}`, d, 2*d.size()),
			2*int(d.size())))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		defer budgettest.Within(t, len(raw))()
		s, err := open(raw)
		if err != nil {
			return
		}
		var total int64
		for _, info := range s.Tensors() {
			total += info.Bytes()
			if v, err := s.Float32(info.Name); err == nil && len(v) != info.Len() {
				t.Errorf("%s: %d numbers, want %d", info.Name, len(v), info.Len())
			}
			if v, err := s.Int64(info.Name); err == nil && len(v) != info.Len() {
				t.Errorf("%s: %d integers, want %d", info.Name, len(v), info.Len())
			}
		}
		if total > int64(len(raw)) {
			t.Errorf("%d bytes of data in a file of %d", total, len(raw))
		}
	})
}
