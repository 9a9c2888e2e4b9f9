package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var maxsimSource = cuda.NewSource(files, "maxsim", "maxsim.cu")

// maxsimProducts is how many products of tokens there may be in memory on the CUDA device, or those of an image with
// one text. A variable for tests.
var MaxSimProducts = 16 << 20

// maxSimWork are the products of some images with some texts on the CUDA device. They are made in float32, like those
// of the host.
type maxSimWork struct {
	*MaxSim
	c        *exec.DeviceCall
	channels int
	count    [2]int // images and texts
	most     [2]int // of each in a block
	from, to [2]int // of the block
	ld       int
	products cuda.Pointer
	places   []exec.Operand
}

// begin takes memory for blocks.
func (x *MaxSim) begin(c *exec.DeviceCall, places []exec.Operand) *maxSimWork {
	b := &maxSimWork{MaxSim: x, c: c, channels: c.In[0].Shape[1], places: places}
	for k, s := range x.Sides {
		b.count[k] = c.In[k].Shape[0] / s.Len
	}
	images, texts := x.Sides[0].Len, x.Sides[1].Len
	b.most[1] = min(b.count[1], max(1, MaxSimProducts/(images*texts)))
	b.ld = (b.most[1]*texts + 7) / 8 * 8
	b.most[0] = min(b.count[0], max(1, MaxSimProducts/(images*b.ld)))
	b.products = cuda.Scratch(c, 4*int64(b.most[0]*images)*int64(b.ld))
	return b
}

// run calls block for all blocks.
func (b *maxSimWork) run(block func()) {
	for b.from[0] = 0; b.from[0] < b.count[0]; b.from[0] = b.to[0] {
		b.to[0] = min(b.count[0], b.from[0]+b.most[0])
		for b.from[1] = 0; b.from[1] < b.count[1]; b.from[1] = b.to[1] {
			b.to[1] = min(b.count[1], b.from[1]+b.most[1])
			block()
		}
	}
}

// tokens are those of a side of the block in an operand like its rows, and how many.
func (b *maxSimWork) tokens(of exec.Operand, side int) (cuda.Matrix, int) {
	n := b.Sides[side].Len
	return cuda.MatrixOf(of, b.from[side]*n*b.channels, b.channels), (b.to[side] - b.from[side]) * n
}

// launch runs a kernel of pairs: SIDES stand behind the parameters.
func (b *maxSimWork) launch(k *cuda.Kernel, args ...any) {
	x, y := b.Sides[0], b.Sides[1]
	args = append(args, cuda.Optional(b.c, x.Lengths), cuda.Optional(b.c, y.Lengths), x.Len, y.Len, x.First, y.First,
		b.from[0], b.from[1],
		b.to[1]-b.from[1], b.count[1], b.ld)
	k.Enqueue(cuda.Grid{X: (b.to[0] - b.from[0]) * (b.to[1] - b.from[1]), Threads: 128}, args...)
}

// placesOf are the places of the maxima of a side, nil for a side without a sum.
func (b *maxSimWork) placesOf(side int) any {
	if k := b.Sides[side].Places; k >= 0 {
		return b.places[k]
	}
	return nil
}

// Forward is the step of the scores.
func (x *MaxSim) Forward() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b := x.begin(c, c.Aux)
		k := cuda.Load(c, maxsimSource, "maxsim")
		block := func() {
			images, m := b.tokens(c.In[0], 0)
			texts, n := b.tokens(c.In[1], 1)
			p := cuda.Product{TransB: true, M: m, N: n, K: b.channels}
			cuda.Multiply(c, p, images, texts, cuda.FloatsAt(b.products, b.ld), nil)
			b.launch(k, c.Out, b.placesOf(0), b.placesOf(1), b.products, cuda.Optional(b.c, x.Sides[0].Weights),
				cuda.Optional(b.c, x.Sides[1].Weights))
		}
		return func() { b.run(block) }
	})
}

// GradRows is the step of rowsGradient: the gradients of products, most of which are 0, times the rows of the other
// side.
func (x *MaxSim) GradRows(k int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		b := x.begin(c, c.InAux[x.Operands])
		slopes := cuda.Load(c, maxsimSource, "maxsim_slopes")
		block := func() {
			b.launch(slopes, b.products, b.placesOf(0), b.placesOf(1), c.In[x.Operands+1],
				cuda.Optional(b.c, x.Sides[0].Weights), cuda.Optional(b.c, x.Sides[1].Weights))
			to, m := b.tokens(c.Out, k)
			other, n := b.tokens(c.In[1-k], 1-k)
			p := cuda.Product{TransA: k == 1, M: m, N: b.channels, K: n, Beta: 1}
			if b.from[1-k] == 0 {
				p.Beta = 0
			}
			cuda.Multiply(c, p, cuda.FloatsAt(b.products, b.ld), other, to, nil)
		}
		return func() { b.run(block) }
	})
}

// GradWeights is the step of weightsGradient.
func (x *MaxSim) GradWeights(k int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		own, other, texts := x.Sides[k], x.Sides[1-k], c.In[x.Operands].Shape[1]
		steps := [2]int64{int64(texts), 1}
		dweights := cuda.Load(c, maxsimSource, "maxsim_dweights")
		return func() {
			dweights.Enqueue(cuda.Grid{X: c.In[k].Shape[0], Threads: 128}, c.Out, c.InAux[x.Operands][own.Places],
				c.In[x.Operands+1], c.In[k], c.In[1-k],
				own.Len, other.Len, c.In[1-k].Shape[0]/other.Len, c.In[0].Shape[1], steps[k], steps[1-k])
		}
	})
}

// Modes of the kernel per_token.
const (
	TokenMean = iota
	TokenSum
	TokenSpread
	TokenSoftmax
	TokenSoftmaxSlopes
)

// Tokens is the step of perToken, whose operands before the lengths are n.
func (s Side) Tokens(mode, n int) cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, maxsimSource, "per_token", cuda.Value("MODE", mode))
		count := c.In[0].Shape[0] / s.Len
		return func() {
			var a, b, lengths any
			switch mode {
			case TokenSpread:
				a = c.In[1]
			case TokenSoftmax:
				a = c.In[0]
			case TokenSoftmaxSlopes:
				a, b = c.In[1], c.In[2]
			}
			if s.Lengths >= 0 {
				lengths = c.In[n]
			}
			k.Enqueue(cuda.Grid{X: cuda.Blocks(count, 4), Threads: 128}, c.Out, a, b, lengths, count, s.Len, s.First)
		}
	})
}

// Mismatch is the step of MismatchSamples.
func Mismatch() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		k := cuda.Load(c, maxsimSource, "mismatch_samples")
		return func() { k.Enqueue(cuda.Grid{Threads: 512}, c.Out, c.In[0], c.In[1], c.In[0].Shape[0]) }
	})
}
