package oncuda

import (
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
)

// prepare makes the step.
func (x *Negative) prepare(c *exec.DeviceCall, backward bool) cuda.Step {
	if !x.fits() {
		return nil
	}
	b := x.begin(c, backward)
	q, k := x.Sides[x.Query].Len, x.Sides[1-x.Query].Len
	above, shares := b.matrix(), b.floats(b.most[x.Query]*q*q)
	b.scratch()
	weigh, weighAbove, share := b.kernel("weigh"), b.kernel("weigh_above"), b.kernel("share")
	score, slopes := b.kernel("negative_score"), b.kernel("negative_slopes")
	// makeShares makes u of the queries of the block; nil where there is none.
	makeShares := func() any {
		if x.Smooth == 0 {
			return nil
		}
		b.grams(x.Query, shares)
		var lengths any
		if at := x.Sides[x.Query].Lengths; at >= 0 {
			lengths = cuda.MatrixOf(c.In[at], b.now[x.Query].from, 0).At
		}
		g := cuda.Grid{X: b.now[x.Query].count, Threads: 128}
		share.Enqueue(g, b.at(shares), lengths, q, x.Sides[x.Query].First, x.Smooth)
		return b.at(shares)
	}
	return b.run(func() {
		s, t := b.at(b.products[attentionSite]), b.at(b.products[similaritySite])
		weights, mixed, norms := b.at(b.weights), b.at(b.mixed), b.at(b.norms)
		boundary := cuda.MatrixOf(c.In[x.Boundary], x.Value, 0).At
		u := makeShares()
		b.launch(weigh, k, []any{weights, s}, []any{x.Scale})
		b.launch(weighAbove, 0, []any{b.at(above), s}, []any{x.Scale, boundary})
		b.mix(above)
		if !backward {
			b.launch(score, 3*q, []any{c.Out, c.Aux[0], b.at(above), mixed, weights, t, norms, u, boundary}, nil)
			return
		}
		b.launch(slopes, x.sharedFloats(),
			[]any{b.dattended(), b.dscored(), mixed, b.at(b.dnorm), b.at(above), weights, s, t, norms, u,
				boundary, c.In[x.Boundary+1]},
			[]any{b.now[x.Query].count * q, b.ldd(), x.Scale})
		b.unmix(above)
	})
}
