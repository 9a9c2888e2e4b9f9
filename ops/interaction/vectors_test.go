package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// vectorsProblem is a SimilarityVectors of a problem without weights; nil rows are left out.
type vectorsProblem struct {
	problem
	scale                 float32
	wholes                [2][]float32
	attention, similarity []float32
	size, steps           int                  // S, and steps of reasoning; 0: a gate
	layers                map[string][]float32 // by name and /weight or /bias
	nudged                *float32             // naive adds by to this value
	by                    float64
}

// layerSizes are the layers of a problem, out and in.
func (p vectorsProblem) layerSizes() (names []string, sizes map[string][2]int) {
	names, sizes = []string{"local", "global", "score"}, map[string][2]int{"local": {p.size, p.channels}, "global": {p.size, p.channels}, "score": {1, p.size}}
	if p.steps == 0 {
		names, sizes["gate"] = append(names, "gate"), [2]int{1, p.size}
	}
	for i := range p.steps {
		for _, k := range []string{"query", "key", "out"} {
			name := fmt.Sprint(k, i)
			names, sizes[name] = append(names, name), [2]int{p.size, p.size}
		}
	}
	return names, sizes
}

func (p vectorsProblem) inputs() []optest.Input {
	in := p.problem.inputs()
	add := func(name string, rows []float32, shape ...int) {
		if rows != nil {
			in = append(in, optest.In(name, shape, rows))
		}
	}
	add("whole images", p.wholes[0], p.n, p.channels)
	add("whole texts", p.wholes[1], p.m, p.channels)
	add("attention", p.attention, len(p.attention)/p.channels, p.channels)
	add("similarity", p.similarity, len(p.similarity)/p.channels, p.channels)
	names, sizes := p.layerSizes()
	for _, name := range names {
		s := sizes[name]
		add(name+"/weight", p.layers[name+"/weight"], s[0], s[1])
		add(name+"/bias", p.layers[name+"/bias"], s[0])
	}
	return in
}

// build is SimilarityVectors of inputs.
func (p vectorsProblem) build(ns gorgonia.Nodes) *gorgonia.Node {
	named := map[string]*gorgonia.Node{}
	for _, n := range ns {
		named[n.Name()] = n
	}
	sides := [2]Tokens{}
	for k, s := range []problemSide{p.images, p.texts} {
		name := []string{"images", "texts"}[k]
		sides[k] = Tokens{Rows: named[name], Lengths: named[name+" lengths"], Len: s.len, First: s.first}
	}
	return SimilarityVectors(sides[0], sides[1], p.how(func(name string) *gorgonia.Node { return named[name] }))
}

func (p vectorsProblem) how(get func(name string) *gorgonia.Node) Vectors {
	layer := func(name string) Layer {
		if name[0] == 'k' {
			return Layer{Weight: get(name + "/weight")}
		}
		return Layer{get(name + "/weight"), get(name + "/bias")}
	}
	how := Vectors{Scale: p.scale, Images: get("whole images"), Texts: get("whole texts"), Local: layer("local"), Global: layer("global"), Score: layer("score")}
	if p.attention != nil {
		how.Attention = get("attention")
	}
	if p.similarity != nil {
		how.Similarity = get("similarity")
	}
	if p.steps == 0 {
		how.Gate = layer("gate")
	}
	for i := range p.steps {
		how.Steps = append(how.Steps, Reasoning{layer(fmt.Sprint("query", i)), layer(fmt.Sprint("key", i)), layer(fmt.Sprint("out", i))})
	}
	return how
}

