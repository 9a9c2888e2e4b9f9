package recurrent

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// looking is a unit with a memory, and operands for a test.
type looking struct {
	r, l, m, h int
	lengths    []int32 // nil: all l
	memory     []int32
	inputs     []optest.Input // those of AttendedArgs in their order, lengths last
}

// fill draws the operands.
func (p looking) fill(r *rand.Rand) looking {
	h := p.h
	p.inputs = []optest.Input{
		optest.F32s(r, "x", p.r*p.l, 3*h), optest.F32s(r, "keys", p.r*p.m, h), optest.F32s(r, "values", p.r*p.m, 3*h), optest.F32s(r, "query", h, h),
		optest.F32s(r, "score", h), optest.F32s(r, "weight_hh", 3*h, h), optest.F32s(r, "bias_hh", 3*h), optest.F32s(r, "start", p.r, h), optest.I32s("memory", p.memory, p.r),
	}
	if p.lengths != nil {
		p.inputs = append(p.inputs, optest.I32s("lengths", p.lengths, p.r))
	}
	return p
}

func (p looking) args(ns gorgonia.Nodes) AttendedArgs {
	a := AttendedArgs{X: ns[0], Keys: ns[1], Values: ns[2], Query: ns[3], Score: ns[4], WeightHH: ns[5], BiasHH: ns[6], Start: ns[7], MemoryLengths: ns[8], Len: p.l, Memory: p.m}
	if p.lengths != nil {
		a.Lengths = ns[9]
	}
	return a
}

// calm makes weights so small that states settle, where they have as many channels as models have: among random weights of any size
// they are chaotic, and rounding grows.
func (p looking) calm() looking {
	for _, i := range []int{3, 4, 5} {
		for j, v := range p.inputs[i].Floats() {
			p.inputs[i].Floats()[j] = v / float32(math.Sqrt(float64(p.h)))
		}
	}
	return p
}

func (p looking) build(ns gorgonia.Nodes) *gorgonia.Node { return Attended(p.args(ns)) }

var lookingWRT = []int{0, 1, 2, 3, 4, 5, 6, 7}

// states are those of the definition, in plain loops.
func (p looking) states() []float32 {
	of := func(i int) []float32 { return p.inputs[i].Floats() }
	x, keys, values, query, score, weight, bias, start := of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)
	h, out := p.h, make([]float32, p.r*p.l*p.h)
	sigmoid := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	for s := range p.r {
		state, n := make([]float64, h), p.l
		if p.lengths != nil {
			n = int(p.lengths[s])
		}
		for j := range state {
			state[j] = float64(start[s*h+j])
		}
		for t := range n {
			gates, total := make([]float64, 3*h), 0.0
			for j := range gates {
				gates[j] = float64(x[(s*p.l+t)*3*h+j])
			}
			weights := make([]float64, p.memory[s])
			for m := range weights {
				a := 0.0
				for j := range h {
					in := float64(keys[(s*p.m+m)*h+j])
					for k := range h {
						in += float64(query[j*h+k]) * state[k]
					}
					a += float64(score[j]) * math.Tanh(in)
				}
				weights[m] = math.Exp(a)
				total += weights[m]
			}
			for m, w := range weights {
				for j := range gates {
					gates[j] += w / total * float64(values[(s*p.m+m)*3*h+j])
				}
			}
			hidden := func(j int) float64 {
				v := float64(bias[j])
				for k := range h {
					v += float64(weight[j*h+k]) * state[k]
				}
				return v
			}
			next := make([]float64, h)
			for j := range next {
				z := sigmoid(gates[h+j] + hidden(h+j))
				next[j] = (1-z)*math.Tanh(gates[2*h+j]+sigmoid(gates[j]+hidden(j))*hidden(2*h+j)) + z*state[j]
			}
			state = next
			for j, v := range state {
				out[(s*p.l+t)*h+j] = float32(v)
			}
		}
	}
	return out
}

// TestAttended compares states with the definition and gradients with finite differences, over sequences and memories of
// all lengths.
func TestAttended(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	for i, s := range optest.RandomShapes(r, 12, 6, 5, 4, 9) {
		p := looking{r: s[0], l: s[1], m: s[2], h: s[3], memory: optest.RandomInts(r, s[0], s[2]+1)}
		if i%4 != 3 {
			p.lengths = optest.RandomInts(r, p.r, p.l+1)
		}
		p = p.fill(r)
		optest.Near(t, "states", optest.Eval(t, p.build, p.inputs...).F32, p.states(), 3e-6)
		optest.CheckGrad(t, p.build, lookingWRT, 1e-2, 2e-3, p.inputs...)
	}
}

