package cuda_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/tensor"
)

// onDevice returns an operand of values, rounded if the type is bfloat16, and what it holds.
func onDevice(t *testing.T, d *cuda.Device, typ exec.Type, values []float32) (exec.Operand, []float32) {
	t.Helper()
	s := exec.Spec{Shape: tensor.Shape{len(values)}, Type: typ}
	m, err := d.Alloc(s.Words())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Free() })
	b := m.Buffer(0, s)
	a := b.Host()
	if typ == exec.BFloat16 {
		vector.ToBF16(a.BF16, values)
		values = make([]float32, len(values))
		vector.FromBF16(values, a.BF16)
	} else {
		copy(a.F32, values)
	}
	if err := b.Store(); err != nil {
		t.Fatal(err)
	}
	return exec.Operand{Spec: s, Buffer: b}, values
}

// fetched returns the values of an operand.
func fetched(t *testing.T, o exec.Operand) []float32 {
	t.Helper()
	if err := o.Buffer.Fetch(); err != nil {
		t.Fatal(err)
	}
	a := o.Buffer.Host()
	if o.Type != exec.BFloat16 {
		return a.F32
	}
	out := make([]float32, len(a.BF16))
	vector.FromBF16(out, a.BF16)
	return out
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// near wants values as near to others as tol times the largest of them.
func near(t *testing.T, got, want []float32, tol float64) {
	t.Helper()
	var largest float64
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i, v := range want {
		if diff := math.Abs(float64(got[i]) - float64(v)); !(diff <= tol*largest) {
			t.Fatalf("element %d is %v, want %v", i, got[i], v)
		}
	}
}

// TestMultiply compares products with sums in float64: all transpositions, types, biases, batches, and rows that are not aligned.
func TestMultiply(t *testing.T) {
	d := cudatest.Open(t)
	r := rand.New(rand.NewPCG(4, 2))
	for _, types := range [][4]exec.Type{ // A and B, C, bias
		{exec.Float32, exec.Float32, exec.Float32}, {exec.Float32, exec.Float32, exec.BFloat16},
		{exec.BFloat16, exec.Float32, exec.Float32}, {exec.BFloat16, exec.BFloat16, exec.BFloat16}, {exec.BFloat16, exec.BFloat16, exec.Float32},
	} {
		for i, p := range []cuda.Product{
			{M: 16, N: 24, K: 32}, {M: 7, N: 5, K: 3}, {M: 1, N: 1, K: 1, Bias: true}, {M: 33, N: 70, K: 41, Bias: true},
			{M: 16, N: 24, K: 32, TransB: true, Bias: true}, {M: 9, N: 10, K: 11, TransA: true, Beta: 1}, {M: 9, N: 10, K: 11, TransA: true, TransB: true, Alpha: .5},
			{M: 8, N: 16, K: 8, Batch: 3}, {M: 5, N: 6, K: 7, Batch: 2, TransB: true, Beta: 1}, {M: 0, N: 3, K: 2},
		} {
			for _, gap := range []int{0, 3} {
				p.A, p.B, p.C, p.BiasType = types[0], types[0], types[1], types[2]
				t.Run(fmt.Sprintf("%v/%d/%d", types[:3], i, gap), func(t *testing.T) { checkMultiply(t, d, r, p, gap) })
			}
		}
	}
}

func checkMultiply(t *testing.T, d *cuda.Device, r *rand.Rand, p cuda.Product, gap int) {
	rows := func(trans bool, m, n int) (int, int) {
		if trans {
			return n, m + gap
		}
		return m, n + gap
	}
	aRows, lda := rows(p.TransA, p.M, p.K)
	bRows, ldb := rows(p.TransB, p.K, p.N)
	p.LDA, p.LDB, p.LDC = lda, ldb, p.N+gap
	p.StrideA, p.StrideB, p.StrideC = aRows*lda, bRows*ldb, p.M*p.LDC
	n := max(p.Batch, 1)
	a, av := onDevice(t, d, p.A, random(r, max(1, n*p.StrideA)))
	b, bv := onDevice(t, d, p.B, random(r, max(1, n*p.StrideB)))
	c, want := onDevice(t, d, p.C, random(r, max(1, n*p.StrideC)))
	bias, biasValues := onDevice(t, d, p.BiasType, random(r, p.N))
	alpha := p.Alpha
	if alpha == 0 {
		alpha = 1
	}
	want = append([]float32(nil), want...)
	for k := range n {
		for i := range p.M {
			for j := range p.N {
				at := k*p.StrideC + i*p.LDC + j
				v := float64(p.Beta) * float64(want[at])
				for l := range p.K {
					x, y := i*lda+l, l*ldb+j
					if p.TransA {
						x = l*lda + i
					}
					if p.TransB {
						y = j*ldb + l
					}
					v += float64(alpha) * float64(av[k*p.StrideA+x]) * float64(bv[k*p.StrideB+y])
				}
				if p.Bias {
					v += float64(biasValues[j])
				}
				want[at] = float32(v)
			}
		}
	}
	at := func(o exec.Operand) cuda.Pointer { return o.Buffer.(*cuda.Buffer).Pointer() }
	for range 2 { // the second time by the algorithm that was chosen
		if err := d.Multiply(p, at(a), at(b), at(c), at(bias)); err != nil {
			t.Fatal(err)
		}
		if p.Beta != 0 {
			break
		}
	}
	tol := 1e-5
	if p.C == exec.BFloat16 {
		tol = 1e-2
	}
	near(t, fetched(t, c), want, tol)
}

// TestTune takes the fastest of the algorithms, and leaves what is added to as it was.
func TestTune(t *testing.T) {
	cudatest.Open(t) // and so what is needed is there
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	d, err := cuda.Open(cuda.Options{Fastest: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	r := rand.New(rand.NewPCG(4, 3))
	for _, beta := range []float32{0, 1} {
		t.Run(fmt.Sprint(beta), func(t *testing.T) { checkMultiply(t, d, r, cuda.Product{M: 512, N: 512, K: 512, Beta: beta}, 0) })
	}
}

// TestChoices: what was measured is kept and read again, a damaged file is as none, and small products are not measured.
func TestChoices(t *testing.T) {
	cudatest.Open(t)
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	file := filepath.Join(cache, "geoalign", "cuda-products.json")
	multiply := func(size int) {
		t.Helper()
		d, err := cuda.Open(cuda.Options{Fastest: true})
		if err != nil {
			t.Fatal(err)
		}
		checkMultiply(t, d, rand.New(rand.NewPCG(4, 3)), cuda.Product{M: size, N: size, K: size}, 0)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	multiply(16)
	if _, err := os.Stat(file); err == nil {
		t.Error("a product of some thousand operations was measured")
	}
	multiply(512)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	multiply(512)
	if second, err := os.ReadFile(file); err != nil || !bytes.Equal(first, second) {
		t.Errorf("what was known was measured again (%v)", err)
	}
	for _, damaged := range [][]byte{first[:len(first)/2], []byte("null")} {
		if err := os.WriteFile(file, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		multiply(512)
		if again, err := os.ReadFile(file); err != nil || !json.Valid(again) || len(again) < len(first)/2 {
			t.Errorf("a damaged file is not replaced (%v): %.80s", err, again)
		}
	}
}
