package pairs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// rows are values of a pair: (tokens of queries, tokens of contexts), or the tokens of a side.
type rows = [][]float64

// computation is a score by the primitives and by plain loops over one pair.
type computation struct {
	name  string
	build func(b *Block, s Matrix) Matrix
	naive func(s, q, k rows) float64
	// or wholes, of a computation that reads those too, of queries and of contexts.
	wholes func(s, q, k rows, x, y []float64) float64
	jumps  bool
	// vectors are those of queries for each context.
	vectors bool
}

var computations = []computation{
	{name: "sums and means", build: func(_ *Block, s Matrix) Matrix { return s.Mean(Contexts).Sum(Queries) },
		naive: func(s, _, _ rows) float64 { return total(s) / float64(len(s[0])) }},
	{name: "means and sums", build: func(_ *Block, s Matrix) Matrix { return s.Sum(Contexts).Mean(Queries) },
		naive: func(s, _, _ rows) float64 { return total(s) / float64(len(s)) }},
	{name: "queries first", build: func(_ *Block, s Matrix) Matrix { return s.Mean(Queries).Sum(Contexts) },
		naive: func(s, _, _ rows) float64 { return total(s) / float64(len(s)) }},
	{name: "broadcast of both", build: func(_ *Block, s Matrix) Matrix {
		return s.Sum(Queries).Times(s.Sum(Contexts)).Sum(Contexts).Sum(Queries)
	}, naive: func(s, _, _ rows) float64 { return total(s) * total(s) }},
	{name: "a row and a column", build: func(b *Block, s Matrix) Matrix {
		r := s.Times(b.SquaredNorms(b.Rows(Contexts, 0))).Plus(2, b.SquaredNorms(b.Rows(Queries, 0)), -3)
		return s.Dot(r, Contexts).Sum(Queries)
	}, naive: func(s, q, k rows) float64 {
		return total(each(s, func(v float64, i, j int) float64 { return v * (2*v*square(k[j]) - 3*square(q[i])) }))
	}},
	{name: "functions", build: func(_ *Block, s Matrix) Matrix {
		return s.LeakyReLU(.3).Scale(-2).Exp(.5).Mean(Queries).Exp(-.1).Mean(Contexts)
	}, naive: func(s, _, _ rows) float64 {
		e, sum := each(s, func(v float64, _, _ int) float64 { return math.Exp(-max(v, .3*v)) }), 0.
		for j := range s[0] {
			mean := 0.
			for i := range s {
				mean += e[i][j] / float64(len(s))
			}
			sum += math.Exp(-.1*mean) / float64(len(s[0]))
		}
		return sum
	}},
	{name: "softmax", build: func(_ *Block, s Matrix) Matrix {
		return s.Softmax(Contexts, 3).Dot(s, Contexts).LogSumExp(Queries, 2)
	}, naive: func(s, _, _ rows) float64 { return pooled(s, 3, false) }},
	{name: "focal softmax", build: func(_ *Block, s Matrix) Matrix {
		return s.FocalSoftmax(3, false).Dot(s, Contexts).LogSumExp(Queries, 2)
	}, naive: func(s, _, _ rows) float64 { return pooled(s, 3, true) }, jumps: true},
	{name: "focal softmax, weighted mean", build: func(_ *Block, s Matrix) Matrix {
		return s.FocalSoftmax(3, true).Dot(s, Contexts).LogSumExp(Queries, 2)
	}, naive: func(s, _, _ rows) float64 {
		sum := 0.
		for _, row := range s {
			r, kept := 0., 0.
			for _, v := range row {
				above := 0. // sum (w - w') sqrt(w') over the weights of the row, as in BFAN's equation
				for _, u := range row {
					above += (math.Exp(3*v) - math.Exp(3*u)) * math.Exp(1.5*u)
				}
				if w := math.Exp(3 * v); len(row) == 1 || above > 0 {
					r, kept = r+w*v, kept+w
				}
			}
			sum += math.Exp(2 * r / kept)
		}
		return math.Log(sum) / 2
	}, jumps: true},
	{name: "normalised", build: func(_ *Block, s Matrix) Matrix {
		return s.Normalise(2, .1).Dot(s.Exp(1), Contexts).Sum(Queries)
	}, naive: func(s, _, _ rows) (sum float64) {
		for j := range s[0] {
			n := 0.
			for i := range s {
				n += s[i][j] * s[i][j]
			}
			for i := range s {
				sum += 2 * s[i][j] / (math.Sqrt(n) + .1) * math.Exp(s[i][j])
			}
		}
		return sum
	}},
	{name: "cosines", build: func(b *Block, s Matrix) Matrix {
		w := s.Exp(.5)
		lengths := b.SquaredLengths(w, b.Rows(Contexts, 0))
		return w.Dot(s, Contexts).Cosine(lengths, b.SquaredNorms(b.Rows(Queries, 0)), 1e-8).Mean(Queries)
	}, naive: func(s, q, k rows) (mean float64) {
		for i, row := range s {
			sum := make([]float64, len(k[0]))
			for j, v := range row {
				for c := range sum {
					sum[c] += math.Exp(v/2) * k[j][c]
				}
			}
			mean += inner(sum, q[i]) / math.Sqrt(square(sum)*square(q[i])) / float64(len(s))
		}
		return mean
	}},
	{name: "softmaxes over queries", build: func(b *Block, s Matrix) Matrix {
		w := s.Softmax(Queries, 3)
		cos := w.Dot(s, Queries).CosineOrZero(b.SquaredLengths(w, b.Rows(Queries, 0)), b.SquaredNorms(b.Rows(Contexts, 0)),
			1e-8)
		return cos.LogMeanExp(Contexts, 2).Plus(1, cos.LogSumExp(Contexts, 3).Softplus(.5), 1)
	}, naive: func(s, q, k rows) float64 {
		mean, sum := 0., 0.
		for j := range s[0] {
			all, blend := 0., make([]float64, len(q[0]))
			for i := range s {
				all += math.Exp(3 * s[i][j])
			}
			for i := range s {
				for c := range blend {
					blend[c] += math.Exp(3*s[i][j]) / all * q[i][c]
				}
			}
			cos := inner(blend, k[j]) / math.Sqrt(square(blend)*square(k[j]))
			mean, sum = mean+math.Exp(2*cos)/float64(len(k)), sum+math.Exp(3*cos)
		}
		return math.Log(mean)/2 + math.Log(1+math.Exp(.5*math.Log(sum)/3))
	}},
	{name: "vectors", build: func(b *Block, s Matrix) Matrix {
		q, k := b.Rows(Queries, 0), b.Rows(Contexts, 0)
		gates := b.Repeat(b.Linear(q, 1, 2)).Plus(b.Mix(s.Softmax(Contexts, 1), b.Linear(k, 1, -1)))
		x := b.Gated(b.Repeat(q), gates)
		p := b.Products(b.Unit(x, .1), k)
		return p.Dot(p, Contexts).Sum(Queries).Plus(1, b.Products(b.Linear(x, 3, -1), k).Sum(Contexts).Sum(Queries), 1)
	}, naive: func(s, q, k rows) float64 { return refined(weight, bias, s, q, k) }, vectors: true},
	{name: "similarity vectors", build: func(b *Block, s Matrix) Matrix {
		return similarity(b, s, func(x, n Features) Features {
			v := n
			if x == n {
				v = b.Linear(n, 3, -1)
			}
			return b.Linear(b.Attend(b.Linear(x, 3, -1), n, v), 3, 4).ReLU()
		}).Sigmoid(.5)
	}, wholes: func(s, q, k rows, x, y []float64) float64 {
		return 1 / (1 + math.Exp(-.5*similar(s, q, k, x, y, func(nodes rows) []float64 {
			for step := range 2 {
				var next rows
				for i, x := range nodes {
					norm, sum := 0., make([]float64, 3)
					for _, y := range nodes {
						e := math.Exp(inner(linear(turn, nil, x), y))
						norm += e
						if step == 0 {
							y = linear(turn, nil, y)
						}
						for c, v := range y {
							sum[c] += e * v
						}
					}
					for c := range sum {
						sum[c] /= norm
					}
					next = append(next, linear(turn, offset, sum))
					for c, v := range next[i] {
						next[i][c] = max(v, 0)
					}
				}
				nodes = next
			}
			return nodes[0]
		})))
	}, vectors: true},
	{name: "gathered", build: func(b *Block, s Matrix) Matrix { return similarity(b, s, nil) },
		wholes: func(s, q, k rows, x, y []float64) float64 {
			return similar(s, q, k, x, y, func(nodes rows) []float64 {
				all, sum := .1, make([]float64, 3)
				for _, x := range nodes {
					a := 1 / (1 + math.Exp(-linear(score, nil, x)[0]))
					all += a
					for c, v := range x {
						sum[c] += a * v
					}
				}
				for c := range sum {
					sum[c] /= all
				}
				return sum
			})
		}, vectors: true},
	{name: "maxima", build: func(_ *Block, s Matrix) Matrix {
		return s.Max(Queries).Mean(Contexts).Plus(1, s.Exp(1).Max(Contexts).Sum(Queries), 2)
	}, naive: func(s, _, _ rows) (sum float64) {
		for j := range s[0] {
			top := math.Inf(-1)
			for i := range s {
				top = max(top, s[i][j])
			}
			sum += top / float64(len(s[0]))
		}
		for _, row := range s {
			sum += 2 * math.Exp(slices.Max(row))
		}
		return sum
	}, jumps: true},
	{name: "above a bound", build: func(b *Block, s Matrix) Matrix {
		x := s.Mean(Contexts)
		kept := x.Below(x.Blend(b.Rows(Queries, 0), 2)).Sum(Queries).Times(b.Count(Queries)).Plus(1, b.Count(Contexts), 1)
		return s.SoftmaxAbove(2, b.Value(0, 1)).Dot(s, Contexts).Mean(Queries).Plus(1, kept, 1)
	}, naive: func(s, q, k rows) (sum float64) {
		means := make([]float64, len(q))
		for i := range q {
			kept, dot := 0., 0.
			for _, v := range s[i] {
				if means[i] += v / float64(len(k)); v > bound {
					kept, dot = kept+math.Exp(2*v), dot+math.Exp(2*v)*v
				}
			}
			if kept > 0 {
				sum += dot / kept / float64(len(q))
			}
		}
		for i := range q {
			share, blend := 0., 0.
			for l := range q {
				e := math.Exp(2 * inner(q[i], q[l]))
				share, blend = share+e, blend+e*means[l]
			}
			if blend < 0 {
				sum += means[i] * float64(len(q))
			}
		}
		return sum + float64(len(k))
	}, jumps: true},
}

