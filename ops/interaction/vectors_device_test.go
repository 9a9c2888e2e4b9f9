package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/ops/internal/optest"
)

func TestVectorsOnCUDA(t *testing.T) {
	d := cudatest.Open(t)
	r := rand.New(rand.NewPCG(62, 6))
	var cases []optest.Case
	add := func(name string, kind, n, m, tokens, words, channels, size int) {
		c := steadyVectors(t, r, kind, n, m, tokens, words, channels, size)
		c.Name = name
		cases = append(cases, c)
	}
	for _, kind := range []int{0, 1, 2, 3, 4, 4 + 2, 8, 16, 8 + 16, 8 + 1, 16 + 2, 4 + 8 + 16, 4 + 8 + 16 + 3} {
		add(fmt.Sprintf("vectors %d", kind), kind, 5, 7, 6, 9, 16, 12)
	}
	for _, s := range [][6]int{{1, 1, 1, 1, 3, 2}, {3, 2, 1, 40, 9, 7}, {2, 3, 37, 1, 5, 70}, {2, 2, 36, 70, 24, 33}} {
		for _, steps := range []int{0, 2} {
			add(fmt.Sprintf("vectors of %v, %d steps", s, steps), 4+steps, s[0], s[1], s[2], s[3], s[4], s[5])
		}
	}
	for _, steps := range []int{0, 2} {
		p := randomVectors(r, 4+steps, 3, 4, 3, 2, 4, 3)
		zeros := randomVectors(r, 4+steps, 3, 4, 3, 2, 4, 3)
		in := zeros.inputs()
		for _, i := range floats(in) {
			clear(in[i].Floats())
		}
		cases = append(cases, optest.Case{Name: fmt.Sprintf("vectors of zeros, %d steps", steps), Inputs: in, WRT: floats(in),
			Build: zeros.build})
		p.texts.rows[5] = float32(math.NaN())
		cases = append(cases, optest.Case{Name: fmt.Sprintf("NaN of a word, %d steps", steps), Inputs: p.inputs(), Build: p.build})
	}
	if !cudatest.Emulated(d) {
		for _, steps := range []int{0, 2} {
			c := vectorsCase(r, 4+8+steps, 32, 64, 36, 40, 256, 64)
			c.Name, c.Jumps = fmt.Sprintf("large vectors, %d steps", steps), true
			// A bias of the gate is a factor of nearly all that it lets through, which the sum takes out again: its gradient is
			// a small difference.
			c.WRT = slices.DeleteFunc(c.WRT, func(i int) bool { return c.Inputs[i].Name == "gate/bias" })
			cases = append(cases, c)
		}
	}
	optest.CheckCUDA(t, cases) // package pairs has small blocks
}

// steadyVectors draws a problem whose gradients say more than rounding: nodes that steps have made alike have some that are
// differences of nearly equal numbers. Those of the host in bfloat16 are near those in float32.
func steadyVectors(t *testing.T, r *rand.Rand, kind, n, m, tokens, words, channels, size int) optest.Case {
	t.Helper()
	half, err := kernel.New(kernel.Options{Backend: "builtin", Threads: 2, Precision: "bf16"})
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	for range 3000 {
		c := vectorsCase(r, kind, n, m, tokens, words, channels, size)
		rounded, steady := results(t, half, c), true
		for i, want := range results(t, optest.Engine, c) {
			largest, far := 0., 0.
			for k, v := range want {
				largest, far = max(largest, math.Abs(float64(v))), max(far, math.Abs(float64(v-rounded[i][k])))
			}
			steady = steady && far <= 1.5e-2*largest
		}
		if steady {
			return c
		}
	}
	t.Fatalf("no steady problem of kind %d", kind)
	return optest.Case{}
}

// vectorsCase draws a problem whose steps leave nodes apart.
func vectorsCase(r *rand.Rand, kind, n, m, tokens, words, channels, size int) optest.Case {
	p := randomVectors(r, kind, n, m, tokens, words, channels, size)
	for step := range p.steps {
		p.keepApart(step)
	}
	return optest.Case{Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build}
}

// keepApart has a step leave nodes apart: each looks at itself most, and no bias is what they have in common.
func (p vectorsProblem) keepApart(step int) {
	for name, own := range map[string]float32{"query": 2, "key": 2, "out": 1} {
		w := p.layers[fmt.Sprint(name, step)+"/weight"]
		for _, x := range [][]float32{w, p.layers[fmt.Sprint(name, step)+"/bias"]} {
			for i := range x {
				x[i] /= 10
			}
		}
		for i := range p.size {
			w[i*p.size+i] += own
		}
	}
}
