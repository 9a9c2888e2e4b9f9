package ops

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"
)

// sinkhornCodes returns the softmax of Sinkhorn's result.
func sinkhornCodes(t testing.TB, scores input, queue *input, rows int32, epsilon float32, iterations int) []float32 {
	t.Helper()
	in := []input{scores}
	if queue != nil {
		in = append(in, *queue, i32s("rows", []int32{rows}))
	}
	out := eval(t, func(ns gorgonia.Nodes) *gorgonia.Node {
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
	for name, c := range torchCases(t, "sinkhorn.json") {
		t.Run(name, func(t *testing.T) {
			var queue *input
			if _, ok := c["queue"]; ok {
				in := c.input("queue")
				queue = &in
			}
			s := c["settings"].Data
			near(t, "codes", sinkhornCodes(t, c.input("scores"), queue, int32(s[2]), float32(s[0]), int(s[1])), c.floats("codes"), 1e-5)
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
		scores, queue := f32s(r, "scores", b, k), f32s(r, "queue", max(q, 1), k)
		rows, live := 0, scores.data.([]float32)
		extra := &queue
		if q == 0 {
			extra = nil
		} else {
			rows = r.IntN(q + 1)
			live = append(append([]float32(nil), live...), queue.data.([]float32)[:rows*k]...)
		}
		got := sinkhornCodes(t, scores, extra, int32(rows), epsilon, rounds)
		want := make([]float32, b*k)
		for i, v := range naiveSinkhorn(live, b+rows, k, float64(epsilon), rounds)[:b*k] {
			want[i] = float32(v)
		}
		near(t, "codes", got, want, 2e-5)
		for i := range b {
			var sum float64
			for _, v := range got[i*k:][:k] {
				sum += float64(v)
			}
			if math.Abs(sum-1) > 1e-4 {
				t.Fatalf("trial %d: row %d sums to %v", trial, i, sum)
			}
		}
	}
}

// TestSinkhornExtremes: scores that underflow for a prototype in every row, equal
// scores, and one prototype.
func TestSinkhornExtremes(t *testing.T) {
	got := sinkhornCodes(t, input{"scores", []int{2, 3}, []float32{1, 1, -200, 1, .5, -200}}, nil, 0, .05, 3)
	for i, v := range got {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			t.Errorf("code %d is %v", i, v)
		}
	}
	near(t, "equal scores", sinkhornCodes(t, input{"scores", []int{3, 4}, make([]float32, 12)}, nil, 0, .05, 3),
		[]float32{.25, .25, .25, .25, .25, .25, .25, .25, .25, .25, .25, .25}, 1e-6)
	near(t, "one prototype", sinkhornCodes(t, input{"scores", []int{2, 1}, []float32{1, -1}}, nil, 0, .05, 3), []float32{1, 1}, 1e-6)
	nan := float32(math.NaN())
	for _, v := range sinkhornCodes(t, input{"scores", []int{2, 2}, []float32{nan, 0, 0, 1}}, nil, 0, .05, 3)[:2] {
		if v == v {
			t.Errorf("a score that is no number gives the code %v", v)
		}
	}
}

func TestSinkhornMisuse(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	g, ns := nodes([]input{f32s(r, "scores", 4, 3), f32s(r, "queue", 5, 3), f32s(r, "narrow", 5, 2), i32s("rows", []int32{6}), i32s("list", []int32{1, 2}, 2)})
	for name, a := range map[string]SinkhornArgs{
		"no temperature": {Scores: ns[0], Iterations: 3},
		"no iteration":   {Scores: ns[0], Epsilon: .05},
		"narrow queue":   {Scores: ns[0], Queue: ns[2], Rows: ns[3], Epsilon: .05, Iterations: 3},
		"list of rows":   {Scores: ns[0], Queue: ns[1], Rows: ns[4], Epsilon: .05, Iterations: 3},
		"rows missing":   {Scores: ns[0], Queue: ns[1], Epsilon: .05, Iterations: 3},
	} {
		err := func() (err error) {
			defer Catch(&err)
			Sinkhorn(a)
			return nil
		}()
		var build *BuildError
		if !errors.As(err, &build) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	out := Sinkhorn(SinkhornArgs{Scores: ns[0], Queue: ns[1], Rows: ns[3], Epsilon: .05, Iterations: 3})
	m := machine(t, g, ns[:4], []input{f32s(r, "scores", 4, 3), f32s(r, "queue", 5, 3), f32s(r, "narrow", 5, 2), i32s("rows", []int32{6})}, out)
	if err := m.RunAll(); err == nil {
		t.Error("6 rows of a queue of 5 pass")
	}
}

// TestSinkhornIdentity: every setting is part of the op's identity.
func TestSinkhornIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	_, ns := nodes([]input{f32s(r, "scores", 4, 3)})
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

func sinkhornCases() []opCase {
	r := rand.New(rand.NewPCG(5, 4))
	return []opCase{{name: "sinkhorn", inputs: []input{f32s(r, "scores", 120, 90), f32s(r, "queue", 200, 90), i32s("rows", []int32{170})},
		build: func(ns gorgonia.Nodes) *gorgonia.Node {
			return Sinkhorn(SinkhornArgs{Scores: ns[0], Queue: ns[1], Rows: ns[2], Epsilon: .05, Iterations: 3})
		}}}
}