const bound = .125

var weight, bias = optest.F32s(rand.New(rand.NewPCG(91, 6)), "", 18).Floats(), []float32{.5, -.5, 1, 0, .25, -.25}
var turn = []float32{.5, -.25, 1, 0, .75, -.5, .25, 1, -1}
var offset, score = []float32{.5, .25, -.125}, []float32{1, -.5, .75}

// refined is the sum of squared products of contexts with what a memory unit of three channels makes of queries, at
// about unit length, and of the products with what another weight makes of that.
func refined(weight, bias []float32, s, q, k rows) (sum float64) {
	for i, row := range s {
		gates := make([]float64, 6)
		norm, mix := 0., make([]float64, 3)
		for j, v := range row {
			norm += math.Exp(v)
			for c := range mix {
				mix[c] += math.Exp(v) * k[j][c]
			}
		}
		x := make([]float64, 3)
		for c := range gates {
			gates[c] = float64(bias[c])
			for d := range 3 {
				gates[c] += float64(weight[3*c+d]) * (q[i][d] + mix[d]/norm)
			}
		}
		for c := range x {
			g := 1 / (1 + math.Exp(-gates[c]))
			x[c] = g*q[i][c] + (1-g)*math.Tanh(gates[3+c])
		}
		length, turned := math.Sqrt(square(x))+.1, make([]float64, 3)
		for c := range turned {
			for d := range x {
				turned[c] += float64(turn[3*c+d]) * x[d]
			}
		}
		for j := range k {
			v := inner(x, k[j]) / length
			sum += v*v + inner(turned, k[j])
		}
	}
	return sum
}