// naive are the scores by the definition.
func (p vectorsProblem) naive() (scores []float64) {
	value := func(x []float32, i int) float64 {
		if &x[i] == p.nudged {
			return float64(x[i]) + p.by
		}
		return float64(x[i])
	}
	row := func(x []float32, i int) (r []float64) {
		for c := range p.channels {
			r = append(r, value(x, i*p.channels+c))
		}
		return r
	}
	dot := func(x, y []float64) (s float64) {
		for i := range x {
			s += x[i] * y[i]
		}
		return s
	}
	through := func(name string, x []float64) (y []float64) {
		w, bias := p.layers[name+"/weight"], p.layers[name+"/bias"]
		for o := range len(w) / len(x) {
			sum := 0.
			if bias != nil {
				sum = value(bias, o)
			}
			for i, v := range x {
				sum += v * value(w, o*len(x)+i)
			}
			y = append(y, sum)
		}
		return y
	}
	unit := func(x []float64) []float64 {
		l := math.Sqrt(dot(x, x)) + 1e-8
		for i := range x {
			x[i] /= l
		}
		return x
	}
	squares := func(x, y []float64) (s []float64) {
		for i := range x {
			s = append(s, (x[i]-y[i])*(x[i]-y[i]))
		}
		return s
	}
	softmax := func(x []float64) []float64 {
		sum := 0.
		for i := range x {
			x[i] = math.Exp(x[i])
			sum += x[i]
		}
		for i := range x {
			x[i] /= sum
		}
		return x
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	attention, similarity := p.attention, p.similarity
	if attention == nil {
		attention = p.images.rows
	}
	if similarity == nil {
		similarity = p.images.rows
	}
	for i := range p.n {
		for j := range p.m {
			tokens, words := p.images.tokens(i), p.texts.tokens(j)
			if len(tokens) == 0 || len(words) == 0 {
				scores = append(scores, 0)
				continue
			}
			b, norms := map[[2]int]float64{}, map[int]float64{}
			for _, l := range words {
				for _, t := range tokens {
					v := dot(row(p.texts.rows, j*p.texts.len+l), row(attention, i*p.images.len+t))
					if v < 0 {
						v *= .1
					}
					b[[2]int{l, t}] = v
					norms[t] += v * v
				}
			}
			nodes := [][]float64{unit(through("global", squares(row(p.wholes[0], i), row(p.wholes[1], j))))}
			for _, l := range words {
				var logits []float64
				for _, t := range tokens {
					logits = append(logits, float64(p.scale)*b[[2]int{l, t}]/(math.Sqrt(norms[t])+1e-8))
				}
				plain, folded := make([]float64, p.channels), make([]float64, p.channels)
				for k, w := range softmax(logits) {
					for c := range plain {
						plain[c] += w * row(p.images.rows, i*p.images.len+tokens[k])[c]
						folded[c] += w * row(similarity, i*p.images.len+tokens[k])[c]
					}
				}
				length := math.Sqrt(dot(plain, plain)) + 1e-8
				for c := range folded {
					folded[c] /= length
				}
				nodes = append(nodes, unit(through("local", squares(folded, row(p.texts.rows, j*p.texts.len+l)))))
			}
			for step := range p.steps {
				var next [][]float64
				for _, n := range nodes {
					var edges []float64
					q := through(fmt.Sprint("query", step), n)
					for _, other := range nodes {
						edges = append(edges, dot(q, through(fmt.Sprint("key", step), other)))
					}
					mixed := make([]float64, p.size)
					for k, e := range softmax(edges) {
						for c := range mixed {
							mixed[c] += e * nodes[k][c]
						}
					}
					out := through(fmt.Sprint("out", step), mixed)
					for c := range out {
						out[c] = max(out[c], 0)
					}
					next = append(next, out)
				}
				nodes = next
			}
			f := nodes[0]
			if p.steps == 0 {
				sum := 1e-8
				f = make([]float64, p.size)
				for _, n := range nodes {
					sum += sigmoid(through("gate", n)[0])
				}
				for _, n := range nodes {
					for c := range f {
						f[c] += sigmoid(through("gate", n)[0]) / sum * n[c]
					}
				}
				unit(f)
			}
			scores = append(scores, sigmoid(through("score", f)[0]))
		}
	}
	return scores
}

// randomVectors is a problem of a kind: bits of kind choose what there is.
func randomVectors(r *rand.Rand, kind, n, m, tokens, words, channels, size int) vectorsProblem {
	p := vectorsProblem{problem: problem{n: n, m: m, channels: channels}, scale: 9, size: size, layers: map[string][]float32{}}
	rows := func(n, width int) []float32 { return optest.F32s(r, "", n, width).Floats() }
	p.images = randomSide(r, n, tokens, channels, kind&4 != 0, false)
	p.texts = randomSide(r, m, words, channels, kind&4 != 0, false)
	p.wholes = [2][]float32{rows(n, channels), rows(m, channels)}
	if kind&8 != 0 {
		p.attention = rows(n*tokens, channels)
	}
	if kind&16 != 0 {
		p.similarity = rows(n*tokens, channels)
	}
	p.steps = kind & 3
	names, sizes := p.layerSizes()
	for _, name := range names {
		s := sizes[name]
		p.layers[name+"/weight"] = rows(s[0], s[1])
		if p.layers[name+"/bias"] = rows(1, s[0]); name[0] == 'k' { // a softmax does not see that of keys
			delete(p.layers, name+"/bias")
		}
	}
	return p
}

// slopes are the gradients of sum g_ij s_ij by finite differences of the definition in float64, at
// most 20 of each operand; NaN for the others.
func (p vectorsProblem) slopes(g []float32) (slopes [][]float64) {
	const h = 1e-6
	for _, in := range p.inputs() {
		x, ok := in.Data.([]float32)
		if !ok {
			continue
		}
		d := make([]float64, len(x))
		for i := range d {
			if d[i] = math.NaN(); i%(1+len(x)/20) > 0 {
				continue
			}
			d[i], p.nudged = 0, &x[i]
			for _, p.by = range []float64{h, -h} {
				for k, v := range p.naive() {
					d[i] += float64(g[k]) * v / (2 * p.by)
				}
			}
		}
		slopes = append(slopes, d)
	}
	return slopes
}

// checkSlopes compares gradients with slopes.
func (p vectorsProblem) checkSlopes(t *testing.T, name string) {
	t.Helper()
	in := p.inputs()
	grads, _ := optest.Gradients(t, p.build, floats(in), in...)
	g := optest.F32s(rand.New(rand.NewPCG(7, 7)), "", p.n, p.m).Floats() // those of optest.Gradients
	for k, want := range p.slopes(g) {
		largest := 1e-2
		for _, v := range want {
			if v == v {
				largest = max(largest, math.Abs(v))
			}
		}
		for i, v := range want {
			if got := float64(grads[k][i]); v == v && !(math.Abs(got-v) <= 2e-4*largest) {
				t.Errorf("%s: gradient of %s[%d]: got %v, finite differences %v", name, in[floats(in)[k]].Name, i, got, v)
			}
		}
	}
}

// TestVectors compares scores of random problems of every kind with the definition and gradients
// with its finite differences: up to three steps and a gate, with and without lengths, empty
// sequences, rows under metrics.
func TestVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 1))
	for i := range 64 {
		p := randomVectors(r, i%32, 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(4), 1+r.IntN(4), 3+r.IntN(4), 2+r.IntN(4))
		name := fmt.Sprintf("problem %d", i)
		optest.Near(t, name, optest.Eval(t, p.build, p.inputs()...).F32, narrow(p.naive()), 1e-5)
		if p.checkSlopes(t, name); t.Failed() {
			t.Fatalf("%+v", p)
		}
	}
}

