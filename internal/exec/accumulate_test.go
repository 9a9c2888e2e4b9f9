package exec_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

const accumulateLen = 6

// sums builds graphs of vectors of small whole numbers, which add without rounding,
// so that results do not depend on the order of additions.
type sums struct {
	feed
	t           testing.TB
	count       int
	accumulated *int // ops that were told to accumulate by the last Compile
}

func newSums(t testing.TB, inputs int, r *rand.Rand) *sums {
	s := &sums{feed: feed{g: gorgonia.NewGraph()}, t: t, accumulated: new(int)}
	for i := range inputs {
		n := gorgonia.NewVector(s.g, tensor.Float32, gorgonia.WithShape(accumulateLen), gorgonia.WithName(fmt.Sprint("x", i)))
		v := make([]float32, accumulateLen)
		for k := range v {
			v[k] = float32(r.IntN(5) - 2)
		}
		s.inputs, s.values = append(s.inputs, n), append(s.values, v)
	}
	return s
}

func (s *sums) kind(name string) string {
	s.count++
	return fmt.Sprint(name, s.count)
}

// shift returns x moved by one place, which must not be written over x while it is
// read; with accumulates it can add that to what is there.
func (s *sums) shift(x *gorgonia.Node, accumulates bool) *gorgonia.Node {
	return (&testOp{kind: s.kind("shift"), accumulates: accumulates, prepared: func(c *exec.Call) {
		if c.Accumulate {
			*s.accumulated++
		}
	}, step: func(c *exec.Call) {
		for i := range c.Out.F32 {
			v := c.In[0].F32[(i+1)%accumulateLen]
			if c.Accumulate {
				v += c.Out.F32[i]
			}
			c.Out.F32[i] = v
		}
	}}).apply(s.t, tensor.Shape{accumulateLen}, x)
}

// negate returns -x, in place where it may.
func (s *sums) negate(x *gorgonia.Node) *gorgonia.Node {
	return (&testOp{kind: s.kind("negate"), inPlace: []int{0}, step: func(c *exec.Call) {
		for i, v := range c.In[0].F32 {
			c.Out.F32[i] = -v
		}
	}}).apply(s.t, tensor.Shape{accumulateLen}, x)
}

// name returns x under another name.
func (s *sums) name(x *gorgonia.Node) *gorgonia.Node {
	return (&testOp{kind: s.kind("name"), alias: true}).apply(s.t, tensor.Shape{accumulateLen}, x)
}

func (s *sums) add(x, y *gorgonia.Node) *gorgonia.Node { return gorgonia.Must(gorgonia.Add(x, y)) }

// ownSum is an addition that is not Gorgonia's.
func (s *sums) ownSum(x, y *gorgonia.Node) *gorgonia.Node {
	return (&testOp{kind: s.kind("sum"), sum: true, step: func(c *exec.Call) {
		for i := range c.Out.F32 {
			c.Out.F32[i] = c.In[0].F32[i] + c.In[1].F32[i]
		}
	}}).apply(s.t, tensor.Shape{accumulateLen}, x, y)
}

// check compares a run with one in which everything has memory of its own, and
// returns how many ops accumulated.
func (s *sums) check(cfg exec.Config) int {
	s.t.Helper()
	want := s.compile(s.t, exec.Config{Outputs: append(computed(s.g, s.outputs), s.outputs...)})
	run(s.t, want)
	*s.accumulated = 0
	got := s.compile(s.t, cfg)
	check.OK(s.t, got.CheckLayout())
	n := *s.accumulated
	if got.Nodes() != want.Nodes()-n {
		s.t.Errorf("%d nodes run, want %d less the %d sums that take place elsewhere", got.Nodes(), want.Nodes(), n)
	}
	for range 2 {
		run(s.t, got)
		sameOutputs(s.t, s.outputs, got, want)
	}
	return n
}

