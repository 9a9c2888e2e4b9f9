package optest

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
)

// Tolerances of a device beside the host, relative to the largest element of a result.
const (
	deviceFloat = 1e-5
	deviceBF16  = 2e-2
	// deviceJumps is how far gradients of a Case with Jumps may be from the host's as vectors, relative to their
	// length, where that is more, if all but deviceAway of their elements are within the tolerance. A wrong row among
	// 250,000 is further away.
	deviceJumps = 2e-3
	deviceAway  = 0.1
)

// CheckCUDA runs cases on the CUDA device, in float32 and in bfloat16, and wants the host's results, to rounding; whole
// numbers exactly. Every run is made three times, step by step, recorded and replayed, with the same bits. No op of a
// case may run on the host, but those of kinds that onHost lists. It skips where there is no device, see package
// cudatest.
func CheckCUDA(t *testing.T, cases []Case, onHost ...string) {
	t.Helper()
	d := cudatest.Open(t)
	for _, precision := range []string{"fp32", "bf16"} {
		e, err := kernel.New(kernel.Options{Backend: "builtin", Threads: runtime.NumCPU(), Precision: precision})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for _, c := range cases {
			t.Run(precision+"/"+c.Name, func(t *testing.T) { c.checkCUDA(t, e, d, precision, onHost) })
		}
	}
}

func (c Case) checkCUDA(t *testing.T, e *kernel.Engine, d *cuda.Device, precision string, onHost []string) {
	host, outputs := c.compileOn(t, e, nil)
	check.OK(t, host.RunAll())
	m, others := c.compileOn(t, e, d)
	defer m.Close()
	for kind := range m.OnHost() {
		if !slices.Contains(onHost, kind) && !strings.HasPrefix(kind, "test ") {
			t.Errorf("%s has no step for the device", kind)
		}
	}
	tolerance := deviceFloat
	if precision == "bf16" {
		tolerance = deviceBF16
	}
	first := make([]exec.Array, len(outputs))
	for run := range 3 {
		check.OK(t, m.RunAll())
		for i, n := range outputs {
			want := check.Get(host.Value(n))(t)
			got := check.Get(m.Value(others[i]))(t)
			switch what := fmt.Sprintf("output %d", i); {
			case run == 0:
				c.closeTo(t, what, got, want, tolerance, c.Jumps && i > 0)
				first[i] = exec.Array{F32: slices.Clone(got.F32), I32: slices.Clone(got.I32)}
			case !slices.EqualFunc(got.F32, first[i].F32, sameBits) || !slices.Equal(got.I32, first[i].I32):
				t.Errorf("%s of run %d has other bits than of the first", what, run)
			}
		}
	}
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// closeTo wants got as near to want as tol times the largest element of it, or as deviceJumps allows, and whole numbers
// equal or tied.
func (c Case) closeTo(t *testing.T, what string, got, want exec.Array, tol float64, jumps bool) {
	t.Helper()
	for i, v := range want.I32 {
		if g := got.I32[i]; g != v && (c.Tied == nil || !c.Tied(i, g, v)) {
			t.Errorf("%s: place %d has %d, the host has %d", what, i, g, v)
			break
		}
	}
	var largest, worst, length, far float64
	at := 0
	for i, v := range want.F32 {
		if f := math.Abs(float64(v)); f <= math.MaxFloat64 { // a number
			largest, length = max(largest, f), length+f*f
		}
		g := got.F32[i]
		if g == v || g != g && v != v {
			continue
		}
		d := math.Abs(float64(g) - float64(v))
		if !(d <= worst) && !math.IsNaN(worst) {
			worst, at = d, i
		}
		far += d * d
	}
	if jumps {
		away := 0
		for i, v := range want.F32 {
			if !(math.Abs(float64(got.F32[i])-float64(v)) <= tol*largest) {
				away++
			}
		}
		far, length = math.Sqrt(far), math.Sqrt(length)
		if !(far <= max(tol, deviceJumps)*length) || float64(away) > deviceAway*float64(len(want.F32)) {
			t.Errorf("%s of shape %v is %.2g away from the host's, of length %.2g, %d elements by more than %.2g of the largest", what, want.Shape, far, length, away, tol)
		}
		return
	}
	if !(worst <= tol*max(largest, 1e-20)) {
		t.Errorf("%s: element %d of %v is %v, on the host %v: %.2g of the largest, %v (tolerance %.2g)", what, at,
			want.Shape, got.F32[at], want.F32[at], worst/largest, largest, tol)
	}
}