// similarity is the score of joined vectors of a pair behind two steps, or gathered.
func similarity(b *Block, s Matrix, step func(x, n Features) Features) Matrix {
	q, k := b.Rows(Queries, 0), b.Rows(Contexts, 0)
	mix := b.Mix(s.Softmax(Contexts, 1), k)
	d := b.SquaredDifference(mix, b.SquaredNorms(mix).InverseRoot(.1), q)
	whole := b.SquaredDifference(b.Repeat(b.Wholes(Contexts, 0)), Matrix{}, b.Wholes(Queries, 0))
	n := b.Unit(b.Join(whole, b.Linear(d, 3, 4)), .1)
	f := n
	if step == nil {
		f = b.Gather(n, b.Linear(n, 5, -1), .1)
	} else {
		n = step(n, n)
		f = step(b.First(n), n)
	}
	return b.Matrix(b.Linear(f, 5, -1))
}

// similar is the same by plain loops, with the wholes x and y.
func similar(s, q, k rows, x, y []float64, end func(nodes rows) []float64) float64 {
	differ := func(x, y []float64, a float64) (d []float64) {
		for c := range x {
			d = append(d, (a*x[c]-y[c])*(a*x[c]-y[c]))
		}
		return d
	}
	unit := func(x []float64) (y []float64) {
		for _, v := range x {
			y = append(y, v/(math.Sqrt(square(x))+.1))
		}
		return y
	}
	nodes := rows{unit(differ(y, x, 1))}
	for i, row := range s {
		norm, mix := 0., make([]float64, 3)
		for j, v := range row {
			norm += math.Exp(v)
			for c := range mix {
				mix[c] += math.Exp(v) * k[j][c]
			}
		}
		for c := range mix {
			mix[c] /= norm
		}
		nodes = append(nodes, unit(linear(turn, offset, differ(mix, q[i], 1/(math.Sqrt(square(mix))+.1)))))
	}
	return linear(score, nil, end(nodes))[0]
}

