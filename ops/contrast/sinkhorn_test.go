package contrast

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// sinkhornCodes returns the softmax of Sinkhorn's result.
func sinkhornCodes(t testing.TB, scores optest.Input, queue *optest.Input, rows int32, epsilon float32, iterations int) []float32 {
	t.Helper()
	in := []optest.Input{scores}
	if queue != nil {
		in = append(in, *queue, optest.I32s("rows", []int32{rows}))
	}
	out := optest.Eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
		a := SinkhornArgs{Scores: ns[0], Epsilon: epsilon, Iterations: iterations}
		if queue != nil {
			a.Queue, a.Rows = ns[1], ns[2]
		}
		return Sinkhorn(a)
	}, in...)
	codes := make([]float32, len(out.F32))
	for i, v := range out.F32 { // no division: a row of codes sums to 1 as it is
		codes[i] = float32(math.Exp(float64(v)))
	}
	return codes
}

// TestSinkhornGolden compares codes with torch's, from tools/goldens/sinkhorn.py.
func TestSinkhornGolden(t *testing.T) {
	for name, c := range optest.TorchCases(t, "sinkhorn.json") {
		t.Run(name, func(t *testing.T) {
			var queue *optest.Input
			if _, ok := c["queue"]; ok {
				in := c.Input("queue")
				queue = &in
			}
			s := c["settings"].Data
			optest.Near(t, "codes", sinkhornCodes(t, c.Input("scores"), queue, int32(s[2]), float32(s[0]), int(s[1])), c.Floats("codes"), 1e-5)
		})
	}
}

// naiveSinkhorn is the iteration entry by entry in float64.
func naiveSinkhorn(s []float32, n, k int, epsilon float64, iterations int) []float64 {
	q := make([]float64, n*k)
	for i := range q {
		q[i] = math.Exp(float64(s[i])/epsilon - 1/epsilon)
	}
	for range iterations {
		for j := range k {
			var sum float64
			for i := range n {
				sum += q[i*k+j]
			}
			for i := range n {
				q[i*k+j] /= sum * float64(k)
			}
		}
		for i := range n {
			var sum float64
			for j := range k {
				sum += q[i*k+j]
			}
			for j := range k {
				q[i*k+j] /= sum * float64(n)
			}
		}
	}
	for i := range q {
		q[i] *= float64(n)
	}
	return q
}

// TestSinkhornAgainstOracle: random sizes, with and without a queue that is full, in
// part or not at all.
func TestSinkhornAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for trial := range 40 {
		b, k, q := 1+r.IntN(40), 1+r.IntN(60), r.IntN(50)
		epsilon, rounds := []float32{.03, .05, .2, 1}[r.IntN(4)], 1+r.IntN(5)
		scores, queue := optest.F32s(r, "scores", b, k), optest.F32s(r, "queue", max(q, 1), k)
		rows, live := 0, scores.Data.([]float32)
		extra := &queue
		if q == 0 {
			extra = nil
		} else {
			rows = r.IntN(q + 1)
			live = append(append([]float32(nil), live...), queue.Data.([]float32)[:rows*k]...)
		}
		got := sinkhornCodes(t, scores, extra, int32(rows), epsilon, rounds)
		want := make([]float32, b*k)
		for i, v := range naiveSinkhorn(live, b+rows, k, float64(epsilon), rounds)[:b*k] {
			want[i] = float32(v)
		}
		optest.Near(t, "codes", got, want, 2e-5)
		for i := range b {
			var sum float64
			for _, v := range got[i*k:][:k] {
				sum += float64(v)
			}
			if !(math.Abs(sum-1) <= 1e-4) {
				t.Fatalf("trial %d: row %d sums to %v", trial, i, sum)
			}
		}
	}
}

