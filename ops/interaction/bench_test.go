package interaction

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// benchCross is a problem of the sizes of SCAN: images of 36 regions, captions of 4 to 30 words,
// 12 in the mean, 1,024 channels. bench/peer/cross.py has the same lengths.
func benchCross(images, texts int, how Cross) crossProblem {
	const regions, words, channels = 36, 30, 1024
	r := rand.New(rand.NewPCG(67, 9))
	p := crossProblem{problem: problem{n: images, m: texts, channels: channels}, how: how}
	p.images = problemSide{len: regions, rows: optest.UnitRows(r, images*regions, channels)}
	p.texts = problemSide{len: words, rows: optest.UnitRows(r, texts*words, channels)}
	for i := range texts {
		p.texts.lengths = append(p.texts.lengths, int32(min(words, 4+27*(37*i%128)*((53*i+29)%128)/16129*13/10)))
	}
	return p
}

// benchRecurrent is a problem of three steps of the same lengths.
func benchRecurrent(images, texts, channels int) recurrentProblem {
	r, cross := rand.New(rand.NewPCG(74, 9)), benchCross(images, texts, Cross{})
	p := randomRecurrent(r, 64, images, texts, cross.images.len, cross.texts.len, channels)
	p.how = Recurrent{Scale: 9, Pool: 6, Steps: 3, Unit: true}
	p.texts.lengths = cross.texts.lengths
	for i := range p.weight {
		p.weight[i] /= float32(math.Sqrt(float64(2 * channels)))
	}
	for _, rows := range [][]float32{p.images.rows, p.texts.rows} {
		for i := 0; i < len(rows); i += channels {
			optest.Normalise(rows[i:][:channels])
		}
	}
	return p
}

// benchVectors is a problem of the same lengths.
func benchVectors(steps, pairs, channels, size int) vectorsProblem {
	r, cross := rand.New(rand.NewPCG(71, 9)), benchCross(pairs, pairs, Cross{})
	p := randomVectors(r, steps, pairs, pairs, cross.images.len, cross.texts.len, channels, size)
	p.texts.lengths = cross.texts.lengths
	for _, rows := range [][]float32{p.images.rows, p.texts.rows, p.wholes[0], p.wholes[1]} {
		for i := 0; i < len(rows); i += channels {
			optest.Normalise(rows[i:][:channels])
		}
	}
	for _, w := range p.layers {
		for i := range w { // nodes stay about as long as they are
			w[i] *= 2 / float32(math.Sqrt(float64(size)))
		}
	}
	return p
}

// BenchmarkCross runs the score of a batch of 128 pairs, forward and backward, and of 1,000
// images with 5,000 texts, on one thread, and reports the best time of that thread and the working memory.
// bench/peer/cross.py runs the loop of the published code on the same lengths.
func BenchmarkCross(b *testing.B) {
	for name, how := range map[string]Cross{"t2i": {Scale: 9, Pool: 6}, "i2t": {ImageQueries: true, Scale: 4, Pool: 5}} {
		for _, size := range [][2]int{{128, 128}, {1000, 5000}} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size[0], size[1]), func(b *testing.B) {
				p := benchCross(size[0], size[1], how)
				c := optest.Case{Inputs: p.inputs(), Build: p.build}
				if size[0] == size[1] {
					c.WRT = floats(p.inputs())
				}
				onOneThread(b, c)
			})
		}
	}
}

// BenchmarkNegative runs the score of negative-aware attention of the same sizes in the same way.
func BenchmarkNegative(b *testing.B) {
	for _, size := range [][2]int{{128, 128}, {400, 500}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			p := negativeProblem{crossProblem: benchCross(size[0], size[1], Cross{Scale: 20}), bounds: []float32{.02}}
			c := optest.Case{Inputs: p.inputs(), Build: p.build}
			if size[0] == size[1] {
				c.WRT = p.rowsOf(p.inputs())
			} else {
				p.smooth = 5
			}
			onOneThread(b, c)
		})
	}
}

// BenchmarkRecurrent runs the score of recurrent attention in three steps in the same way.
func BenchmarkRecurrent(b *testing.B) {
	for _, size := range [][3]int{{32, 32, 1024}, {64, 64, 256}, {100, 200, 256}} {
		b.Run(fmt.Sprintf("%dx%dx%d", size[0], size[1], size[2]), func(b *testing.B) {
			p := benchRecurrent(size[0], size[1], size[2])
			c := optest.Case{Inputs: p.inputs(), Build: p.build}
			if size[0] == size[1] {
				c.WRT = floats(p.inputs())
			}
			onOneThread(b, c)
		})
	}
}

// BenchmarkVectors runs the score of a batch of pairs by vectors of similarity, forward and backward, in the same way.
func BenchmarkVectors(b *testing.B) {
	for name, steps := range map[string]int{"sgr": 3, "saf": 0} {
		for _, size := range [][3]int{{128, 1024, 256}, {64, 128, 64}} {
			b.Run(fmt.Sprintf("%s/%dx%d", name, size[0], size[1]), func(b *testing.B) {
				p := benchVectors(steps, size[0], size[1], size[2])
				onOneThread(b, optest.Case{Inputs: p.inputs(), Build: p.build, WRT: floats(p.inputs())})
			})
		}
	}
}

