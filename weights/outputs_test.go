package weights

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// expected is what a package computed, and of what.
type expected struct {
	t *testing.T
	f *safetensors.File
}

func expect(t *testing.T, name string) expected {
	t.Helper()
	f := check.Get(safetensors.Open(filepath.Join("testdata", name, "expected.safetensors")))(t)
	t.Cleanup(func() { f.Close() })
	return expected{t, f}
}

func (e expected) floats(name string) []float32 {
	e.t.Helper()
	return check.Get(e.f.Float32(name))(e.t)
}

func (e expected) ints(name string) (list []int32) {
	e.t.Helper()
	x := check.Get(e.f.Int64(name))(e.t)
	for _, v := range x {
		list = append(list, int32(v))
	}
	return list
}

// near compares rows of width numbers, but those that skip names.
func near(t *testing.T, what string, got, want []float32, width int, skip func(row int) bool) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	worst := 0.
	defer func() { t.Logf("%s: largest difference %.1e", what, worst) }()
	for i := range got {
		if skip != nil && skip(i/width) {
			continue
		}
		worst = max(worst, math.Abs(float64(got[i]-want[i])))
		if !(math.Abs(float64(got[i]-want[i])) <= 2e-5) {
			t.Errorf("%s: value %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// padding says which rows of texts are padding.
func padding(lengths []int32, tokens int) func(row int) bool {
	return func(row int) bool { return row%tokens >= int(lengths[row/tokens]) }
}
