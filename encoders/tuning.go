package encoders

import (
	"strings"

	"gorgonia.org/gorgonia"
)

// Tuning trains a transformer by few parameters: some of its own, or ones that stand beside them. All
// its others keep their values, they are locked. The zero value trains none. Methods may be
// combined. Towers that are no transformers, pools of theirs and heads are trained as ever.
type Tuning struct {
	LoRA    LoRA
	Adapter Adapter
	Prompts Prompts
	SSF     bool // every linear layer and norm has a scale and a shift of what it gives
	BitFit  bool // biases are trained (Ben Zaken et al. 2022)
	Blocks  int  // so many of the last blocks are trained, and all that stands behind them
	// Metric is learned in the paths of low rank, of LoRA and of adapters (GSSF): they read x M in
	// the place of x (R, in). Its Dim is the width of x, whatever Dim says, and 0 Blocks are of 8 channels.
	Metric Metric
}

// metricChannels is the size of a block of a metric where the number of blocks is not said.
const metricChannels = 8

// tuning is that of a scope.
type tuning struct {
	Tuning
	context *Context // of dropout
	blocks  int      // of the transformer
}

// Tuned returns s with the tuning of the transformers that are built in it; the dropout of adapters is
// that of the context.
func (s Scope) Tuned(t Tuning, c *Context) Scope {
	s.tunes = &tuning{Tuning: t, context: c}
	return s
}

// transformer is the scope of a transformer of so many blocks, locked where it is tuned.
func (s Scope) transformer(blocks int) Scope {
	if s.tunes == nil {
		return s
	}
	t := *s.tunes
	t.blocks = blocks
	s.tuned = &t
	return s.As(Traits{Locked: true})
}

// given tells the context of the dropout of adapters that a transformer is given so many samples.
func (s Scope) given(n int) {
	if s.tuned != nil && s.tuned.context != nil {
		s.tuned.context.given(n, 1)
	}
}

// trains says whether a parameter of the transformer itself is trained.
func (t *tuning) trains(name string, of Traits) bool {
	if t.BitFit && of.Group == GroupBias {
		return true
	}
	i, inBlock := LayerOf(name)
	return t.Blocks > 0 && !of.Front && (!inBlock || i >= t.blocks-t.Blocks)
}

// added is the scope of what tuning adds to s, which is trained and not tuned itself.
func (s Scope) added() Scope {
	s.traits.Locked, s.tuned, s.tunes = false, nil, nil
	return s.As(Traits{Added: true})
}

// layer is the name of s.
func (s Scope) layer() string { return strings.TrimSuffix(s.prefix, "/") }

// linear says whether what the linear layer s gives is changed by tuning.
func (s Scope) tunesLinear() bool { return s.adapts() || s.tuned != nil && s.tuned.SSF }

// tunedLinear returns the output y (R, n) of the linear layer s for x (R, in), which is its columns from
// the given one on of out, as tuning changes it. The layer may have a bias or not.
func (s Scope) tunedLinear(x, y *gorgonia.Node, from, out int, bias bool) *gorgonia.Node {
	return s.scaledShifted(s.adapted(x, y, from, out), from, out, bias)
}

// metric returns x (R, in) M in the place of x, with M the parameter of a name, where tuning has a metric.
func (s Scope) metric(name string, m Metric, x *gorgonia.Node) *gorgonia.Node {
	m.Dim = columns("metric", x)
	if m.Form == "block_diag" {
		if m.Blocks == 0 && m.Dim%metricChannels == 0 {
			m.Blocks = m.Dim / metricChannels
		}
		if m.Blocks < 1 || m.Dim%m.Blocks != 0 {
			misuse("metric", x, "model.tuning.metric_blocks must divide the %d inputs of %s (got %d, and 0 stands for blocks of %d): choose a divisor, or leave the layer out of model.lora.layers", m.Dim, s.layer(), m.Blocks, metricChannels)
		}
	}
	shape := m.Shape()
	if shape == nil {
		return x
	}
	s = s.As(Traits{Group: GroupMetric, Settings: "model.tuning.metric and model.tuning.metric_blocks to those"})
	return FoldImages(x, s.Param(name, identity(shape...), shape...))
}
