package optest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
)

// Tolerances of a device beside the host, relative to the largest element of a result.
const (
	deviceFloat = 1e-5
	deviceBF16  = 2e-2
)

// CheckCUDA runs cases on the CUDA device, in float32 and in bfloat16, and wants the host's results, to rounding; whole numbers
// exactly. Every run is made three times, step by step, recorded and replayed, with the same bits. No op of a case may run on the
// host, but those of kinds that onHost lists. It skips where there is no device, see package cudatest.
func CheckCUDA(t *testing.T, cases []Case, onHost ...string) {
	t.Helper()
	d := cudatest.Open(t)
	for _, precision := range []string{"fp32", "bf16"} {
		e, err := kernel.New(kernel.Options{Backend: "builtin", Threads: 2, Precision: precision})
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
	if err := host.RunAll(); err != nil {
		t.Fatal(err)
	}
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
	var first string
	for run := range 3 {
		if err := m.RunAll(); err != nil {
			t.Fatal(err)
		}
		bits := ""
		for i, n := range outputs {
			want, err := host.Value(n)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Value(others[i])
			if err != nil {
				t.Fatal(err)
			}
			if run == 0 {
				closeTo(t, fmt.Sprintf("output %d", i), got, want, tolerance, c.Jumps)
			}
			bits += fmt.Sprint(got.F32, got.I32)
		}
		if run == 0 {
			first = bits
		} else if bits != first {
			t.Errorf("run %d has other bits than the first", run)
		}
	}
}

// closeTo wants got as near to want as tol times the largest element of it, and whole numbers equal. With jumps a few elements
// may be away.
func closeTo(t *testing.T, what string, got, want exec.Array, tol float64, jumps bool) {
	t.Helper()
	if !slices.Equal(got.I32, want.I32) {
		t.Errorf("%s: got %v, the host has %v", what, clip(got.I32), clip(want.I32))
	}
	var largest, worst float64
	at := 0
	for _, v := range want.F32 {
		if f := math.Abs(float64(v)); !math.IsInf(f, 0) && !math.IsNaN(f) {
			largest = max(largest, f)
		}
	}
	for i, v := range want.F32 {
		g := got.F32[i]
		if g == v || g != g && v != v {
			continue
		}
		if d := math.Abs(float64(g) - float64(v)); !(d <= worst) {
			if worst, at = d, i; math.IsNaN(d) {
				break
			}
		}
	}
	if jumps && !math.IsNaN(worst) {
		away := 0
		for i, v := range want.F32 {
			if math.Abs(float64(got.F32[i])-float64(v)) > tol*largest {
				away++
			}
		}
		if away > len(want.F32)/10000 {
			t.Errorf("%s: %d of %d elements differ by more than %.2g of the largest", what, away, len(want.F32), tol)
		}
		return
	}
	if !(worst <= tol*max(largest, 1e-20)) {
		t.Errorf("%s: element %d of %v is %v, on the host %v: %.2g of the largest, %v (tolerance %.2g)", what, at, want.Shape, got.F32[at], want.F32[at], worst/largest, largest, tol)
	}
}

func clip(x []int32) []int32 { return x[:min(len(x), 20)] }
