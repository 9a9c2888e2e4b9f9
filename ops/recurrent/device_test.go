package recurrent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// TestCUDA reads in both directions, from states and from 0, sequences with and without tokens, and both directions of one
// unit, whose gradients add up.
func TestCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(48, 1))
	problems := []problem{
		{r: 5, l: 4, in: 6, h: 16, lengths: []int32{4, 0, 2, 4, 1}},
		{r: 37, l: 3, in: 7, h: 9, lengths: optest.RandomInts(r, 37, 4), reverse: true, start: true},
		{r: 3, l: 1, in: 2, h: 1},
		{r: 9, l: 4, in: 20, h: 24, start: true},
		{r: 2, l: 3, in: 4, h: 8, lengths: []int32{0, 0}},
	}
	if !cudatest.Emulated(cudatest.Open(t)) {
		problems = append(problems, problem{r: 128, l: 20, in: 300, h: 1024, lengths: optest.RandomInts(r, 128, 21)})
	}
	var cases []optest.Case
	for _, p := range problems {
		p = p.fill(r)
		for _, weights := range p.inputs[1:3] { // or the states of wide units are chaotic: two backends of the host differ in all of them
			x := weights.Data.([]float32)
			for i := range x {
				x[i] /= float32(math.Sqrt(float64(p.h)))
			}
		}
		name := fmt.Sprintf("%d sequences of %d, %d channels to %d", p.r, p.l, p.in, p.h)
		cases = append(cases, optest.Case{Name: name, Inputs: p.inputs, WRT: p.wrt(), Build: p.build})
	}
	p := problem{r: 4, l: 5, in: 3, h: 6, lengths: []int32{5, 0, 2, 4}}.fill(r)
	back := p
	back.reverse = true
	cases = append(cases, optest.Case{Name: "both directions", Inputs: p.inputs, WRT: p.wrt(),
		Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return arith.Add(p.build(ns), back.build(ns))
		}})
	optest.CheckCUDA(t, cases)
}

// TestAttendedOnCUDA looks at memories of all lengths, none too.
func TestAttendedOnCUDA(t *testing.T) {
	r := rand.New(rand.NewPCG(48, 2))
	problems := []looking{
		{r: 5, l: 4, m: 2, h: 5, memory: []int32{2, 1, 0, 2, 2}},
		{r: 30, l: 3, m: 40, h: 16, lengths: optest.RandomInts(r, 30, 4), memory: optest.RandomInts(r, 30, 41)},
		{r: 3, l: 5, m: 3, h: 40, lengths: []int32{0, 1, 5}, memory: []int32{3, 3, 3}},
		{r: 2, l: 2, m: 1, h: 1, lengths: []int32{0, 0}, memory: []int32{1, 0}},
	}
	if !cudatest.Emulated(cudatest.Open(t)) {
		problems = append(problems, looking{r: 128, l: 20, m: 50, h: 512, lengths: optest.RandomInts(r, 128, 21),
			memory: optest.RandomInts(r, 128, 51)})
	}
	var cases []optest.Case
	for _, p := range problems {
		if p = p.fill(r); p.h > 100 {
			p = p.calm()
		}
		name := fmt.Sprintf("%d sequences of %d with a memory of %d, %d channels", p.r, p.l, p.m, p.h)
		cases = append(cases, optest.Case{Name: name, Inputs: p.inputs, WRT: lookingWRT, Build: p.build})
	}
	optest.CheckCUDA(t, cases)
}
