package vector

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// randomOwners returns n owners below k.
func randomOwners(n, k int) []int32 {
	r := rand.New(rand.NewPCG(29, uint64(n)))
	owner := make([]int32, n)
	for i := range owner {
		owner[i] = r.Int32N(int32(k))
	}
	return owner
}

// Path scores of special values, unreachable ones among them, against the plain twins.
func TestPathAgainstPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for n := range 201 {
			k := 1 + r.IntN(300)
			limit := []float32{4 * math.Pi, math.Pi, 12.56, 0.7, 100}[n%5]
			entry, entryIntact := vectorSlice(r, k, n%2 == 1)
			reach, reachIntact := vectorSlice(r, n, n%4 == 1)
			dy, _ := vectorSlice(r, n, false)
			owner := randomOwners(n, k)
			got, intact := vectorSlice(r, n, false)
			want := make([]float32, n)

			PathCos(got, entry, owner, reach, limit)
			plainPathCos(want, entry, owner, reach, limit)
			for j := range want {
				if !close32(got[j], want[j], 0, 2e-7) {
					t.Fatalf("length %d, limit %v, distance %v: got %v, want %v", n, limit, entry[owner[j]]+reach[j], got[j], want[j])
				}
			}
			PathCosSlope(got, entry, owner, reach, dy, limit)
			plainPathCosSlope(want, entry, owner, reach, dy, limit)
			for j := range want {
				if !close32(got[j], want[j], 0, 4e-7*math.Abs(float64(dy[j]))*math.Pi/float64(limit)) {
					t.Fatalf("slope, length %d, limit %v, distance %v, dy %v: got %v, want %v", n, limit, entry[owner[j]]+reach[j], dy[j], got[j], want[j])
				}
			}
			if !intact() || !entryIntact() || !reachIntact() {
				t.Fatalf("length %d: wrote outside", n)
			}
			// In place.
			PathCosSlope(dy, entry, owner, reach, dy, limit)
			if i, ok := same(dy, got); !ok {
				t.Fatalf("in place, length %d, element %d: got %v, want %v", n, i, dy[i], got[i])
			}
			PathCos(got, entry, owner, reach, limit)
			PathCos(reach, entry, owner, reach, limit)
			if i, ok := same(reach, got); !ok {
				t.Fatalf("in place, length %d, element %d: got %v, want %v", n, i, reach[i], got[i])
			}
		}
	})
}

// The oracle takes the cosine of the angle itself, not of the kernel's reduced one.
func TestPathAccuracy(t *testing.T) {
	const n = 20000
	reach, one, owner := make([]float32, n), make([]float32, n), make([]int32, n)
	Fill(one, 1)
	y, d := make([]float32, n), make([]float32, n)
	kerneltest.EachLevel(t, func(t *testing.T) {
		var worst, worstSlope float64
		for _, limit := range []float32{4 * math.Pi, math.Pi, 2, 12.57, 1e-3, 5e6} {
			for i := range reach {
				reach[i] = limit * float32(i) / (n - 1)
				if i >= n-100 { // the last values before the limit
					reach[i] = math.Float32frombits(math.Float32bits(limit) - uint32(n-1-i))
				}
			}
			PathCos(y, []float32{0}, owner, reach, limit)
			PathCosSlope(d, []float32{0}, owner, reach, one, limit)
			turn := math.Pi / float64(limit)
			for i, v := range reach {
				if y[i] > 1 || y[i] < -1 {
					t.Fatalf("limit %v, distance %v: score %v", limit, v, y[i])
				}
				worst = max(worst, math.Abs(float64(y[i])-math.Cos(float64(v)*turn)))
				worstSlope = max(worstSlope, math.Abs(float64(d[i])/turn+math.Sin(float64(v)*turn)))
			}
			if y[0] != 1 || y[n-1] != -1 || d[0] != 0 || d[n-1] != 0 {
				t.Errorf("limit %v: scores %v and %v and slopes %v and %v at the ends, want 1, -1, 0, 0", limit, y[0], y[n-1], d[0], d[n-1])
			}
		}
		t.Logf("largest error %.3g, of the slope %.3g of pi/limit", worst, worstSlope)
		if !(worst <= 2e-7) || !(worstSlope <= 2e-7) {
			t.Errorf("largest error %.3g, of the slope %.3g of pi/limit", worst, worstSlope)
		}
	})
}

