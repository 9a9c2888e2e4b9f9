package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var batchNormSource = cuda.NewSource(files, "batch norm", "rows.cuh", "batchnorm.cu")

// BatchNorm is a batch norm of one process.
type BatchNorm struct {
	Given  bool // mean and variance are operands
	ReLU   bool
	Add    int // the operand that is added, -1: none
	Padded bool
	Len    int // rows of a sequence, where the last operand is their lengths
	Eps    float32
}

// Auxiliary results, as the op has them.
const (
	batchMean = iota
	batchRstd
	batchVariance
)

// batchNormLayout is how the kernels share out a matrix.
type batchNormLayout struct {
	b                   BatchNorm
	rows, cols, piece   int
	lanes, tiles, parts int // threads of a block across, blocks across, and parts of the rows with sums of their own
}

// layout returns false for what is left to the host: the error of a batch without a variance.
func (b BatchNorm) layout(x exec.Operand) (batchNormLayout, bool) {
	s := batchNormLayout{b: b, lanes: 1}
	s.rows, s.cols = sizeOf(x)
	s.piece = pieceOf(s.cols)
	for s.lanes < 32 && s.lanes*s.piece < s.cols {
		s.lanes *= 2
	}
	s.tiles = cuda.Blocks(s.cols, s.lanes*s.piece)
	const blocks = 8 * 132 // 8 for each multiprocessor of a large device
	s.parts = min(cuda.Blocks(s.rows, 8*256/s.lanes), cuda.Blocks(blocks, s.tiles))
	return s, b.Given || s.rows > 1
}

func (s batchNormLayout) macros() []cuda.Macro {
	return []cuda.Macro{cuda.Value("PIECE", s.piece), cuda.Value("LANES", s.lanes), cuda.Is("RELU", s.b.ReLU)}
}

// scratch returns room for the sums of parts and for two rows.
func (s batchNormLayout) scratch(c *exec.DeviceCall) (parts, a, b cuda.Pointer) {
	row := cuda.Pointer(cuda.Blocks(4*s.cols, 256) * 256)
	sums := cuda.Pointer(cuda.Blocks(s.parts*2*s.cols*8, 256) * 256)
	parts = cuda.Scratch(c, int64(sums+2*row))
	return parts, parts + sums, parts + sums + row
}

func (s batchNormLayout) partGrid() cuda.Grid { return cuda.Grid{X: s.parts, Y: s.tiles, Threads: 256} }

func (s batchNormLayout) columnGrid() cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(s.cols, 32), Threads: 1024}
}

func (s batchNormLayout) rowGrid() cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(s.rows, 8*256/s.lanes), Y: s.tiles, Threads: 256}
}

// lengths returns the last operand, if it is lengths, and the rows of a sequence.
func (s batchNormLayout) lengths(c *exec.DeviceCall) (any, int) {
	if !s.b.Padded {
		return nil, 1
	}
	return c.In[len(c.In)-1], s.b.Len
}

// Step is that of the op.
func (b BatchNorm) Step() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		s, ok := b.layout(c.In[0])
		if !ok {
			return nil
		}
		parts, _, _ := s.scratch(c)
		load := func(name string) *cuda.Kernel { return cuda.Load(c, batchNormSource, name, s.macros()...) }
		measure, statistics := load("batch_norm_moments"), load("batch_norm_statistics")
		given, apply := load("batch_norm_given"), load("batch_norm")
		return func() {
			lengths, l := s.lengths(c)
			mean, rstd, variance := c.Aux[batchMean], c.Aux[batchRstd], c.Aux[batchVariance]
			if b.Given {
				given.Enqueue(cuda.Grid{X: cuda.Blocks(s.cols, 128), Threads: 128}, mean, rstd, variance, c.In[3],
					c.In[4],
					s.cols, b.Eps)
			} else {
				measure.Enqueue(s.partGrid(), parts, c.In[0], lengths, s.rows, s.cols, l)
				statistics.Enqueue(s.columnGrid(), mean, rstd, variance, parts, s.parts, c.In[0], lengths, s.rows,
					s.cols, l,
					b.Eps)
			}
			apply.Enqueue(s.rowGrid(), c.Out, c.In[0], c.In[1], c.In[2], cuda.Optional(c, b.Add), mean, rstd, lengths,
				s.rows, s.cols, l)
		}
	})
}

// Grad is the step of its gradients.
func (b BatchNorm) Grad() cuda.Steps {
	return cuda.On(func(c *exec.DeviceCall) cuda.Step {
		s, ok := b.layout(c.In[1])
		if !ok {
			return nil
		}
		parts, slope, product := s.scratch(c)
		load := func(name string) *cuda.Kernel { return cuda.Load(c, batchNormSource, name, s.macros()...) }
		sums, totals, grad := load("batch_norm_dx_sums"), load("batch_norm_dx_totals"), load("batch_norm_dx")
		return func() {
			lengths, l := s.lengths(c)
			mean, rstd := c.InAux[0][batchMean], c.InAux[0][batchRstd]
			x, gamma, beta, dy := c.In[1], c.In[2], c.In[3], c.In[4]
			sums.Enqueue(s.partGrid(), parts, x, gamma, beta, dy, mean, rstd, lengths, s.rows, s.cols, l)
			totals.Enqueue(s.columnGrid(), c.Aux[0], c.Aux[1], slope, product, parts, s.parts, gamma, rstd, lengths,
				s.rows,
				s.cols, l, b.Given)
			grad.Enqueue(s.rowGrid(), c.Out, x, gamma, beta, dy, mean, rstd, slope, product, lengths, s.rows, s.cols, l)
		}
	})
}
