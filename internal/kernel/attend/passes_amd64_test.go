package attend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// half returns half i of x.
func half(x []float32, i int) float64 {
	var y [1]float32
	vector.FromBF16(y[:], gemm.AsHalves(x)[i:i+1])
	return float64(y[0])
}

// isHalf reports whether got is want rounded to bfloat16, or rounded the other way by the error of exp.
func isHalf(got, want float64) bool { return math.Abs(got-want) <= 0x1.02p-8*math.Abs(want)+1e-30 }

// newPass returns columns with a random panel, and the block that it belongs to.
func newPass(r *rand.Rand, keys, queries int, drop bool) (*columns, *Block) {
	c := &columns{n: keys, stride: pad(queries, vectorLanes) + vectorLanes}
	for _, x := range []*[]float32{&c.scores, &c.grads} {
		*x = make([]float32, keys*panelWidth)
		for i := range *x {
			(*x)[i] = float32(3 * r.NormFloat64())
		}
	}
	for _, x := range []*[]float32{&c.p, &c.ds, &c.words} {
		*x = make([]float32, pad(keys, 2)*c.stride)
	}
	b := &Block{N: queries, Scale: 1, Words: (keys + 31) / 32}
	if drop {
		b.Scale, b.Bits = 1.25, make([]int32, queries*b.Words) // ends where the last query's words end
		for i := range b.Bits {
			b.Bits[i] = int32(r.Uint32())
		}
	}
	return c, b
}

// kept returns what dropout multiplies the probability of a key and a query by.
func kept(b *Block, j, i int) float64 {
	if b.Bits == nil {
		return 1
	}
	return float64(b.Scale) * float64(uint32(b.Bits[i*b.Words+j/32])>>(j%32)&1)
}

// eachPass calls f for panels of all shapes that matter.
func eachPass(t *testing.T, f func(c *columns, b *Block)) {
	if !cpu.HasBF16 {
		t.Skip("this processor has no AVX-512 BF16")
	}
	r := rand.New(rand.NewPCG(8, 9))
	for _, keys := range []int{1, 2, 3, 31, 32, 33, 65, 130} {
		for _, queries := range []int{1, 15, 16, 17, 32} {
			for _, drop := range []bool{false, true} {
				f(newPass(r, keys, queries, drop))
			}
		}
	}
}

func TestSoftmaxPass(t *testing.T) {
	eachPass(t, func(c *columns, b *Block) {
		if c.n > 3 {
			c.scores[2*panelWidth] = float32(math.Inf(-1)) // a key that the first query must not see
		}
		s := slices.Clone(c.scores)
		args := c.pass(b, 0)
		c.args.p, c.args.pRow = unsafe.Pointer(&c.p[0]), c.args.pairsRow
		attendSoftmax(args)
		for i := range b.N {
			top, sum := math.Inf(-1), 0.0
			for j := range c.n {
				top = max(top, float64(s[j*panelWidth+i]))
			}
			for j := range c.n {
				e := math.Exp(float64(s[j*panelWidth+i]) - top)
				sum += e
				if kept(b, j, i) == 0 {
					e = 0
				}
				if got := half(c.p, 2*(j/2*c.stride+i)+j%2); !isHalf(got, e) {
					t.Fatalf("%d keys, %d queries: P of key %d and query %d is %v, want %v", c.n, b.N, j, i, got, e)
				}
			}
			if c.n%2 == 1 {
				if got := half(c.p, 2*(c.n/2*c.stride+i)+1); got != 0 {
					t.Fatalf("%d keys: the half after the last is %v", c.n, got)
				}
			}
			if got, want := float64(c.stats[i]), top+math.Log(sum); !(math.Abs(got-want) <= 4e-6*(1+math.Abs(want))) {
				t.Fatalf("%d keys: log sum exp %v, want %v", c.n, got, want)
			}
			if got, want := float64(c.stats[panelWidth+i]), float64(b.Scale)/sum; !(math.Abs(got-want) <= 1e-5*want) {
				t.Fatalf("%d keys: factor %v, want %v", c.n, got, want)
			}
		}
	})
}