func TestAccumulate(t *testing.T) {
	tests := []struct {
		name  string
		build func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes
		want  int
	}{
		{"a sum", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.add(s.negate(x), s.shift(y, true))}
		}, 1},
		{"operands in the other order", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early := s.negate(x)
			return gorgonia.Nodes{s.add(s.shift(y, true), early)}
		}, 1},
		{"a sum that is not Gorgonia's", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.ownSum(s.negate(x), s.shift(y, true))}
		}, 1},
		{"three summands", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			a, b, c := s.negate(x), s.shift(y, true), s.shift(x, true)
			return gorgonia.Nodes{s.negate(s.add(s.add(a, b), c))}
		}, 2},
		{"three summands, the first last", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			a, b, c := s.negate(x), s.shift(y, true), s.shift(x, true)
			return gorgonia.Nodes{s.add(s.add(b, c), a)}
		}, 1}, // b + c in b's memory; a cannot come to that
		{"summands under other names", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.name(s.add(s.name(s.negate(x)), s.shift(y, true)))}
		}, 1},
		{"the early one is read before", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early := s.negate(x)
			other := s.shift(early, false)
			return gorgonia.Nodes{s.add(early, s.shift(y, true)), other}
		}, 1},
		{"an op that cannot", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.add(s.negate(x), s.shift(y, false))}
		}, 0},
		{"the op is the early one", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early := s.shift(y, true)
			return gorgonia.Nodes{s.add(s.negate(x), early)}
		}, 0},
		{"twice the same", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			a := s.shift(y, true)
			return gorgonia.Nodes{s.add(a, a)}
		}, 0},
		{"twice the same under another name", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			a := s.shift(y, true)
			return gorgonia.Nodes{s.add(s.name(a), a)}
		}, 0},
		{"the early one is an input", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			return gorgonia.Nodes{s.add(x, s.shift(y, true))}
		}, 0},
		{"the early one lives on", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early := s.negate(x)
			sum := s.add(early, s.shift(y, true))
			return gorgonia.Nodes{s.add(s.negate(sum), s.shift(early, false))}
		}, 0},
		{"the early one is an output", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early := s.negate(x)
			return gorgonia.Nodes{early, s.add(early, s.shift(y, true))}
		}, 0},
		{"the early one is an output under another name", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early := s.negate(x)
			return gorgonia.Nodes{s.name(early), s.add(early, s.shift(y, true))}
		}, 0},
		{"the early one is read in between", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early := s.negate(x)
			late := s.shift(y, true)
			other := s.shift(s.name(early), false)
			return gorgonia.Nodes{s.add(early, late), other}
		}, 0},
		{"the op reads the early one", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early := s.negate(x)
			return gorgonia.Nodes{s.add(early, s.shift(early, true))}
		}, 0},
		{"the op has another reader", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early, late := s.negate(x), s.shift(y, true)
			other := s.shift(late, false)
			return gorgonia.Nodes{s.add(early, late), other}
		}, 0},
		{"the op has a later reader", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early, late := s.negate(x), s.shift(y, true)
			return gorgonia.Nodes{s.add(early, late), s.shift(late, false)}
		}, 0},
		{"the op is an output", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			early, late := s.negate(x), s.shift(y, true)
			return gorgonia.Nodes{s.add(early, late), late}
		}, 0},
		{"two sums of one op", func(s *sums, x, y *gorgonia.Node) gorgonia.Nodes {
			a, b, late := s.negate(x), s.negate(y), s.shift(y, true)
			return gorgonia.Nodes{s.add(a, late), s.add(b, late)}
		}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSums(t, 2, rand.New(rand.NewPCG(1, 7)))
			s.outputs = tt.build(s, s.inputs[0], s.inputs[1])
			if got := s.check(exec.Config{}); got != tt.want {
				t.Errorf("%d ops accumulate, want %d", got, tt.want)
			}
		})
	}
}

// TestAccumulateBound lets a chain of products add up in memory of the caller's, as
// the gradients of a weight that is used several times do.
func TestAccumulateBound(t *testing.T) {
	s := newSums(t, 2, rand.New(rand.NewPCG(2, 7)))
	x, y := s.inputs[0], s.inputs[1]
	a, b, c := s.shift(x, true), s.shift(y, true), s.shift(x, true)
	sum := s.add(s.add(a, b), c)
	s.outputs = gorgonia.Nodes{sum}
	mem := make([]float32, accumulateLen)
	if got := s.check(exec.Config{Bind: map[*gorgonia.Node][]float32{sum: mem}}); got != 2 {
		t.Errorf("%d ops accumulate, want 2", got)
	}
	for i := range mem {
		k := (i + 1) % accumulateLen
		if want := 2*s.values[0][k] + s.values[1][k]; mem[i] != want {
			t.Errorf("bound[%d] is %v, want %v", i, mem[i], want)
		}
	}
	// A summand with memory of its own stays there.
	for _, n := range []*gorgonia.Node{a, b} {
		s.outputs = gorgonia.Nodes{sum, n}
		other := make([]float32, accumulateLen)
		s.check(exec.Config{Bind: map[*gorgonia.Node][]float32{sum: mem, n: other}})
		from := s.values[0]
		if n == b {
			from = s.values[1]
		}
		for i := range other {
			if want := from[(i+1)%accumulateLen]; other[i] != want {
				t.Errorf("bound summand[%d] is %v, want %v", i, other[i], want)
			}
		}
	}
}

// TestAccumulateRandomGraphs grows graphs in which sums, products, names and ops in
// place meet in all ways.
func TestAccumulateRandomGraphs(t *testing.T) {
	var total int
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 8))
		s := newSums(t, 2, r)
		pool := s.inputs[:2:2]
		pick := func() *gorgonia.Node { return pool[max(0, len(pool)-1-r.IntN(4))] }
		for range 4 + r.IntN(16) {
			var n *gorgonia.Node
			switch r.IntN(8) {
			case 0, 1:
				n = s.add(pick(), pick())
			case 2:
				n = s.ownSum(pick(), pick())
			case 3:
				n = s.negate(pick())
			case 4:
				n = s.name(pick())
			default:
				n = s.shift(pick(), true)
			}
			pool = append(pool, n)
		}
		s.outputs = gorgonia.Nodes{s.add(pool[len(pool)-1], pool[len(pool)-2]), s.add(pick(), pick())}
		cfg := exec.Config{}
		if r.IntN(2) == 0 && s.outputs[0] != s.outputs[1] {
			cfg.Bind = map[*gorgonia.Node][]float32{s.outputs[0]: make([]float32, accumulateLen)}
		}
		total += s.check(cfg)
	}
	if total < 60 {
		t.Errorf("only %d ops of 400 graphs accumulated", total)
	}
}
