package safetensors

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// Data that is made when it is written lies in the file as data that is there.
func TestLazy(t *testing.T) {
	x := []float32{1, -2, 3, 4.5, 0, 7}
	file := func(data any) []byte {
		var b bytes.Buffer
		check.OK(t, Write(&b, []Tensor{{Name: "a", Shape: []int{2, 3}, Data: data}}, nil))
		return b.Bytes()
	}
	fill := func(dst []float32) error { copy(dst, x); return nil }
	if !bytes.Equal(file(Lazy{6, fill, ""}), file(x)) {
		t.Error("another file")
	}
	gone := errors.New("gone")
	for want, data := range map[string]Lazy{
		"gone":                              {6, func([]float32) error { return gone }, ""},
		"shape [2 3] needs 6 elements (got": {5, fill, ""},
	} {
		if err := Write(&bytes.Buffer{}, []Tensor{{Name: "a", Shape: []int{2, 3}, Data: data}}, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Every half-precision number and every bfloat16 is written as itself, and what lies between two is rounded to the
// nearest, ties to the even one.
func TestHalves(t *testing.T) {
	write := func(d DType, x ...float32) ([]float32, error) {
		var b bytes.Buffer
		err := Write(&b, []Tensor{{Name: "a", Shape: []int{len(x)}, Data: Lazy{len(x), func(dst []float32) error {
			copy(dst, x)
			return nil
		}, d}}}, nil)
		if err != nil {
			return nil, err
		}
		f := check.Get(NewReader(bytes.NewReader(b.Bytes()), int64(b.Len())))(t)
		if info, _ := f.Lookup("a"); info.DType != d {
			t.Errorf("written as %s, want %s", info.DType, d)
		}
		return f.Float32("a")
	}
	for d, decode := range map[DType]func(uint16) float32{F16: halfToFloat, BF16: bfloatToFloat} {
		var all []float32
		for h := range 1 << 16 {
			if x := decode(uint16(h)); !math.IsNaN(float64(x)) {
				all = append(all, x)
			}
		}
		got := check.Get(write(d, all...))(t)
		for i, x := range all {
			if math.Float32bits(got[i]) != math.Float32bits(x) {
				t.Fatalf("%s: %g became %g", d, x, got[i])
			}
		}
	}
	for _, c := range []struct {
		d       DType
		x, want float32
	}{
		{F16, 1 + 1./2048, 1}, {F16, 1 + 3./2048, 1 + 2./1024}, {F16, 1 + 1./2048 + 1./65536, 1 + 1./1024}, {F16, -65519, -65504},
		{F16, 1.5 / (1 << 24), 2. / (1 << 24)}, {F16, .5 / (1 << 24), 0}, {F16, float32(math.Inf(-1)), float32(math.Inf(-1))},
		{BF16, 1 + 1./256, 1}, {BF16, 1 + 3./256, 1 + 2./128}, {BF16, 1e38, 9.9692e37}, {BF16, math.MaxFloat32, float32(math.Inf(1))},
	} {
		got := check.Get(write(c.d, c.x))(t)[0]
		if got != c.want && !(math.Abs(float64(got-c.want)) < 1e-4*math.Abs(float64(c.want))) {
			t.Errorf("%s: %g became %g, want %g", c.d, c.x, got, c.want)
		}
	}
	for _, d := range []DType{F16, BF16} {
		if got := check.Get(write(d, float32(math.NaN())))(t)[0]; !math.IsNaN(float64(got)) {
			t.Errorf("%s: NaN became %g", d, got)
		}
	}
	check.Fails(write(F16, 1, -65520))(t, `tensor "a": number 1 is -65520, and F16 ends at 65504`)
	check.Fails(write(I8, 1))(t, "cannot write floats as I8")
}