func TestGradientPass(t *testing.T) {
	eachPass(t, func(c *columns, b *Block) {
		s, dp := slices.Clone(c.scores), slices.Clone(c.grads)
		for i := range b.N {
			c.stats[i] = 4 + float32(i)/8
		}
		lse := c.stats
		args := c.pass(b, 0)
		c.args.p, c.args.ds, c.args.pairs = unsafe.Pointer(&c.p[0]), unsafe.Pointer(&c.ds[0]), unsafe.Pointer(&c.words[0])
		attendGradient(args)
		for i := range b.N {
			p, dot, size := make([]float64, c.n), 0.0, 0.0 // size: of the terms of dot, which may cancel
			for j := range p {
				p[j] = math.Exp(float64(s[j*panelWidth+i]) - float64(lse[i]))
				term := kept(b, j, i) * p[j] * float64(dp[j*panelWidth+i])
				dot += term
				size += math.Abs(term)
			}
			for j := range p {
				dropped := kept(b, j, i) * p[j]
				if got := half(c.p, j*c.stride+i); !isHalf(got, dropped) {
					t.Fatalf("%d keys, %d queries: P of key %d and query %d is %v, want %v", c.n, b.N, j, i, got, dropped)
				}
				want := dropped*float64(dp[j*panelWidth+i]) - p[j]*dot
				exact := float64(c.grads[j*panelWidth+i])
				if !(math.Abs(exact-want) <= 2e-5*(math.Abs(dropped*float64(dp[j*panelWidth+i]))+p[j]*size)) {
					t.Fatalf("%d keys, %d queries: dS of key %d and query %d is %v, want %v", c.n, b.N, j, i, exact, want)
				}
				if got := half(c.ds, j*c.stride+i); !isHalf(got, exact) {
					t.Fatalf("row of dS: %v, want %v", got, exact)
				}
				if got := half(c.words, 2*(j/2*c.stride+i)+j%2); !isHalf(got, exact) {
					t.Fatalf("word of dS: %v, want %v", got, exact)
				}
			}
			if c.n%2 == 1 {
				if got := half(c.words, 2*(c.n/2*c.stride+i)+1); got != 0 {
					t.Fatalf("%d keys: the half after the last is %v", c.n, got)
				}
			}
		}
	})
}

func TestTranspose(t *testing.T) {
	if !cpu.HasBF16 {
		t.Skip("this processor has no AVX-512 BF16")
	}
	const blocks, ld = 2, 40 // words
	src, dst := make([]int32, 16*ld), make([]int32, 16*blocks*panelWidth)
	for i := range src {
		src[i] = int32(i + 1)
	}
	for _, rows := range []int{1, 7, 8, 15, 16, 20} {
		for i := range dst {
			dst[i] = -1
		}
		attendTranspose((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&src[0])), 4*ld, rows, blocks)
		for i, got := range dst {
			p, r := i/panelWidth, i%panelWidth
			want := int32(-1)
			switch {
			case r < min(rows, 16):
				want = src[r*ld+p]
			case r < 16:
				want = 0
			}
			if got != want {
				t.Fatalf("%d rows: word %d of row %d is %d, want %d", rows, r, p, got, want)
			}
		}
	}
}

func TestScale(t *testing.T) {
	if !cpu.HasBF16 {
		t.Skip("this processor has no AVX-512 BF16")
	}
	const rows, srcLD, ld = 4, 50, 60
	src, factors := make([]float32, rows*srcLD), []float32{1, 2, .5, -3}
	for i := range src {
		src[i] = float32(i) + .25
	}
	for _, n := range []int{1, 16, 17, 48, 50} {
		floats, halves := make([]float32, rows*ld), make([]uint16, rows*ld)
		attendScale(&floats[0], 4*ld, &src[0], 4*srcLD, rows, n, &factors[0], 4)
		attendScaleHalves(&halves[0], 2*ld, &src[0], 4*srcLD, rows, n, &factors[0], 4)
		want, rounded := make([]float32, rows*ld), make([]uint16, rows*ld)
		for r := range rows {
			vector.Scale(want[r*ld:r*ld+n], factors[r], src[r*srcLD:][:n])
		}
		vector.ToBF16(rounded, want)
		if !slices.Equal(floats, want) || !slices.Equal(halves, rounded) {
			t.Errorf("rows of %d values differ", n)
		}
	}
}
