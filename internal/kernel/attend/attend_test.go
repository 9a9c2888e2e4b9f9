package attend_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// reference computes a case by the definition, in float64, into what run writes.
func (c *attentionCase) reference() *attentionCase {
	w := *c
	for _, x := range []*[]float32{&w.out, &w.dq, &w.lse, &w.dbias} {
		*x = slices.Clone(*x)
	}
	w.dk = slices.Clone(c.dk)
	w.dv = slices.Clone(c.dv)
	if c.lq == c.lk && c.rows == 1 { // dq, dk and dv are one matrix
		w.dk, w.dv = w.dq[len(c.dq)-len(c.dk):], w.dq[len(c.dq)-len(c.dv):]
	} else {
		w.dv = w.dk[len(c.dk)-len(c.dv):]
	}
	for t := range c.seqs * attentionHeads {
		x := w.head(t/attentionHeads, t%attentionHeads)
		w.referenceHead(&x)
	}
	return &w
}

func (c *attentionCase) referenceHead(x *head) {
	at := func(m []float32, ld, i, j int) float64 { return float64(m[i*ld+j]) }
	alpha := 1 / math.Sqrt(float64(c.e))
	dk, dv := make([]float64, c.lk*c.e), make([]float64, c.lk*c.e)
	for i := range c.rows * c.lq {
		s, keep := make([]float64, c.lk), make([]float64, c.lk)
		var sum, dot float64
		for j := range s {
			for e := range c.e {
				s[j] += alpha * at(x.q, c.ldq, i, e) * at(x.k, c.ldkv, j, e)
			}
			if c.bias != nil {
				s[j] += at(c.bias, c.lk, i%c.lq, j)
			}
			if c.causal && j > i%c.lq {
				s[j] = math.Inf(-1)
			}
			s[j] = math.Exp(s[j])
			sum += s[j]
			keep[j] = 1
			if c.bits != nil {
				keep[j] = float64(c.scale) * float64(uint32(x.bits[i*c.words+j/32])>>(j%32)&1)
			}
		}
		x.lse[i] = float32(math.Log(sum))
		dp := make([]float64, c.lk)
		for j := range s {
			s[j] /= sum
			for e := range c.e {
				dp[j] += keep[j] * at(x.do, c.ldo, i, e) * at(x.v, c.ldkv, j, e)
				dv[j*c.e+e] += keep[j] * s[j] * at(x.do, c.ldo, i, e)
			}
			dot += s[j] * dp[j]
		}
		for j := range s {
			if c.bias != nil {
				c.dbias[i%c.lq*c.lk+j] += float32(s[j] * (dp[j] - dot))
			}
		}
		for e := range c.e {
			var out, dq float64
			for j := range s {
				out += keep[j] * s[j] * at(x.v, c.ldkv, j, e)
				ds := s[j] * (dp[j] - dot) * alpha
				dq += ds * at(x.k, c.ldkv, j, e)
				dk[j*c.e+e] += ds * at(x.q, c.ldq, i, e)
			}
			x.out[i*c.ldo+e], x.dq[i*c.ldq+e] = float32(out), float32(dq)
		}
	}
	for j := range c.lk {
		for e := range c.e {
			x.dk[j*c.ldkv+e], x.dv[j*c.ldkv+e] = float32(dk[j*c.e+e]), float32(dv[j*c.e+e])
		}
	}
}

// results are the arrays that a case is compared by.
func (c *attentionCase) results() map[string][]float32 {
	return map[string][]float32{"out": c.out, "lse": c.lse, "dq": c.dq, "dk": c.dk, "dv": c.dv, "dbias": c.dbias}
}

// engines calls f with an engine of each kind at each instruction set.
func engines(t *testing.T, f func(t *testing.T, e *kernel.Engine)) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		for _, backend := range []string{"builtin", "plain"} {
			for _, precision := range []string{"fp32", "bf16"} {
				e, err := kernel.New(kernel.Options{Backend: backend, Threads: 1, Precision: precision})
				if err != nil {
					t.Fatal(err)
				}
				t.Run(backend+"/"+precision, func(t *testing.T) { f(t, e) })
				e.Close()
			}
		}
	})
}

// TestAttention compares random shapes with the definition: everything that is written,
// and that nothing else is. Scratch holds NaN before each run.
func TestAttention(t *testing.T) {
	engines(t, func(t *testing.T, e *kernel.Engine) {
		r := rand.New(rand.NewPCG(43, 44))
		tolerance := 2e-5
		if e.BF16() {
			tolerance = 3e-2
		}
		for i := range 16 {
			lq, lk, rows := 1+r.IntN(40), 1+r.IntN(80), 1+r.IntN(3)
			if i%2 == 0 {
				rows, lq = 1, lk
			}
			c := newAttentionCase(r, 1, rows, lq, lk, 1+r.IntN(70), i%3 == 0)
			if i%4 == 1 {
				c.bias, c.dbias = make([]float32, lq*lk), make([]float32, lq*lk)
				for j := range c.bias {
					c.bias[j] = float32(r.NormFloat64())
				}
			}
			c.causal = i%4 > 1
			want := c.reference()
			for _, backward := range []bool{false, true} {
				a := e.NewAttention(c.sizes(backward))
				scratch := make([]float32, c.sizes(backward).Scratch())
				vector.Fill(scratch, kerneltest.NaN)
				a.Use(scratch)
				c.run(a, backward)
			}
			got := c.results()
			for name, w := range want.results() {
				for j := range w {
					if !(math.Abs(float64(got[name][j]-w[j])) <= tolerance*(1+math.Abs(float64(w[j])))) || got[name][j] != got[name][j] {
						t.Fatalf("case %d (%d rows of %d queries, %d keys, %d wide): %s[%d] is %v, want %v", i, c.rows, c.lq, c.lk, c.e, name, j, got[name][j], w[j])
					}
				}
			}
		}
	})
}

