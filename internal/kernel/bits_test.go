package kernel

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/attend"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// bitsOfTraining is the checksum of a small network after three steps, by AVX2 on amd64 and by NEON on arm64: sums of
// both have the same order. A change of that order, or of a fit, changes it: take the new one where both agree.
const bitsOfTraining = 0x8175e77375682b56

// NEON computes the bits of AVX2.
func TestSameBits(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		if level := cpu.Level(); level != cpu.AVX2 && level != cpu.NEON {
			t.Skip("sums of another order")
		}
		e, err := New(Options{Threads: 2, Backend: Builtin})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		n := newNetwork(e)
		for step := range 3 {
			n.step(step)
		}
		if got := checksum(n.w...); got != bitsOfTraining {
			t.Errorf("checksum of the parameters %#x, want %#x", got, uint64(bitsOfTraining))
		}
	})
}

// checksum is that of the bits of x.
func checksum(x ...[]float32) uint64 {
	h := fnv.New64a()
	for _, row := range x {
		for _, v := range row {
			b := math.Float32bits(v)
			h.Write([]byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)})
		}
	}
	return h.Sum64()
}

// Sizes that are not those of tiles and vectors.
const (
	netRows, netIn, netHidden, netOut = 157, 83, 301, 45
)

// network is attention over its rows, then a hidden layer with GELU, dropout and layer norm, and a softmax.
type network struct {
	e       *Engine
	x       []float32
	w, m, v [][]float32 // parameters and moments: in x hidden, bias, gamma, beta, hidden x out
	target  []int
}

func newNetwork(e *Engine) *network {
	r := rand.New(rand.NewPCG(3, 4))
	fill := func(n int, scale float32) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = scale * (r.Float32() - 0.5)
		}
		return x
	}
	n := &network{e: e, x: fill(netRows*netIn, 4)}
	for _, size := range []int{netIn * netHidden, netHidden, netHidden, netHidden, netHidden * netOut} {
		n.w, n.m, n.v = append(n.w, fill(size, 0.2)), append(n.m, make([]float32, size)), append(n.v, make([]float32, size))
	}
	vector.Fill(n.w[2], 1)
	for range netRows {
		n.target = append(n.target, r.IntN(netOut))
	}
	return n
}

// matrix makes rows of n values.
func matrix(x []float32, n int) gemm.Matrix { return gemm.Matrix{F32: x, LD: n} }

// step trains one step on what attention makes of x.
func (n *network) step(step int) {
	const in, hidden, out, rows = netIn, netHidden, netOut, netRows
	seen, dSeen := n.attend()
	pre, act, normed := make([]float32, rows*hidden), make([]float32, rows*hidden), make([]float32, rows*hidden)
	n.e.Multiply(&gemm.Product{M: rows, N: hidden, K: in, Alpha: 1, A: matrix(seen, in), B: matrix(n.w[0], hidden), C: pre,
		LDC: hidden, Bias: n.w[1], Activated: act, Activation: vector.ByGELU})
	bits := make([]int32, (rows*hidden+31)/32)
	vector.DropoutBits(bits, uint64(step), 0, 0.9)
	vector.Dropout(act, act, bits, 1/0.9)
	means, rstds := make([]float32, rows), make([]float32, rows)
	for i := range rows {
		row := act[i*hidden:][:hidden]
		means[i], rstds[i] = vector.LayerNorm(normed[i*hidden:][:hidden], row, n.w[2], n.w[3], 1e-5)
	}
	p, lse := make([]float32, rows*out), make([]float32, rows)
	n.e.Gemm(false, false, rows, out, hidden, 1, normed, hidden, n.w[4], out, 0, p, out)
	vector.SoftmaxRows(p, out, out, nil, 0, 1, lse)
	for i, c := range n.target {
		p[i*out+c]--
	}
	vector.Scale(p, 1./rows, p)
	grads := make([][]float32, len(n.w))
	for i := range grads {
		grads[i] = make([]float32, len(n.w[i]))
	}
	d := make([]float32, rows*hidden)
	n.e.Gemm(true, false, hidden, out, rows, 1, normed, hidden, p, out, 0, grads[4], out)
	n.e.Gemm(false, true, rows, hidden, out, 1, p, out, n.w[4], out, 0, d, hidden)
	for i := range rows {
		row := d[i*hidden:][:hidden]
		vector.LayerNormGrad(row, grads[2], grads[3], act[i*hidden:][:hidden], n.w[2], row, means[i], rstds[i])
	}
	vector.Dropout(d, d, bits, 1/0.9)
	vector.GELUGrad(d, pre, d)
	n.e.Gemm(true, false, in, hidden, rows, 1, seen, in, d, hidden, 0, grads[0], hidden)
	vector.SumRows(grads[1], d)
	n.e.Gemm(false, true, rows, in, hidden, 1, d, hidden, n.w[0], hidden, 1, dSeen, in)
	vector.Axpy(n.x, -0.1, dSeen)
	for i := range n.w {
		vector.AdamW(n.w[i], n.m[i], n.v[i], grads[i], vector.AdamWStep{LR: 1e-2, Beta1: 0.875, Beta2: 0.96875, Eps: 1e-8,
			Decay: 0.05, Correct1: 0.5, Correct2: 0.25, GradScale: 0.75})
	}
}

// attend returns attention of x to itself, and its gradient where that of the result is x: all three operands' together.
func (n *network) attend() (out, grad []float32) {
	const width, rows = netIn, netRows
	sizes := attend.Sizes{Queries: rows, Keys: rows, Width: width, Backward: true}
	h := n.e.NewAttention(sizes)
	h.Use(make([]float32, sizes.Scratch()))
	x := matrix(n.x, width)
	h.SetKeys(x, x, rows)
	out, grad = make([]float32, rows*width), make([]float32, rows*width)
	b := attend.Block{N: rows, Q: x, LSE: make([]float32, rows), Out: matrix(out, width)}
	h.Forward(&b)
	dk, dv := make([]float32, rows*width), make([]float32, rows*width)
	h.Backward(&b, &attend.Grads{DOut: x, DQ: matrix(grad, width), DK: dk, DV: dv, LDDKV: width})
	vector.Add(grad, grad, dk)
	vector.Add(grad, grad, dv)
	return out, grad
}