// TestVectorsBlocks: scores and gradients of many blocks are those of the pairs alone.
func TestVectorsBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 2))
	for name, p := range map[string]vectorsProblem{
		"short texts":      randomVectors(r, 4+8+2, 9, 20, 3, 20, 4, 3),
		"gate":             randomVectors(r, 4+16, 9, 20, 3, 20, 4, 3),
		"long texts":       randomVectors(r, 1, 5, 3, 2, 300, 4, 3),
		"longer than most": randomVectors(r, 4, 2, 3, 2, 1044, 4, 3),
	} {
		in := p.inputs()
		optest.Near(t, name, optest.Eval(t, p.build, in...).F32, narrow(p.naive()), 1e-5)
		checkPairs(t, name, p, floats(in), p.n, p.m, p.pair, func(input string, i, j int) int {
			switch input {
			case "images", "whole images", "attention", "similarity", "texts", "whole texts":
				return ofSide(input, i, j)
			}
			return 0
		}, 1e-4)
	}
}

// pair is the problem of one image and text.
func (p vectorsProblem) pair(i, j int) vectorsProblem {
	one := crossProblem{problem: p.problem, attention: p.attention, similarity: p.similarity}.pair(i, j)
	p.problem, p.attention, p.similarity = one.problem, one.attention, one.similarity
	c := p.channels
	p.wholes = [2][]float32{p.wholes[0][i*c:][:c], p.wholes[1][j*c:][:c]}
	return p
}