// TestSinkhornExtremes: scores that underflow for a prototype in every row, equal
// scores, and one prototype.
func TestSinkhornExtremes(t *testing.T) {
	got := sinkhornCodes(t, optest.In("scores", []int{2, 3}, []float32{1, 1, -200, 1, .5, -200}), nil, 0, .05, 3)
	for i, v := range got {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			t.Errorf("code %d is %v", i, v)
		}
	}
	optest.Near(t, "equal scores", sinkhornCodes(t, optest.In("scores", []int{3, 4}, make([]float32, 12)), nil, 0, .05, 3),
		[]float32{.25, .25, .25, .25, .25, .25, .25, .25, .25, .25, .25, .25}, 1e-6)
	optest.Near(t, "one prototype", sinkhornCodes(t, optest.In("scores", []int{2, 1}, []float32{1, -1}), nil, 0, .05, 3), []float32{1, 1}, 1e-6)
	nan := float32(math.NaN())
	for _, v := range sinkhornCodes(t, optest.In("scores", []int{2, 2}, []float32{nan, 0, 0, 1}), nil, 0, .05, 3)[:2] {
		if v == v {
			t.Errorf("a score that is no number gives the code %v", v)
		}
	}
}

func TestSinkhornMisuse(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	g, ns := optest.Nodes([]optest.Input{optest.F32s(r, "scores", 4, 3), optest.F32s(r, "queue", 5, 3), optest.F32s(r, "narrow", 5, 2), optest.I32s("rows", []int32{6}), optest.I32s("list", []int32{1, 2}, 2)})
	for name, a := range map[string]SinkhornArgs{
		"no temperature": {Scores: ns[0], Iterations: 3},
		"no iteration":   {Scores: ns[0], Epsilon: .05},
		"narrow queue":   {Scores: ns[0], Queue: ns[2], Rows: ns[3], Epsilon: .05, Iterations: 3},
		"list of rows":   {Scores: ns[0], Queue: ns[1], Rows: ns[4], Epsilon: .05, Iterations: 3},
		"rows missing":   {Scores: ns[0], Queue: ns[1], Epsilon: .05, Iterations: 3},
	} {
		optest.BuildError(t, name, "", func() { Sinkhorn(a) })
	}
	out := Sinkhorn(SinkhornArgs{Scores: ns[0], Queue: ns[1], Rows: ns[3], Epsilon: .05, Iterations: 3})
	m := optest.Machine(t, g, ns[:4], []optest.Input{optest.F32s(r, "scores", 4, 3), optest.F32s(r, "queue", 5, 3), optest.F32s(r, "narrow", 5, 2), optest.I32s("rows", []int32{6})}, out)
	if err := m.RunAll(); err == nil {
		t.Error("6 rows of a queue of 5 pass")
	}
}

// TestSinkhornIdentity: every setting is part of the op's identity.
func TestSinkhornIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	_, ns := optest.Nodes([]optest.Input{optest.F32s(r, "scores", 4, 3)})
	a := Sinkhorn(SinkhornArgs{Scores: ns[0], Epsilon: .05, Iterations: 3})
	for _, b := range []*gorgonia.Node{
		Sinkhorn(SinkhornArgs{Scores: ns[0], Epsilon: .06, Iterations: 3}),
		Sinkhorn(SinkhornArgs{Scores: ns[0], Epsilon: .05, Iterations: 4}),
	} {
		if a == b || a.Hashcode() == b.Hashcode() {
			t.Error("two settings make one node")
		}
	}
	if a != Sinkhorn(SinkhornArgs{Scores: ns[0], Epsilon: .05, Iterations: 3}) {
		t.Error("one setting makes two nodes")
	}
}

func sinkhornCases() []optest.Case {
	r := rand.New(rand.NewPCG(5, 4))
	return []optest.Case{{Name: "sinkhorn", Inputs: []optest.Input{optest.F32s(r, "scores", 120, 90), optest.F32s(r, "queue", 200, 90), optest.I32s("rows", []int32{170})},
		Build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Sinkhorn(SinkhornArgs{Scores: ns[0], Queue: ns[1], Rows: ns[2], Epsilon: .05, Iterations: 3})
		}}}
}