// Scores at distances whose cosines are known, with limit 4 pi: cos(theta/4).
func TestPathValues(t *testing.T) {
	entry := []float32{0, math.Pi, kerneltest.Inf, 3 * math.Pi, kerneltest.NaN, -math.Pi / 3}
	owner := []int32{0, 1, 1, 2, 3, 3, 4, 5, 2}
	reach := []float32{0, 0, math.Pi, 1, 0, 2 * math.Pi, 1, 0, -kerneltest.Inf}
	s := float32(math.Sqrt2 / 2)
	want := []float32{1, s, 0, -1, -s, -1, kerneltest.NaN, 0.9659258, kerneltest.NaN} // the last but one is cos(pi/12) = (sqrt 6 + sqrt 2)/4
	slope := []float32{0, -s / 2, -0.5, 0, -s / 2, 0, kerneltest.NaN, 0.12940952, kerneltest.NaN}
	kerneltest.EachLevel(t, func(t *testing.T) {
		got, dy := make([]float32, len(want)), make([]float32, len(want))
		PathCos(got, entry, owner, reach, 4*math.Pi)
		for i := range want {
			if !close32(got[i], want[i], 0, 2.5e-7) {
				t.Errorf("distance %v: got %v, want %v", entry[owner[i]]+reach[i], got[i], want[i])
			}
		}
		Fill(dy, 2)
		PathCosSlope(got, entry, owner, reach, dy, 4*math.Pi)
		for i := range slope {
			if !close32(got[i], slope[i], 0, 2e-7) {
				t.Errorf("slope at distance %v: got %v, want %v", entry[owner[i]]+reach[i], got[i], slope[i])
			}
		}
	})
}

// An owner without an entry is a panic wherever it stands, and reads nothing outside.
func TestPathOwnerPanics(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		x, dy := make([]float32, 77), make([]float32, 77)
		for _, bad := range []int32{5, 6, 1 << 30, math.MaxInt32, -1, math.MinInt32} {
			for at := range x {
				owner := make([]int32, len(x))
				owner[at] = bad
				for name, f := range map[string]func(){
					"PathCos":      func() { PathCos(x, x[:5], owner, x, 1) },
					"PathCosSlope": func() { PathCosSlope(x, x[:5], owner, x, dy, 1) },
				} {
					if !panics(f) {
						t.Fatalf("%s, owner %d of %d: no panic", name, bad, at)
					}
				}
			}
		}
		owner := make([]int32, 77)
		for name, f := range map[string]func(){
			"reach":       func() { PathCos(x, x, owner, x[:76], 1) },
			"owner":       func() { PathCos(x, x, owner[:76], x, 1) },
			"no entries":  func() { PathCos(x, nil, owner, x, 1) },
			"limit":       func() { PathCos(x, x, owner, x, 0) },
			"NaN limit":   func() { PathCos(x, x, owner, x, kerneltest.NaN) },
			"infinite":    func() { PathCosSlope(x, x, owner, x, dy, kerneltest.Inf) },
			"slope reach": func() { PathCosSlope(x, x, owner, x[:76], dy, 1) },
			"slope owner": func() { PathCosSlope(x, x, owner[:76], x, dy, 1) },
			"slope dy":    func() { PathCosSlope(x, x, owner, x, dy[:76], 1) },
			"MinPlus":     func() { MinPlus(x, dy[:76], 1) },
			"ArgMax":      func() { ArgMax(nil) },
		} {
			if !panics(f) {
				t.Errorf("%s: no panic", name)
			}
		}
		PathCos(nil, nil, nil, nil, 1)
		PathCosSlope(nil, nil, nil, nil, nil, 1)
	})
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return
}

