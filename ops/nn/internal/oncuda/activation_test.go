package oncuda

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/tensor"
)

// deviceOperand returns a new operand on the device, which is given back when the test ends.
func deviceOperand(t testing.TB, d *cuda.Device, kind exec.Type, shape ...int) exec.Operand {
	t.Helper()
	spec := exec.Spec{Shape: tensor.Shape(shape), Type: kind}
	mem := check.Get(d.Alloc(spec.Words()))(t)
	t.Cleanup(func() { _ = mem.Free() })
	return exec.Operand{Spec: spec, Buffer: mem.Buffer(0, spec)}
}

// TestCUDAActivationsOfHalves compares the approximations that results in bfloat16 are made by, before they are rounded, with
// activations and derivatives in float64, for every bfloat16 value.
func TestCUDAActivationsOfHalves(t *testing.T) {
	d := cudatest.Open(t)
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	of := func(slope, cubic float64) [2]func(x float64) float64 {
		return [2]func(x float64) float64{
			func(x float64) float64 { return x * sigmoid(x*slope*(1+cubic*x*x)) },
			func(x float64) float64 {
				s := sigmoid(x * slope * (1 + cubic*x*x))
				if s*(1-s) == 0 {
					return s
				}
				return s + x*s*(1-s)*slope*(1+3*cubic*x*x)
			},
		}
	}
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	const n = 1 << 16
	x, y, dy := deviceOperand(t, d, exec.BFloat16, n), deviceOperand(t, d, exec.Float32, n), deviceOperand(t, d, exec.BFloat16, n)
	for i := range n {
		x.Buffer.Host().BF16[i], dy.Buffer.Host().BF16[i] = uint16(i), 0x3f80
	}
	for _, o := range []exec.Operand{x, dy} {
		check.OK(t, o.Buffer.Store())
	}
	for _, c := range []struct {
		by       vector.Activation
		want     [2]func(x float64) float64 // of x, and its derivative
		absolute [2]float64                 // error that is allowed, relative beyond 1
		relative float64                    // beside it, for x > -5
	}{
		{vector.ByGELU, [2]func(x float64) float64{
			func(x float64) float64 { return x * normal(x) },
			func(x float64) float64 { return normal(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) },
		}, [2]float64{3e-5, 6e-5}, 6e-4},
		{vector.ByGELUTanh, of(2*math.Sqrt(2/math.Pi), 0.044715), [2]float64{1e-6, 2e-5}, 4e-6},
		{vector.ByQuickGELU, of(1.702, 0), [2]float64{1e-6, 2e-5}, 4e-6},
		{vector.BySiLU, of(1, 0), [2]float64{1e-6, 2e-5}, 4e-6},
	} {
		for k, name := range []string{"", " derivative"} {
			macros := []cuda.Macro{cuda.Value("F", int(c.by)), cuda.Type("X", x), cuda.Type("Y", y), cuda.Is("FAST", true)}
			kernel, args := "activate", []any{y, x, int64(n)}
			if k == 1 {
				kernel, args, macros = "activate_gradient", []any{y, x, dy, int64(n)}, append(macros, cuda.Type("DY", dy))
			}
			check.OK(t, d.Kernel(activationSource, kernel, macros...).Launch(activationGrid(n), args...))
			check.OK(t, y.Buffer.Fetch())
			worst, at, farthest := 0.0, 0.0, 0.0
			for i := range n {
				v, got := half(uint16(i)), float64(y.Buffer.Host().F32[i])
				if math.Abs(v) > 1e4 { // the formulas have x^3
					continue
				}
				if math.IsNaN(v) || math.IsNaN(got) {
					if math.IsNaN(v) != math.IsNaN(got) {
						t.Fatalf("%v%s of %g is %g", c.by, name, v, got)
					}
					continue
				}
				want := c.want[k](v)
				if e := math.Abs(got-want) / max(1, math.Abs(want)); e > worst {
					worst, at = e, v
				}
				if v > -5 && math.Abs(v) > 1e-30 {
					farthest = max(farthest, math.Abs(got/want-1))
				}
			}
			t.Logf("%v%s: error %.2g at %g, relative %.2g", c.by, name, worst, at, farthest)
			if worst > c.absolute[k] || k == 0 && farthest > c.relative {
				t.Errorf("%v%s: error %.2g at %g, relative %.2g", c.by, name, worst, at, farthest)
			}
			if got := float64(y.Buffer.Host().F32[0xff80]); c.by == vector.ByGELU && !(math.Abs(got) < 1e-12) {
				t.Errorf("gelu%s of -Inf: %g", name, got)
			}
		}
	}
}

// half is the value of a bfloat16.
func half(bits uint16) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) }