// linear is W x + b.
func linear(w, b []float32, x []float64) (y []float64) {
	for o := range len(w) / len(x) {
		y = append(y, 0)
		if b != nil {
			y[o] = float64(b[o])
		}
		for c, v := range x {
			y[o] += float64(w[o*len(x)+c]) * v
		}
	}
	return y
}

func inner(x, y []float64) (s float64) {
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

func square(x []float64) float64 { return inner(x, x) }

func total(s rows) (sum float64) {
	for _, row := range s {
		for _, v := range row {
			sum += v
		}
	}
	return sum
}

func each(s rows, f func(v float64, i, j int) float64) (t rows) {
	for i, row := range s {
		t = append(t, make([]float64, len(row)))
		for j, v := range row {
			t[i][j] = f(v, i, j)
		}
	}
	return t
}

func pooled(s rows, scale float64, focal bool) float64 {
	sum := 0.
	for _, row := range s {
		norm, r := 0., 0.
		for _, v := range row {
			norm += math.Exp(scale * v)
		}
		mean, kept := norm/float64(len(row)), 0.
		for _, v := range row {
			if w := math.Exp(scale * v); !focal || len(row) == 1 || w > mean {
				r, kept = r+w*v, kept+w
			}
		}
		sum += math.Exp(2 * r / kept)
	}
	return math.Log(sum) / 2
}

// problem is a random one of so many sequences.
func problem(r *rand.Rand, n, m, tokens, words, channels int) []optest.Input {
	lengths := func(n, most int) (list []int32) {
		for range n {
			list = append(list, int32(r.IntN(most+1)))
		}
		return list
	}
	return []optest.Input{
		optest.F32s(r, "images", n*tokens, channels), optest.F32s(r, "texts", m*words, channels),
		optest.I32s("tokens", lengths(n, tokens), n), optest.I32s("words", lengths(m, words), m),
		optest.In("shared", []int{3}, []float32{9, bound, 9}), optest.In("weight", []int{6, 3}, weight),
		optest.In("bias", []int{6}, bias), optest.In("square", []int{3, 3}, turn),
		optest.In("offset", []int{3}, offset), optest.In("score", []int{1, 3}, score),
		optest.F32s(r, "whole images", n, channels), optest.F32s(r, "whole texts", m, channels),
	}
}

// scored builds a computation of a problem. Image tokens begin at 1 where there are some.
func scored(tokens, words int, transposed bool, of computation) func(gorgonia.Nodes) *gorgonia.Node {
	return func(ns gorgonia.Nodes) *gorgonia.Node {
		images := Side{Rows: ns[:1], Lengths: ns[2], Len: tokens, First: min(1, tokens-1)}
		texts := Side{Rows: ns[1:2], Lengths: ns[3], Len: words}
		if of.wholes != nil {
			images.Wholes, texts.Wholes = ns[10:11], ns[11:12]
		}
		p := Pairs{Kind: "test pairs", Queries: images, Contexts: texts, Shared: ns[4:10]}
		if transposed {
			p.Queries, p.Contexts, p.Transposed = texts, images, true
		}
		if of.vectors {
			p.Vectors = 6
		}
		return p.Scores(func(b *Block) Matrix {
			return of.build(b, b.Products(b.Rows(Queries, 0), b.Rows(Contexts, 0)))
		})
	}
}

// naive are the scores pair by pair.
func naive(in []optest.Input, n, m, tokens, words int, transposed bool, c computation) (out []float32) {
	of := func(x optest.Input, i, size, lo, hi int) (list rows) {
		channels := x.Shape[1]
		for t := lo; t < hi; t++ {
			row := make([]float64, channels)
			for c := range row {
				row[c] = float64(x.Floats()[(i*size+t)*channels+c])
			}
			list = append(list, row)
		}
		return list
	}
	for i := range n {
		for j := range m {
			q := of(in[0], i, tokens, min(1, tokens-1), int(in[2].Data.([]int32)[i]))
			k := of(in[1], j, words, 0, int(in[3].Data.([]int32)[j]))
			if len(q) == 0 || len(k) == 0 {
				out = append(out, 0)
				continue
			}
			x, y := of(in[10], i, 1, 0, 1)[0], of(in[11], j, 1, 0, 1)[0]
			if transposed {
				q, k, x, y = k, q, y, x
			}
			var s rows
			for _, x := range q {
				s = append(s, nil)
				for _, y := range k {
					s[len(s)-1] = append(s[len(s)-1], inner(x, y))
				}
			}
			if c.wholes != nil {
				out = append(out, float32(c.wholes(s, q, k, x, y)))
			} else {
				out = append(out, float32(c.naive(s, q, k)))
			}
		}
	}
	return out
}

// small has blocks of few tokens during a test.
func small(t *testing.T) {
	host, device, vectors, onDevice := hostTokens, deviceTokens, hostVectors, deviceVectors
	hostTokens, deviceTokens = [2]int{11, 9}, [2]int{11, 9}
	hostVectors, deviceVectors = [2]int{7, 14}, [2]int{7, 84}
	t.Cleanup(func() { hostTokens, deviceTokens, hostVectors, deviceVectors = host, device, vectors, onDevice })
}

// TestScores compares random problems with plain loops and gradients with finite differences, in one block and in many.
func TestScores(t *testing.T) {
	for _, blocks := range []string{"one block", "small blocks"} {
		t.Run(blocks, func(t *testing.T) {
			if blocks != "one block" {
				small(t)
			}
			r := rand.New(rand.NewPCG(91, 1))
			for _, c := range computations {
				for i := range 6 {
					n, m, tokens, words := 1+r.IntN(5), 1+r.IntN(5), 1+r.IntN(5), 1+r.IntN(5)
					in := problem(r, n, m, tokens, words, 3)
					build := scored(tokens, words, i%2 == 1, c)
					name := fmt.Sprint(c.name, " ", i)
					want := naive(in, n, m, tokens, words, i%2 == 1, c)
					optest.Near(t, name, optest.Eval(t, build, in...).F32, want, 1e-5)
					if !c.jumps {
						optest.CheckGrad(t, build, c.wrt(), 1e-3, 2e-2, in...)
					}
					if t.Failed() {
						t.Fatal(name)
					}
				}
			}
		})
	}
}

// wrt are the inputs that have a gradient.
func (c computation) wrt() []int {
	switch {
	case c.wholes != nil:
		return []int{0, 1, 7, 8, 9, 10, 11}
	case c.vectors:
		return []int{0, 1, 5, 6, 7}
	}
	return []int{0, 1}
}

func (c computation) channels() int {
	if c.vectors {
		return 3
	}
	return 16
}

func cases() (list []optest.Case) {
	r := rand.New(rand.NewPCG(91, 2))
	for i, c := range computations {
		in := problem(r, 5, 7, 6, 9, c.channels())
		list = append(list, optest.Case{Name: c.name, Inputs: in, WRT: c.wrt(), GEMM: true,
			Build: scored(6, 9, i%2 == 1, c)})
	}
	return list
}

func TestCases(t *testing.T) { optest.CheckCases(t, cases()) }

// TestCUDA: every primitive has a step for the device, which gives the host's results.
func TestCUDA(t *testing.T) {
	optest.CheckCUDA(t, cases())
	t.Run("small blocks", func(t *testing.T) {
		small(t)
		optest.CheckCUDA(t, cases())
	})
}

// TestBlocks: gradients are added up over blocks.
func TestBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 3))
	in := problem(r, 4, 5, 3, 4, 3)
	for _, of := range computations {
		if of.name != "cosines" && !of.vectors {
			continue
		}
		whole := func() [][]float32 {
			g, _ := optest.Gradients(t, scored(3, 4, false, of), of.wrt(), in...)
			return g
		}
		one := whole()
		t.Run(of.name, func(t *testing.T) {
			small(t)
			for i, g := range whole() {
				optest.Near(t, in[of.wrt()[i]].Name, g, one[i], 1e-5)
			}
		})
	}
}

