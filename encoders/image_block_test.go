package encoders

import (
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
)

// TestImageBlock: a tower of style block without options has the parameters of style vit, and each option adds or takes
// those that it says. What stands for an image is the same whether its tokens are read too or not.
func TestImageBlock(t *testing.T) {
	names := func(change func(v *ViT)) []string {
		v := tinyViT
		v.Style, v.Block, v.NormFirst = StyleBlock, plainImageBlock, true
		v.Heads = 3
		change(&v)
		s := newStore(0)
		images := s.floats("images", 2, 3, 8, 8)
		_, whole := v.Encode(NewScope(s), images)
		alone := v.Class(NewScope(s), images)
		in := map[*gorgonia.Node]any{images: normals(3, 2*3*8*8)}
		if d := distance(s.run(t, whole, in), s.run(t, alone, in)); !(d < 1e-5) {
			t.Errorf("with tokens and without them an image differs by %v", d)
		}
		return s.list()
	}
	plain := names(func(*ViT) {})
	s := newStore(0)
	tinyViT.Forward(NewScope(s), s.floats("images", 2, 3, 8, 8))
	if !slices.Equal(plain, s.list()) {
		t.Errorf("without options it has %v, and style vit %v", plain, s.list())
	}
	for _, c := range []struct {
		change     func(v *ViT)
		more, less string // one of the names
	}{
		{func(v *ViT) { v.Block.QKNorm = true }, "blocks/01/attn/q_norm/bias (4)", ""},
		{func(v *ViT) { v.Block.AttentionNorm = true }, "blocks/00/attn/norm/weight (12)", ""},
		{func(v *ViT) { v.Block.MLPNorm = true }, "blocks/01/mlp/norm/weight (48)", ""},
		{func(v *ViT) { v.Block.Gated = true }, "blocks/01/mlp/fc1/weight (96, 12)", "blocks/01/mlp/fc1/weight (48, 12)"},
		{func(v *ViT) { v.Block.Relative = true }, "blocks/01/attn/relative (12, 3)", ""},
		{func(v *ViT) { v.Block.Rotary, v.Block.Positions = RotaryCells, false }, "", "pos_embed (5, 12)"},
		{func(v *ViT) { v.Block.Rotary, v.Registers = RotaryCentred, 2 }, "registers (2, 12)", ""},
		{func(v *ViT) { v.Block.FinalNorm = false }, "", "norm/weight (12)"},
		{func(v *ViT) { v.Block.PoolNorm, v.Pool = true, PoolMean }, "pool_norm/weight (12)", ""},
		{func(v *ViT) { v.Block.PoolAll, v.Pool, v.Block.PoolMLP, v.Block.PoolHeads = true, PoolAttention, 5, 2 }, "pool/mlp/fc1/weight (5, 12)", ""},
		{func(v *ViT) {
			v.Block.PoolWidth, v.Block.PoolHeads, v.Block.PoolNorm, v.Block.FinalNorm, v.Pool = 6, 2, true, false, PoolAttention
		}, "pool/kv/weight (12, 12)", "pool/mlp/fc1/weight (48, 12)"},
	} {
		got := names(c.change)
		if c.more != "" && !slices.Contains(got, c.more) || c.less != "" && slices.Contains(got, c.less) {
			t.Errorf("want %q and not %q in %v", c.more, c.less, got)
		}
	}
}