// TestVectorsGolden compares with torch, from tools/goldens/vectors.py.
func TestVectorsGolden(t *testing.T) {
	type get = func(name string) *gorgonia.Node
	scores := func(p vectorsProblem) func(get) *gorgonia.Node {
		return func(g get) *gorgonia.Node {
			x, y := Tokens{Rows: g("images"), Lengths: g("index"), Len: 5, First: 1}, Tokens{Rows: g("texts"), Lengths: g("lengths"), Len: 6, First: 1}
			return SimilarityVectors(x, y, p.how(g))
		}
	}
	optest.CheckTorchNear(t, "vectors.json", 1e-5, map[string]func(get) *gorgonia.Node{
		"reasoning":          scores(vectorsProblem{scale: 9, steps: 2}),
		"reasoning_metrics":  scores(vectorsProblem{scale: 9, steps: 1, attention: []float32{}, similarity: []float32{}}),
		"filtration":         scores(vectorsProblem{scale: 9}),
		"filtration_metrics": scores(vectorsProblem{scale: 9, attention: []float32{}, similarity: []float32{}}),
	})
}

// TestVectorsEqual: rows under a metric that are the rows themselves give the bits of none.
func TestVectorsEqual(t *testing.T) {
	for kind := range 4 {
		p := randomVectors(rand.New(rand.NewPCG(71, 3)), kind, 9, 12, 5, 6, 40, 12)
		want := optest.Eval(t, p.build, p.inputs()...).F32
		p.attention, p.similarity = p.images.rows, p.images.rows
		if got := optest.Eval(t, p.build, p.inputs()...).F32; !slices.Equal(got, want) {
			t.Errorf("kind %d: other bits under a metric that is the identity", kind)
		}
	}
}

// TestVectorsZeros: tokens and layers of zeros have scores and gradients; NaN stays NaN.
func TestVectorsZeros(t *testing.T) {
	for kind := range 4 {
		p := randomVectors(rand.New(rand.NewPCG(71, 4)), kind, 2, 3, 3, 2, 4, 3)
		p.texts.rows[5] = float32(math.NaN())
		if v := optest.Eval(t, p.build, p.inputs()...).F32; v[0] == v[0] || v[1] != v[1] {
			t.Errorf("kind %d: NaN of a word became the scores %v", kind, v)
		}
		for _, x := range p.inputs() {
			clear(x.Floats())
		}
		optest.Near(t, "score", optest.Eval(t, p.build, p.inputs()...).F32, []float32{.5, .5, .5, .5, .5, .5}, 1e-6)
		grads, _ := optest.Gradients(t, p.build, floats(p.inputs()), p.inputs()...)
		for _, g := range grads {
			for _, v := range g {
				if v != v {
					t.Fatalf("kind %d: zeros have the gradients %v", kind, grads)
				}
			}
		}
	}
}

