package attend_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// TestAttentionHalves: operands and results that are stored as bfloat16 give what the same numbers in float32 give, rounded,
// for whole blocks and for a few queries, and what the definition gives to 2e-2 of the largest element.
func TestAttentionHalves(t *testing.T) {
	engines(t, func(t *testing.T, e *kernel.Engine) {
		r := rand.New(rand.NewPCG(47, 48))
		for i, s := range []struct{ lq, lk, e int }{{30, 30, 64}, {65, 65, 64}, {1, 33, 64}, {2, 7, 32}, {3, 1, 64}, {33, 17, 96}, {17, 40, 50}, {80, 12, 5}, {33, 33, 1}, {70, 257, 16}} {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				c := newAttentionCase(r, 1, 2, s.lq, s.lk, s.e, i%2 == 0)
				c.causal = i%3 == 0
				if i%4 == 1 {
					c.bias, c.dbias = make([]float32, s.lq*s.lk), make([]float32, s.lq*s.lk)
					for j := range c.bias {
						c.bias[j] = float32(r.NormFloat64())
					}
				}
				for _, x := range [][]float32{c.q, c.k, c.v, c.do} { // q, k and v may be one matrix: rounding twice changes nothing
					vector.RoundBF16(x, x)
				}
				want := c.reference()
				for _, backward := range []bool{false, true} {
					c.run(c.attention(e, backward), backward)
				}
				for name, w := range want.results() {
					checkLargest(t, name, c.results()[name], w, e.BF16())
				}
				out, dq := slices.Clone(c.out), slices.Clone(c.dq)
				h := halvesCase{attentionCase: c, e: e}
				h.run()
				checkRounded(t, "out", h.out, out)
				checkRounded(t, "dq", h.dq, dq)
				for name, w := range map[string][]float32{"dk": h.dkv[0], "dv": h.dkv[1]} {
					got := c.dk
					if name == "dv" {
						got = c.dv
					}
					for j := range c.lk {
						if last := (attentionHeads - 1) * c.e; !slices.Equal(got[j*c.ldkv+last:][:c.e], w[j*c.e:][:c.e]) {
							t.Errorf("%s of key %d differs from that of float32", name, j)
						}
					}
				}
			})
		}
	})
}

// checkLargest compares with the definition.
func checkLargest(t *testing.T, name string, got, want []float32, bf16 bool) {
	t.Helper()
	tolerance, largest := 2e-5, 0.0
	if bf16 {
		tolerance = 2e-2
	}
	for _, w := range want {
		largest = max(largest, math.Abs(float64(w)))
	}
	for j, w := range want {
		if d := math.Abs(float64(got[j] - w)); !(d <= tolerance*largest) {
			t.Fatalf("%s[%d] is %v, want %v (largest %v)", name, j, got[j], w, largest)
		}
	}
}

// checkRounded compares bfloat16 with rounded float32.
func checkRounded(t *testing.T, name string, got []uint16, want []float32) {
	t.Helper()
	w := make([]uint16, len(want))
	vector.ToBF16(w, want)
	for j := range w {
		// The instruction makes values below 2^-126 zeros.
		if got[j] != w[j] && !(math.Abs(float64(want[j])) < 0x1p-126) {
			t.Fatalf("%s[%d] is %04x, want %04x", name, j, got[j], w[j])
		}
	}
}

// halvesCase is a case whose operands and results are stored as bfloat16.
type halvesCase struct {
	*attentionCase
	e       *kernel.Engine
	out, dq []uint16
	dkv     [2][]float32 // of the last head, as the products leave them
}

func (h *halvesCase) run() {
	c := h.attentionCase
	halves := func(x []float32) []uint16 {
		y := make([]uint16, len(x))
		vector.ToBF16(y, x)
		return y
	}
	at := func(x []uint16, from, ld int) gemm.Matrix { return gemm.Matrix{BF16: x[from:], LD: ld} }
	q, k, v, do := halves(c.q), halves(c.k), halves(c.v), halves(c.do)
	h.out, h.dq = halves(c.out), halves(c.dq)
	forward, backward := c.attention(h.e, false), c.attention(h.e, true)
	for head := range attentionHeads {
		h.dkv = [2][]float32{make([]float32, c.lk*c.e), make([]float32, c.lk*c.e)}
		column := head * c.e
		for _, a := range []*attend.Head{forward, backward} {
			a.SetKeys(at(k, column, c.ldkv), at(v, column, c.ldkv), c.lk)
			a.Ahead(at(q, column, c.ldq), c.lq)
			for i := 0; i < c.rows*c.lq; {
				n := min(c.sizes(true).Queries, c.lq-i%c.lq)
				row := head*c.rows*c.lq + i
				b := attend.Block{N: n, Q: at(q, i*c.ldq+column, c.ldq), LSE: c.lse[row:], Words: c.words, Scale: c.scale, Out: at(h.out, i*c.ldo+column, c.ldo), Causal: c.causal, First: i % c.lq}
				if c.bits != nil {
					b.Bits = c.bits[row*c.words:]
				}
				if c.bias != nil {
					b.Bias, b.LDBias = c.bias[i%c.lq*c.lk:], c.lk
				}
				if a == forward {
					a.Forward(&b)
				} else {
					a.Backward(&b, &attend.Grads{DOut: at(do, i*c.ldo+column, c.ldo), DQ: at(h.dq, i*c.ldq+column, c.ldq), DK: h.dkv[0], DV: h.dkv[1], LDDKV: c.e, Add: i > 0})
				}
				i += n
			}
		}
	}
}

