package model

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/ops/arith"
	"gorgonia.org/gorgonia"
)

// mapper is a judger that looks at pictures.
type mapper interface {
	judger
	// mapped is judged, and says in x what heat maps are made of.
	mapped(x *heating, p *Pairs, net *net, n int) *gorgonia.Node
}

// mapper returns the judger where it has heat maps, else nil.
func (p *Pairs) mapper() mapper {
	if m, ok := p.judger().(mapper); ok && p.hasPatches() {
		return m
	}
	return nil
}

// hasPatches says whether images are patches, or places of a residual network, in a square.
func (p *Pairs) hasPatches() bool {
	switch p.design.image.tower.(type) {
	case encoders.ImageTower, encoders.ResNetTower:
		return true
	}
	return false
}

// HasJudgedMaps says whether JudgedMaps has maps.
func (p *Pairs) HasJudgedMaps() bool { return p.mapper() != nil }

// JudgedMaps returns what the P patches of each picture say for a class of each of the n rows of b (JudgeColumns), as a rule the
// one that Judge chooses: (n, pictures, P). S is the logit of the class of a row. With fusion layers the map of a picture is that of
// the attention of the words to it in the layer in the middle, the third of six, as HeatMaps has it. Of an image tower alone it is
//
//	H_p = max(0, sum_d a_pd dS/da_pd)
//
// over the D channels of the patches a that its last block reads, or that are pooled: the last feature map of a residual network,
// where it is Grad-CAM (explain.Elementwise). A computation is kept for every number of rows: call it with few different ones.
// It ends early with the error of ctx.
func (p *Pairs) JudgedMaps(ctx context.Context, b *batch.Batch, classes []int32) ([]float32, error) {
	n, m := b.Rows(), p.mapper()
	switch {
	case m == nil:
		return nil, errJudgesNothing
	case len(classes) != n:
		return nil, fmt.Errorf("model: heat maps of %d rows need a class for each (got %d)", n, len(classes))
	}
	x, err := p.heating(heatKey{score: "judged", rows: n}, func(x *heating, net *net, _ encoders.Scope) *gorgonia.Node {
		z := m.mapped(x, p, net, n) // (n, k)
		k := z.Shape()[1]
		x.chosen = make([]float32, n*k)
		return arith.Sum(arith.SumProducts(z, net.inputs.SharedFloats("chosen classes", x.chosen, n, k), 1))
	})
	if err != nil {
		return nil, err
	}
	k := len(x.chosen) / n
	clear(x.chosen)
	for i, c := range classes {
		if c < 0 || int(c) >= k {
			return nil, fmt.Errorf("model: there is no class %d: the model tells %d, from 0 on", c, k)
		}
		x.chosen[i*k+int(c)] = 1
	}
	return x.maps(ctx, p, b)
}