func TestVectorsErrors(t *testing.T) {
	p := randomVectors(rand.New(rand.NewPCG(71, 5)), 1, 2, 3, 3, 2, 4, 5)
	in := append(p.inputs(), optest.F32s(rand.New(rand.NewPCG(71, 6)), "narrow", 6, 3), optest.I32s("lengths", []int32{2, 4}, 2))
	_, ns := optest.Nodes(in)
	named := map[string]*gorgonia.Node{}
	for _, n := range ns {
		named[n.Name()] = n
	}
	x, y := Tokens{Rows: named["images"], Len: 3}, Tokens{Rows: named["texts"], Len: 2}
	for want, change := range map[string]func(x, y *Tokens, how *Vectors){
		"want rows (R*4, C)":                                 func(x, _ *Tokens, _ *Vectors) { x.Len = 4 },
		"as many channels (got 4 and 3)":                     func(_, y *Tokens, how *Vectors) { y.Rows = named["narrow"] },
		"under a metric must have shape (6, 4) (got (6, 3))": func(_, _ *Tokens, how *Vectors) { how.Similarity = named["narrow"] },
		"whole images must have shape (2, 4)":                func(_, _ *Tokens, how *Vectors) { how.Images = how.Texts },
		"whole texts must have shape (3, 4)":                 func(_, _ *Tokens, how *Vectors) { how.Texts = how.Images },
		"scale of the attention must be > 0 (got 0)":         func(_, _ *Tokens, how *Vectors) { how.Scale = 0 },
		"want steps of reasoning or a gate (got 0 steps)":    func(_, _ *Tokens, how *Vectors) { how.Steps = nil },
		"want steps of reasoning or a gate (got 1 steps)":    func(_, _ *Tokens, how *Vectors) { how.Gate = how.Score },
		"want the weight of words (S, C) (got (5))":          func(_, _ *Tokens, how *Vectors) { how.Local.Weight = how.Local.Bias },
		"weight of words must have shape (1, 4)":             func(_, _ *Tokens, how *Vectors) { how.Local.Weight = how.Score.Weight },
		"bias of wholes must have shape (5)":                 func(_, _ *Tokens, how *Vectors) { how.Global.Bias = how.Score.Bias },
		"weight of the score must have shape (1, 5)":         func(_, _ *Tokens, how *Vectors) { how.Score = how.Global },
		"weight of step 0 must have shape (5, 5)":            func(_, _ *Tokens, how *Vectors) { how.Steps[0].Key = how.Local },
		"weight of the gate must have shape (1, 5)":          func(_, _ *Tokens, how *Vectors) { how.Steps, how.Gate = nil, how.Local },
	} {
		x, y, how := x, y, p.how(func(name string) *gorgonia.Node { return named[name] })
		change(&x, &y, &how)
		optest.BuildError(t, want, want, func() { SimilarityVectors(x, y, how) })
	}
	optest.RunError(t, "length 4 of sequence 1: want at most 3", func(ns gorgonia.Nodes) *gorgonia.Node {
		return SimilarityVectors(Tokens{Rows: ns[0], Len: 3, Lengths: ns[len(ns)-1]}, Tokens{Rows: ns[1], Len: 2}, p.how(func(name string) *gorgonia.Node {
			for _, n := range ns {
				if n.Name() == name {
					return n
				}
			}
			return nil
		}))
	}, in...)
}

// TestVectorsBF16: products in bfloat16 give scores and gradients near those of float32.
func TestVectorsBF16(t *testing.T) {
	p := randomVectors(rand.New(rand.NewPCG(71, 7)), 8+16+1, 4, 5, 6, 7, 64, 32)
	for _, w := range p.layers { // no node is far from 0, where roundings add up
		for i := range w {
			w[i] /= 8
		}
	}
	checkBF16(t, optest.Case{Inputs: p.inputs(), WRT: floats(p.inputs()), Build: p.build}, 8e-2)
}

// vectorsVariants are ops that differ in one argument.
func vectorsVariants() []func() *gorgonia.Node {
	p := randomVectors(rand.New(rand.NewPCG(71, 8)), 2, 4, 4, 3, 3, 5, 5)
	_, ns := optest.Nodes(append(p.inputs(), optest.I32s("lengths", make([]int32, 4), 4)))
	named := map[string]*gorgonia.Node{}
	for _, n := range ns {
		named[n.Name()] = n
	}
	var list []func() *gorgonia.Node
	for _, change := range []func(x, y *Tokens, how *Vectors){
		func(_, _ *Tokens, how *Vectors) {},
		func(_, _ *Tokens, how *Vectors) { how.Scale = 4 },
		func(x, _ *Tokens, how *Vectors) { x.First = 1 },
		func(_, y *Tokens, how *Vectors) { y.First = 1 },
		func(x, _ *Tokens, how *Vectors) { x.Lengths = named["lengths"] },
		func(_, y *Tokens, how *Vectors) { y.Lengths = named["lengths"] },
		func(_, _ *Tokens, how *Vectors) { how.Attention = named["texts"] },
		func(_, _ *Tokens, how *Vectors) { how.Similarity = named["texts"] },
		func(_, _ *Tokens, how *Vectors) { how.Steps = how.Steps[:1] },
		func(_, _ *Tokens, how *Vectors) { how.Steps, how.Gate = nil, how.Score },
	} {
		x, y, how := Tokens{Rows: named["images"], Len: 3}, Tokens{Rows: named["texts"], Len: 3}, p.how(func(name string) *gorgonia.Node { return named[name] })
		change(&x, &y, &how)
		list = append(list, func() *gorgonia.Node { return SimilarityVectors(x, y, how) })
	}
	return list
}