// TestAttentionBits: stale scratch, hints of what comes next, blocks that ran before and
// keys beyond the length change no bit of a result.
func TestAttentionBits(t *testing.T) {
	engines(t, func(t *testing.T, e *kernel.Engine) {
		r := rand.New(rand.NewPCG(45, 46))
		for _, lk := range []int{1, 2, 30, 33, 65, 71} {
			c := newAttentionCase(r, 1, 3, 30, lk, 64, true)
			big := newAttentionCase(r, 1, 3, 30, lk+5, 64, true)
			for _, backward := range []bool{false, true} {
				c.run(c.attention(e, false), false)
				a := c.attention(e, backward)
				c.run(a, backward)
				want := map[string][]float32{}
				for name, x := range c.results() {
					want[name] = slices.Clone(x)
				}
				a = big.attention(e, backward)
				big.run(a, backward)
				a.Ahead(floats(c.q, c.ldq), c.lq)
				// The same keys at the start of longer sequences, NaN after them.
				k := make([]float32, (lk+5)*c.ldkv)
				vector.Fill(k, kerneltest.NaN)
				copy(k, c.k[:lk*c.ldkv])
				short := *c
				short.k, short.v = k, k[len(c.k)-len(c.v):]
				short.run(a, backward)
				for name, x := range c.results() {
					if !slices.Equal(x, want[name]) {
						t.Errorf("%d keys, backward %v: %s changed", lk, backward, name)
					}
				}
			}
		}
	})
}

// TestAttentionPanics: slices that are too short are found before memory is touched.
func TestAttentionPanics(t *testing.T) {
	e, err := kernel.New(kernel.Options{Backend: "builtin", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := attend.Sizes{Keys: 9, Width: 8, Queries: 4, Backward: true}
	x, lse := make([]float32, 9*8), make([]float32, 4)
	for i, f := range []func(a *attend.Head){
		func(a *attend.Head) { a.SetKeys(floats(x, 8), floats(x, 8), 10) },
		func(a *attend.Head) { a.SetKeys(floats(x, 8), floats(x, 8), 0) },
		func(a *attend.Head) { a.SetKeys(floats(x[:71], 8), floats(x, 8), 9) },
		func(a *attend.Head) { a.Forward(&attend.Block{N: 5, Q: floats(x, 8), Out: floats(x, 8), LSE: lse}) },
		func(a *attend.Head) {
			a.Forward(&attend.Block{N: 4, Q: floats(x[:31], 8), Out: floats(x, 8), LSE: lse})
		},
		func(a *attend.Head) { a.Forward(&attend.Block{N: 4, Q: floats(x, 8), Out: floats(x, 30), LSE: lse}) },
		func(a *attend.Head) {
			a.Forward(&attend.Block{N: 4, Q: floats(x, 8), Out: floats(x, 8), LSE: lse[:3:3]})
		},
		func(a *attend.Head) {
			a.Forward(&attend.Block{N: 4, Q: floats(x, 8), Out: floats(x, 8), LSE: lse, Bits: make([]int32, 3), Words: 1})
		},
		func(a *attend.Head) {
			a.Backward(&attend.Block{N: 4, Q: floats(x, 8), LSE: lse}, &attend.Grads{DOut: floats(x, 8), DQ: floats(x, 8), DK: x[:70], DV: x, LDDKV: 8})
		},
	} {
		a := e.NewAttention(s)
		a.Use(make([]float32, s.Scratch()))
		a.SetKeys(floats(x, 8), floats(x, 8), 9)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("call %d: no panic", i)
				}
			}()
			f(a)
		}()
	}
}

func TestAttentionAllocatesNothing(t *testing.T) {
	for _, precision := range []string{"fp32", "bf16"} {
		e, err := kernel.New(kernel.Options{Backend: "builtin", Threads: 1, Precision: precision})
		if err != nil {
			t.Fatal(err)
		}
		c := newAttentionCase(rand.New(rand.NewPCG(1, 2)), 1, 2, 20, 33, 64, true)
		for _, backward := range []bool{false, true} {
			a := c.attention(e, backward)
			if n := allocs.PerRun(10, func() { c.run(a, backward) }); n != 0 {
				t.Errorf("%s, backward %v: %v allocations", precision, backward, n)
			}
		}
		e.Close()
	}
}

func ExampleBlockSize() {
	fmt.Println(attend.BlockSize(30, 65), attend.BlockSize(257, 257))
	// Output: 30 64
}