// TestIdentity: computations that differ are different nodes, and the same one is one.
func TestIdentity(t *testing.T) {
	in := problem(rand.New(rand.NewPCG(91, 4)), 2, 2, 3, 3, 3)
	g, ns := optest.Nodes(in)
	var builds []func() *gorgonia.Node
	for _, c := range computations {
		builds = append(builds, func() *gorgonia.Node { return scored(3, 3, false, c)(ns) },
			func() *gorgonia.Node { return scored(3, 3, true, c)(ns) })
	}
	optest.CheckIdentity(t, g, builds)
}

func TestErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 5))
	of := optest.F32s
	_, ns := optest.Nodes([]optest.Input{of(r, "x", 6, 4), of(r, "y", 4, 4), of(r, "narrow", 4, 3)})
	x, y := Side{Rows: ns[:1], Len: 3}, Side{Rows: ns[1:2], Len: 2}
	score := func(x, y Side, build func(b *Block) Matrix) func() {
		return func() { Pairs{Kind: "test", Queries: x, Contexts: y}.Scores(build) }
	}
	products := func(b *Block) Matrix { return b.Products(b.Rows(Queries, 0), b.Rows(Contexts, 0)) }
	scores := func(b *Block) Matrix { return products(b).Sum(Queries).Sum(Contexts) }
	for want, build := range map[string]func(){
		"want rows (R*4, C) (got (6, 4))": score(Side{Rows: ns[:1], Len: 4}, y, scores),
		"want rows of both sides":         score(Side{Len: 4}, y, scores),
		"the first token must be in":      score(Side{Rows: ns[:1], Len: 3, First: 3}, y, scores),
		"as many channels (got 4 and 3)":  score(x, Side{Rows: ns[2:], Len: 2}, scores),
		"a row and a column for each":     score(x, y, products),
		"no tokens of this side":          score(x, y, func(b *Block) Matrix { return scores(b).Sum(Queries) }),
	} {
		optest.BuildError(t, want, want, build)
	}
	optest.RunError(t, "length 4 of sequence 1: want at most 3", func(ns gorgonia.Nodes) *gorgonia.Node {
		long := Side{Rows: ns[:1], Len: 3, Lengths: ns[2]}
		return Pairs{Queries: long, Contexts: Side{Rows: ns[1:2], Len: 2}}.Scores(scores)
	}, of(r, "x", 6, 4), of(r, "y", 4, 4), optest.I32s("lengths", []int32{2, 4}, 2))
}

// TestFinite: with a look at every result, memory of a block that is not in use is none.
func TestFinite(t *testing.T) {
	c := cases()[9]
	g, ns := optest.Nodes(c.Inputs)
	out := c.Build(ns)
	grads, err := gorgonia.Grad(optest.Dot(out, out), ns[0], ns[1])
	if err != nil {
		t.Fatal(err)
	}
	outputs := append(slices.Clone(grads), out)
	m, err := exec.Compile(g, exec.Config{Engine: optest.Engine, CheckNaN: true, Outputs: outputs})
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range c.Inputs {
		if err := m.SetInput(ns[i], in.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.RunAll(); err != nil {
		t.Fatal(err)
	}
	c.Inputs[0].Floats()[16*6*4+16] = float32(math.NaN()) // a token of image 4
	c.Inputs[2].Data.([]int32)[4], c.Inputs[3].Data.([]int32)[0] = 6, 9
	if err := m.RunAll(); err == nil {
		t.Error("NaN is no error")
	}
}