// BenchmarkEvaluation runs the scores alone of 32 images with 32 texts of the published sizes by hosts of GSSF, on one
// thread, and reports the operations in the products that the formula of each has for a pair, and their share of the rate
// of a large product.
func BenchmarkEvaluation(b *testing.B) {
	const pairs, channels, size, images = 32, 1024, 256, 36.
	words := 0.
	for _, n := range benchCross(1, pairs, Cross{}).texts.lengths {
		words += float64(n) / pairs
	}
	products := 2 * words * images * channels // of all tokens
	lengths := func(context float64) float64 { return 2 * words * images * context }
	steps := func(queries, context float64) float64 { // a product, a mix and a gate less than three of each
		return 3*(products+lengths(context)) + 2*2*products + 2*2*queries*channels*channels
	}
	nodes := 2*products + 2*(words+1)*channels*size
	reasoning := 2 * (2*2*(words+1)*size*size + 2*2*(words+1)*(words+1)*size)
	for name, c := range map[string]struct {
		of    optest.Case
		flops float64
	}{
		"scan":           {caseOf(benchCross(pairs, pairs, Cross{Scale: 9, Pool: 6})), products + lengths(images)},
		"imram of words": {caseOf(benchRecurrent(pairs, pairs, channels)), steps(words, images)},
		"imram of regions": {caseOf(func() recurrentProblem {
			p := benchRecurrent(pairs, pairs, channels)
			p.how.ImageQueries = true
			return p
		}()), steps(images, words)},
		"sgr": {caseOf(benchVectors(3, pairs, channels, size)), nodes + reasoning},
		"saf": {caseOf(benchVectors(0, pairs, channels, size)), nodes},
	} {
		b.Run(name, func(b *testing.B) {
			besideProduct(b, c.of, func(*exec.Machine) float64 { return c.flops * pairs * pairs })
			b.ReportMetric(c.flops/1e6, "MFLOP/pair")
		})
	}
}

// caseOf is the case of the scores of a problem alone.
func caseOf(p interface {
	inputs() []optest.Input
	build(in gorgonia.Nodes) *gorgonia.Node
}) optest.Case {
	return optest.Case{Inputs: p.inputs(), Build: p.build}
}

// onOneThread runs a case.
func onOneThread(b *testing.B, c optest.Case) {
	e, err := kernel.New(kernel.Options{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	m, _ := c.Compile(b, e)
	best := time.Duration(1 << 62)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		start := kerneltest.Clock()
		if err := m.RunAll(); err != nil {
			b.Fatal(err)
		}
		best = min(best, kerneltest.Clock()-start)
	}
	b.ReportMetric(best.Seconds(), "s/best")
	b.ReportMetric(float64(m.Memory())/(1<<20), "MiB")
}

// BenchmarkWordPatch runs the scores of a batch of 128 pairs of 49 patches and 32 words with 128 channels, forward and with
// the gradients, on one thread.
func BenchmarkWordPatch(b *testing.B) {
	r := rand.New(rand.NewPCG(73, 9))
	p := wordPatchProblem{problem: problem{n: 128, m: 128, channels: 128}, how: WordPatch{Scale: 1, Context: .1, Temperature: .1}}
	p.images = problemSide{len: 49, rows: optest.UnitRows(r, 128*49, 128)}
	p.texts = problemSide{len: 32, rows: optest.UnitRows(r, 128*32, 128)}
	for name, wrt := range map[string][]int{"forward": nil, "both": {0, 1}} {
		b.Run(name, func(b *testing.B) {
			c := optest.Case{Inputs: p.inputs(), WRT: wrt, Build: p.build}
			besideProduct(b, c, func(m *exec.Machine) (flops float64) {
				for _, k := range m.Profile().Kinds {
					flops += float64(k.FLOPs) / float64(m.Profile().Runs)
				}
				return flops
			})
		})
	}
}

// besideProduct runs a case on one thread and reports its rate of products, of as many operations as flops says, beside
// that of a large product of matrices, measured between the runs, and the working memory. Both are the best times of the
// thread.
func besideProduct(b *testing.B, c optest.Case, flops func(m *exec.Machine) float64) {
	e, err := kernel.New(kernel.Options{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	m, _ := c.Compile(b, e)
	const size = 1024
	x, y, z := make([]float32, size*size), make([]float32, size*size), make([]float32, size*size)
	run := func() {
		if err := m.RunAll(); err != nil {
			b.Fatal(err)
		}
	}
	product := func() { e.Gemm(false, false, size, size, size, 1, x, size, y, size, 0, z, size) }
	best := [2]time.Duration{1 << 62, 1 << 62}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		for k, f := range []func(){run, product} {
			start := kerneltest.Clock()
			f()
			best[k] = min(best[k], kerneltest.Clock()-start)
		}
	}
	rate, peak := flops(m)/best[0].Seconds()/1e9, 2*float64(size*size*size)/best[1].Seconds()/1e9
	b.ReportMetric(best[0].Seconds(), "s/best")
	b.ReportMetric(rate, "GFLOPs")
	b.ReportMetric(100*rate/peak, "%/peak")
	b.ReportMetric(peak, "GFLOPs/peak")
	b.ReportMetric(float64(m.Memory())/(1<<20), "MiB")
}