func TestAttendedCases(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	var cases []optest.Case
	for _, p := range []looking{
		{r: 300, l: 3, m: 4, h: 16, lengths: optest.RandomInts(r, 300, 4), memory: optest.RandomInts(r, 300, 5)},
		{r: 5, l: 4, m: 2, h: 5, memory: []int32{2, 1, 0, 2, 2}},
	} {
		p = p.fill(r)
		cases = append(cases, optest.Case{Name: "attended gru", Inputs: p.inputs, WRT: lookingWRT, Build: p.build})
	}
	optest.CheckCases(t, cases)
	// A second run on other lengths leaves nothing of the first.
	p := looking{r: 3, l: 5, m: 3, h: 4, lengths: []int32{5, 5, 5}, memory: []int32{3, 3, 3}}.fill(r)
	optest.CheckStale(t, []optest.StaleCase{{Name: "attended gru", Build: p.build, Fixed: p.inputs[:8], WRT: 8, Before: p.inputs[8:],
		After: []optest.Input{optest.I32s("memory", []int32{1, 3, 0}, 3), optest.I32s("lengths", []int32{1, 0, 3}, 3)}}})
}

// TestAttendedErrors: operands that do not fit are refused, and calls that differ in an argument are different nodes.
func TestAttendedErrors(t *testing.T) {
	p := looking{r: 2, l: 3, m: 2, h: 4, lengths: []int32{1, 2}, memory: []int32{2, 1}}.fill(rand.New(rand.NewPCG(45, 46)))
	g, ns := optest.Nodes(p.inputs)
	for want, change := range map[string]func(a *AttendedArgs){
		"an operand is nil":                     func(a *AttendedArgs) { a.Score = nil },
		"have at least one place (got 3 and 0)": func(a *AttendedArgs) { a.Memory = 0 },
		"want x (R*L, 3H)":                      func(a *AttendedArgs) { a.X, a.Lengths = ns[4], ns[9] },
		"rows must be a multiple of 4":          func(a *AttendedArgs) { a.Len = 4 },
		"query must have shape (H, H)":          func(a *AttendedArgs) { a.Query = ns[5] },
		"x must have shape (6, 12)": func(a *AttendedArgs) {
			a.X = gorgonia.NewMatrix(g, gorgonia.Float32, gorgonia.WithShape(6, 4), gorgonia.WithName("narrow"))
		},
		"keys must have shape (4, 4)":        func(a *AttendedArgs) { a.Keys = ns[2] },
		"values must have shape (4, 12)":     func(a *AttendedArgs) { a.Values = ns[1] },
		"memory lengths must have shape (2)": func(a *AttendedArgs) { a.MemoryLengths = ns[4] },
		"score must have shape (4)":          func(a *AttendedArgs) { a.Score = ns[6] },
		"weight_hh must have shape (12, 4)":  func(a *AttendedArgs) { a.WeightHH = ns[3] },
		"bias_hh must have shape (12)":       func(a *AttendedArgs) { a.BiasHH = ns[4] },
		"start must have shape (2, 4)":       func(a *AttendedArgs) { a.Start = ns[1] },
	} {
		a := p.args(ns)
		change(&a)
		optest.BuildError(t, want, want, func() { Attended(a) })
	}
	optest.RunError(t, "memory lengths[1] is 3: want [0, 2]", p.build, append(p.inputs[:8:8], optest.I32s("memory", []int32{1, 3}, 2), p.inputs[9])...)
	one, two := &attended{unit: &unit{l: 3}, m: 2}, &attended{unit: &unit{l: 3}, m: 3}
	optest.CheckIdentity(t, g, []func() *gorgonia.Node{
		func() *gorgonia.Node { return Attended(p.args(ns)) },
		func() *gorgonia.Node {
			a := p.args(ns)
			a.Lengths = nil
			return Attended(a)
		},
	})
	if one.args() == two.args() {
		t.Error("memories of two lengths are one op")
	}
}

// TestAttendedMemory: nothing is kept for a pair of a token and a place of the memory but its weight.
func TestAttendedMemory(t *testing.T) {
	const r, l, m, h = 16, 20, 30, 48
	p := looking{r: r, l: l, m: m, h: h, memory: make([]int32, r)}.fill(rand.New(rand.NewPCG(47, 48)))
	machine, _ := optest.Case{Inputs: p.inputs, WRT: lookingWRT, Build: p.build}.Compile(t, optest.Engine)
	// Of a token the gates, the states, their gradient and those of its input and query; of a place of the memory its gradients.
	if most := int64(4 * (r*l*(h*14+2*m) + r*m*h*5)); machine.Memory() > most {
		t.Errorf("%d bytes, want at most %d", machine.Memory(), most)
	}
}
