package nn

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

//go:embed batchnorm.cu
var batchNormText string

var batchNormSource = cuda.Source{Name: "batch norm", Text: rowsText + batchNormText}

// batchNormCUDA is how the kernels share out a matrix.
type batchNormCUDA struct {
	b                   *batchNorm
	rows, cols, piece   int
	lanes, tiles, parts int // threads of a block across, blocks across, and parts of the rows with sums of their own
}

// cuda returns false for what is left to the host: sums over processes, and the error of a batch without a variance.
func (b *batchNorm) cuda(x exec.Operand) (batchNormCUDA, bool) {
	s := batchNormCUDA{b: b, lanes: 1}
	s.rows, s.cols = sizeOf(x)
	s.piece = pieceOf(s.cols)
	for s.lanes < 32 && s.lanes*s.piece < s.cols {
		s.lanes *= 2
	}
	s.tiles = cuda.Blocks(s.cols, s.lanes*s.piece)
	const blocks = 8 * 132 // 8 for each multiprocessor of a large device
	s.parts = min(cuda.Blocks(s.rows, 8*256/s.lanes), cuda.Blocks(blocks, s.tiles))
	return s, b.group == nil && (b.given || s.rows > 1)
}

func (s batchNormCUDA) macros() []cuda.Macro {
	return []cuda.Macro{cuda.Value("PIECE", s.piece), cuda.Value("LANES", s.lanes), cuda.Is("RELU", s.b.relu)}
}

// scratch returns room for the sums of parts and for two rows.
func (s batchNormCUDA) scratch(c *exec.DeviceCall) (parts, a, b cuda.Pointer, err error) {
	row := cuda.Pointer(cuda.Blocks(4*s.cols, 256) * 256)
	sums := cuda.Pointer(cuda.Blocks(s.parts*2*s.cols*8, 256) * 256)
	parts, err = cuda.Scratch(c, int64(sums+2*row))
	return parts, parts + sums, parts + sums + row, err
}

func (s batchNormCUDA) partGrid() cuda.Grid { return cuda.Grid{X: s.parts, Y: s.tiles, Threads: 256} }

func (s batchNormCUDA) columnGrid() cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(s.cols, 32), Threads: 1024}
}

func (s batchNormCUDA) rowGrid() cuda.Grid {
	return cuda.Grid{X: cuda.Blocks(s.rows, 8*256/s.lanes), Y: s.tiles, Threads: 256}
}

// lengths returns the last operand, if it is lengths, and the rows of a sequence.
func (s batchNormCUDA) lengths(c *exec.DeviceCall) (any, int) {
	if !s.b.padded {
		return nil, 1
	}
	return c.In[len(c.In)-1], s.b.l
}

func (b *batchNorm) onCUDA(c *exec.DeviceCall) (exec.Step, error) {
	s, ok := b.cuda(c.In[0])
	if !ok {
		return nil, nil
	}
	parts, _, _, err := s.scratch(c)
	if err != nil {
		return nil, err
	}
	load := func(name string) *cuda.Kernel { return cuda.Load(c, &batchNormSource, name, s.macros()...) }
	measure, statistics := load("batch_norm_moments"), load("batch_norm_statistics")
	given, apply := load("batch_norm_given"), load("batch_norm")
	return func() error {
		lengths, l := s.lengths(c)
		mean, rstd, variance := c.Aux[batchMean], c.Aux[batchRstd], c.Aux[batchVariance]
		if b.given {
			if err := given.Launch(cuda.Grid{X: cuda.Blocks(s.cols, 128), Threads: 128}, mean, rstd, variance, c.In[3], c.In[4],
				s.cols, b.eps); err != nil {
				return err
			}
		} else {
			if err := measure.Launch(s.partGrid(), parts, c.In[0], lengths, s.rows, s.cols, l); err != nil {
				return err
			}
			if err := statistics.Launch(s.columnGrid(), mean, rstd, variance, parts, s.parts, c.In[0], lengths, s.rows, s.cols, l,
				b.eps); err != nil {
				return err
			}
		}
		var add any
		if b.added {
			add = c.In[b.residual()]
		}
		return apply.Launch(s.rowGrid(), c.Out, c.In[0], c.In[1], c.In[2], add, mean, rstd, lengths, s.rows, s.cols, l)
	}, nil
}

func (b *batchNorm) gradOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	s, ok := b.cuda(c.In[1])
	if !ok {
		return nil, nil
	}
	parts, slope, product, err := s.scratch(c)
	if err != nil {
		return nil, err
	}
	load := func(name string) *cuda.Kernel { return cuda.Load(c, &batchNormSource, name, s.macros()...) }
	sums, totals, grad := load("batch_norm_dx_sums"), load("batch_norm_dx_totals"), load("batch_norm_dx")
	return func() error {
		lengths, l := s.lengths(c)
		mean, rstd := c.InAux[0][batchMean], c.InAux[0][batchRstd]
		x, gamma, beta, dy := c.In[1], c.In[2], c.In[3], c.In[4]
		if err := sums.Launch(s.partGrid(), parts, x, gamma, beta, dy, mean, rstd, lengths, s.rows, s.cols, l); err != nil {
			return err
		}
		if err := totals.Launch(s.columnGrid(), c.Aux[0], c.Aux[1], slope, product, parts, s.parts, gamma, rstd, lengths, s.rows,
			s.cols, l, b.given); err != nil {
			return err
		}
		return grad.Launch(s.rowGrid(), c.Out, x, gamma, beta, dy, mean, rstd, slope, product, lengths, s.rows, s.cols, l)
	}, nil
}