// TestRound: rows of results are rounded, and nothing beside them is written.
func TestRound(t *testing.T) {
	engines(t, func(t *testing.T, e *kernel.Engine) {
		for _, width := range []int{1, 15, 16, 64, 70} {
			const rows, ld = 5, 80
			src, dst := make([]float32, rows*width), make([]uint16, rows*ld)
			for i := range src {
				src[i] = float32(i) + 1/float32(i+3)
			}
			for i := range dst {
				dst[i] = 7
			}
			a := e.NewAttention(attend.Sizes{Keys: rows, Width: width, Queries: 4, Backward: true})
			a.Round(gemm.Matrix{BF16: dst, LD: ld}, src, rows)
			want := make([]uint16, width)
			for r := range rows {
				vector.ToBF16(want, src[r*width:(r+1)*width])
				if !slices.Equal(dst[r*ld:r*ld+width], want) || slices.ContainsFunc(dst[r*ld+width:(r+1)*ld], func(x uint16) bool { return x != 7 }) {
					t.Errorf("row %d of %d values: %x", r, width, dst[r*ld:(r+1)*ld])
				}
			}
		}
	})
}

// TestNotANumber: a query, key, value or gradient that is not a number is not hidden.
func TestNotANumber(t *testing.T) {
	engines(t, func(t *testing.T, e *kernel.Engine) {
		c := newAttentionCase(rand.New(rand.NewPCG(3, 3)), 1, 1, 9, 12, 32, false)
		c.q[3*c.ldq+5] = kerneltest.NaN
		c.run(c.attention(e, false), false)
		if x := c.out[3*c.ldo]; x == x {
			t.Errorf("output of a query with a NaN is %v", x)
		}
		if x := c.lse[3]; x == x {
			t.Errorf("log sum exp of a query with a NaN is %v", x)
		}
		if x := c.out[2*c.ldo]; x != x {
			t.Error("output of another query is NaN")
		}
	})
}

// TestHeadKeepsNothing: what a block leaves behind, another direction and scores far from 0 among it, does not change the next one.
func TestHeadKeepsNothing(t *testing.T) {
	engines(t, func(t *testing.T, e *kernel.Engine) {
		c := newAttentionCase(rand.New(rand.NewPCG(5, 3)), 1, 1, 9, 12, 32, false)
		c.run(c.attention(e, false), false)
		c.run(c.attention(e, true), true)
		want := map[string][]float32{}
		for name, x := range c.results() {
			want[name] = slices.Clone(x)
		}
		far := newAttentionCase(rand.New(rand.NewPCG(5, 4)), 1, 1, 12, 12, 32, false)
		for i := range far.k {
			far.k[i] = -30 // of queries, keys and values
		}
		for i := range 12 {
			vector.Fill(far.q[i*far.ldq:][:attentionHeads*32], 30)
		}
		a := far.attention(e, true)
		far.run(a, false)
		if x := far.lse[0]; x > -1000 {
			t.Fatalf("log sum exp is %v, which is not far from 0", x)
		}
		far.run(a, true)
		c.run(a, true)
		c.run(a, false)
		// Both directions on keys that are set once: the first head again.
		x := c.head(0, 0)
		vector.Fill(x.out[:c.e], 0)
		vector.Fill(x.dq[:c.e], 0)
		a.SetKeys(floats(x.k, c.ldkv), floats(x.v, c.ldkv), c.lk)
		b := attend.Block{N: c.lq, Q: floats(x.q, c.ldq), LSE: x.lse, Scale: 1, Out: floats(x.out, c.ldo)}
		a.Forward(&b)
		a.Backward(&b, &attend.Grads{DOut: floats(x.do, c.ldo), DQ: floats(x.dq, c.ldq), DK: x.dk, DV: x.dv, LDDKV: c.ldkv})
		for name, x := range c.results() {
			if !slices.Equal(x, want[name]) {
				t.Errorf("%s changed", name)
			}
		}
	})
}