// The same bits with AVX2 and AVX-512 and wherever an element stands.
func TestPathLevelsAgree(t *testing.T) {
	defer cpu.SetLevel(cpu.Level())
	r := rand.New(rand.NewPCG(33, 34))
	entry, _ := vectorSlice(r, 40, false)
	reach, _ := vectorSlice(r, 100, false)
	dy, _ := vectorSlice(r, 100, true)
	owner := randomOwners(len(dy), len(entry))
	var scores, slopes []float32
	for _, level := range []string{cpu.AVX2, cpu.AVX512} {
		cpu.SetLevel(level)
		if cpu.Level() != level {
			t.Skipf("%s is not available", level)
		}
		for from := range reach {
			n := len(reach) - from
			y, d := make([]float32, n), make([]float32, n)
			PathCos(y, entry, owner[from:], reach[from:], 12)
			PathCosSlope(d, entry, owner[from:], reach[from:], dy[from:], 12)
			if scores == nil {
				scores, slopes = y, d
			}
			if i, ok := same(y, scores[from:]); !ok {
				t.Fatalf("%s, from %d on, element %d: got %v, want %v", level, from, i, y[i], scores[from+i])
			}
			if i, ok := same(d, slopes[from:]); !ok {
				t.Fatalf("%s, from %d on, slope %d: got %v, want %v", level, from, i, d[i], slopes[from+i])
			}
		}
	}
}

// MinPlus takes all pairs' shortest paths as the definition by powers of the matrix does.
func TestMinPlusShortestPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(35, 36))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, k := range []int{1, 2, 7, 16, 33, 60} {
			d := make([]float32, k*k)
			Fill(d, kerneltest.Inf)
			for i := range k {
				d[i*k+i] = 0
				for range 2 {
					j := r.IntN(k)
					d[i*k+j] = min(d[i*k+j], float32(1+r.IntN(50))) // sums are exact
				}
			}
			want := append([]float32{}, d...)
			for range k { // paths of one edge more
				next := append([]float32{}, want...)
				for i := range k {
					for m := range k {
						for j := range k {
							next[i*k+j] = min(next[i*k+j], want[i*k+m]+d[m*k+j])
						}
					}
				}
				want = next
			}
			for m := range k {
				for i := range k {
					MinPlus(d[i*k:(i+1)*k], d[m*k:(m+1)*k], d[i*k+m])
				}
			}
			if i, ok := same(d, want); !ok {
				t.Fatalf("%d nodes, pair %d: got %v, want %v", k, i, d[i], want[i])
			}
		}
	})
}

func TestArgMax(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 38))
	zero := float32(math.Copysign(0, -1))
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, c := range []struct {
			x    []float32
			want int
		}{
			{[]float32{3}, 0}, {[]float32{1, 3, 2}, 1}, {[]float32{1, 3, 3}, 1}, {[]float32{kerneltest.NaN, 1}, 1}, {[]float32{1, kerneltest.NaN, 2, kerneltest.NaN}, 2},
			{[]float32{kerneltest.NaN, kerneltest.NaN}, 0}, {[]float32{kerneltest.NaN, -kerneltest.Inf, -kerneltest.Inf}, 1}, {[]float32{-kerneltest.Inf, kerneltest.NaN}, 0}, {[]float32{-kerneltest.Inf, kerneltest.Inf}, 1},
			{[]float32{-1, zero, 0}, 1}, {[]float32{-1, 0, zero}, 1}, {[]float32{-3, -2, -2}, 1},
		} {
			if got := ArgMax(c.x); got != c.want {
				t.Errorf("%v: got %d, want %d", c.x, got, c.want)
			}
		}
		for n := 1; n < 300; n++ {
			x, _ := vectorSlice(r, n, n%2 == 0)
			if n%3 == 0 { // ties
				for i := range x {
					x[i] = float32(int(x[i]))
				}
			}
			if got, want := ArgMax(x), plainArgMax(x); got != want {
				t.Fatalf("length %d: got %d, want %d", n, got, want)
			}
		}
		// Longer than a block: the largest anywhere, and twice.
		for range 300 {
			n := 1 + r.IntN(3*argMaxBlock)
			x, _ := vectorSlice(r, n, false)
			x[r.IntN(n)], x[r.IntN(n)] = 99, 99
			if got, want := ArgMax(x), plainArgMax(x); got != want {
				t.Fatalf("length %d: got %d, want %d", n, got, want)
			}
		}
	})
}

func TestPathAllocatesNothing(t *testing.T) {
	x, y, owner := make([]float32, 77), make([]float32, 77), make([]int32, 77)
	kerneltest.EachLevel(t, func(t *testing.T) {
		if a := allocs.PerRun(10, func() {
			PathCos(y, x[:9], owner, x, 2)
			PathCosSlope(y, x[:9], owner, x, y, 2)
			MinPlus(y, x, 1)
			ArgMax(y)
		}); a != 0 {
			t.Errorf("%v allocations", a)
		}
	})
}
