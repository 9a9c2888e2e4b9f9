package interaction

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed maxsim.cu
var maxsimText string

var maxsimSource = cuda.Source{Name: "maxsim", Text: maxsimText}

// maxsimProducts is how many products of tokens there may be in memory on the CUDA device, or those of an image with one text. A
// variable for tests.
var maxsimProducts = 16 << 20

// maxsimOnCUDA are the products of some images with some texts on the CUDA device. They are made in float32, like those of the
// host.
type maxsimOnCUDA struct {
	*maxSim
	c        *exec.DeviceCall
	channels int
	count    [2]int // images and texts
	most     [2]int // of each in a block
	from, to [2]int // of the block
	ld       int
	products cuda.Pointer
	places   []exec.Operand
}

// onCUDA takes memory for blocks.
func (x *maxSim) onCUDA(c *exec.DeviceCall, places []exec.Operand) (b *maxsimOnCUDA, err error) {
	b = &maxsimOnCUDA{maxSim: x, c: c, channels: c.In[0].Shape[1], places: places}
	for k, s := range x.sides {
		b.count[k] = c.In[k].Shape[0] / s.len
	}
	images, texts := x.sides[0].len, x.sides[1].len
	b.most[1] = min(b.count[1], max(1, maxsimProducts/(images*texts)))
	b.ld = (b.most[1]*texts + 7) / 8 * 8
	b.most[0] = min(b.count[0], max(1, maxsimProducts/(images*b.ld)))
	b.products, err = cuda.Scratch(c, 4*int64(b.most[0]*images)*int64(b.ld))
	return b, err
}

// run calls block for all blocks.
func (b *maxsimOnCUDA) run(block func() error) error {
	for b.from[0] = 0; b.from[0] < b.count[0]; b.from[0] = b.to[0] {
		b.to[0] = min(b.count[0], b.from[0]+b.most[0])
		for b.from[1] = 0; b.from[1] < b.count[1]; b.from[1] = b.to[1] {
			b.to[1] = min(b.count[1], b.from[1]+b.most[1])
			if err := block(); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokens are those of a side of the block in an operand like its rows, and how many.
func (b *maxsimOnCUDA) tokens(of exec.Operand, side int) (cuda.Matrix, int) {
	n := b.sides[side].len
	return cuda.MatrixOf(of, b.from[side]*n*b.channels, b.channels), (b.to[side] - b.from[side]) * n
}

// launch runs a kernel of pairs: SIDES stand behind the parameters.
func (b *maxsimOnCUDA) launch(k *cuda.Kernel, args ...any) error {
	x, y := b.sides[0], b.sides[1]
	args = append(args, b.operand(x.lengths), b.operand(y.lengths), x.len, y.len, x.first, y.first, b.from[0], b.from[1],
		b.to[1]-b.from[1], b.count[1], b.ld)
	return k.Launch(cuda.Grid{X: (b.to[0] - b.from[0]) * (b.to[1] - b.from[1]), Threads: 128}, args...)
}

// operand is an operand, nil for -1.
func (b *maxsimOnCUDA) operand(k int) any {
	if k < 0 {
		return nil
	}
	return b.c.In[k]
}

// placesOf are the places of the maxima of a side, nil for a side without a sum.
func (b *maxsimOnCUDA) placesOf(side int) any {
	if k := b.sides[side].places; k >= 0 {
		return b.places[k]
	}
	return nil
}

// stepOnCUDA is host for the CUDA device.
func (x *maxSim) stepOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	b, err := x.onCUDA(c, c.Aux)
	if err != nil {
		return nil, err
	}
	k := cuda.Load(c, &maxsimSource, "maxsim")
	block := func() error {
		images, m := b.tokens(c.In[0], 0)
		texts, n := b.tokens(c.In[1], 1)
		p := cuda.Product{TransB: true, M: m, N: n, K: b.channels}
		if err := cuda.Multiply(c, p, images, texts, floatsAt(b.products, b.ld), nil); err != nil {
			return err
		}
		return b.launch(k, c.Out, b.placesOf(0), b.placesOf(1), b.products, b.operand(x.sides[0].weights),
			b.operand(x.sides[1].weights))
	}
	return func() error { return b.run(block) }, nil
}

// rowsOnCUDA is the step of rowsGradient: the gradients of products, most of which are 0, times the rows of the other side.
func (x *maxSim) rowsOnCUDA(k int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		b, err := x.onCUDA(c, c.InAux[x.operands])
		if err != nil {
			return nil, err
		}
		slopes := cuda.Load(c, &maxsimSource, "maxsim_slopes")
		block := func() error {
			if err := b.launch(slopes, b.products, b.placesOf(0), b.placesOf(1), c.In[x.operands+1],
				b.operand(x.sides[0].weights), b.operand(x.sides[1].weights)); err != nil {
				return err
			}
			to, m := b.tokens(c.Out, k)
			other, n := b.tokens(c.In[1-k], 1-k)
			p := cuda.Product{TransA: k == 1, M: m, N: b.channels, K: n, Beta: 1}
			if b.from[1-k] == 0 {
				p.Beta = 0
			}
			return cuda.Multiply(c, p, floatsAt(b.products, b.ld), other, to, nil)
		}
		return func() error { return b.run(block) }, nil
	}
}

// weightsOnCUDA is the step of weightsGradient.
func (x *maxSim) weightsOnCUDA(k int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		own, other, texts := x.sides[k], x.sides[1-k], c.In[x.operands].Shape[1]
		steps := [2]int64{int64(texts), 1}
		dweights := cuda.Load(c, &maxsimSource, "maxsim_dweights")
		return func() error {
			return dweights.Launch(cuda.Grid{X: c.In[k].Shape[0], Threads: 128}, c.Out, c.InAux[x.operands][own.places],
				c.In[x.operands+1], c.In[k], c.In[1-k],
				own.len, other.len, c.In[1-k].Shape[0]/other.len, c.In[0].Shape[1], steps[k], steps[1-k])
		}, nil
	}
}

// Modes of the kernel per_token.
const (
	tokenMean = iota
	tokenSum
	tokenSpread
	tokenSoftmax
	tokenSoftmaxSlopes
)

// tokensOnCUDA is the step of perToken, whose operands before the lengths are n.
func (s side) tokensOnCUDA(mode, n int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		k := cuda.Load(c, &maxsimSource, "per_token", cuda.Value("MODE", mode))
		count := c.In[0].Shape[0] / s.len
		return func() error {
			var a, b, lengths any
			switch mode {
			case tokenSpread:
				a = c.In[1]
			case tokenSoftmax:
				a = c.In[0]
			case tokenSoftmaxSlopes:
				a, b = c.In[1], c.In[2]
			}
			if s.lengths >= 0 {
				lengths = c.In[n]
			}
			return k.Launch(cuda.Grid{X: cuda.Blocks(count, 4), Threads: 128}, c.Out, a, b, lengths, count, s.len, s.first)
		}, nil
	}
}

// mismatchOnCUDA is the step of MismatchSamples.
func mismatchOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	k := cuda.Load(c, &maxsimSource, "mismatch_samples")
	return func() error {
		return k.Launch(cuda.Grid{Threads: 512}, c.Out, c.In[0], c.In[1], c.In[0].Shape[0])
	}, nil
}
