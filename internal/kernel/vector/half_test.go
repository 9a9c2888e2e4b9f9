package vector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
)

// TestHalfPasses compares passes that write or read bfloat16 with the float32 pass and
// a conversion of its result or operand, for lengths around that of a piece.
func TestHalfPasses(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	for _, n := range []int{0, 1, 31, 32, 33, halfPiece - 1, halfPiece, halfPiece + 1, 2*halfPiece + 77} {
		x, y, want := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = 4*float32(r.NormFloat64()), float32(r.NormFloat64())
		}
		halves, both := make([]uint16, n), make([]uint16, n)
		ToBF16(halves, x)
		wideX, wideSum := make([]float32, n), make([]float32, n)
		FromBF16(wideX, halves)
		bits := make([]int32, (n+31)/32)
		for i := range bits {
			bits[i] = int32(r.Uint32())
		}
		got, rounded := make([]uint16, n), make([]uint16, n)
		for name, f := range map[string][2]func(){
			"GELU":                  {func() { GELU(want, x) }, func() { ByGELU.ToBF16(got, x) }},
			"GELUGrad":              {func() { GELUGrad(want, x, y) }, func() { ByGELU.GradToBF16(got, x, y) }},
			"HalfToBF16":            {func() { GELU(want, wideX) }, func() { ByGELU.HalfToBF16(got, halves) }},
			"GradHalves":            {func() { GELUGrad(want, wideX, y) }, func() { ByGELU.GradHalves(got, halves, y) }},
			"GradOfHalf":            {func() { GELUGrad(want, wideX, y) }, func() { ByGELU.GradOfHalf(wideSum, halves, y); ToBF16(got, wideSum) }},
			"AddToBF16":             {func() { Add(want, x, y) }, func() { AddToBF16(got, x, y) }},
			"AddToBF16 and GELU":    {func() { Add(want, x, y); RoundBF16(want, want); GELU(want, want) }, func() { ByGELU.AddToBF16(both, got, x, y) }},
			"AddToBF16 before SiLU": {func() { Add(want, x, y) }, func() { BySiLU.AddToBF16(got, both, x, y) }},
			"GELUDropout": {func() { GELU(want, wideX); Dropout(want, want, bits, 1.25) }, func() {
				GELUDropout(Values{BF16: got}, Values{BF16: halves}, n, bits, 1.25)
			}},
			"GELUDropout of float32": {func() { GELU(want, x); Dropout(want, want, bits, 1.25) }, func() {
				GELUDropout(Values{BF16: got}, Values{F32: x}, n, bits, 1.25)
			}},
			"GELUDropoutGrad": {func() { Dropout(want, wideX, bits, 1.25); GELUGrad(want, wideX, want) }, func() {
				GELUDropoutGrad(Values{BF16: got}, Values{BF16: halves}, Values{BF16: halves}, n, bits, 1.25)
			}},
			"GELUDropoutGrad of float32": {func() { Dropout(want, x, bits, 1.25); GELUGrad(want, wideX, want) }, func() {
				GELUDropoutGrad(Values{F32: wideSum}, Values{BF16: halves}, Values{F32: x}, n, bits, 1.25)
				ToBF16(got, wideSum)
			}},
			"GELUDropout in place": {func() { GELU(want, x); Dropout(want, want, bits, 1.25) }, func() {
				copy(wideSum, x)
				GELUDropout(Values{F32: wideSum}, Values{F32: wideSum}, n, bits, 1.25)
				ToBF16(got, wideSum)
			}},
			"GELUDropoutGrad in place of x": {func() { Dropout(want, y, bits, 1.25); GELUGrad(want, x, want) }, func() {
				copy(wideSum, x)
				GELUDropoutGrad(Values{F32: wideSum}, Values{F32: wideSum}, Values{F32: y}, n, bits, 1.25)
				ToBF16(got, wideSum)
			}},
			"GELUDropoutGrad in place of dy": {func() { Dropout(want, y, bits, 1.25); GELUGrad(want, x, want) }, func() {
				copy(wideSum, y)
				GELUDropoutGrad(Values{F32: wideSum}, Values{F32: x}, Values{F32: wideSum}, n, bits, 1.25)
				ToBF16(got, wideSum)
			}},
			"AddHalf":        {func() { Add(want, y, wideX) }, func() { AddHalf(wideSum, y, halves); ToBF16(got, wideSum) }},
			"DropoutAddHalf": {func() { DropoutAdd(want, y, wideX, bits, 1.25) }, func() { DropoutAddHalf(wideSum, y, halves, bits, 1.25); ToBF16(got, wideSum) }},
			"Dropout":        {func() { Dropout(want, x, bits, 1.25) }, func() { DropoutToBF16(got, x, bits, 1.25) }},
		} {
			f[0]()
			f[1]()
			ToBF16(rounded, want)
			switch same := slices.Equal(got, rounded); name {
			case "HalfToBF16", "GradHalves", "AddToBF16 and GELU", "GELUDropout", "GELUDropoutGrad": // shorter, see TestHalfGELU
				values := make([]float32, n)
				FromBF16(values, got)
				for i, v := range values {
					if d := math.Abs(float64(v - want[i])); !(d <= 0x1p-7*math.Abs(float64(want[i]))+1e-4) {
						t.Errorf("%s: value %d of %d is %v, in float32 %v", name, i, n, v, want[i])
					}
				}
			default:
				if !same {
					t.Errorf("%s of %d values is not that of float32, rounded", name, n)
				}
			}
			if a := allocs.PerRun(5, f[1]); a != 0 {
				t.Errorf("%s allocates %v times", name, a)
			}
		}
		const rows = 5
		half, wide := make([]uint16, rows*n), make([]float32, rows*n)
		for i := range half {
			half[i] = plainHalf(float32(r.NormFloat64()))
		}
		FromBF16(wide, half)
		sum := slices.Clone(y)
		SumRows(y, wide)
		SumRowsBF16(sum, half)
		if !slices.Equal(sum, y) {
			t.Errorf("SumRows of %d columns differs from that of float32", n)
		}
	}
	for _, n := range []int{1, 15, 16, 48} { // rows with gaps, which stay as they are
		const rows, ld = 3, 50
		src, back, half := make([]float32, rows*n), make([]float32, rows*n), make([]uint16, rows*ld)
		for i := range src {
			src[i] = float32(r.NormFloat64())
		}
		for i := range half {
			half[i] = 0xabcd
		}
		ToHalfRows(half, src, ld, rows, n)
		FromHalfRows(back, half, ld, rows, n)
		for i, v := range back {
			if h := half[i/n*ld+i%n]; h != plainHalf(src[i]) || v != float32FromHalf(h) {
				t.Errorf("value %d of rows of %d is %#x and then %v, of %v", i, n, h, v, src[i])
			}
		}
		for i, h := range half {
			if i%ld >= n && h != 0xabcd {
				t.Errorf("rows of %d values: place %d is written", n, i)
			}
		}
	}
	for name, f := range map[string]func(){
		"ToHalfRows":     func() { ToHalfRows(make([]uint16, 99), make([]float32, 32), 84, 2, 16) },
		"FromHalfRows":   func() { FromHalfRows(make([]float32, 31), make([]uint16, 100), 84, 2, 16) },
		"AddToBF16":      func() { AddToBF16(make([]uint16, 9), make([]float32, 9), make([]float32, 8)) },
		"AddHalf":        func() { AddHalf(make([]float32, 9), make([]float32, 9), make([]uint16, 8)) },
		"ToBF16 of GELU": func() { ByGELU.ToBF16(make([]uint16, 600), make([]float32, 599)) },
		"GradToBF16":     func() { ByGELU.GradToBF16(make([]uint16, 600), make([]float32, 600), make([]float32, 599)) },
		"DropoutToBF16":  func() { DropoutToBF16(make([]uint16, 600), make([]float32, 600), make([]int32, 18), 1) },
		"SumRowsBF16":    func() { SumRowsBF16(make([]float32, 3), make([]uint16, 4)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s takes slices that do not fit", name)
				}
			}()
			f()
		}()
	}
}

