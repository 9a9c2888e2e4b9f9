package encoders

import (
	"github.com/geoalign/geoalign/ops/layout"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// prompts returns p, the learned tokens without positions in every sequence of a transformer (VPT, Jia et al. 2022,
// section 3.2): of images between class tokens and patches, of texts in front. They are the parameter
// prompts (p, D) of a block, which starts from N(0, .02^2). Attention reads them; nothing behind the
// blocks does.
func (s Scope) prompts() int {
	if s.tuned == nil {
		return 0
	}
	return s.tuned.PromptTokens
}

// prompt returns the prompts of block i, (p, D), nil where it has none of its own. s is the scope of the
// block.
func (s Scope) prompt(i, d int) *gorgonia.Node {
	if s.prompts() == 0 || i > 0 && !s.tuned.PromptDeep {
		return nil
	}
	return s.added().Param("prompts", Normal(.02), s.tuned.PromptTokens, d)
}

// prompted puts prompts (p, D), those of block i, in front of row at of every sequence of x: (N*(l+p), D).
// Without prompts it is x. x is (N*l, D) at the first block; at the others prompts take the place of those that
// are there, at the same rows.
func prompted(i int, x, prompts *gorgonia.Node, l, at int) *gorgonia.Node {
	if prompts == nil {
		return x
	}
	p := prompts.Shape()[0]
	if i > 0 {
		x = layout.SequenceRest(x, l+p, at, p)
	}
	return layout.InsertRows(x, nn.RepeatRows(prompts, sequences("prompts", x, l)), l, p, at)
}

// unprompted returns x (N*(l+p), D) without the p prompts in front of its sequences: (N*l, D).
func unprompted(x *gorgonia.Node, l, p int) *gorgonia.Node {
	if p == 0 {
		return x
	}
	return layout.SequenceRest(x, l+p, 0, p)
}

// withPrompts returns lengths (R) int32 of texts with p prompts in front; nil for nil.
func withPrompts(lengths *gorgonia.Node, p int) *gorgonia.Node {
	if lengths == nil || p == 0 {
		return lengths
	}
	return layout.AddInt(lengths, p)
}
