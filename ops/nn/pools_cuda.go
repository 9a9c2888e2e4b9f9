package nn

import (
	_ "embed"

	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

var (
	//go:embed pools.cu
	poolsText string
	//go:embed sortpool.cu
	sortPoolText string

	poolsSource    = cuda.Source{Name: "pools", Text: rowsText + poolsText}
	sortPoolSource = cuda.Source{Name: "sort pool", Text: rowsText + sortPoolText}
)

// lengthsOf returns the operand of lengths, nil where there is none.
func (m meanTokens) lengthsOf(c *exec.DeviceCall) any {
	if m.lengths {
		return c.In[1]
	}
	return nil
}

func (m meanTokens) onCUDA(c *exec.DeviceCall) (exec.Step, error) {
	b, cols := sizeOf(c.Out)
	p := pieceOf(cols)
	k := cuda.Load(c, &poolsSource, "mean_tokens", cuda.Value("PIECE", p))
	return func() error {
		return k.Launch(cuda.Grid{X: b, Y: cuda.Blocks(cols, 32*p), Threads: 256}, c.Out, c.In[0], m.lengthsOf(c), cols, m.l,
			m.skip)
	}, nil
}

func (m meanTokens) gradOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, cols := sizeOf(c.Out)
	p := pieceOf(cols)
	k := cuda.Load(c, &poolsSource, "mean_tokens_dx", cuda.Value("PIECE", p))
	return func() error {
		return k.Launch(pieceGrid(rows, cols, p), c.Out, c.In[0], m.lengthsOf(c), rows, cols, m.l, m.skip)
	}, nil
}

// columnGrid has a thread for each column of each sequence.
func columnGrid(sequences, cols int) cuda.Grid {
	return cuda.Grid{X: sequences, Y: cuda.Blocks(cols, 128), Threads: 128}
}

func maxTokensOnCUDA(l int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		b, cols := sizeOf(c.Out)
		k := cuda.Load(c, &poolsSource, "max_tokens", cuda.Value("PIECE", 1))
		return func() error {
			return k.Launch(columnGrid(b, cols), c.Out, c.Aux[0], c.In[0], c.In[1], cols, l)
		}, nil
	}
}

func maxTokensGradOnCUDA(l int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		rows, cols := sizeOf(c.Out)
		p := pieceOf(cols)
		k := cuda.Load(c, &poolsSource, "max_tokens_dx", cuda.Value("PIECE", p))
		return func() error {
			return k.Launch(pieceGrid(rows, cols, p), c.Out, c.InAux[0][0], c.In[1], rows, cols, l)
		}, nil
	}
}

func softPoolOnCUDA(l int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		b, cols := sizeOf(c.Out)
		k := cuda.Load(c, &poolsSource, "soft_pool", cuda.Value("PIECE", 1))
		return func() error {
			return k.Launch(columnGrid(b, cols), c.Out, c.Aux[0], c.Aux[1], c.In[0], c.In[1], c.In[2], cols, l)
		}, nil
	}
}

func softPoolGradOnCUDA(l int) func(c *exec.DeviceCall) (exec.Step, error) {
	return func(c *exec.DeviceCall) (exec.Step, error) {
		rows, cols := sizeOf(c.Out)
		p := pieceOf(cols)
		k := cuda.Load(c, &poolsSource, "soft_pool_dx", cuda.Value("PIECE", p))
		return func() error {
			return k.Launch(pieceGrid(rows, cols, p), c.Out, c.Aux[0], c.In[0], c.In[1], c.In[2], c.In[3], c.In[4], c.InAux[0][0],
				c.InAux[0][1], rows, cols, l)
		}, nil
	}
}

func (p sortPool) onCUDA(c *exec.DeviceCall) (exec.Step, error) {
	b, cols := sizeOf(c.Out)
	weights := cuda.Load(c, &sortPoolSource, "sort_pool_weights", cuda.Value("PIECE", 1))
	sort := cuda.Load(c, &sortPoolSource, "sort_pool", cuda.Value("PIECE", 1))
	return func() error {
		w := c.Aux[sortPoolWeights]
		if err := weights.Launch(cuda.Grid{X: cuda.Blocks(b, 4), Threads: 128}, w, c.In[1], c.In[2], b, p.l,
			1/p.temperature); err != nil {
			return err
		}
		return sort.Launch(cuda.Grid{X: b, Y: cuda.Blocks(cols, 32), Threads: 256}, c.Out, c.Aux[sortPoolOrder], w, c.In[0],
			c.In[2], cols, p.l)
	}, nil
}

func (p sortPool) gradXOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, cols := sizeOf(c.Out)
	k := cuda.Load(c, &sortPoolSource, "sort_pool_dx", cuda.Value("PIECE", 1))
	return func() error {
		if err := cuda.Zero(c.Out); err != nil {
			return err
		}
		return k.Launch(pieceGrid(rows, cols, 1), c.Out, c.InAux[0][sortPoolOrder], c.InAux[0][sortPoolWeights], c.In[1], rows,
			cols, p.l)
	}, nil
}

func (p sortPool) gradScoresOnCUDA(c *exec.DeviceCall) (exec.Step, error) {
	rows, cols := sizeOf(c.In[1])
	k := cuda.Load(c, &sortPoolSource, "sort_pool_dscores", cuda.Value("PIECE", 1))
	return func() error {
		return k.Launch(cuda.Grid{X: cuda.Blocks(rows, 8), Threads: 256}, c.Out, c.InAux[0][sortPoolOrder],
			c.InAux[0][sortPoolWeights], c.In[0], c.In[1], c.In[2], rows, cols, p.l, 1/p.temperature)
	}, nil
}