// float32FromHalf returns the value of a bfloat16.
func float32FromHalf(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// TestHalfGELU compares GELU and its derivative of every bfloat16 with those in float64: beside half a step of rounding the error is
// small where values matter, and bounded everywhere.
func TestHalfGELU(t *testing.T) {
	var x, gelu, slope [1 << 16]uint16
	ones := make([]float32, len(x))
	for i := range x {
		x[i], ones[i] = uint16(i), 1
	}
	ByGELU.HalfToBF16(gelu[:], x[:])
	ByGELU.GradHalves(slope[:], x[:], ones)
	value := func(h uint16) float64 { return float64(math.Float32frombits(uint32(h) << 16)) }
	var rounded [2]int // where the result is another than the nearest one
	const step, least = 0x1p-7, 0x1p-133
	for i, h := range x {
		v := value(h)
		switch {
		case math.IsNaN(v):
			if g, s := value(gelu[i]), value(slope[i]); !math.IsNaN(g) || !math.IsNaN(s) {
				t.Fatalf("NaN %04x: got %v and a derivative of %v", h, g, s)
			}
			continue
		case math.IsInf(v, 1):
			if value(gelu[i]) != v || value(slope[i]) != 1 {
				t.Fatalf("of +Inf: got %v and a derivative of %v", value(gelu[i]), value(slope[i]))
			}
			continue
		}
		tail := math.Erfc(-v/math.Sqrt2) / 2 // Phi, exact for small values too
		density := math.Exp(-v*v/2) / math.Sqrt(2*math.Pi)
		want := [2]float64{v * tail, tail + v*density}
		if math.IsInf(v, -1) {
			want = [2]float64{}
		}
		for k, got := range [2]float64{value(gelu[i]), value(slope[i])} {
			// Half a step, and what the fits allow: 3e-5 of GELU, 1e-4 of its derivative (at least 3e-5, since it has a zero at -0.75), and 2e-3
			// beyond 5. Both end at -12.75, before they are subnormal.
			fit := []float64{3e-5, 1e-4}[k]
			if v < -5 {
				fit = 2e-3
			}
			bound := math.Abs(want[k])*(step/2+fit) + least
			if k == 1 {
				bound += 3e-5
			}
			if v < -12.75 {
				bound = []float64{3e-36, 3e-35}[k]
			}
			if d := math.Abs(got - want[k]); !(d <= bound) {
				t.Fatalf("%v: %v, want %v, %.1e off (bound %.1e)", v, got, want[k], d, bound)
			}
			if math.Abs(v) < 5 && plainHalf(float32(want[k])) != [2]uint16{gelu[i], slope[i]}[k] {
				rounded[k]++
			}
		}
	}
	if rounded[0] > 200 || rounded[1] > 50 {
		t.Errorf("%d values and %d derivatives up to 5 are not the nearest bfloat16", rounded[0], rounded[1])
	}
	t.Logf("not the nearest bfloat16: %d values and %d derivatives of %d", rounded[0], rounded[1], len(x))
}
